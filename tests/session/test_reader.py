"""B40–B56: one bad line costs one line, says so, and nothing is ever written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.errors import SessionError
from tui.session import jsonl
from tui.session.reader import LoadedSession, read
from tui.session.records import Header, Record

HEADER = Header("0123456789ab", "2026-11-21T09:00:00.000Z", "/w", "holdfast 1").to_line()
TIME = "2026-11-21T09:00:01.000Z"


def line(name: str, parent: str | None, words: str = "") -> bytes:
    data = {"content": [{"type": "text", "text": words or name}]}
    return Record("user", name, parent, TIME, data).to_line()


A, B, C, D = line("a", None), line("b", "a"), line("c", "b"), line("d", "c")
WHOLE = HEADER + A + B + C + D


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "20261121T090000Z-0123456789ab.jsonl"


def load(path: Path, data: bytes) -> LoadedSession:
    path.write_bytes(data)
    loaded = read(path)
    assert path.read_bytes() == data
    return loaded


def names(loaded: LoadedSession) -> str:
    return "".join(record.id for record in loaded.branch)


def found(loaded: LoadedSession) -> list[str]:
    return [finding.code for finding in loaded.findings]


def test_a_sound_file_has_no_findings(path: Path) -> None:
    loaded = load(path, WHOLE)
    assert names(loaded) == "abcd"
    assert loaded.findings == ()
    assert (loaded.header.id, loaded.header.cwd) == ("0123456789ab", "/w")


def test_unknown_types_and_fields_are_kept(path: Path) -> None:
    odd = b'{"type":"hologram","id":"z","parent":"d","time":"t","depth":3}\n'
    loaded = load(path, WHOLE + odd)
    assert loaded.records[-1] == Record("hologram", "z", "d", "t", {"depth": 3})
    assert loaded.findings == ()


@pytest.mark.parametrize("cut", [1, 20, len(D) - 2])
def test_B40_a_torn_last_line_costs_only_itself(path: Path, cut: int) -> None:
    loaded = load(path, WHOLE[:-cut])
    assert names(loaded) == ("abcd" if cut == 1 else "abc")
    assert found(loaded) == ([] if cut == 1 else ["B40"])


def test_B40_a_tear_inside_a_character_is_no_more_than_a_tear(path: Path) -> None:
    torn = line("d", "c", "ü" * 9)
    loaded = load(path, HEADER + A + B + C + torn[: torn.index("ü".encode()) + 1])
    assert names(loaded) == "abc"
    assert found(loaded) == ["B40"]


def test_B41_a_record_behind_a_torn_one_is_saved(path: Path) -> None:
    loaded = load(path, HEADER + A + B + C[:30] + D)
    assert names(loaded) == "abd"
    assert found(loaded) == ["B41", "B53"]


def test_B41_blocks_inside_a_torn_record_are_not_taken_for_records(path: Path) -> None:
    usage = b'{"type":"assistant","id":"c","parent":"b","time":"t","content":[],"usage":{"n":1}'
    loaded = load(path, HEADER + A + B + usage + b"\n" + D)
    assert names(loaded) == "abd"


def test_B42_records_on_one_line_are_taken_apart(path: Path) -> None:
    loaded = load(path, HEADER + A.strip() + B.strip() + C.strip() + b" " + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B42"]
    assert "line 2" in loaded.findings[0].where
    assert f"byte {len(HEADER)}" in loaded.findings[0].where


def test_B43_runs_of_nul_are_left_out(path: Path) -> None:
    loaded = load(path, HEADER + A + b"\0" * 4096 + B + C + b"\0" * 100 + b"\n" + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B43", "B43"]


def test_B44_order_is_that_of_the_links_not_of_the_lines(path: Path) -> None:
    loaded = load(path, HEADER + C + A + D + B)
    assert names(loaded) == "abcd"
    assert loaded.findings == ()


def test_B44_copies_are_left_out(path: Path) -> None:
    loaded = load(path, WHOLE + B + C)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B44", "B44"]


def test_B45_an_empty_file_is_an_empty_session(path: Path) -> None:
    loaded = load(path, b"")
    assert loaded.records == ()
    assert found(loaded) == ["B45"]
    assert loaded.header.id == "0123456789ab"


def test_B46_a_raw_newline_inside_a_text_is_joined(path: Path) -> None:
    broken = line("c", "b", "first second third").replace(b" ", b"\n")
    loaded = load(path, HEADER + A + B + broken + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B46"]
    assert loaded.records[2].data["content"][0]["text"] == "first\nsecond\nthird"


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
def test_B47_only_newlines_end_lines(path: Path, mark: str) -> None:
    loaded = load(path, HEADER + A + line("b", "a", f"x{mark}y"))
    assert loaded.records[1].data["content"][0]["text"] == f"x{mark}y"
    assert loaded.findings == ()


def test_B48_byte_order_marks_are_left_out(path: Path) -> None:
    loaded = load(path, b"\xef\xbb\xbf" + HEADER + A + b"\xef\xbb\xbf" + B + C + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B48", "B48"]


def test_B49_invalid_utf8_costs_a_character(path: Path) -> None:
    loaded = load(path, HEADER + line("a", None, "grün").replace("ü".encode(), b"\xfc"))
    assert loaded.records[0].data["content"][0]["text"] == "gr\ufffdn"
    assert found(loaded) == ["B49"]


def test_B50_carriage_returns_are_white_space(path: Path) -> None:
    loaded = load(path, WHOLE.replace(b"\n", b"\r\n"))
    assert names(loaded) == "abcd"
    assert loaded.findings == ()


def test_B51_a_placeholder_stands_for_a_record_too_long_to_hold(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 10_000)
    long = line("b", "a", "x" * 3_000_000)
    loaded = load(path, HEADER + A + long + C + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B51"]
    assert f"byte {len(HEADER + A)}" in loaded.findings[0].where
    placeholder = loaded.records[1].data
    assert placeholder["left_out"] == len(long) - 1
    assert f"{len(long) - 1:,} bytes left out" in placeholder["content"][0]["text"]


def test_B51_a_long_line_that_is_no_record_is_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 10_000)
    loaded = load(path, HEADER + A + b"x" * 2_500_000 + b"\n" + B + b"y" * 11_000)
    assert names(loaded) == "ab"
    assert found(loaded) == ["B51", "B51"]


def test_B52_bad_lines_are_skipped_and_counted(path: Path) -> None:
    loaded = load(path, HEADER + A + b"%%%\n" + B + b"{\n" + C + D)
    assert names(loaded) == "abcd"
    assert found(loaded) == ["B52", "B52"]


def test_R9_findings_are_bounded(path: Path) -> None:
    loaded = load(path, HEADER + b"?\n" * 3000)
    assert len(loaded.findings) == jsonl.MAX_FINDINGS + 1
    assert loaded.findings[-1].action == "2,000 more findings"


def test_B53_a_lost_record_is_bridged(path: Path) -> None:
    loaded = load(path, HEADER + A + B + D)
    assert names(loaded) == "abd"
    assert found(loaded) == ["B53"]


@pytest.mark.parametrize(
    "links",
    ["b-aba", "a-abb", "aa", "bcaabc"],
    ids=["two in a circle", "branch", "to itself", "three in a circle"],
)
def test_B53_cycles_end(path: Path, links: str) -> None:
    ids = [chr(ord("a") + n) for n in range(len(links))]
    told = (line(id_, None if to == "-" else to) for id_, to in zip(ids, links, strict=True))
    loaded = load(path, HEADER + b"".join(told))
    assert loaded.branch
    assert len({record.id for record in loaded.branch}) == len(loaded.branch)


def test_B53_a_record_without_id_or_parent_follows_the_one_before(path: Path) -> None:
    bare = b'{"type":"user","content":"hm"}\n'
    loaded = load(path, HEADER + A + B + bare + bare + C.replace(b'"b"', b"7"))
    assert len(loaded.branch) == 5
    assert set(found(loaded)) == {"B53"}


def test_the_active_branch_ends_at_the_last_leaf(path: Path) -> None:
    loaded = load(path, HEADER + A + B + C + line("x", "a") + line("y", "x"))
    assert names(loaded) == "axy"
    assert len(loaded.records) == 5


@pytest.mark.parametrize("head", [b"", b"not a header\n", b'{"type":"session"'])
def test_B54_a_missing_header_is_made_up_in_memory(path: Path, head: bytes) -> None:
    loaded = load(path, head + A + B)
    assert "B54" in found(loaded)
    assert loaded.header.id == "0123456789ab"
    assert loaded.header.created == TIME
    assert names(loaded) == "ab"


@pytest.mark.parametrize("odd", [b"7", b'"text"', b"[1]", b"null", b'{"no":"type"}', b'{"type":3}'])
def test_B56_what_is_no_record_is_skipped(path: Path, odd: bytes) -> None:
    loaded = load(path, HEADER + A + odd + b"\n" + B)
    assert names(loaded) == "ab"
    assert found(loaded) == ["B56"]


def test_deep_nesting_costs_one_line(path: Path) -> None:
    deep = b'{"type":"user","id":"z","parent":"a","time":"t","x":' + b"[" * 100_000 + b"\n"
    loaded = load(path, HEADER + A + deep + B)
    assert names(loaded) == "ab"


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_cannot_be_read_is_an_error_with_a_way_out(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(SessionError) as raised:
        read(path)
    assert str(path) in raised.value.message
    assert raised.value.hint


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_damage_is_survived_and_whole_lines_are_kept(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cuts, flips, splices and shuffles: no exception, and no untouched record is lost."""
    whole = [HEADER, A, B, C, D]
    raw = bytearray(b"".join(whole))
    kind = data.draw(st.sampled_from(["cut", "flip", "splice", "shuffle", "double"]))
    at = data.draw(st.integers(0, len(raw) - 1))
    if kind == "cut":
        del raw[at:]
    elif kind == "flip":
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "splice":
        del raw[at : at + data.draw(st.integers(1, 60))]
    elif kind == "shuffle":
        raw = bytearray(b"".join(data.draw(st.permutations(whole))))
    else:
        raw = raw[:at] + raw[max(0, at - 90) :]
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    path.write_bytes(raw)
    loaded = read(path)
    kept = {json.dumps(record.data) for record in loaded.records}
    intact = bytes(raw).split(b"\n")
    for each in (A, B, C, D):
        if each.strip() in intact:
            assert json.dumps({"content": json.loads(each)["content"]}) in kept
    shown = {record.id for record in loaded.branch}
    assert len(shown) == len(loaded.branch)
    if kind in {"cut", "shuffle"}:
        assert shown == {record.id for record in loaded.records}


def test_B44_a_torn_line_that_took_a_records_id_does_not_push_it_to_a_side_branch(
    path: Path,
) -> None:
    torn = line("b", "a", "the rest of a torn line, under another record's id")
    loaded = load(path, HEADER + A + torn + B + C + D)
    assert [f.code for f in loaded.findings] == ["B44"]
    said = [r.data["content"][0]["text"] for r in loaded.branch]
    assert said == ["a", "the rest of a torn line, under another record's id", "b", "c", "d"]
    assert [r.id for r in loaded.branch][2:] == ["b", "c", "d"]


def test_B44_who_stood_between_two_records_of_one_id_stays_below_the_first(path: Path) -> None:
    again = line("b", "c", "b again")
    loaded = load(path, HEADER + A + B + C + again + line("d", "b"))
    said = [r.data["content"][0]["text"] for r in loaded.branch]
    assert said == ["a", "b", "c", "b again", "d"]


@pytest.mark.parametrize(
    "odd",
    [b'"\\ud800"', b"NaN", b"1e400", b"123456789012345678901234567890", b'"a\tb"', b"-0.0"],
)
def test_what_other_readers_of_json_differ_in_is_read_all_the_same(path: Path, odd: bytes) -> None:
    whole = b'{"type":"note","id":"n","parent":"a","time":"' + TIME.encode() + b'","text":'
    loaded = load(path, HEADER + A + whole + odd + b"}\n")
    value = json.JSONDecoder(strict=False).decode(odd.decode())
    found = loaded.branch[-1].data["text"]
    assert loaded.branch[-1].id == "n"
    assert repr(found) == repr(value) or found == value
    assert not loaded.findings
