"""`holdfast ps`, `logs` and `stop`: what they print. With processes: `tests/e2e`."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support.clock import FakeClock
from tui.app import background
from tui.app.background import BackgroundSession
from tui.cli import main
from tui.cli.background_commands import follow
from tui.core.paths import folders
from tui.core.process_birth import born


async def test_logs_follow_until_nobody_writes(tmp_path: Path) -> None:
    path, shown, clock = tmp_path / "log", list[str](), FakeClock()
    path.write_text("one\n")
    left = ["two\n", "three\n"]

    def runs() -> bool:
        if left:
            with path.open("a") as more:
                more.write(left.pop(0))
            return bool(left)
        return False

    with path.open() as file:
        await asyncio.wait_for(follow(file, shown.append, runs, clock), 10)
    assert "".join(shown) == "one\ntwo\nthree\n"


def made(id_: str, **changes: object) -> BackgroundSession:
    about = {
        "id": id_,
        "path": f"/sessions/{id_}.jsonl",
        "cwd": "/work",
        "pid": os.getpid(),
        "born": born(os.getpid()),
        "host": socket.gethostname(),
        "started": "2026-11-21T08:00:00.000Z",
        "since": "2026-11-21T08:00:00.000Z",
    }
    return BackgroundSession(**{**about, **changes})  # pyright: ignore[reportArgumentType] - what a test names


def test_ps_lists_what_runs_with_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert main.main(["ps"]) == 0
    assert "Nothing to list" in capsys.readouterr().err
    asks = {"state": "waiting", "detail": "write_file(a.txt)", "title": "fix\x1b[31m it"}
    background.save(folders(), made("abc123", **asks, cost_usd=0.25))
    background.save(folders(), made("abd456", state="failed", detail="No credit."))
    assert main.main(["ps"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "STATE", "SINCE", "COST", "TITLE", "FOLDER"]
    assert row.startswith("abc123  waiting for you: write_file(a.txt)")
    assert row.endswith("$0.25  fix it  /work")
    assert main.main(["ps", "--all", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["id"]: row["state"] for row in rows} == {"abc123": "waiting", "abd456": "failed"}


def test_ps_aligns_wide_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    wide = "日本語のタイトルがとても長いセッションです、列が揃うかどうか"
    background.save(folders(), made("abc123", title=wide, detail=f"{wide}{wide}"))
    background.save(folders(), made("abd456", title="short"))
    assert main.main(["ps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    folder = cell_len(lines[0].partition("FOLDER")[0])
    assert [cell_len(line.rpartition("/work")[0]) for line in lines[1:]] == [folder, folder]


def test_what_runs_elsewhere_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    background.save(folders(), made("abc123", host="elsewhere"))
    for command in ("attach", "stop"):
        assert main.main([command, "abc"]) == main.EXIT_SESSION
        assert "runs on elsewhere" in capsys.readouterr().err
    assert main.main(["logs", "abc"]) == main.EXIT_SESSION
    assert "sessions show abc123" in capsys.readouterr().err


def test_what_was_never_recorded_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    background.save(folders(), made("abc123", state="interrupted"))
    assert main.main(["attach", "abc"]) == main.EXIT_SESSION
    assert "before anything was recorded" in capsys.readouterr().err
