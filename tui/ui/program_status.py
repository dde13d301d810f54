"""Program status for terminals that list what their programs do (OSC 7501).

The Program Status Protocol, revision 0.4: a program writes `ESC ] 7501 ;`, pairs `key=value` joined
by `:`, and ST. Each report replaces the one before it. A terminal that knows the protocol answers
`QUERY` with the same bytes, before it answers what follows there. What was read about it, and from
whom: `tests/terminals/program_status.json`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from tui.app.frontend import TurnResult
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact
from tui.core.redaction import mask
from tui.core.text_cleaning import one_line, visible
from tui.tools.registry import title as title_of

State: TypeAlias = Literal["idle", "working", "waiting", "blocked", "done", "error"]
"""A program that is `waiting` needs no person, such as for a server; one that is `blocked` does."""
Kind: TypeAlias = Literal["permission", "question", "auth"]
"""A person's part in what is blocked: to allow something, to answer, or to sign in."""

QUERY: Final = "\x1b]7501;?\x1b\\\x1b[c"
"""Asks whether the terminal knows the protocol. Every terminal answers the second part."""
CLEAR: Final = "\x1b]7501;state=clear\x1b\\"
_STATES: Final[Mapping[State, str]] = {"waiting": "working"}
_WITH_PROGRESS: Final = ("working", "waiting", "blocked")
_TITLE_BYTES: Final = 192
"""The protocol's most. A longer title voids the whole report."""
_MESSAGE_BYTES: Final = 512
"""A quarter of the protocol's most: terminals show a line of it."""


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """A program's state as a person is told of it. `percent` is 0 to 100, None if unknown."""

    state: State = "idle"
    message: str = ""
    kind: Kind | None = None
    percent: int | None = None

    @property
    def active(self) -> bool:
        """True while something goes on or waits."""
        return self.state in _WITH_PROGRESS

    def report(self, name: str) -> str:
        """Return the code that tells the terminal, with the name of the session."""
        pairs = [f"state={_STATES.get(self.state, self.state)}", "app=holdfast"]
        if self.state == "blocked" and self.kind:
            pairs.append(f"kind={self.kind}")
        if self.percent is not None and self.active:
            pairs.append(f"progress={min(100, max(0, self.percent))}")
        if title := _encoded(name, _TITLE_BYTES):
            pairs.append(f"title={title}")
        if message := _encoded(self.message, _MESSAGE_BYTES):
            pairs.append(f"msg={message}")
        return f"\x1b]7501;{':'.join(pairs)}\x1b\\"


def _encoded(text: str, most: int) -> str:
    """Return a text as the protocol has it: UTF-8 of at most so many bytes in base64, without
    controls, and without known kinds of keys, for it may be shown on other devices."""
    line = visible(one_line(mask(text)[0])).encode("utf-8", "replace")
    return b64encode(line[:most].decode("utf-8", "ignore").encode()).decode("ascii")


def outcome_of(result: TurnResult | None) -> ProgramStatus:
    """Return the status after a turn, or after something else that ran (None)."""
    match result:
        case TurnResult(outcome="done"):
            return ProgramStatus("done")
        case None | TurnResult(outcome="interrupted"):
            return ProgramStatus("idle")
        case _:
            return ProgramStatus("error", result.error.message if result.error else result.outcome)


@dataclass(slots=True)
class TurnStatus:
    """Follows the facts of a turn to its status. Questions of sub-agents count as well."""

    _calls: dict[str, str] = field(default_factory=dict[str, str])
    _open: dict[str, ProgramStatus] = field(default_factory=dict[str, ProgramStatus])
    """What is asked, by the id of the call, in the order in which it was."""

    @property
    def asked(self) -> ProgramStatus | None:
        """The oldest question that waits for a person."""
        return next(iter(self._open.values()), None)

    def begin(self) -> None:
        """Forget the turn before."""
        self._calls.clear()
        self._open.clear()

    def see(self, event: Fact) -> ProgramStatus | None:
        """Return the status after a fact; None where it is as before."""
        inner = event.event if isinstance(event, facts.SubAgentEvent) else event
        match inner:
            case facts.ToolStarted(id=id_, name=name, label=label):
                self._calls[id_] = title_of(name, label)
                if inner is event and not self._open:
                    return ProgramStatus("working", self._calls[id_])
                return None
            case facts.PermissionAsked(id=id_, name=name):
                call = self._calls.get(id_) or title_of(name, "")
                self._open[id_] = ProgramStatus("blocked", call, "permission")
            case facts.QuestionAsked(id=id_, questions=questions):
                asked = " ".join(str(one.get("question", "")) for one in questions)
                self._open[id_] = ProgramStatus("blocked", asked, "question")
            case facts.PermissionAnswered(id=id_):
                self._open.pop(id_, None)
                return self.asked or ProgramStatus("working", self._calls.get(id_, ""))
            case facts.QuestionAnswered(id=id_):
                self._open.pop(id_, None)
            case facts.TurnFinished() if self._open and inner is event:
                self._open.clear()
            case facts.Parked():
                return ProgramStatus("waiting", "Waiting for the server")
            case facts.RequestSent() if inner is event:
                pass
            case _:
                return None
        return self.asked or ProgramStatus("working")
