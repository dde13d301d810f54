"""Search in sessions: the places that it reaches, and an index that has nothing of the texts."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha512
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.clock import FakeClock
from tests.support.foreign import ClaudeCode, lines
from tui.app.options.flags import PLACES
from tui.core.paths import Folders
from tui.session import cache_database, catalog, copies, passages, search, text_index
from tui.session.passages import Kind, Query
from tui.session.records import encode
from tui.session.search import Hit, SearchResult
from tui.session.session import Session


async def session(home: Folders, *prompts: str, at: float = 0, cwd: Path = Path("/w")) -> Session:
    clock = FakeClock()
    clock.elapsed = at
    made = Session.create(cwd, folders=home, clock=clock)
    for prompt in prompts:
        made.append("user", content=[{"type": "text", "text": prompt}], text=prompt)
    await made.close()
    assert made.path is not None
    os.utime(made.path, (at, at))
    return made


def sources(home: Folders) -> list[search.SearchedFile]:
    return search.ours([*catalog.scan(home), *catalog.scan_children(home)])


def searched(home: Folders, query: str, **more: Any) -> SearchResult:
    return search.search(home.cache, sources(home), replace(Query.of(query), **more))


def found(home: Folders, query: str, **more: Any) -> list[Hit]:
    return searched(home, query, **more).hits


def kinds(home: Folders, query: str, **more: Any) -> list[str]:
    return [hit.kind for hit in found(home, query, **more)]


def trigrams(home: Folders) -> set[str]:
    """All that the index knows of texts."""
    with sqlite3.connect(home.cache / text_index.DATABASE.name) as index:
        known: set[str] = set()
        for shard in text_index.tables_of(index):
            index.execute(
                f"CREATE VIRTUAL TABLE temp.t{shard} USING fts5vocab(main, words{shard}, row)"
            )
            known |= {row[0] for row in index.execute(f"SELECT term FROM temp.t{shard}")}
    return known


def index_bytes(home: Folders) -> bytes:
    return b"".join(path.read_bytes() for path in home.cache.iterdir() if path.is_file())


@pytest.fixture
def no_fts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index, "_WORDS", "nothing()")


@pytest.mark.parametrize("fts", [True, False])
async def test_the_record_and_its_line_are_found(
    home: Folders, fts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fts:
        monkeypatch.setattr(text_index, "_WORDS", "nothing()")
    old = await session(home, "a Needle in the hay", "nothing here")
    new = await session(home, "hay", 'more "hay" and a needle: İstanbul 針山', at=9)
    assert [hit.id for hit in found(home, "needle")] == [new.id, old.id]
    (hit,) = found(home, "NEEDLE more")
    assert hit.to_json() == {
        "id": new.id,
        "path": str(new.path),
        "message": new.records[1].id,
        "line": 3,
        "snippet": 'more "hay" and a needle: İstanbul 針山',
        "title": "hay",
        "cwd": "/w",
        "time": new.records[1].time,
        "kind": "prompt",
    }
    assert [h.line for h in found(home, '"hay"')] == [3]
    assert [h.line for h in found(home, "針山")] == [3]
    assert [h.line for h in found(home, "istanbul")] == []
    assert [h.line for h in found(home, "İstanbul")] == [3]
    assert [h.id for h in found(home, "in the")] == [old.id]
    assert [h.id for h in found(home, "eedl")] == [new.id, old.id]
    assert [h.id for h in found(home, "y")] == [new.id, new.id, old.id]
    assert found(home, "needles") == []
    remark = searched(home, "needle").remark
    assert remark == ("" if fts else search.NO_FTS)


def test_a_snippet_is_one_line_around_the_first_word() -> None:
    text = "x" * 200 + "\n\x1b[31mthe Needle\n" + "y" * 200
    shown = passages.snippet(text, ["needle"])
    assert "Needle" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown) <= 103


async def test_every_kind_of_place_is_reached(home: Folders, tmp_path: Path) -> None:
    made = Session.create(tmp_path, folders=home, clock=FakeClock())
    full = tmp_path / ".holdfast" / "tool-results" / "toolu_1.txt"
    full.parent.mkdir(parents=True)
    full.write_text("a line\n" * 9000 + "the kumquat in full\n" + "a line\n" * 9000)
    call = {"id": "a", "name": "run_command", "input": {"command": 'grep "kumquat call" x'}}
    receipt = {"path": str(full), "sha256": "0"}
    made.append("user", content=[{"type": "text", "text": "kumquat prompt"}], text="kumquat")
    made.append(
        "assistant",
        content=[{"type": "thinking", "thinking": "kumquat thought", "signature": "s"}],
    )
    made.append("assistant", content=[{"type": "text", "text": "kumquat answer"}])
    made.append("assistant", content=[{"type": "tool_use", **call}])
    made.append("tool_result", call_id="a", name="x", content="cut", receipt=receipt)
    made.append("tool_result", call_id="b", name="x", content="z" * 50_000 + "kumquat")
    made.append("compaction", summary="kumquat summary")
    made.append("note", text="kumquat note")
    made.append("title", title="kumquat title")
    await made.close()
    expected = [
        "prompt", "thinking", "answer", "call", "output", "result", "summary", "note", "title",
    ]  # fmt: skip
    assert kinds(home, "kumquat") == expected
    assert set(expected) == set(PLACES) == set(get_args(Kind))
    assert [hit.line for hit in found(home, '"kumquat')] == [5]
    (hit,) = found(home, "kumquat full")
    assert (hit.kind, hit.line, hit.message) == ("output", 6, made.records[4].id)
    assert "the kumquat in full" in hit.snippet
    for kind in PLACES:
        assert kinds(home, "kumquat", kind=kind) == [kind]
    full.unlink()
    assert found(home, "kumquat full") == []


async def test_a_record_that_names_a_file_elsewhere_does_not_open_it(
    home: Folders, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("kumquat")
    made = Session.create(tmp_path / "w", folders=home, clock=FakeClock())
    made.append("tool_result", call_id="a", content="cut", receipt={"path": str(secret)})
    await made.close()
    assert found(home, "kumquat") == []


async def test_sessions_of_sub_agents_and_side_branches_are_reached(home: Folders) -> None:
    parent = await session(home, "one", "a kumquat that was left")
    assert parent.path is not None
    opened = Session.open(parent.path, clock=FakeClock())
    child = Session.create_child(opened, "toolu_1", clock=FakeClock())
    child.append("user", content="find the kumquat", text="")
    await child.close()
    first = opened.records[0]
    opened.append("rewind", target=opened.records[1].id, left=opened.records[1].id)
    await opened.close()
    with parent.path.open("ab") as file:
        record = {"type": "user", "id": "zz", "parent": first.id, "time": first.time}
        file.write(encode(record | {"content": "another way"}))
    assert {hit.id for hit in found(home, "kumquat")} == {parent.id, child.id}
    assert [hit.message for hit in found(home, "another way")] == ["zz"]


async def test_sessions_of_other_agents_are_reached(home: Folders, tmp_path: Path) -> None:
    made = ClaudeCode()
    made.user("where is the kumquat?")
    made.user("and the lychee?")
    folder = tmp_path / "user" / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / f"{made.session}.jsonl").write_bytes(lines(made.records))
    for _ in range(2):
        others = search.others(tmp_path / "user", {})
        (hit,) = search.search(home.cache, others, Query.of("lychee")).hits
        assert (hit.agent, hit.kind, hit.cwd) == ("claude_code", "prompt", "/home/user/proj")
        assert hit.title == "where is the kumquat?"
        assert "agent" not in hit.to_json()
    made.user("a rambutan")
    (folder / f"{made.session}.jsonl").write_bytes(lines(made.records))
    others = search.others(tmp_path / "user", {})
    assert len(search.search(home.cache, others, Query.of("rambutan")).hits) == 1


async def test_only_what_is_new_is_read_again(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await session(home, "kumquat one")
    await session(home, "kumquat two", at=9)
    assert len(found(home, "kumquat")) == 2
    added: list[int] = []
    real = text_index.put_words

    def counting(database: sqlite3.Connection, number: int, texts: list[str]) -> None:
        added.append(sum(map(len, texts)))
        real(database, number, texts)

    monkeypatch.setattr(text_index, "put_words", counting)
    assert len(found(home, "kumquat")) == 2
    assert added == []
    assert one.path is not None
    again = Session.open(one.path, clock=FakeClock())
    again.append("user", content="kumquat three", text="")
    await again.close()
    assert len(found(home, "kumquat")) == 3
    assert added == [len("kumquat three")]


async def test_a_line_that_is_not_whole_yet_is_found_and_then_once(home: Folders) -> None:
    made = await session(home, "kumquat one")
    assert made.path is not None
    data = made.path.read_bytes()
    line = encode({"type": "user", "id": "zz", "parent": None, "time": "t", "content": "kumquat 2"})
    made.path.write_bytes(data + line[:-1])
    assert [hit.message for hit in found(home, "kumquat")] == [made.records[0].id, "zz"]
    made.path.write_bytes(data + line)
    assert [hit.message for hit in found(home, "kumquat")] == [made.records[0].id, "zz"]


async def test_a_file_that_was_rewritten_is_read_again(home: Folders) -> None:
    made = await session(home, "the kumquat", "more")
    assert made.path is not None
    assert len(found(home, "kumquat")) == 1
    made.path.write_bytes(made.path.read_bytes().replace(b"kumquat", b"[gone] and longer"))
    assert found(home, "kumquat") == []
    assert len(found(home, "gone longer")) == 1
    assert len(found(home, "more")) == 1


async def test_nothing_of_a_text_is_in_the_index_and_less_after_it_is_deleted(
    home: Folders,
) -> None:
    made = await session(home, "my hunter2password and kumquats", cwd=Path("/rambutan"))
    await session(home, "another kumquat", at=9)
    assert len(found(home, "kumquat")) == 2
    held = (home.cache / text_index.DATABASE.name).read_bytes()
    assert b"hunter" not in held
    assert b"unte" not in held
    assert b"another" not in held
    assert {"hun", "kum"} <= trigrams(home)
    assert made.path is not None
    assert b"hunter2password" in index_bytes(home)  # the title, for lists
    copies.delete(made.path, folders=home, clock=FakeClock())
    held = index_bytes(home)
    assert "hun" not in trigrams(home)
    for gone in (b"hunter", b"rambutan", made.id.encode()):
        assert gone not in held
    assert len(found(home, "kumquat")) == 1
    search.restore(home.cache)
    assert "kum" in trigrams(home)
    assert len(found(home, "kumquat")) == 1
    assert "hun" not in trigrams(home)
    assert max(map(len, trigrams(home))) == 3


async def test_the_index_is_private(home: Folders) -> None:
    await session(home, "kumquat")
    home.cache.mkdir(mode=0o755, parents=True)
    (home.cache / text_index.DATABASE.name).touch(0o644)
    assert len(found(home, "kumquat")) == 1
    assert {path.stat().st_mode & 0o777 for path in home.cache.iterdir()} == {0o600}


DAMAGE = ["missing", "no database", "cut", "other version", "a folder", "no table", "no shard"]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_broken_index_costs_only_a_rebuild(home: Folders, damage: str) -> None:
    await session(home, "find the needle", *("and more" * 999,) * 30)
    hits = found(home, "needle")
    assert len(hits) == 1
    file = home.cache / text_index.DATABASE.name
    match damage:
        case "missing":
            file.unlink()
        case "no database":
            file.write_bytes(b"\0nonsense" * 999)
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
        case "other version":
            with sqlite3.connect(file) as other:
                other.execute("PRAGMA user_version = 99")
        case "a folder":
            file.unlink()
            file.mkdir()
        case "no table":
            with sqlite3.connect(file) as other:
                other.execute("DROP TABLE block")
        case _:
            with sqlite3.connect(file) as other:
                other.execute("DELETE FROM words0_data")
    assert found(home, "needle") == hits
    assert found(home, "needle") == hits


@contextmanager
def being_written(home: Folders) -> Generator[None]:
    with sqlite3.connect(home.cache / text_index.DATABASE.name, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


async def test_while_another_program_writes_the_index_all_is_found(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_database, "BUSY_S", 0.01)
    await session(home, "one needle")
    assert len(found(home, "needle")) == 1
    with being_written(home):
        await session(home, "two needles", at=9)
        assert len(found(home, "needle")) == 2
    assert len(found(home, "needle")) == 2


async def test_on_a_full_disk_all_is_found_and_it_is_said(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await session(home, "one needle")
    assert len(found(home, "needle")) == 1
    opened = cache_database.CacheDatabase.opened

    @contextmanager
    def full(self: cache_database.CacheDatabase, cache: Path) -> Generator[sqlite3.Connection]:
        with opened(self, cache) as database:
            pages = database.execute("PRAGMA page_count").fetchone()[0]
            database.execute(f"PRAGMA max_page_count = {pages}")
            yield database

    monkeypatch.setattr(cache_database.CacheDatabase, "opened", full)
    new = await session(home, *(f"needle {sha512(b'%d' % n).hexdigest()}" for n in range(50)), at=9)
    got = searched(home, "needle")
    assert {hit.id for hit in got.hits} == {old.id, new.id}
    assert len(got.hits) == 51
    assert "disk is full" in got.remark


async def test_without_a_place_for_the_index_the_files_are_read(home: Folders) -> None:
    await session(home, "the needle")
    home.cache.write_bytes(b"")
    got = searched(home, "needle")
    assert len(got.hits) == 1
    assert "every file was read" in got.remark


async def test_a_first_reading_that_is_interrupted_goes_on_where_it_was(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "_BATCH", 20_000)
    await session(home, *(f"needle {n} " + "words " * 500 for n in range(40)))
    reads: list[int] = []
    real = text_index.Update.read

    def stopped(self: text_index.Update, left: list[search.SearchedFile]) -> int:
        if len(reads) == 3:
            raise KeyboardInterrupt
        reads.append(1)
        return real(self, left)

    monkeypatch.setattr(text_index.Update, "read", stopped)
    with suppress(KeyboardInterrupt):
        found(home, "needle")
    monkeypatch.setattr(text_index.Update, "read", real)
    with sqlite3.connect(home.cache / text_index.DATABASE.name) as index:
        read, size = index.execute("SELECT read, size FROM source").fetchone()
        before = index.execute("SELECT count(*) FROM block").fetchone()[0]
    assert read > 0
    assert size == -1
    assert before > 1
    assert len(found(home, "needle")) == 40
    with sqlite3.connect(home.cache / text_index.DATABASE.name) as index:
        starts = [row[0] for row in index.execute("SELECT start FROM block ORDER BY number")]
    assert starts == sorted(set(starts))


async def test_many_shards_and_deletions_leave_all_others(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "_SHARD_BITS", 2)
    monkeypatch.setattr(text_index, "_BLOCK", 50)
    made = [
        await session(home, *(f"needle{n}x number {k} of it, as words" for k in range(9)), at=n)
        for n in range(12)
    ]
    for n in range(12):
        assert [hit.id for hit in found(home, f"needle{n}x number")] == [made[n].id] * 9
    for n in (0, 5, 6, 11):
        path = made[n].path
        assert path is not None
        copies.delete(path, folders=home, clock=FakeClock())
    more = await session(home, "needle77 is new", at=99)
    left = [n for n in range(12) if n not in {0, 5, 6, 11}]
    for _ in range(2):
        assert len(found(home, "needle")) == 9 * len(left) + 1
        assert len(found(home, "needle")) == 9 * len(left) + 1
        assert [hit.id for hit in found(home, "needle77")] == [more.id]
        assert next(hit.id for hit in found(home, "ne")) == more.id
        assert len(found(home, "it,")) == 9 * len(left)
        search.restore(home.cache)


async def test_times_and_files_narrow_it_down(home: Folders, tmp_path: Path) -> None:
    made = Session.create(tmp_path, folders=home, clock=FakeClock())
    made.append("user", content="change them", text="change them")
    patch = "*** Begin Patch\n*** Update File: src/b.py\n@@\n-x\n+y\n*** End Patch\n"
    calls = [("edit_file", {"path": "src/a.py"}), ("apply_patch", {"patch": patch})]
    for name, given in calls:
        block = {"type": "tool_use", "id": name, "name": name, "input": given}
        made.append("assistant", content=[block])
    await made.close()
    for name in ("a", "b"):
        (hit,) = found(home, f"{name}.py", kind="call", file=str(tmp_path / "src" / f"{name}.py"))
        assert hit.kind == "call"
    assert found(home, "a.py", file=str(tmp_path / "other" / "a.py")) == []
    time = made.records[-1].time
    assert len(found(home, "patch", since=time)) == 1
    assert found(home, "patch", since=time.replace("2026", "2027")) == []


async def test_a_damaged_line_costs_only_that_line(home: Folders) -> None:
    made = await session(home, "one needle", "two needles", "three needles")
    assert made.path is not None
    all_lines = made.path.read_bytes().splitlines(keepends=True)
    all_lines[2] = all_lines[2][:40] + b"\n"
    all_lines[3] = all_lines[3].replace(b"needles", b"nee\0dles")
    made.path.write_bytes(b"".join(all_lines))
    assert [hit.line for hit in found(home, "needle")] == [2, 4]


async def test_a_long_query_is_as_good_as_a_short_one(home: Folders) -> None:
    words = [sha512(b"%d" % n).hexdigest() for n in range(60)]
    made = await session(home, " ".join(words), "other", at=1)
    file = home.cache / text_index.DATABASE.name
    before = searched(home, words[0])
    inode = file.stat().st_ino
    short = [word[at : at + 2] for word in words for at in range(0, 100, 2)]
    for query in ("".join(words), " ".join(words), " ".join(short), words[3]):
        got = searched(home, query)
        expected = [] if " " not in query and len(query) > 200 else [made.records[0].id]
        assert [hit.message for hit in got.hits] == expected
    assert before.hits
    assert file.stat().st_ino == inode


async def test_where_there_is_nothing_nothing_is_found(home: Folders) -> None:
    assert searched(home, "needle") == SearchResult([])
    made = await session(home, "one")
    assert made.path is not None
    made.path.write_bytes(b"")
    assert searched(home, "needle") == SearchResult([])


async def test_progress_is_told(home: Folders) -> None:
    await session(home, "one")
    await session(home, "two", at=9)
    told: list[tuple[int, int]] = []
    query = Query.of("one")
    for _ in range(2):
        search.search(
            home.cache, sources(home), query, progress=lambda done, of: told.append((done, of))
        )
    assert told == [(0, 2), (2, 2)]


def test_hits_say_where_they_are_as_json() -> None:
    hit = Hit("i", "/p", "m", 3, "s", "t", "/c", "2026", "call")
    names = ["id", "path", "message", "line", "snippet", "title", "cwd", "time", "kind"]
    assert list(json.loads(json.dumps(hit.to_json()))) == names
