"""The faults of the drill: what goes wrong, what the program does, and the person's progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.demo.guide import Guide, GuideStep
from tui.provider.practice.script import Fault


@dataclass(frozen=True, slots=True)
class DrillStep(GuideStep):
    """A fault to play, and its announcement."""

    happens: str
    """A sentence that says what goes wrong."""
    done: str
    """A sentence that says what the program does about it."""
    prompt: str = "read README.md"
    """The prompt that is put into the input line for it."""


STEPS: Final[Mapping[str, DrillStep]] = {
    "429": DrillStep(
        "The server limits the rate and asks for a 2 s wait.",
        "Holdfast waits exactly that long. Press Tab then r, or /retry, to go now.",
        fault=Fault(status=429, retry_after=2),
    ),
    "529": DrillStep(
        "The server is overloaded and doesn't say for how long.",
        "Holdfast retries after 1, 2 and 4 s, then switches to the fallback model in the settings.",
        fault=Fault(status=529),
        attempts=4,
    ),
    "cut": DrillStep(
        "The connection drops in the middle of the answer.",
        "The partial answer is discarded (one line remains) and the request retried.",
        "read notes.md",
        fault=Fault(cut_after=40),
    ),
    "eof": DrillStep(
        "The answer ends early, without the event that closes it.",
        "Holdfast never takes it for a complete answer and sends the request again.",
        fault=Fault(eof_after=40),
    ),
    "stall": DrillStep(
        "The answer starts, then nothing arrives for 8 s.",
        "Holdfast shows the silence after 5 s, then gives up on the attempt and retries.",
        "read notes.md",
        fault=Fault(stall_s=8, after=20),
    ),
    "overflow": DrillStep(
        "The server says the conversation is too long for the model.",
        "Holdfast shortens it step by step, in sight, and retries; the record keeps everything.",
        fault=Fault(overflow=True),
    ),
    "badjson": DrillStep(
        "The input of a tool call arrives broken.",
        "The call doesn't run; the model is told, and tries again.",
        "read notes.md",
        fault=Fault(bad_json=True),
    ),
    "auth": DrillStep(
        "The server rejects the key.",
        "Retrying won't help: a card offers another key. Press Esc, then /retry, to go on.",
        fault=Fault(status=401),
    ),
    "slow": DrillStep(
        "The server takes 8 s to send the first byte.",
        "Nothing is wrong: Holdfast shows the silence, then takes the answer.",
        "read notes.md",
        fault=Fault(slow_s=8),
    ),
    "park": DrillStep(
        "Every model is rate limited for the next 90 s.",
        "Holdfast parks the session, even if you close the program; Tab and r, or /retry, continue"
        " at once.",
        fault=Fault(status=429, retry_after=90),
        attempts=2,
        every_model=True,
    ),
    "400": DrillStep(
        "The server says the request is invalid.",
        "Retrying as is would fail again: a card shows your options, each offered once.",
        "read notes.md",
        fault=Fault(
            status=400,
            message="messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
    ),
}
"""The steps by the names of `holdfast drill`."""

INTRO: Final = (
    "This is a drill. Everything is offline and fake. Press Enter to send the sample prompt."
)
OVER: Final = "The drill is over. Continue with the practice model, or quit with Ctrl+Q."


class Drill(Guide[DrillStep]):
    """The faults of a drill, one after the other; `names` are all of them."""

    def __init__(self, faults: Sequence[str]) -> None:
        """Raises UsageError for a name that is not in STEPS."""
        for name in faults:
            if name not in STEPS:
                raise UsageError(
                    f"No fault is named {name!r}.",
                    hint=f"The faults are: {', '.join(STEPS)}.",
                )
        self.names = tuple(faults)
        super().__init__([STEPS[name] for name in faults], DrillStep("", "", ""))

    def announcement(self) -> str:
        """Return the text before the step."""
        if self.over:
            return OVER
        number = f"{self.at + 1} of {len(self.names)}"
        return f"Drill {number}, {self.names[self.at]}. {self.step.happens} {self.step.done}"

    def turn_ended(self, *, failed: bool = False) -> bool:
        """Continue with the next step if this one was played to its end. True if it was.

        A step whose turn failed was not: the person has yet to choose how to continue.
        """
        if failed or not self.struck:
            return False
        self.go(self.at + 1)
        return True
