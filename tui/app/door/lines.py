"""The lines between the process that has a session open, its owner, and those who watch it.

One line is one JSON object. A watcher connects and gets `Hello`, `SessionStatus` and an `AskedLine`
for each open question; from then on each change of them. With `Watch` it gets the conversation too:
`RecordEnd`, then facts. Up to the record that `RecordEnd` names, the session's file has everything;
the facts that follow tell what isn't in it yet, then what happens, as it happens.

The same lines go over ssh (`holdfast serve --stdio`), where the other end can't read the file:
there `RecordLines` bring it.

A watcher's request has a number of its own choice, and is answered by one `RequestOutcome` with it.
One that is sent again, since the line was cut before the answer came, has no second effect.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from tui.core.errors import HoldfastError
from tui.permissions.asked import Asked

PROTOCOL: Final = 1
"""The number of this protocol. It changes where an older program would misread a line."""

MAX_LINE: Final = 64_000_000
"""Bytes of a line: a prompt with all the images that a request takes."""

OwnerKind: TypeAlias = Literal[
    "screen", "plain", "background", "print", "editor", "program", "none"
]
"""The kind of front end that has the session open; "none": nobody has."""

State: TypeAlias = Literal[
    "waiting", "working", "parked", "idle", "done", "failed", "stopped", "interrupted", "saved"
]
"""The state of a session: it waits for the person's answer, a turn runs, it waits for the time that
the server named, it is open and nothing runs; or it isn't open, and its last turn was done, failed,
was stopped, was killed; or is older than what anybody remembers."""

OPEN_STATES: Final = frozenset({"waiting", "working", "parked", "idle"})


class LineError(HoldfastError):
    """A line that isn't one of these."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


# From the owner


class Hello(_Line, frozen=True, tag="hello"):
    """The first line: who has the session. `path` is "" for one that isn't saved."""

    protocol: int = PROTOCOL
    version: str = ""
    session: str = ""
    path: str = ""
    cwd: str = ""
    pid: int = 0
    kind: OwnerKind = "none"


class SessionStatus(_Line, frozen=True, tag="status"):
    """The state of the session now. `detail` says what it does or waits for, in a few words;
    `since` is the time of the last change of `state`; `unsaved` says why its steps can't be written
    just now. `profile` is the person's, "" for none."""

    state: State = "idle"
    detail: str = ""
    since: str = ""
    title: str = ""
    model: str = ""
    branch: str = ""
    cost_usd: float | None = None
    unsaved: str = ""
    profile: str = ""


class AskedLine(_Line, frozen=True, tag="asked"):
    """A question waits for the person. `number` names it, and no other one of any process."""

    number: str
    asked: Asked
    since: str = ""


class Settled(_Line, frozen=True, tag="settled"):
    """A question no longer waits: it was answered here or elsewhere, or nobody wants to know."""

    number: str


class RecordEnd(_Line, frozen=True, tag="record_end"):
    """The place in the record that the next lines follow: behind the id `last`; "" for none."""

    last: str = ""


class RecordLines(_Line, frozen=True, tag="record_lines"):
    """Lines of the session's file, as they are there. With `afresh` all that came before is
    void."""

    lines: tuple[str, ...] = ()
    afresh: bool = False


class UnsentLine(_Line, frozen=True, tag="unsent"):
    """Work that the last owner left behind when it ended: `texts` that were typed or queued and not
    sent, the person's own `commands` that did not run, and as much of an `answer` as had streamed.
    Whoever sends a prompt then sends it in the place of all that."""

    texts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    answer: str = ""


class FactLine(_Line, frozen=True, tag="fact"):
    """A fact, in full (`tui.core.facts.lines`)."""

    fact: dict[str, Any]


class OwnerNotice(_Line, frozen=True, tag="notice"):
    """Something that the owner's front end said, and that need not stay."""

    text: str
    level: Literal["info", "success", "warning", "error"] = "info"
    hint: str = ""


class RequestOutcome(_Line, frozen=True, tag="outcome"):
    """The answer to the request with this number. `outcome`: a prompt was sent, joined the turn, or
    waits in the queue; all else was done; or it was refused, for the reason in `text`."""

    number: str
    outcome: Literal["sent", "joined", "queued", "done", "refused"]
    text: str = ""
    hint: str = ""


class Ended(_Line, frozen=True, tag="ended"):
    """The owner lets go of the session: the last line of a process that ends in order."""

    state: State = "saved"
    detail: str = ""


# From a watcher


class Watch(_Line, frozen=True, tag="watch"):
    """Tell the conversation from now on. `after`: the last record that the watcher has."""

    after: str = ""


class SendPrompt(_Line, frozen=True, tag="prompt"):
    """Send a text as if it was typed at the owner's prompt."""

    number: str
    text: str


class GiveAnswer(_Line, frozen=True, tag="answer"):
    """Answer the open question `to`: an Answer, UserAnswers or a PlanReview, by what it asks."""

    number: str
    to: str
    answer: Any


class StopTurn(_Line, frozen=True, tag="stop"):
    """Stop what runs, as the stop key does."""

    number: str


FromOwner: TypeAlias = (
    Hello
    | SessionStatus
    | AskedLine
    | Settled
    | RecordEnd
    | RecordLines
    | UnsentLine
    | FactLine
    | OwnerNotice
    | RequestOutcome
    | Ended
)
ToOwner: TypeAlias = Watch | SendPrompt | GiveAnswer | StopTurn

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_FROM_OWNER: Final = msgspec.json.Decoder(FromOwner, dec_hook=lambda kind, value: kind(value))
_TO_OWNER: Final = msgspec.json.Decoder(ToOwner)


def line_of(message: FromOwner | ToOwner) -> bytes:
    """The line of a message, with its newline."""
    return _ENCODER.encode(message) + b"\n"


def from_owner(line: bytes) -> FromOwner:
    """The message of an owner's line. Raises LineError for one that isn't understood."""
    try:
        return _FROM_OWNER.decode(line)
    except (ValueError, RecursionError) as error:
        raise LineError(f"The session's owner sent a line that can't be read: {error}.") from error


def to_owner(line: bytes) -> ToOwner:
    """The message of a watcher's line. Raises LineError for one that isn't understood."""
    try:
        return _TO_OWNER.decode(line)
    except (ValueError, RecursionError) as error:
        raise LineError(f"A line can't be read: {error}.") from error
