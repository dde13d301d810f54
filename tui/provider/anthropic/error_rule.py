"""One rule by which an error answer gets its class, in the tables `error_rules` and
`cloud_rules`."""

from __future__ import annotations

import re
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.errors import ErrorClass

AGAIN: Final = "Try again in a moment"
OTHER_MODEL: Final = "use another model (/model, --model)"


def words(*patterns: str) -> re.Pattern[str]:
    """The pattern of any of these, in any case."""
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRule:
    """A rule that matches by status or error type; with `text`, only if that text occurs as well.

    `headline` and `hint` may name {url}, {model}, {id}, which is what a cloud calls the model, and
    {sign_in}, which is what signs in to a cloud.
    """

    error_class: ErrorClass
    headline: str
    hint: str
    statuses: frozenset[int] = frozenset()
    types: frozenset[str] = frozenset()
    codes: re.Pattern[str] | None = None
    """The rule also matches by the error's code alone."""
    text: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    """The rule never matches if this text occurs."""
    final: bool = False
    """Waiting does not help, whatever the status."""
    thinking: bool = False
    """The server refuses the signed thinking in the request."""
    answer: bool = False
    """The server refuses the length of the answer that is asked for."""

    def matches(self, status: int, kind: str, code: str, text: str) -> bool:
        """True if the rule is for an error with this status, type, code and text."""
        if self.unless and self.unless.search(text):
            return False
        if self.codes and self.codes.search(code):
            return True
        named = status in self.statuses or kind in self.types
        return named and (self.text is None or self.text.search(text) is not None)
