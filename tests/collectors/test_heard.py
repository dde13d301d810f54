"""What real collectors answered, read as the program reads it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.collectors import record
from tests.support.span_collector import LocalCollector, local_collector
from tui.agent.span_collector import MOST_TEXT, collector_of
from tui.core.config import OtelSettings

HEARD = [json.loads(line) for line in (Path(__file__).parent / "heard.jsonl").open()]
COLLECTORS = sorted({one["collector"] for one in HEARD})
BY_ALL = ("protobuf", "the same again", "no spans")
"""The requests that each of them has to take."""


def deliver(there: LocalCollector, one: dict[str, Any]) -> tuple[str, int, str]:
    there.answers.append((one["status"], one["headers"], base64.b64decode(one["body"])))
    done = collector_of(OtelSettings(endpoint=there.url), {}).deliver([record.span()])
    return done.outcome, done.rejected, done.why


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_real_collector_takes_what_is_sent(name: str) -> None:
    own = {one["probe"]: one for one in HEARD if one["collector"] == name}
    assert own.keys() == {probe for probe, _, _ in record.probes()}
    with local_collector() as there:
        assert [deliver(there, own[probe]) for probe in BY_ALL] == [("taken", 0, "")] * 3


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_real_collectors_refusals_are_said(name: str) -> None:
    refusals = [one for one in HEARD if one["collector"] == name and one.get("status", 200) >= 400]
    assert refusals
    with local_collector() as there:
        for one in refusals:
            outcome, rejected, why = deliver(there, one)
            assert (outcome, rejected) == ("refused", 0)
            assert why.startswith(f"it answers {one['status']}")
            assert why.isprintable()


def test_what_is_too_long_for_one_of_them_is_never_sent() -> None:
    closed = {one["collector"] for one in HEARD if "ended" in one}
    assert closed  # without an answer, as if it were gone
    longest = max(len(body) for _, _, body in record.probes())
    assert longest > 20 * MOST_TEXT
