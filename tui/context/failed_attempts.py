"""Attempts of requests that failed: they have no bill, but some may have cost something. Pure."""

from __future__ import annotations

from typing import Final, Literal

from tui.core.config import profile_of
from tui.core.messages import string_of
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

_FAILED: Final = frozenset({"retry", "failover", "error"})
_ENDS: Final = frozenset(
    {"assistant", "break", "compaction", "error", "failover", "feature", "interrupt", "parked"}
    | {"recovery", "repair"}
)
"""What tells how a request ended, or why another one follows."""
_LOST: Final = frozenset({"timeout", "network", "stream_broken"})


def attempt_in(record: Record) -> Literal["", "refused", "lost"]:
    """The failure of the attempt that a record is of; "" for any other. What the server refused is
    not billed. What was lost, on its way or while it was answered, may be: no record says so."""
    data = record.data
    if record.type not in _FAILED:
        return ""
    name = data.get("error_class") or data.get("class")  # as older versions wrote it
    answered = bool(data.get("received") or data.get("text"))
    if answered or (data.get("status") is None and name in _LOST):
        return "lost"
    of_request = record.type != "error" or data.get("status") is not None
    return "refused" if of_request else ""


def is_instead(before: str, model: str) -> bool:
    """True if a request for a model is the one before it, made ready for another profile that is
    asked instead: a fallback's is recorded in a form of its own."""
    return before != model and bool(profile_of(model))


class LostAnswers:
    """Finds answers that have no bill, though they may have cost something, in records as they
    come: those of attempts that were lost, that a person stopped, or that a kill cut off. `open` is
    True while an answer is to come."""

    def __init__(self) -> None:
        self.open = False
        self._requested = False
        self._model = ""
        """The model of the last request."""

    def take(self, record: Record) -> bool:
        """True if the next record says that an answer was lost."""
        kind = record.type
        if kind == REQUEST:
            # nothing tells what became of the last one: the program was killed
            before, self._model = self._model, string_of(record.data.get("model"))
            lost = self.open and not is_instead(before, self._model)
            self.open = self._requested = True
            return lost
        # where requests are recorded, an interrupt ends an answer only if one was to come
        lost = kind == "interrupt" and (self.open or not self._requested)
        lost = lost or attempt_in(record) == "lost"
        if kind in _ENDS:
            self.open = False
        return lost
