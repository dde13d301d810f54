"""Whether a front end shows anything of a type: what it makes of sessions with and without it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Final

from tests.golden.forms import Form
from tests.golden.sessions import EVENTS, GoldenSession, sessions, steady, utc
from tui.session import records
from tui.session.field_types import FIELD_TYPES
from tui.session.reader import LoadedSession

_TRIED: Final = 12

NO_FACTS: Final = {
    "chain": "It holds the lines of the file together, and is no record.",
    "draft": "What is typed and not sent is no part of the conversation; opening offers it again.",
}
"""Types of lines that tell nothing that happened."""


def event_types() -> list[str]:
    """The classes of events, by the type of their lines."""
    return sorted(EVENTS)


def record_types() -> list[str]:
    """The types of records: those whose fields are known, and those that are described."""
    described = re.findall(r"^    ([a-z_]+)  ", records.__doc__ or "", re.MULTILINE)
    return sorted({*FIELD_TYPES, *described} - NO_FACTS.keys())


def leaves_a_trace(form: Form, kind: str) -> bool:
    """Whether some session looks otherwise in a form without its events or records of a type."""
    numbers = (n for n, one in enumerate(sessions()) if kind in _types(one))
    with utc():  # so many are tried: not each instance of a type is shown
        return any(
            _text(form, _without(sessions()[n], kind)) != _whole(form, n)
            for n in islice(numbers, _TRIED)
        )


def _types(session: GoldenSession) -> set[str]:
    told = {event.type for event in session.events}
    return told | {record.type for record in session.loaded.branch}


@cache
def _whole(form: Form, number: int) -> str:
    return _text(form, _without(sessions()[number], ""))


def _text(form: Form, session: GoldenSession) -> str:
    return steady(session, "\n".join(form(session)))


def _without(session: GoldenSession, kind: str) -> GoldenSession:
    """A session of the active branch alone, without its events and records of a type."""
    told: list[records.Record] = []
    for record in session.loaded.branch:
        if record.type != kind:
            told.append(replace(record, parent=told[-1].id if told else None))
    loaded: LoadedSession = replace(session.loaded, records=tuple(told))
    left = [event for event in session.events if event.type != kind]
    return replace(session, loaded=loaded, events=left, bodies=[])
