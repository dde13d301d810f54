"""The tour: which fault is played next, what is said of it, and the model that plays it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from tui.core.clock import Clock
from tui.core.errors import UsageError
from tui.provider.base import Provider, Request
from tui.provider.practice.faults import Struck
from tui.provider.practice.script import Fault


@dataclass(frozen=True, slots=True)
class Step:
    """`fault` is played; `happens` is what goes wrong, `done` what the program does about it, in
    a sentence each.

    `attempts` is how many in a row it strikes: of the model that is asked first, with
    `every_model` of any.
    """

    fault: Fault
    happens: str
    done: str
    prompt: str = "read README.md"
    attempts: int = 1
    every_model: bool = False


STEPS: Final[Mapping[str, Step]] = {
    "429": Step(
        Fault(status=429, retry_after=2),
        "The server limits the rate and says when it wants to be asked again, in 2 s.",
        "That is waited for to the second, with a countdown; Tab and r, or /retry, go at once.",
    ),
    "529": Step(
        Fault(status=529),
        "The server is overloaded and names no time.",
        "It is asked again after 1, 2 and 4 s, then another model is: one stands in the settings.",
        attempts=4,
    ),
    "cut": Step(
        Fault(cut_after=40),
        "The connection is lost in the middle of the answer.",
        "What came of it is void and kept as one line; the request is sent again.",
        "read notes.md",
    ),
    "eof": Step(
        Fault(eof_after=40),
        "The answer ends early, without the event that closes it.",
        "It is never taken for a whole answer; the request is sent again.",
    ),
    "stall": Step(
        Fault(stall_s=8, after=20),
        "The answer begins, then nothing comes for 8 s.",
        "The silence is counted from 5 s on; then the attempt is ended and made again.",
        "read notes.md",
    ),
    "overflow": Step(
        Fault(overflow=True),
        "The server says that the conversation is too long for the model.",
        "It is shortened step by step, shown as it goes, and sent again; the record keeps all.",
    ),
    "badjson": Step(
        Fault(bad_json=True),
        "The input of a tool call arrives broken.",
        "The call is not run; the model is told, and calls again.",
        "read notes.md",
    ),
    "auth": Step(
        Fault(status=401),
        "The server refuses the key.",
        "That is not tried again by itself: a card offers another key; Esc, then /retry goes on.",
    ),
    "slow": Step(
        Fault(slow_s=8),
        "The server takes 8 s for the first byte.",
        "Nothing is wrong: the silence is counted, then the answer is taken.",
        "read notes.md",
    ),
    "park": Step(
        Fault(status=429, retry_after=90),
        "Every model is limited, and is not to be asked before 90 s have passed.",
        "The session is parked, even if you close the program; Tab and r, or /retry, go on at"
        " once.",
        attempts=2,
        every_model=True,
    ),
    "400": Step(
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


class Tour:
    """A row of faults, one for the first requests of each turn. `names` are all."""

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
    def step(self) -> Step | None:
        """What is played now, None at the end of the tour."""
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

        One whose turn failed is not: the person has yet to choose a way on.
        """
        if self.step is None or failed or not self._struck:
            return False
        self._at += 1
        self._struck, self._model, self._over = 0, "", False
        return True


class Strikes(Protocol):
    """Says which fault an attempt with a model meets, None for none."""

    def strike(self, model: str) -> Fault | None: ...


class Stage(Struck):
    """A model that meets the faults of a tour."""

    def __init__(self, model: Provider, tour: Strikes, clock: Clock) -> None:
        async def strike(request: Request) -> Fault | None:
            return tour.strike(request.model)

        super().__init__(model, strike, clock)
