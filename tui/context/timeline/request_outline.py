"""The outline of a session that isn't folded yet: how large some of its requests were. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.core.messages import Usage
from tui.session.records import Record, is_answer

_MOST = 400
"""About as many requests as a picture has columns."""


class SizedRequest(NamedTuple):
    """A request that was answered: the place of the answer among the records, and the tokens of the
    input."""

    place: int
    tokens: int


def outline(records: Sequence[Record]) -> list[SizedRequest]:
    """Some requests of a session, evenly spread over its records: soon, however long it is."""
    found: list[SizedRequest] = []
    step = max(1, len(records) // _MOST)
    for start in range(0, len(records), step):
        stretch = range(start, min(start + step, len(records)))
        place = next((n for n in stretch if is_answer(records[n])), None)
        if place is None:
            continue
        usage = Usage.from_json(records[place].data.get("usage"))
        whole = usage.prompt_tokens
        tokens = min(whole, usage.context_tokens) or whole
        if tokens:
            found.append(SizedRequest(place, tokens))
    return found
