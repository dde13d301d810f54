"""A session whose folder is gone: it is continued or copied where you are, and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.program import Program

HERE = "This session's folder ~/gone no longer exists: only its conversation continues, in ~/work."


def begun(holdfast: Program, home: Path, *, checkpoints: bool) -> Path:
    """A session in a folder that is removed afterwards."""
    folder = home.parent / "gone"
    folder.mkdir()
    more = ("--allow", "write_file", "create notes.txt with hello") if checkpoints else ("hi",)
    holdfast("--practice", "-C", str(folder), *more[:-1], "-p", more[-1])
    shutil.rmtree(folder)
    (file,) = home.glob("data/sessions/*/*.jsonl")
    return file


def records(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def id_of(file: Path) -> str:
    return file.stem.rpartition("-")[2]


def test_a_copy_belongs_to_the_folder_where_it_continues(holdfast: Program, home: Path) -> None:
    file = begun(holdfast, home, checkpoints=False)
    done = holdfast("--practice", "-r", id_of(file), "--fork", "-p", "hello")
    assert done.stderr.count(HERE) == 1
    (copy,) = set(home.glob("data/sessions/*/*.jsonl")) - {file}
    header, *rest = records(copy)
    assert header["cwd"] == str(holdfast.work)
    assert [one["text"] for one in rest if one["type"] == "note"] == [HERE]
    listed = json.loads(holdfast("sessions", "list", "--json").stdout)
    assert [one["id"] for one in listed] == [id_of(copy)]
    exported = holdfast("sessions", "export", id_of(copy), "--out", "-").stdout
    assert "no longer exists" in exported
    assert HERE in holdfast("sessions", "fork", id_of(file)).stderr
    # the copy has a folder again: nothing more is said of it
    assert "no longer exists" not in holdfast("--practice", "-c", "-p", "hello").stderr


def test_a_resumed_one_says_how_its_files_come_back(holdfast: Program, home: Path) -> None:
    file = begun(holdfast, home, checkpoints=True)
    said = holdfast("--practice", "-r", id_of(file), "-p", "hello").stderr
    assert HERE in said
    folder = home.parent / "gone"
    assert f"run `holdfast -C {folder} -r {id_of(file)}` and use /rewind." in said
    folder.mkdir()
    again = holdfast("--practice", "-C", str(folder), "-r", id_of(file), "-p", "hello")
    assert "no longer exists" not in again.stderr
