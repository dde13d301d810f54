"""Any agent's session, found, recognised by its content, and opened however damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.foreign import CWD, claude_code, codex, lines, pi
from tui.context.validate import check
from tui.context.view import build
from tui.core.errors import SessionError
from tui.session import importers
from tui.session.records import Header, Record

FORMATS: dict[str, Callable[[], list[Any]]] = {
    "claude_code": lambda: claude_code(2).records,
    "pi v1": lambda: pi(2, 1).records,
    "pi": lambda: pi(2).records,
    "codex": lambda: codex(2).records,
}
TIME = "2026-11-21T09:00:00.000Z"
OURS = Header("0123456789ab", TIME, "/w", "holdfast 1").to_line()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_known_from_any_part_of_a_file(name: str, tmp_path: Path) -> None:
    path, records = tmp_path / "x.jsonl", FORMATS[name]()
    for start in range(len(records) - 3):
        path.write_bytes(b"torn...\n" + lines(records[start:]))
        assert importers.recognise(path) == name.split(maxsplit=1)[0]


def test_ours_is_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(OURS)
    assert importers.recognise(path) == "ours"
    record = Record("user", "a", None, TIME, {"content": "hi"})
    path.write_bytes(record.to_line())
    assert importers.recognise(path) == "ours"
    assert importers.load(path).records == (record,)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 500, b"hello\nworld\n", b'{"a":1}\n[2]\n"x"\n', b'{"type":"module"}']
)
def test_what_is_nobodys_is_an_error_with_a_way_out(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    assert importers.recognise(path) is None
    with pytest.raises(SessionError) as raised:
        importers.load(path)
    assert str(path) in raised.value.message
    assert raised.value.hint


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SessionError):
        importers.load(tmp_path / "not there.jsonl")
    with pytest.raises(SessionError):
        importers.recognise(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_R10_the_file_is_only_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(FORMATS[name]()) + b'{"torn')
    before = path.read_bytes(), path.stat().st_mtime_ns
    importers.load(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_B41_B42_records_on_one_line_are_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for name, make in FORMATS.items():
        whole = lines(make()).split(b"\n")
        path.write_bytes(lines(make()))
        sound = importers.load(path).records
        joined = [*whole[:5], whole[5][: len(whole[5]) // 2] + whole[5] + whole[6], *whole[7:]]
        path.write_bytes(b"\n".join(joined))
        loaded = importers.load(path)
        assert {f.code for f in loaded.findings} >= {"B41", "B42"}, name
        assert [r.data for r in loaded.records] == [r.data for r in sound], name


def test_sessions_are_found_where_the_agents_keep_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    mine, other = tmp_path / "proj", tmp_path / "other"
    mine.mkdir()
    folders = importers.usual_folders(home)

    def put(path: Path, records: list[Any], cwd: Path, age: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            lines(records).replace(json.dumps(CWD).encode(), json.dumps(str(cwd)).encode())
        )
        os.utime(path, (age, age))

    claude = folders["claude_code"][0] / "-proj"
    put(claude / "a.jsonl", claude_code().records, mine, 300)
    put(claude / "agent-1.jsonl", claude_code().records, mine, 900)
    put(claude / "a" / "subagents" / "agent-2.jsonl", claude_code().records, mine, 900)
    put(folders["pi"][0] / "--proj--" / "b.jsonl", pi().records, mine, 100)
    put(folders["pi"][1] / "main" / "sessions" / "c.jsonl", pi().records, other, 50)
    put(folders["codex"][0] / "2026" / "02" / "10" / "rollout-d.jsonl", codex().records, mine, 200)
    (claude / "notes.jsonl").write_bytes(b"not a session\n")

    found = importers.find(folders)
    assert [(f.path.name, f.format) for f in found] == [
        ("a.jsonl", "claude_code"), ("rollout-d.jsonl", "codex"), ("b.jsonl", "pi"),
        ("c.jsonl", "pi"),
    ]  # fmt: skip
    assert [f.title for f in found] == ["A fine session", "prompt 0", "prompt 0", "prompt 0"]
    assert found[0].size == found[0].path.stat().st_size
    assert importers.find(importers.usual_folders(tmp_path / "nobody")) == []


def test_folders_follow_the_agents_own_settings(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "PI_CODING_AGENT_DIR": "/p"}
    folders = importers.usual_folders(tmp_path, env)
    assert folders["claude_code"] == [Path("/c/projects")]
    assert folders["codex"] == [Path("/x/sessions")]
    assert folders["pi"][0] == Path("/p/sessions")


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e400, 10**30, "", "x", [], [[]], {}, {"type": []}, "\ud800"]
)


def _put_odd(value: Any, data: st.DataObject) -> Any:
    """The value with something odd in the place of one of its parts."""
    inner = cast("dict[str, Any] | list[Any]", value)
    if not isinstance(value, dict | list) or not inner or not data.draw(st.integers(0, 3)):
        return data.draw(ODD)
    if isinstance(inner, dict):
        key = data.draw(st.sampled_from(sorted(inner)))
        return inner | {key: _put_odd(inner[key], data)}
    at = data.draw(st.integers(0, len(inner) - 1))
    return [*inner[:at], _put_odd(inner[at], data), *inner[at + 1 :]]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_R6_odd_values_anywhere_give_a_valid_request(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = FORMATS[data.draw(st.sampled_from(sorted(FORMATS)))]()
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(records) - 1))
        records[at] = _put_odd(records[at], data)
    path = tmp_path_factory.mktemp("s") / "x.jsonl"
    path.write_bytes(lines(records))
    loaded = importers.load(path)
    assert check(build(loaded.branch, model="claude-sonnet-5-5").messages) == []
    assert [json.loads(r.to_line()) for r in loaded.records]


SAID = [f"{what} {n}" for n in range(2) for what in ("prompt", "look", "answer")]


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_damage_gives_a_valid_request_and_loses_no_readable_words(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cuts, flips, splices, doubled and shuffled lines of every format."""
    name = data.draw(st.sampled_from(sorted(FORMATS)))
    whole = [json.dumps(record).encode() for record in FORMATS[name]()]
    kind = data.draw(st.sampled_from(["cut", "flip", "splice", "shuffle", "double", "drop"]))
    if kind in {"shuffle", "double", "drop"}:
        if kind == "shuffle":
            whole = data.draw(st.permutations(whole))
        for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3)):
            if kind == "double":
                whole.insert(at, whole[at])
            elif kind == "drop" and len(whole) > 6:
                del whole[at % len(whole)]
        raw = bytearray(b"\n".join(whole) + b"\n")
    else:
        raw = bytearray(b"\n".join(whole) + b"\n")
        at = data.draw(st.integers(len(raw) // 4, len(raw) - 1))
        if kind == "cut":
            del raw[at:]
        elif kind == "flip":
            raw[at] ^= 1 << data.draw(st.integers(0, 7))
        else:
            del raw[at : at + data.draw(st.integers(1, 400))]
    path = tmp_path_factory.mktemp("s") / "x.jsonl"
    path.write_bytes(raw)
    loaded = importers.load(path)
    view = build(loaded.branch, model="claude-sonnet-5-5")
    assert check(view.messages) == []
    told = json.dumps(view.messages)
    intact = bytes(raw).split(b"\n")
    for record in FORMATS[name]():
        line = json.dumps(record).encode()
        for words in SAID:
            spoken = f'"{words}"'.encode() in line and b"event_msg" not in line
            if spoken and line in intact:
                assert words in told
