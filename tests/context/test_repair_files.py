"""From a damaged file to a request: reader → history → repair, and nothing said is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.sessions import answer, output, prompt, records
from tests.context.wild import call, text, thinking
from tests.support.clock import FakeClock
from tui.context.repair import INTERRUPTED
from tui.context.validate import check
from tui.context.view import build
from tui.session import importers
from tui.session.reader import read
from tui.session.records import LEFT_OUT, Header, Record
from tui.session.session import Session

MODEL = "claude-sonnet-5-5"
TIME = "2026-11-21T09:00:00.000Z"
GIVEN = sorted(Path(__file__).parents[2].parent.glob("shared/data/sessions/*.jsonl"))


def _session(turns: int = 3) -> list[bytes]:
    """The lines of a valid session. Ids share nothing, so that damage makes no other id of one."""
    lines = [Header("0123456789ab", TIME, "/w", "holdfast 1").to_line()]
    last: str | None = None

    def add(type_: str, **data: Any) -> None:
        nonlocal last
        id_ = f"{len(lines) * 7919 % 9973:04}{len(lines):016}"
        lines.append(Record(type_, id_, last, TIME, data).to_line())
        last = id_

    for n in range(turns):
        add("user", content=[text(f"prompt {n}")], text=f"prompt {n}")
        made = [thinking(), text(f"look {n}"), call(f"t{n}a"), call(f"t{n}b")]
        add("assistant", content=made, model=MODEL, usage={}, stop_reason="tool_use")
        for id_ in (f"t{n}a", f"t{n}b"):
            add("intent", call_id=id_, tool="read_file", effect="read")
            add("tool_result", call_id=id_, content=[text(f"out {id_}")], is_error=False)
        add("assistant", content=[text(f"answer {n} ü\u2028")], model=MODEL)
        add("interrupt", reason="esc", text=f"half {n}")
    return lines


LINES = _session()
SAID = [f"{what} {n}" for n in range(3) for what in ("prompt", "look", "answer", "half")]


def _damaged(data: st.DataObject) -> tuple[bytes, list[str]]:
    """One or two of: truncation, splice, duplication, byte flip, line shuffle, insertion."""
    raw = b"".join(LINES)
    kinds = data.draw(
        st.lists(
            st.sampled_from(["cut", "splice", "double", "flip", "shuffle", "insert"]),
            min_size=1,
            max_size=2,
        )
    )
    for kind in kinds:
        at = data.draw(st.integers(0, len(raw)))
        size = data.draw(st.integers(1, 500))
        match kind:
            case "cut":
                raw = raw[:at]
            case "splice":
                raw = raw[:at] + raw[at + size :]
            case "double":
                raw = raw[:at] + raw[max(0, at - size) :]
            case "flip" if at < len(raw):
                flipped = raw[at] ^ (1 << data.draw(st.integers(0, 7)))
                raw = raw[:at] + bytes([flipped]) + raw[at + 1 :]
            case "shuffle":
                raw = b"".join(data.draw(st.permutations(raw.splitlines(keepends=True))))
            case _:
                raw = raw[:at] + data.draw(st.binary(max_size=30)) + raw[at:]
    return raw, kinds


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_R4_R9_any_damage_gives_a_valid_request_and_loses_no_readable_words(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw, kinds = _damaged(data)
    path = tmp_path_factory.mktemp("s") / "20261121T090000Z-0123456789ab.jsonl"
    path.write_bytes(raw)
    loaded = read(path)
    view = build(loaded.branch, model=MODEL)
    assert check(view.messages) == []
    assert path.read_bytes() == raw
    told = json.dumps(view.messages)
    taken = any("was taken" in finding.action for finding in loaded.findings)
    if taken or ("shuffle" in kinds and len(kinds) > 1):
        # Of two records with one id, or where the order is gone too, one may come to stand on a
        # branch of its own: it is there to be read, and to be gone on from.
        told = json.dumps([record.data for record in loaded.records])
    intact = raw.split(b"\n")
    for line in LINES[1:]:
        if line.strip() in intact:
            for words in SAID:
                if f'"{words}'.encode() in line:
                    assert words in told


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_R7_the_way_from_a_file_to_a_request_is_the_same_every_time(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    path.write_bytes(_damaged(data)[0])
    first, second = read(path), read(path)
    assert first == second
    assert build(first.branch, model=MODEL) == build(second.branch, model=MODEL)


async def test_R8_a_file_of_37_messages_with_an_orphan_in_the_middle_opens_and_goes_on(
    tmp_path: Path,
) -> None:
    """Messages as a request counts them: the answer at index 17 has a call without a result."""
    told: list[tuple[str, dict[str, Any]]] = []
    for turn in range(9):
        id_ = f"toolu_{turn}"
        told.append(prompt(f"prompt {turn}"))
        told.append(answer(f"look {turn}", call(id_)))
        told.append(output(id_, f"out {turn}"))
        told.append(answer(f"answer {turn}"))
    told.append(prompt("the last prompt"))
    assert len(told) == 37
    told[17] = answer("look 4", call("toolu_orphan"))
    del told[18]
    path = tmp_path / "20261121T090000Z-0123456789ab.jsonl"
    header = Header("0123456789ab", TIME, "/w", "holdfast 1")
    path.write_bytes(header.to_line() + b"".join(r.to_line() for r in records(*told)))
    before = path.read_bytes()
    session = Session.open(path, clock=FakeClock())
    view = build(session.records, model=MODEL)
    assert [(f.code, f.where) for f in view.findings] == [("B01", "messages.17.content.1")]
    assert check(view.messages) == []
    assert len(view.messages) == 37
    (result,) = view.messages[18]["content"]
    assert (result["tool_use_id"], result["is_error"]) == ("toolu_orphan", True)
    assert result["content"] == [text(INTERRUPTED)]
    session.append("assistant", content=[text("done")], model=MODEL)
    session.append("user", content=[text("continue")], text="continue")
    await session.close()
    assert path.read_bytes()[: len(before)] == before
    again = build(read(path).branch, model=MODEL)
    assert check(again.messages) == []
    assert again.messages[:37] == view.messages
    assert again.messages[-1]["content"] == [text("continue")]


@pytest.mark.skipif(not GIVEN, reason="the sample sessions are not beside the checkout")
@pytest.mark.parametrize("path", GIVEN, ids=lambda path: path.stem)
def test_R8_real_sessions_of_other_agents_open_and_go_on(path: Path) -> None:
    before = path.read_bytes()
    loaded = importers.load(path)
    view = build(loaded.branch, model=MODEL)
    assert check(view.messages) == []
    assert path.read_bytes() == before
    assert len(view.messages) > 5
    codes = {finding.code for finding in (*loaded.findings, *view.findings)}
    expected = {
        "claude_code_interrupted": set[str](),
        "claude_code_malformed": {"B01", "B27", "B53", "B56"},
        "pi_v1_errored_turns": {"B23", "B55"},
    }
    codes.discard(LEFT_OUT)  # is no damage
    assert codes == expected.get(path.stem, codes)


@pytest.mark.skipif(not GIVEN, reason="the sample sessions are not beside the checkout")
@pytest.mark.parametrize("path", GIVEN, ids=lambda path: path.stem)
def test_R8_a_copy_as_a_session_of_ours_gives_the_same_request(path: Path, tmp_path: Path) -> None:
    loaded = importers.load(path)
    copy = tmp_path / f"20261121T090000Z-{loaded.header.id}.jsonl"
    copy.write_bytes(loaded.header.to_line() + b"".join(r.to_line() for r in loaded.records))
    ours = read(copy)
    assert ours.findings == ()
    assert ours.header == loaded.header
    assert build(ours.branch, model=MODEL) == build(loaded.branch, model=MODEL)
