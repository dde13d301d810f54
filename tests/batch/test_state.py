"""The state of a run: A2 to A5, A39, A43."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tui.batch.attempt import TaskAttempt
from tui.batch.state import RunFolder, RunState, begin, edited
from tui.batch.taskfile import parse
from tui.core.errors import StorageError, UsageError
from tui.core.facts import TextDelta

NOW = "2026-11-21T12:00:00Z"
TASKS = b"## g\n- [x] one\n- [ ] two\n- three\n"


def started(data: bytes = TASKS) -> RunState:
    return begin(Path("/w/TASKS.md"), parse(data), now=NOW)


def statuses(state: RunState) -> list[str]:
    return [task.status for task in state.tasks]


def test_A2_the_state_holds_what_interface_names(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.save(started())
    found = json.loads(folder.state_file.read_text())
    assert found.keys() == {"task_file", "sha256", "started_at", "tasks", "batch", "placed"}
    assert found["tasks"][1] == {
        "index": 1,
        "group": "g",
        "section": 0,
        "task": "two",
        "status": "pending",
        "session_id": None,
        "change": None,
        "unchanged": False,
        "worktree": None,
        "log": None,
        "attempts": 0,
        "interrupted_at": None,
        "partial_context": None,
        "error_class": None,
        "message": None,
        "seconds": 0.0,
        "usage": {},
        "cost_usd": None,
        "session_tokens": 0,
    }
    assert statuses(started()) == ["completed", "pending", "pending"]


def test_A2_a_changed_task_file_is_refused_with_a_hint(tmp_path: Path):
    folder = RunFolder(tmp_path)
    path = Path("/w/TASKS.md")
    folder.save(started())
    assert folder.load_for(path, parse(TASKS.replace(b"[ ]", b"[x]"))) == started()
    for changed in (b"## g\n- [x] one\n- [ ] too\n- three\n", b"- two\n- three\n- one\n"):
        with pytest.raises(UsageError, match="has changed") as caught:
            folder.load_for(path, parse(changed))
        assert "--reset" in caught.value.hint
    with pytest.raises(UsageError, match=r"A run of /w/TASKS\.md is unfinished here"):
        folder.load_for(Path("/w/OTHER.md"), parse(TASKS))


def test_tasks_that_were_added_join_a_run(tmp_path: Path):
    folder = RunFolder(tmp_path)
    state = started()
    state = state.with_task(replace(state.tasks[1], status="failed", attempts=3))
    folder.save(state)
    added = parse(b"## g\n- [x] zero\n- one\n- half\n- two\n- three\n- four\n")
    found = folder.load_for(Path("/w/TASKS.md"), added)
    assert found is not None
    assert found.sha256 == added.sha256
    assert [(task.task, task.status, task.attempts) for task in found.tasks] == [
        ("zero", "completed", 0),
        ("one", "completed", 0),
        ("half", "pending", 0),
        ("two", "failed", 3),
        ("three", "pending", 0),
        ("four", "pending", 0),
    ]


def test_a_run_that_is_over_makes_room_and_is_kept(tmp_path: Path):
    folder = RunFolder(tmp_path)
    for number in range(2):
        state = started(b"- [x] one\n- two\n")
        state = state.with_task(replace(state.tasks[1], status="failed"))
        folder.save(state)
        log = folder.log_of(1, 1)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"log {number}")
        assert folder.load_for(Path("/w/OTHER.md"), parse(TASKS)) is None
        assert folder.load_for(Path("/w/TASKS.md"), parse(b"- something else\n")) is None
        place = folder.put_away()
        assert place is not None
        assert (place / "logs" / log.name).read_text() == f"log {number}"
        assert (place / "state.json").exists()
        assert folder.load() is None
    assert folder.put_away() is None


def test_A2_edits_in_the_screen_keep_what_is_known():
    state = started()
    state = state.with_task(replace(state.tasks[1], status="failed", attempts=3))
    after = edited(state, parse(b"## g\n- zero\n- two\n- one\n## h\n- three\n"))
    assert [(t.index, t.task, t.status, t.attempts) for t in after.tasks] == [
        (0, "zero", "pending", 0),
        (1, "two", "failed", 3),
        (2, "one", "completed", 0),
        (3, "three", "pending", 0),
    ]
    assert after.sha256 != state.sha256


def test_A3_the_state_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = RunFolder(tmp_path)
    folder.save(started())
    before = folder.state_file.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    changed = started().with_task(replace(started().tasks[2], status="running"))
    with pytest.raises(StorageError, match="No space left"):
        folder.save(changed)
    assert folder.state_file.read_bytes() == before
    assert os.listdir(folder.path) == ["state.json"]


def test_A4_reset_removes_state_and_logs_but_not_the_boot_file(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.save(started())
    log = folder.log_of(0, 1)
    log.parent.mkdir()
    log.write_text("output")
    (tmp_path / ".holdfast" / "boot.md").write_text("boot")
    folder.reset()
    assert folder.load() is None
    assert not log.parent.exists()
    assert (tmp_path / ".holdfast" / "boot.md").read_text() == "boot"
    folder.reset()


def test_a_damaged_state_is_named_with_the_way_on(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.save(started())
    folder.state_file.write_bytes(folder.state_file.read_bytes()[:-30])
    with pytest.raises(UsageError, match="Can't read") as caught:
        folder.load()
    assert "--reset" in caught.value.hint


def test_A5_a_second_runner_is_refused(tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; from tui.batch.state import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).locked():\n"
        "    print('locked', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "locked\n"
        with (
            pytest.raises(UsageError, match=rf"active here \(process {other.pid}\)"),
            RunFolder(tmp_path).locked(),
        ):
            pass
        other.kill()
        other.wait()
    with RunFolder(tmp_path).locked():
        pass


def test_A39_the_end_of_the_output_is_kept():
    long, short = TaskAttempt(), TaskAttempt()
    long.see(TextDelta("é" * 900))
    short.see(TextDelta("short"))
    assert long.output == "é" * 500
    assert short.output == "short"


def test_counts_are_by_status():
    assert started().counts() == {"completed": 1, "pending": 2}
