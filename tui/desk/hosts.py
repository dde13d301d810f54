"""The machines on the desk."""

from __future__ import annotations

from collections.abc import Sequence

from tui.core.clock import Clock
from tui.core.paths import Folders
from tui.desk.host import DeskHost
from tui.desk.local_host import LocalHost
from tui.settings import bare


def hosts_of(
    home: Folders, names: Sequence[str] = (), clock: Clock | None = None
) -> list[DeskHost]:
    """Return this machine, then those that the person's own settings name and those of `names`,
    each once. `clock` is this machine's; a line to another one has its own, which runs on in sleep.
    Raises UsageError for a name that is no machine's."""
    every = map(far_host, (*bare.own(home)[0].desk.hosts, *names))
    return [LocalHost(home, clock), *{host.name: host for host in every}.values()]


def far_host(name: str) -> DeskHost:
    """Return another machine by its name. Raises UsageError."""
    from tui.desk.far_host import FarHost  # noqa: PLC0415 - of another machine alone

    return FarHost(name)
