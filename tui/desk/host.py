"""The port of the desk: a machine with sessions, this one or another.

`LocalHost` is this one. `FarHost` speaks over ssh with a `LocalHost` there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from tui.app.door.lines import AskedLine, FromOwner, OwnerKind, State, ToOwner

log = logging.getLogger(__name__)

Changed: TypeAlias = Callable[[], None]


class DeskRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as the desk lists it.

    `host` is "" for this machine. `detail` says what it does, waits for or ended with; `since` is
    the time of the last change of its state, `started` that of its begin, both timestamps.
    `questions` wait for the person. `problem` says why its owner can't be asked (it hangs, is of
    another version); then it can be read only. `seen`: somebody has looked at how it ended.
    """

    id: str
    path: str = ""
    host: str = ""
    kind: OwnerKind = "none"
    pid: int = 0
    state: State = "saved"
    detail: str = ""
    questions: tuple[AskedLine, ...] = ()
    title: str = ""
    model: str = ""
    profile: str = ""
    cwd: str = ""
    branch: str = ""
    cost_usd: float | None = None
    started: str = ""
    since: str = ""
    problem: str = ""
    seen: bool = False


class Channel(Protocol):
    """The lines of one session. Of a far one the line may be cut: what then is lost comes again
    with the next `Watch`."""

    async def receive(self) -> FromOwner | None:
        """The next message; None once the channel is closed or cut. Raises LineError for a line
        that isn't understood; the next ones come all the same."""
        ...

    def send(self, message: ToOwner) -> None:
        """Send a message. Does nothing once the channel is closed."""

    async def close(self) -> None: ...


class DeskHost(Protocol):
    """A machine with sessions. Used from one event loop."""

    @property
    def name(self) -> str:
        """Its name as the person gave it; "" for this machine."""
        ...

    @property
    def problem(self) -> str:
        """The reason why it can't be reached now; "" if it can."""
        ...

    @property
    def rows(self) -> Sequence[DeskRow]:
        """Its sessions as last known, in no order. A row that did not change stays the same
        object."""
        ...

    def follow(self, changed: Changed) -> None:
        """Keep `rows` up to date from now on, and call `changed` after each change, some times a
        second at most."""

    async def open(self, session: str) -> Channel:
        """The channel of a session, by its id. Raises HoldfastError where there is none, or the
        machine can't be reached."""
        ...

    async def start(self, cwd: str, prompt: str) -> str:
        """Start a session in the background, and return its id. Raises HoldfastError."""
        ...

    async def dismiss(self, session: str) -> None:
        """Note that somebody has seen how a session ended."""

    async def close(self) -> None: ...


def call_all(followers: Iterable[Changed]) -> None:
    """Call each follower of a machine. One that fails keeps neither the others nor the machine
    from going on; the log has why."""
    for changed in [*followers]:
        try:
            changed()
        except Exception:  # the boundary: a follower's fault is none of the machine's
            log.exception("a follower of the desk's rows failed")
