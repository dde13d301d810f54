"""The machines on the desk, by the options of the command line."""

from __future__ import annotations

from importlib import import_module

from tui.app.options.arguments import Options
from tui.core.paths import folders
from tui.desk.host import DeskHost
from tui.desk.local_host import LocalHost


def hosts_of(options: Options) -> list[DeskHost]:
    """This machine first, then those that the options name. Raises UsageError for a name that is
    no machine's."""
    return [LocalHost(folders()), *map(far_host, dict.fromkeys(options.opening.hosts))]


def far_host(name: str) -> DeskHost:
    """Another machine by its name. Raises UsageError."""
    host: DeskHost = import_module("tui.desk.far_host").FarHost(name)  # loaded by whoever needs it
    return host
