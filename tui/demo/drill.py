"""`holdfast drill`: every fault that a server can show, played offline on the real screen.

The faults come one after the other. Each is announced in a line that says what will go wrong and
what the program does about it, a prompt is put into the input line, and the first request of the
next turn meets the fault. All of it happens in a folder of its own that is removed at the end:
settings, sessions and files of the person are neither used nor touched, and the model is the
practice model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tui.core.clock import Clock
from tui.core.errors import UsageError
from tui.demo import scratch
from tui.provider.base import Provider, Request
from tui.provider.practice.faults import FaultyProvider
from tui.provider.practice.script import Fault

if TYPE_CHECKING:
    from tui.app.options.arguments import Options


_SETTINGS = """\
fallback_models = ["practice-2"]
"""
_FILES = {
    "README.md": """\
# Drill

A scratch folder. Everything here is removed when the drill is over.
""",
    "notes.md": """\
# Notes

- the drill plays the faults of a server
- nothing that happens here touches your files
""",
}


def run(options: Options) -> int:
    """Open the screen with the row of faults. Returns the exit code; raises UsageError."""
    scratch.need_terminal(
        "The drill",
        hint="Without one, a practice script plays faults: holdfast -p --practice-script FILE",
    )
    from tui.demo.drill_screen import DrillApp  # noqa: PLC0415 - the screen is heavy

    theme = scratch.theme_of(options)
    with place() as root:
        return scratch.show(DrillApp.at(root, options.faults, theme=theme))


def place() -> AbstractContextManager[Path]:
    """The folder of a drill: see `tui.demo.scratch.place`."""
    return scratch.place("drill", _FILES, settings=_SETTINGS)


@dataclass(frozen=True, slots=True)
class DrillStep:
    """A fault that is played, and what is said of it."""

    fault: Fault
    happens: str
    """What goes wrong, in a sentence."""
    done: str
    """What the program does about it, in a sentence."""
    prompt: str = "read README.md"
    """The prompt that is put into the input line for it."""
    attempts: int = 1
    """How many attempts in a row the fault strikes."""
    every_model: bool = False
    """It strikes those of every model; otherwise only those of the model that is asked first."""


STEPS: Final[Mapping[str, DrillStep]] = {
    "429": DrillStep(
        Fault(status=429, retry_after=2),
        "The server limits the rate and says when it wants to be asked again, in 2 s.",
        "That is waited for to the second, with a countdown; Tab and r, or /retry, go at once.",
    ),
    "529": DrillStep(
        Fault(status=529),
        "The server is overloaded and names no time.",
        "It is asked again after 1, 2 and 4 s, then another model is: one stands in the settings.",
        attempts=4,
    ),
    "cut": DrillStep(
        Fault(cut_after=40),
        "The connection is lost in the middle of the answer.",
        "What came of it is void and kept as one line; the request is sent again.",
        "read notes.md",
    ),
    "eof": DrillStep(
        Fault(eof_after=40),
        "The answer ends early, without the event that closes it.",
        "It is never taken for a whole answer; the request is sent again.",
    ),
    "stall": DrillStep(
        Fault(stall_s=8, after=20),
        "The answer begins, then nothing comes for 8 s.",
        "The silence is counted from 5 s on; then the attempt is ended and made again.",
        "read notes.md",
    ),
    "overflow": DrillStep(
        Fault(overflow=True),
        "The server says that the conversation is too long for the model.",
        "It is shortened step by step, shown as it goes, and sent again; the record keeps all.",
    ),
    "badjson": DrillStep(
        Fault(bad_json=True),
        "The input of a tool call arrives broken.",
        "The call is not run; the model is told, and calls again.",
        "read notes.md",
    ),
    "auth": DrillStep(
        Fault(status=401),
        "The server refuses the key.",
        "That is not tried again by itself: a card offers another key; Esc, then /retry goes on.",
    ),
    "slow": DrillStep(
        Fault(slow_s=8),
        "The server takes 8 s for the first byte.",
        "Nothing is wrong: the silence is counted, then the answer is taken.",
        "read notes.md",
    ),
    "park": DrillStep(
        Fault(status=429, retry_after=90),
        "Every model is limited, and is not to be asked before 90 s have passed.",
        "The session is parked, even if you close the program; Tab and r, or /retry, go on at"
        " once.",
        attempts=2,
        every_model=True,
    ),
    "400": DrillStep(
        Fault(
            status=400,
            message="messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
        "The server says that the request is not valid.",
        "The same would fail again: a card shows the ways on, each offered once.",
        "read notes.md",
    ),
}
"""By the names of `holdfast drill`."""

INTRO: Final = (
    "This is a drill: the practice model plays the faults of a server, offline, in a folder of"
    " its own. Enter sends the prompt that is laid ready; any other does as well."
)
OVER: Final = (
    "The drill is over, and so are the faults. Go on with the practice model, or leave: Ctrl+Q."
)


class Drill:
    """The faults of a drill, one after the other; `names` are all of them. Each strikes the first
    requests of a turn."""

    def __init__(self, faults: Sequence[str]) -> None:
        """Raises UsageError for a name that is not in STEPS."""
        for name in faults:
            if name not in STEPS:
                raise UsageError(
                    f"There is no fault named {name!r}.",
                    hint=f"The faults are: {', '.join(STEPS)}.",
                )
        self.names = tuple(faults)
        self._at = 0
        self._struck = 0
        self._model = ""
        self._over = False

    @property
    def step(self) -> DrillStep | None:
        """What is played now, None at the end of the drill."""
        return STEPS[self.names[self._at]] if self._at < len(self.names) else None

    def announcement(self) -> str:
        """What is said before the step."""
        step = self.step
        if step is None:
            return OVER
        number = f"{self._at + 1} of {len(self.names)}"
        return f"Drill {number}, {self.names[self._at]}. {step.happens} {step.done}"

    def strike(self, model: str) -> Fault | None:
        """The fault that an attempt with a model meets, if it meets one."""
        step = self.step
        if step is None or self._over:
            return None
        self._model = self._model or model
        if model != self._model and not step.every_model:
            self._over = True
            return None
        self._struck += 1
        self._over = self._struck >= step.attempts
        return step.fault

    def turn_ended(self, *, failed: bool = False) -> bool:
        """Go on to the next step if this one was played to its end. Returns whether it was.

        One whose turn failed is not: the person has yet to choose how to go on.
        """
        if self.step is None or failed or not self._struck:
            return False
        self._at += 1
        self._struck, self._model, self._over = 0, "", False
        return True


class FaultSource(Protocol):
    """Says which fault an attempt with a model meets, None for none."""

    def strike(self, model: str) -> Fault | None: ...


def with_faults(model: Provider, source: FaultSource, clock: Clock) -> Provider:
    """A model that meets the faults of a source."""

    async def strike(request: Request) -> Fault | None:
        return source.strike(request.model)

    return FaultyProvider(model, strike, clock)
