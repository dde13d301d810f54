"""The places of a run's tasks on machines, as its driver last saw them: data for a front end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tui.core.dataclass import dataclass, field

RUN_ON: Final = "the tasks run on"
"""The reason for the end of a run whose window alone was closed."""


@dataclass(frozen=True, slots=True)
class TaskPlacement:
    """A task that isn't done: the `host` that works on it, else `label` and `why`, in one word or
    two and as a sentence, say what it waits for. A `warning` is out of the ordinary.

    `losses` counts workers that were gone since it got further, `ended` says how the last attempt
    did. `spent_usd` is what its attempts have cost, None if that isn't known, of `cap_usd` at most.
    """

    host: str = ""
    label: str = ""
    why: str = ""
    warning: bool = False
    attempt: int = 0
    losses: int = 0
    ended: str = ""
    spent_usd: float | None = 0.0
    cap_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlacement:
    """A run on the machines of an `engine`, which takes `slots` workers at a time. `outlives`:
    workers run on without this window. `tasks` are those that aren't done, by their index.

    `hosts` says how many tasks each runs, `refusing` why a host takes none, `server_waits` for how
    many seconds a server wants no requests to a model. `spent_usd`, `reserved_usd` and `limit_usd`
    are those of the run: the first None if a price is missing, the last without one.
    `store_problem`, "" for none: why the store can't be reached, since `unreachable_since`.
    """

    engine: str
    outlives: bool
    slots: int
    tasks: Mapping[int, TaskPlacement] = field(default_factory=dict[int, TaskPlacement])
    hosts: Mapping[str, int] = field(default_factory=dict[str, int])
    refusing: Mapping[str, str] = field(default_factory=dict[str, str])
    server_waits: Mapping[str, float] = field(default_factory=dict[str, float])
    spent_usd: float | None = 0.0
    reserved_usd: float = 0.0
    limit_usd: float | None = None
    store_problem: str = ""
    unreachable_since: datetime | None = None
