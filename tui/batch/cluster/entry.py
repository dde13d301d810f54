"""One state of a task in the store: who has it, how far it is, and what it has cost. Pure.

It is the message of a commit; the commit's tree has the task's files, and its second parent is the
work so far.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from tui.core.errors import HoldfastError

State: TypeAlias = Literal["waiting", "running", "done", "given_up"]
"""`done`: it has come to rest, whatever became of its tasks; `given_up`: nobody tries it again."""

_SUBJECT: Final = "holdfast: task {} is {}, attempt {}\n\n"


class EntryError(HoldfastError):
    """A commit in the store isn't one of a task."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that can't take tasks of this run, and the reason."""

    host: str
    reason: str


class ActiveTask(msgspec.Struct, frozen=True):
    """The task of a group that is being worked on, by its place in the task file, and the id of its
    session."""

    index: int
    session: str


class Losses(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The workers that were gone without a word: `count` since the task got further, `in_all` ever;
    at the last one `requests` had been sent."""

    count: int = 0
    in_all: int = 0
    requests: int = 0


class TaskEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task's state. `key` is its name in the run, `tasks` are the places in the task file of what
    is to be done, one after the other; `number` counts its states.

    `attempt` counts from 1 once somebody has it: `holder` is that worker's own name, on `host`.
    `requests` and `spent_usd` are those of all attempts, as far as is known, the latter None where
    a price is missing; `next_usd` is the most that the answer to the last request may cost, and
    `reserved_usd` what lost attempts may have paid for such answers. The attempts together may cost
    `cap_usd`, None for no limit. `place` is the folder of its work, `head` the commit that was
    checked out there. `ended`: why the last attempt ended without
    a result, or before all its tasks were done. `cancelled`: nobody works on it any more.
    `active`: the task it was at with its last request.
    """

    key: str
    tasks: tuple[int, ...] = ()
    state: State = "waiting"
    number: int = 0
    attempt: int = 0
    losses: Losses = Losses()
    holder: str = ""
    host: str = ""
    requests: int = 0
    spent_usd: float | None = 0.0
    next_usd: float = 0.0
    reserved_usd: float = 0.0
    cap_usd: float | None = None
    place: str = ""
    head: str = ""
    ended: str = ""
    cancelled: bool = False
    refusals: tuple[Refusal, ...] = ()
    active: ActiveTask | None = None

    @property
    def remaining_usd(self) -> float | None:
        """The most that further attempts may cost; None for no limit."""
        return None if self.cap_usd is None else max(0.01, self.cap_usd - (self.spent_usd or 0.0))

    @property
    def cap_reached(self) -> bool:
        """True if it has cost what it may."""
        return self.cap_usd is not None and (self.spent_usd or 0.0) >= 0.99 * self.cap_usd

    @property
    def is_over(self) -> bool:
        """True if nobody is to work on it any more."""
        return self.state in {"done", "given_up"}

    def to_message(self) -> str:
        """The message of its commit."""
        subject = _SUBJECT.format(self.key, self.state.replace("_", " "), self.attempt)
        return subject + msgspec.json.encode(self).decode() + "\n"


def entry_of(message: str) -> TaskEntry:
    """The state that a commit's message has. Raises EntryError."""
    try:
        return msgspec.json.decode(message.partition("\n\n")[2], type=TaskEntry)
    except msgspec.DecodeError as error:
        raise EntryError(f"The store has a task that can't be read: {error}.") from error
