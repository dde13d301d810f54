"""The terminal, taken over from the first frame without a gap: no flash, no key echoed twice."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver

from tui.early import ALT_SCREEN, EarlyPrompt


def driver_after(first: EarlyPrompt) -> type[LinuxDriver]:
    """A driver for the app that follows `first` in the same terminal.

    It ends the first frame, whose picture stays until the app draws over it: some terminals
    would clear the alternate screen if they were sent there twice. Leaving, or being suspended,
    puts back the modes from before the first frame.
    """

    class Driver(LinuxDriver):
        _following = False

        def start_application_mode(self) -> None:
            following, modes = not first.over, first.before
            first.finish()
            self._following = following
            super().start_application_mode()
            self._following = False
            if following:
                self.attrs_before = modes

        def write(self, data: str) -> None:
            if not (self._following and data == ALT_SCREEN):
                super().write(data)

    return Driver
