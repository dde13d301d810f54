"""What a new session offers: made from the folder, and nothing where the folder is strange."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tests.support.world import record
from tui.app.start_rows import ROWS, StartRow, start_rows
from tui.core.paths import folders
from tui.session.records import Header, Record

CALL = {"type": "tool_use", "id": "c1", "name": "run_command", "input": {"command": "pytest -q"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "proj"
    made.mkdir()
    return made


def rows(folder: Path) -> list[StartRow]:
    return start_rows(folders(), folder, FakeClock())


def labels(folder: Path) -> list[str]:
    return [row.label for row in rows(folder)]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@y.z")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def session(folder: Path, name: str, *records: Record, hours: float = 2) -> Path:
    """A session of this folder, written `hours` ago."""
    time = FakeClock().now() - timedelta(hours=hours)
    path = folders().sessions_of(folder) / f"20261101T000000Z-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    lines, parent = [Header(name, stamp, str(folder), "holdfast 1").to_line()], None
    for one in records:
        lines.append(Record(one.type, one.id, parent, stamp, one.data).to_line())
        parent = one.id
    path.write_bytes(b"".join(lines))
    os.utime(path, (time.timestamp(), time.timestamp()))
    return path


def said(type_: str, number: int, text: str, *more: object) -> Record:
    content = [{"type": "text", "text": text}, *more]
    return record(type_, number, content=content, **({"text": text} if type_ == "user" else {}))


def test_an_empty_folder_gets_examples(folder: Path) -> None:
    found = rows(folder)
    assert [row.label for row in found] == [
        "Ask what Holdfast can do",
        "Start a project",
        "Take the tour",
    ]
    assert all(row.prompt and row.path is None for row in found)


def test_the_last_session_is_named_with_its_age_and_where_it_stopped(folder: Path) -> None:
    session(folder, "0000000001", said("user", 1, "an older one"), hours=30)
    call = said("assistant", 3, "I run them.", CALL)
    path = session(folder, "0000000002", said("user", 2, "fix the flaky test"), call)
    session(folder, "0000000003", hours=1)  # nothing was said in it
    first = rows(folder)[0]
    assert (first.label, first.path) == ("Resume “fix the flaky test”", path)
    assert first.detail == "2 h ago · stopped at pytest -q"
    assert "Take the tour" not in labels(folder)


@pytest.mark.parametrize(
    ("last", "detail"),
    [
        (said("assistant", 2, "Done."), "2 h ago"),
        (record("error", 2, error_class="network", message="x"), "2 h ago · stopped at an error"),
        (record("parked", 2, until="2026-11-22T00:00:00Z"), "2 h ago · waits for the server"),
    ],
)
def test_where_a_session_stopped_is_said_if_it_did(folder: Path, last: Record, detail: str) -> None:
    session(folder, "0000000001", said("user", 1, "go"), last)
    assert rows(folder)[0].detail == detail


def test_a_session_without_an_answer_stopped_before_it(folder: Path) -> None:
    session(folder, "0000000001", said("user", 1, "go"))
    assert rows(folder)[0].detail == "2 h ago · stopped before the answer"


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x00", b'{"type":"user","id":"torn\n'])
def test_a_damaged_session_costs_nothing(folder: Path, damage: bytes) -> None:
    path = folders().sessions_of(folder) / "20261101T000000Z-0000000001.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(damage)
    assert not any(row.path for row in rows(folder))


def test_uncommitted_changes_are_counted(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    assert not any("uncommitted" in label for label in labels(folder))
    (folder / "a").write_text("2")
    assert "Review 1 uncommitted change" in labels(folder)
    (folder / "b").write_text("")
    (folder / os.fsdecode(b"not-utf-8-\xff")).write_text("")
    assert "Review 3 uncommitted changes" in labels(folder)


def test_a_repository_that_could_make_git_run_something_is_not_asked(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a").write_text("1")
    git(folder, "config", "core.fsmonitor", f"touch {folder}/ran; false")
    assert not any("uncommitted" in label for label in labels(folder))
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("state", ["broken", "no git"])
def test_a_broken_repository_or_none_costs_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    git(folder, "init", "-q")
    (folder / "a").write_text("1")
    if state == "broken":
        (folder / ".git" / "HEAD").write_bytes(b"\xff")
    else:
        monkeypatch.setenv("PATH", str(folder.parent / "bin"))
    assert labels(folder)
    assert not any("uncommitted" in label for label in labels(folder))


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest"),
        ({"pyproject.toml": "[project]\n", "tests/test_x.py": ""}, "pytest"),
        ({"pytest.ini": ""}, "pytest"),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""}, "pnpm test"),
        ({"package.json": '{"scripts": {"test": "x"}}', "bun.lock": ""}, "bun run test"),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": "module x"}, "go test ./..."),
        ({"Makefile": "all:\n\ntest: all\n\tx\n"}, "make test"),
        ({"Makefile": "test := 1\ntests:\n"}, ""),
        ({"pyproject.toml": "[project]\n"}, ""),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, ""),
        ({"package.json": '{"scripts": ["test"]}'}, ""),
        ({"package.json": "[" * 100_000}, ""),
        ({"package.json": "\xff"}, ""),
    ],
)
def test_the_command_of_the_tests_is_found(
    folder: Path, files: dict[str, str], command: str
) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="latin-1")
    found = next(
        (row for row in rows(folder) if row.label == "Run the tests and fix failures"), None
    )
    assert (found.detail if found else "") == command
    if found:
        assert f"`{command}`" in found.prompt


def test_there_are_never_more_than_there_are_keys_for(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "README.md").write_text("x")
    (folder / "pytest.ini").write_text("")
    session(folder, "0000000001", said("user", 1, "go"))
    found = rows(folder)
    assert len(found) == ROWS
    assert found[0].path
    assert [row.label for row in found[1:]] == [
        "Review 2 uncommitted changes",
        "Run the tests and fix failures",
    ]


def test_a_folder_that_is_not_there_costs_nothing(folder: Path) -> None:
    assert start_rows(folders(), folder / "gone", FakeClock())
