"""Nothing that happens gets lost in a front end by oversight: it is shown, or stands in `SILENT`.

Live, each class of events; of a file, each type of records. A new one needs a sample line in
`events.jsonl` or `records.jsonl`, and words in every front end or a reason for its silence.
"""

from __future__ import annotations

import pytest

from tests.golden.forms import LIVE, REPLAYED, Form
from tests.golden.sessions import material
from tests.golden.silences import SILENT
from tests.golden.traces import event_types, leaves_a_trace, record_types


@pytest.mark.parametrize(
    ("name", "form", "types"),
    [
        *((name, form, event_types()) for name, form in LIVE.items()),
        *((name, form, record_types()) for name, form in REPLAYED.items()),
    ],
    ids=[*LIVE, *REPLAYED],
)
def test_what_happens_is_shown_or_its_silence_has_a_reason(
    name: str, form: Form, types: list[str]
) -> None:
    silent = SILENT[name]
    wrong: list[str] = []
    for kind in types:
        shown = leaves_a_trace(form, kind)
        if not shown and kind not in silent:
            wrong.append(
                f"{kind} leaves no trace in {name}. Let the front end say it, or put it into "
                "SILENT of tests/golden/silences.py with the reason."
            )
        if shown and kind in silent:
            wrong.append(
                f"{kind} is shown in {name} now: take it out of SILENT of tests/golden/silences.py."
            )
    wrong += [f"{kind} is in SILENT of {name} and is no type." for kind in silent.keys() - {*types}]
    assert wrong == []


def test_each_type_has_samples() -> None:
    events = {line["type"] for line in material("events.jsonl")}
    records = {line["type"] for line in material("records.jsonl")}
    told = {"user", "assistant", "tool_result"}  # by `sessions.py`, which makes turns of them
    assert [f"add a line to events.jsonl: {kind}" for kind in {*event_types()} - events] == []
    missing = {*record_types()} - records - told
    assert [f"add a line to records.jsonl: {kind}" for kind in missing] == []
