"""The zygote of `tui.keeper`, whose keepers are killed at a step that the command's environment
names."""

from __future__ import annotations

import os
from typing import Any

from tests.support.kill_points import KillPoint
from tui.keeper import zygote

KILL_AT = "KEEPER_KILL_AT"


def main(control: int) -> None:
    """Serve like the zygote; each keeper counts its own steps."""
    point = KillPoint(0, spared=os.getpid())
    point.install()

    def begin(spec: dict[str, Any]) -> zygote.Run:
        point.at, point.steps = int(spec["env"].get(KILL_AT, "0")), 0
        point.armed = point.at > 0
        return zygote.plain(spec)

    zygote.main(control, begin)
