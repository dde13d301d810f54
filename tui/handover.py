"""The terminal, taken over from the first frame without a gap: no flash, no key lost or moved."""

from __future__ import annotations

from threading import Event

from textual.drivers.linux_driver import LinuxDriver

from tui.early import ALT_SCREEN, EarlyPrompt, Typed

_POLL_S = 0.01


class HandOver:
    """What an app needs to follow `first` in the same terminal.

    `driver` ends the first frame, whose picture stays until the app draws over it. No key is
    read before `listen`: Textual would not know yet where to put it. Leaving, or being
    suspended, puts back the modes from before the first frame.
    """

    def __init__(self, first: EarlyPrompt) -> None:
        self._listening = Event()
        self._first = first
        self.driver = _driver(first, self._listening)

    def typed(self) -> Typed:
        """What the first frame took."""
        return self._first.finish()

    def listen(self) -> None:
        """From here on there is a prompt for what is typed."""
        self._listening.set()


def _driver(first: EarlyPrompt, listening: Event) -> type[LinuxDriver]:
    class Driver(LinuxDriver):
        _following = False

        def start_application_mode(self) -> None:
            following = self._following = not first.over
            first.finish()
            super().start_application_mode()
            self._following = False
            if following:
                self.attrs_before = first.before

        def write(self, data: str) -> None:
            """Not to the alternate screen a second time: some terminals would clear it."""
            if not (self._following and data == ALT_SCREEN):
                super().write(data)

        def run_input_thread(self) -> None:
            while not listening.wait(_POLL_S):
                if self.exit_event.is_set():
                    return
            super().run_input_thread()

    return Driver
