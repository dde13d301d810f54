"""The arguments and results of screens: plain data, so that nothing heavy is loaded for them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tui.core.dataclass import dataclass, field, replace
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tui.app.damage_report import Damage
    from tui.provider.prices import Payer
    from tui.session.records import Record


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of a file as a view shows it, to ask where it comes from. `path` is relative to the
    workspace, "" for the file of the tool call that is shown. `number` counts from 1; `text` is
    None where only the number is known. `removed`: it is one that a diff takes away."""

    path: str
    number: int
    text: str | None = None
    removed: bool = False


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session of the browser. `size` is in bytes; `state` as `sessions list` names it.

    `agent` is the other agent whose session it is, "" for one of ours; `problems` are the codes
    of what is wrong with its file; `background` is the state of the process that runs it, "" where
    none does; `profile` is the person's, "" for none.
    """

    id: str
    path: Path
    title: str
    updated: datetime
    messages: int
    size: int
    state: str = "ok"
    cwd: str = ""
    agent: str = ""
    problems: tuple[str, ...] = ()
    parent: str = ""
    """The file of the session whose sub-agent's it is."""
    background: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class PickedSession:
    """The session chosen in the browser; `message` is the id of the record to begin at, if any."""

    row: SessionRow
    message: str = ""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of the picker. `window` and `needs` (what the session needs of it) are in tokens;
    `source` says where the window is known from. `price` is for reading, USD per million tokens of
    input and of output; `rates` are all its prices in words. `next` is what the next prompt costs
    if this model gets it, for reading, "" before the first one; `sends` says why. `fallback` is its
    place among the models to fall back on, from 1, 0 for none; `now`: it is the one in use.
    `retires` says when it goes, where that is soon."""

    name: str
    window: int
    source: str = "assumed"
    price: str = ""
    rates: str = ""
    next: str = ""
    sends: str = ""
    fallback: int = 0
    needs: int = 0
    fits: bool = True
    now: bool = False
    retires: str = ""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One of the person's profiles, "default" for none: the `server` that it asks, as it is shown,
    and what signs there (`key`), in words. `window` is that of its model, `next` and `sends` as in
    `ModelRow`."""

    name: str
    model: str
    server: str
    key: str
    payer: Payer
    window: int = 0
    now: bool = False
    next: str = ""
    sends: str = ""


def profile_words(row: ProfileRow) -> str:
    """Describe a profile in one line."""
    server = row.server.partition("://")[2] or row.server
    facts = (row.model, one_line(server), one_line(row.key), "in use" if row.now else "")
    return " · ".join(filter(None, facts))


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the requests are made for: the profile in use, "" for none, with the server and the
    model that it names; the sign-in of this machine that can be used, "" for none. `profiles`:
    the person has some."""

    profile: str = ""
    server: ServerSetup | None = None
    sign_in: str = ""
    profiles: bool = False


@dataclass(frozen=True, slots=True)
class KeySetup:
    """A key for Anthropic's own server."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """Any server that speaks the Messages API. The key may be empty."""

    base_url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ProfileSetup:
    """Another of the person's profiles; "default" for none."""

    name: str


@dataclass(frozen=True, slots=True)
class PracticeSetup:
    """The practice model, for this run."""


@dataclass(frozen=True, slots=True)
class SignInSetup:
    """The sign-in of this machine that `ant auth login` wrote."""

    name: str


@dataclass(frozen=True, slots=True)
class SetupElsewhere:
    """A key, sign-in or server that another program or window has set up meanwhile."""


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """The question how a model is to be reached. `why` that is asked; `sign_in` is the one of this
    machine that can be used. `session`: one is open, and continues whatever the answer is.
    `profile` is the one that it is for, "" for none, and `server` what that has; `others`: there
    are other profiles, and `OTHER_PROFILE` is an answer."""

    why: str
    sign_in: str = ""
    session: bool = False
    profile: str = ""
    server: ServerSetup | None = None
    others: bool = False


OTHER_PROFILE: Final = "another profile"
"""The answer to a `SetupQuestion` that leads to the list of profiles."""


@dataclass(frozen=True, slots=True)
class RecoveryOption:
    """One way to continue. `help` says what becomes of the conversation."""

    name: str
    label: str
    help: str


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """The data of the screen about a failed request.

    `error` are the server's words, `meaning` ours; `findings` are those of the check of the
    request, None where none was made; `before` are the remedies that were tried already.
    """

    title: str
    error: str
    ways: tuple[RecoveryOption, ...]
    meaning: str = ""
    status: int | None = None
    request_id: str | None = None
    findings: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()


Setup: TypeAlias = (
    KeySetup | ServerSetup | SignInSetup | PracticeSetup | ProfileSetup | SetupElsewhere
)


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One answer: the letter that gives it, what it does, and its name."""

    key: str
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A question with a few answers. `details` are shown one a line; `warning`: an answer may cost
    something. `unasked`: it comes by itself, so what is being typed must not answer it. `later` is
    more text that takes a while, such as a price."""

    title: str
    text: str
    options: tuple[AnswerOption, ...]
    details: Sequence[str] = ()
    warning: bool = False
    unasked: bool = False
    later: Awaitable[str] | None = None

    async def complete(self) -> ChoiceQuestion:
        """Return the question with all its text, for a front end that can't add to it."""
        if self.later is None:
            return self
        return replace(self, text=f"{self.text} {await self.later}", later=None)


@dataclass(frozen=True, slots=True)
class DamageQuestion:
    """The damage of a session, and the question how to continue: continue, read_only, copy, or
    back. `copy` is where a repaired copy would be written, None where there is nothing but to
    continue."""

    damage: Damage
    copy: Path | None
    title: str = ""


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """The question which model answers; the answer is its name."""

    rows: Sequence[ModelRow]


@dataclass(frozen=True, slots=True)
class ProfileQuestion:
    """The question whose settings and key count; the answer is the profile's name."""

    rows: Sequence[ProfileRow]


@dataclass(frozen=True, slots=True)
class Point:
    """A prompt that can be returned to: its place in the record, its text, and how many files the
    session changed since."""

    record: Record
    place: int
    text: str
    files: int


@dataclass(frozen=True, slots=True)
class PointQuestion:
    """Back to before which prompt, the oldest first; the answer is its number from 0, or one of
    `ALL_BRANCHES` and, if there is a rewind to undo, `UNDO`."""

    points: Sequence[Point]
    can_undo: bool = False


ALL_BRANCHES: Final = "tree"
UNDO: Final = "undo"
"""Answers to a question about a place in the session."""


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A branch of the session: `leaf` is its last record, `first` the first words since it left
    another one, `parent`, after `fork_words`; what it has of its own in prompts, cost and files;
    `all_prompts` are those that it shares, too. `depth` counts the branches below it, `current` is
    where the session is."""

    leaf: str
    first: str
    prompts: int
    all_prompts: int
    updated: str
    cost_usd: float | None
    files: int
    parent: str | None = None
    fork: str | None = None
    fork_words: str = ""
    depth: int = 0
    current: bool = False

    def to_json(self) -> dict[str, object]:
        """The object that `sessions tree --json` prints."""
        return {
            "leaf": self.leaf,
            "from": self.fork,
            "parent": self.parent,
            "prompts": self.prompts,
            "first": self.first,
            "updated": self.updated,
            "cost_usd": self.cost_usd,
            "files": self.files,
            "current": self.current,
        }


@dataclass(frozen=True, slots=True)
class BranchQuestion:
    """Choose a branch to continue on; the answer is its leaf, or `UNDO` if there is a move to
    undo."""

    rows: Sequence[BranchRow]
    can_undo: bool = False


@dataclass(frozen=True, slots=True)
class YesNoQuestion:
    """`details` are shown one a line; `yes` and `no` say what each answer does. `unasked`: it
    comes by itself, so what is being typed must not answer it."""

    title: str
    text: str
    yes: str
    no: str
    details: Sequence[str] = ()
    unasked: bool = False


Question: TypeAlias = (
    BranchQuestion
    | ChoiceQuestion
    | DamageQuestion
    | ModelQuestion
    | ProfileQuestion
    | PointQuestion
    | FailedRequest
)
