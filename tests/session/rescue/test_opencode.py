"""opencode's database, damaged at random and mended in a copy."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import opencode_database
from tests.support.opencode_database import SESSION, damage, refusal
from tui.session.rescue import RescuedDatabase, rescue_database

DAMAGED = 300
FEW = 60


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.db"
    opencode_database.make(path)
    return path


def rescued(path: Path, copy: Path) -> RescuedDatabase:
    copy.unlink(missing_ok=True)
    found = rescue_database(path, copy)
    assert found is not None
    return found


def texts(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT data FROM part").fetchall()
    return {row for (row,) in rows}


@pytest.mark.parametrize("count", [FEW, pytest.param(DAMAGED, marks=pytest.mark.slow)])
def test_damaged_databases_are_opened_by_the_programs_rules(
    sound: Path, tmp_path: Path, count: int
) -> None:
    path, copy, twice = tmp_path / "o.db", tmp_path / "copy.db", tmp_path / "twice.db"
    before = 0
    for seed in range(count):
        shutil.copy(sound, path)
        damage(path, random.Random(seed))
        before += not refusal(path)
        data = path.read_bytes()
        found = rescued(path, copy)
        assert path.read_bytes() == data
        opened = copy if found.repairs.said else path
        assert refusal(opened) == "", seed
        kept = texts(sound) & texts(path)
        aside = {json.loads(line)["data"] for line in found.set_aside.splitlines()}
        assert kept <= texts(opened) | aside, "every part that can be read is there"
        assert not rescued(opened, twice).repairs.said, seed
        assert not twice.exists()
    assert before < count / 3, "the damage is real"


def test_a_sound_database_gets_no_copy(sound: Path, tmp_path: Path) -> None:
    found = rescued(sound, tmp_path / "copy.db")
    assert (found.repairs.said, found.set_aside) == ([], b"")
    assert not (tmp_path / "copy.db").exists()


def test_a_lost_message_is_made_again_for_its_parts(sound: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(sound)) as db:
        db.execute("UPDATE message SET data = '{\"rol' WHERE id IN ('msg_003b', 'msg_004a')")
        db.commit()
    copy = tmp_path / "copy.db"
    found = rescued(sound, copy)
    assert found.sessions == {SESSION}
    assert found.repairs.said == [
        f"message {id_}: it was made again for the parts that it has"
        for id_ in ("msg_003b", "msg_004a")
    ]
    with closing(sqlite3.connect(copy)) as db:
        rows = dict(db.execute("SELECT id, data FROM message").fetchall())
    answer, prompt = json.loads(rows["msg_003b"]), json.loads(rows["msg_004a"])
    assert (answer["role"], answer["parentID"], answer["cost"]) == ("assistant", "msg_003a", 0)
    assert (prompt["role"], prompt["model"]["providerID"]) == ("user", "anthropic")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_of_damaged_pages_the_readable_rows_are_copied(tmp_path: Path) -> None:
    path, copy = tmp_path / "o.db", tmp_path / "copy.db"
    opencode_database.make(path, 100)
    data = bytearray(path.read_bytes())
    page = data.index(b'"prompt 50') // 4096 * 4096  # a leaf with rows
    data[page : page + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    found = rescued(path, copy)
    assert found.repairs.said[0].endswith("copied; 1 table could only be read in part")
    assert refusal(copy) == ""
    told = "".join(texts(copy))
    assert "prompt 1 " in told
    assert "prompt 99 " in told


def test_what_is_not_opencodes_is_none(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE session (id)")
        db.commit()
    assert rescue_database(tmp_path / "other.db", tmp_path / "copy.db") is None
    assert not (tmp_path / "copy.db").exists()
