"""A regular expression that is compiled when it is first used: most runs use few of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as late_pattern
else:

    class late_pattern:  # noqa: N801 - a pattern to whoever uses it
        """Takes the arguments of `re.compile`, and acts as the pattern that it makes."""

        def __init__(self, *given: Any) -> None:
            self._given = given

        def __getattr__(self, name: str) -> Any:
            found = self.__dict__[name] = getattr(re.compile(*self._given), name)
            return found


__all__ = ["late_pattern"]
