"""Days as the person counts them: those of the time zone here. Pure, but for that."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tui.core.dataclass import dataclass, field

_QUARTER_S: Final = 900
"""Every time zone differs from the others by quarters of an hour."""


@dataclass(slots=True)
class LocalDays:
    """Finds the day of a moment. Those within a quarter of an hour have the same one, wherever that
    is."""

    _known: dict[int, str] = field(default_factory=dict[int, str])

    def of(self, then: datetime | None) -> str:
        """The day of a moment, "" where there is none."""
        if then is None:
            return ""
        quarter = int(then.timestamp() // _QUARTER_S)
        day = self._known.get(quarter)
        if day is None:
            day = self._known[quarter] = then.astimezone().date().isoformat()
        return day
