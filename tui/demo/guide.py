"""The common base of the drill and the tour: a folder of their own, and steps one after the other,
each with a fault that its first requests may meet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Generic, TypeVar

from tui.core import plain_detection, theme_cache
from tui.core.dataclass import dataclass
from tui.core.paths import folders
from tui.core.toml_files import parse_toml
from tui.provider.practice.script import Fault
from tui.ui.toolkit.themes import DEFAULT_DARK

if TYPE_CHECKING:
    from tui.app.options.arguments import Options
    from tui.ui.app import HoldfastApp


def need_terminal(what: str, *, hint: str) -> None:
    """Raise UsageError if there is no terminal to show `what` on."""
    plain_detection.need_terminal(f"{what} needs a terminal.", hint)


def theme_of(options: Options) -> str:
    """Return the requested theme, else that of the last run."""
    return options.screen.theme or theme_cache.load().get("theme", DEFAULT_DARK)


def show(app: HoldfastApp) -> int:
    """Run an app to its end and return the exit code; raises the error that it failed with."""
    return app.run_to_end()


@contextmanager
def place(name: str, files: Mapping[str, str], *, settings: str = "") -> Generator[Path]:
    """Make a scratch folder with everything that a session needs: `home` for the program, `project`
    with files.

    While it exists, it is HOLDFAST_HOME; the person's own themes are there too, and their setting
    of motion applies. Everything is removed at the end.
    """
    before, mine = os.environ.get("HOLDFAST_HOME"), folders()
    themes, calm = mine.config / "themes", _wants_reduced_motion(mine.config_file)
    with TemporaryDirectory(prefix=f"holdfast-{name}-", ignore_cleanup_errors=True) as made:
        root = Path(os.path.realpath(made))
        project, config = root / "project", root / "home" / "config"
        project.mkdir()
        config.mkdir(parents=True)
        motion = 'motion = "reduced"\n' if calm else ""
        (config / "config.toml").write_text(motion + settings, encoding="utf-8")
        for path, text in files.items():
            (project / path).write_text(text, encoding="utf-8")
        if themes.is_dir():
            shutil.copytree(themes, config / "themes", ignore_dangling_symlinks=True)
        os.environ["HOLDFAST_HOME"] = str(root / "home")
        try:
            yield root
        finally:
            if before is None:
                del os.environ["HOLDFAST_HOME"]
            else:
                os.environ["HOLDFAST_HOME"] = before


def _wants_reduced_motion(config: Path) -> bool:
    """True if nothing should move by itself. Other faults of that file are not reported here."""
    try:
        return parse_toml(config.read_text(encoding="utf-8")).get("motion") == "reduced"
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideStep:
    """A step, and the fault that its requests meet."""

    fault: Fault | None = None
    attempts: int = 1
    """Number of attempts in a row that the fault strikes."""
    every_model: bool = False
    """True if it strikes every model; otherwise only the model that is asked first."""


StepT = TypeVar("StepT", bound=GuideStep)


class Guide(Generic[StepT]):
    """Steps, and the one that the person is at; `end` comes after the last."""

    def __init__(self, steps: Sequence[StepT], end: StepT) -> None:
        self.steps = tuple(steps)
        self._end = end
        self.go(0)

    @property
    def step(self) -> StepT:
        return self._end if self.over else self.steps[self.at]

    @property
    def over(self) -> bool:
        return self.at >= len(self.steps)

    def go(self, to: int) -> None:
        """Go to the beginning of a step."""
        self.at, self.struck = to, 0
        self._model, self._passed = "", False

    def strike(self, model: str) -> Fault | None:
        """Return the fault that an attempt with a model meets, if any."""
        step = self.step
        if step.fault is None or self._passed:
            return None
        self._model = self._model or model
        if model != self._model and not step.every_model:
            self._passed = True
            return None
        self.struck += 1
        self._passed = self.struck >= step.attempts
        return step.fault
