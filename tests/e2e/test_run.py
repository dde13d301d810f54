"""`holdfast run` as a process: interrupted, killed, resumed, refused; in real git repositories."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import files, git, log
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import Process
from tests.support.processes import kill_kept
from tests.support.program import Program, of_type, until

ROOT = Path(__file__).parents[2]
Script = Callable[[str], str]
ASK = ("--headless", "--yolo", "--json")


def turn(*, text: str = "", faults: str = "", delay_s: float = 0, tool: str = "") -> str:
    tools = f"tools = [{tool}]\n" if tool else ""
    return f"[[turn]]\ntext = {json.dumps(text)}\ndelay_s = {delay_s}\n{tools}" + (
        f"faults = [{faults}]\n" if faults else ""
    )


def writes(name: str, faults: str = "") -> str:
    """The turns of a task that makes a file and says so."""
    tool = f'{{name = "write_file", input = {{path = "{name}", content = "{name}"}}}}'
    return turn(text="Writing.", tool=tool, faults=faults) + turn(text=f"{name} is made.")


def sleeps(name: str) -> str:
    """The turns of a task that makes a file and then waits until it is killed."""
    command = f"echo half > {name}; echo begun; exec sleep 300"
    tool = f'{{name = "run_command", input = {{command = "{command}"}}}}'
    return turn(text="Half of it.", tool=tool)


@pytest.fixture
def repo(work: Path, home: Path) -> Path:
    """The workspace as a clean repository; retries are few and fast."""
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(
        "[retry]\nmax_attempts = 1\ninitial_delay_ms = 1\nmax_delay_ms = 1\n"
    )
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.email", "test@example.org")
    git(work, "config", "user.name", "Test")
    return work


def tasks(repo: Path, text: str) -> str:
    (repo / "TASKS.md").write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    return "TASKS.md"


def saved(repo: Path) -> list[dict[str, Any]]:
    """The tasks as the state has them."""
    return json.loads((repo / ".holdfast" / "run" / "state.json").read_bytes())["tasks"]


def states(repo: Path) -> list[str]:
    return [task["status"] for task in saved(repo)]


def kill_all(process: Process, home: Path) -> None:
    """kill -9, of the program, of keepers and of the commands that they keep."""
    process.kill()
    process.wait()
    kill_kept(home)


@needs_proc
@pytest.mark.slow
def test_a_file_of_12_tasks_with_faults_interrupted_killed_and_resumed(
    holdfast: Program, repo: Path, home: Path, script: Script
) -> None:
    names = [f"file{n:02}" for n in range(1, 13)]
    text = "".join(
        f"## part {n // 4 + 1}\n" * (n % 4 == 0) + f"- [ ] make {name}\n"
        for n, name in enumerate(names)
    )
    file = tasks(repo, text)

    # two 429s use up the retries of a request: the run waits, and Ctrl+C comes while it does
    begun = f'{{name = "write_file", input = {{path = "{names[1]}", content = "half"}}}}'
    first = script(
        writes(names[0])
        + turn(text="Half of it.", tool=begun)
        + turn(text="x", faults="{status = 429}, {status = 429}")
    )
    with holdfast.started("run", file, "--practice-script", first, *ASK) as process:
        until(process, "waiting")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.stdout
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 130
    assert rest[-1]["type"] == "run_finished"
    assert rest[-1]["reason"] == "interrupted"
    assert states(repo) == ["completed", "interrupted"] + ["pending"] * 10
    cut = saved(repo)[1]
    assert "Half of it." in cut["partial_context"]
    assert git(repo, "show", f"{cut['change']}:{names[1]}") == "half"
    assert not (repo / names[1]).exists()

    # kill -9 in the middle of a command
    second = script("".join(map(writes, names[1:3])) + sleeps(names[3]))
    with holdfast.started("run", file, "--practice-script", second, *ASK) as process:
        event = until(process, "user_message", "INTERRUPTED")
        assert event["text"].startswith("CONTEXT FROM INTERRUPTED ATTEMPT: ")
        until(process, "tool_output", "begun")
        kill_all(process, home)
    assert states(repo)[:4] == ["completed"] * 3 + ["running"]
    assert (repo / names[3]).read_text() == "half\n"
    assert "killed; the next run resumes the interrupted task" in holdfast("run", "--status").stdout

    # a 429 and a timeout inside a request are waited out there; two timeouts take an attempt;
    # an overflow begins a fresh session; a refused key ends the run
    third = script(
        writes(names[3], faults="{status = 429}")
        + writes(names[4], faults="{stall_s = 0}, {stall_s = 0}")
        + "".join(map(writes, names[5:8]))
        + turn(text="Eight files are made.", faults="{overflow = true}")
        + writes(names[8])
        + "".join(map(writes, names[9:11]))
        + turn(text="never", faults="{status = 401}, {status = 401}")
    )
    summary = repo.parent / "summary.md"
    done = holdfast(
        "run", file, "--practice-script", third, "--headless", "--yolo",
        "--summary", str(summary), code=3,
    )  # fmt: skip
    assert "Task 4 was running when the last run died." in done.stdout
    assert states(repo) == ["completed"] * 11 + ["failed"]
    assert saved(repo)[-1]["error_class"] == "auth"
    assert [task["attempts"] for task in saved(repo)] == [1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1]
    assert log(repo) == [f"make {name}" for name in reversed(names[:11])] + ["first"]
    assert {name for name in files(repo) if name.startswith("file")} == set(names[:11])
    for name in names[:11]:
        assert (repo / name).read_text() == name
    assert git(repo, "status", "--porcelain").split() == ["M", "TASKS.md"]
    marks = (repo / file).read_text().splitlines()
    assert [line[3] for line in marks if line.startswith("- ")] == ["x"] * 11 + ["!"]
    shown = summary.read_text()
    assert "12 tasks: 11 completed, 1 failed" in shown
    assert "| 12 | make file12 | failed |" in shown
    assert "### Not done\n\n- **12. make file12** failed (auth): " in shown


def test_A5_A9_A30_words_on_the_command_line(holdfast: Program, repo: Path) -> None:
    file = tasks(repo, "- read README.md\n")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / "boot.md").write_text("Begin.\n")
    dry = holdfast("run", file, "--practice", "--dry-run", "--trust").stdout
    assert "boot: .holdfast/boot.md\n" in dry
    careful = holdfast("run", file, "--practice", "--dry-run").stdout
    assert "boot: .holdfast/boot.md (left out: not trusted, see --trust)\n" in careful
    assert not (repo / ".holdfast" / "run").exists()
    assert "--fallback-model" in holdfast("run", file, "--fallback-model", code=2).stderr
    assert "--dry-run" in holdfast("run", "--help").stdout
    assert "name a task file" in holdfast("run", code=2).stderr
    assert "Can't read" in holdfast("run", "nowhere.md", "--practice", code=2).stderr
    assert "No run in" in holdfast("run", "--status", code=2).stderr
    done = holdfast("run", file, "--practice", "--trust")
    assert done.stdout.splitlines()[1] == "boot: .holdfast/boot.md"
    assert "1 task: 1 completed" in done.stdout


def test_A4_A7_reset_removes_state_and_logs_but_not_the_boot_file(
    holdfast: Program, repo: Path
) -> None:
    file = tasks(repo, "- read README.md\n")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / "boot.md").write_text("Begin.\n")
    holdfast("run", file, "--practice")
    assert list((repo / ".holdfast" / "run" / "logs").iterdir())
    holdfast("run", "--reset")
    assert [path.name for path in (repo / ".holdfast" / "run").iterdir()] == ["lock"]
    assert (repo / ".holdfast" / "boot.md").exists()
    assert states_of(holdfast("run", file, "--practice", "--json").events) == ["completed"]


def states_of(events: Sequence[dict[str, Any]]) -> list[str]:
    return [task["status"] for task in events[-1]["tasks"]]


def test_A2_a_changed_task_file_is_refused(holdfast: Program, repo: Path, script: Script) -> None:
    file = tasks(repo, "- [ ] make one\n- [ ] make two\n")
    refused = script(turn(text="x", faults="{status = 401}, {status = 401}"))
    holdfast("run", file, "--practice-script", refused, code=3)
    (repo / file).write_text("- [ ] make one\n- [ ] make three\n")
    err = holdfast("run", file, "--practice", code=2).stderr
    assert "has changed since the run started" in err
    assert "--reset" in err


def test_a_run_that_is_over_lets_the_next_file_begin(
    holdfast: Program, repo: Path, script: Script
) -> None:
    file = tasks(repo, "- [ ] make one\n")
    (repo / "NEXT.md").write_text("- read README.md\n* never\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "next")
    holdfast("run", file, "--practice-script", script(writes("one")), *ASK)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "marks")
    dry = holdfast("run", "NEXT.md", "--practice", "--dry-run")
    assert "Line 2 was not taken as a task: * never" in dry.stderr
    done = holdfast("run", "NEXT.md", "--practice", "--headless")
    assert "The previous run here was complete; it is kept in" in done.stdout
    assert "Line 2 was not taken as a task: * never" in done.stdout
    (kept,) = (repo / ".holdfast" / "run" / "earlier").iterdir()
    assert json.loads((kept / "state.json").read_bytes())["tasks"][0]["status"] == "completed"
    reset = holdfast("run", "--reset")
    assert "1 of 1 task were done" not in reset.stderr
    assert "1 of 1 task was done. Its commit stays" in reset.stderr


def test_a_task_that_is_added_while_the_run_is_at_work_joins_it(
    holdfast: Program, repo: Path, script: Script
) -> None:
    file = tasks(repo, "- [ ] make one\n")
    add = (
        '{name = "run_command", input = {command = "printf -- \'- [ ] make two\\n\' >> TASKS.md"}}'
    )
    replay = script(turn(text="Adding.", tool=add) + turn(text="One.") + writes("two"))
    events = holdfast("run", file, "--practice-script", replay, *ASK).events
    assert "TASKS.md has 1 more task." in [event.get("text") for event in events]
    assert states(repo) == ["completed", "completed"]
    assert (repo / file).read_text() == "- [x] make one\n- [x] make two\n"


def test_a_linked_task_file_is_not_dirty(holdfast: Program, repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "tasks.md").write_text("- [ ] read README.md\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    (repo / "TASKS.md").symlink_to("docs/tasks.md")
    holdfast("run", "TASKS.md", "--practice", "--headless")
    assert (repo / "docs" / "tasks.md").read_text() == "- [x] read README.md\n"
    assert (repo / "TASKS.md").is_symlink()


def test_a_dry_run_of_a_dirty_tree_shows_the_tasks(holdfast: Program, repo: Path) -> None:
    file = tasks(repo, "- read README.md\n")
    (repo / "mine.txt").write_text("mine")
    dry = holdfast("run", file, "--practice", "--dry-run", code=2)
    assert "read README.md" in dry.stdout
    assert "mine.txt" in dry.stderr


def test_A5_two_runners_on_one_target_are_refused(
    holdfast: Program, repo: Path, script: Script
) -> None:
    file = tasks(repo, "- wait\n")
    slow = script(turn(text="slow", delay_s=600))
    with holdfast.started("run", file, "--practice-script", slow, *ASK) as process:
        until(process, "task_started")
        err = holdfast("run", file, "--practice", code=2).stderr
        assert f"Another run is active here (process {process.pid})." in err
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 130


def test_a_dirty_tree_is_refused_and_left_alone(holdfast: Program, repo: Path) -> None:
    file = tasks(repo, "- read README.md\n")
    (repo / "mine.txt").write_text("mine")
    assert "mine.txt" in holdfast("run", file, "--practice", code=2).stderr
    assert (repo / "mine.txt").read_text() == "mine"


def test_A46_without_a_repository_it_warns_and_goes_on(holdfast: Program, work: Path) -> None:
    (work / "TASKS.md").write_text("- read README.md\n")
    done = holdfast("run", "TASKS.md", "--practice")
    assert "isolation: none" in done.stdout
    assert "changes made by failed tasks stay" in done.stdout


def test_what_no_rule_allows_is_refused_without_a_screen(holdfast: Program, repo: Path) -> None:
    file = tasks(repo, "- create notes.txt with hello\n")
    done = holdfast("run", file, "--practice")
    assert "write_file was not allowed" in done.stdout
    assert not (repo / "notes.txt").exists()
    holdfast("run", "--reset")
    holdfast("run", file, "--practice", "--allow", "write_file")
    assert log(repo) == ["create notes.txt with hello", "first"]


def test_a_reader_who_leaves_stops_the_run(holdfast: Program, repo: Path, script: Script) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    slow = script(turn(text="a word " * 50, delay_s=0.5) * 2)
    with holdfast.started("run", file, "--practice-script", slow, *ASK) as process:
        until(process, "task_started")
        assert process.stdout
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 1
    assert states(repo) == ["interrupted", "pending"]


@needs_proc
@pytest.mark.parametrize("moment", ["task_started", "assistant_message", "task_finished"])
def test_A43_a_kill_at_any_transition_loses_nothing(
    holdfast: Program, repo: Path, home: Path, script: Script, moment: str
) -> None:
    file = tasks(repo, "- [ ] make one\n- [ ] make two\n")
    path = script(writes("one") + sleeps("two"))
    with holdfast.started("run", file, "--practice-script", path, *ASK) as process:
        until(process, moment)
        kill_all(process, home)
    again = script(writes("another") + writes("third"))  # wherever it goes on, there are changes
    events = holdfast("run", file, "--practice-script", again, *ASK).events
    assert states_of(events) == ["completed", "completed"]
    assert log(repo) == ["make two", "make one", "first"]
    assert len(of_type(events, "run_finished")) == 1
    assert git(repo, "status", "--porcelain").split() == ["M", "TASKS.md"]


@pytest.fixture
def gate(repo: Path) -> Path:
    """What a command waits for."""
    os.mkfifo(repo.parent / "gate")
    return repo.parent / "gate"


@pytest.fixture(params=[signal.SIGKILL])
def late(
    request: pytest.FixtureRequest, holdfast: Program, repo: Path, script: Script, gate: Path
) -> str:
    """A command of a task that runs on, because the run was killed, or its terminal was lost."""
    late = f"echo begun; read -r go < {gate}; echo late > late.txt"
    tool = f'{{name = "run_command", input = {{command = "{late}"}}}}'
    file = tasks(repo, "- [ ] make one\n- [ ] make two\n")
    with holdfast.started(
        "run", file, "--practice-script", script(turn(tool=tool)), *ASK
    ) as process:
        until(process, "tool_output", "begun")
        process.send_signal(request.param)
        process.wait(PATIENCE_S)
    return late


@pytest.mark.parametrize("late", [signal.SIGKILL, signal.SIGHUP], indirect=True)
def test_a_task_that_was_killed_goes_on_with_its_command(
    holdfast: Program, repo: Path, script: Script, late: str, gate: Path
) -> None:
    assert states(repo) == ["running", "pending"]
    again = script(turn(text="It came late.") + writes("two"))
    with holdfast.started("run", "TASKS.md", "--practice-script", again, *ASK) as process:
        said = until(process, "notice", "Task 1")["text"]
        until(process, "tool_started")
        gate.write_text("go\n")
        assert process.stdout
        events = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 0
    assert said == (
        "Task 1 was running when the last run died, and it goes on where it was."
        f" Still running: {late}."
    )
    assert states_of(events) == ["completed", "completed"]
    assert [task["attempts"] for task in saved(repo)] == [1, 1]
    (result,) = [one for one in of_type(events, "tool_finished") if one["name"] == "run_command"]
    assert result["summary"].startswith("exit 0")
    assert log(repo) == ["make two", "make one", "first"]
    assert git(repo, "show", "HEAD~1:late.txt") == "late\n"
    assert "interrupted" not in (repo / saved(repo)[0]["log"]).read_text()
    assert saved(repo)[0]["usage"]["output_tokens"] > 0


def test_a_task_that_was_done_when_it_was_killed_is_not_asked_again(
    holdfast: Program, repo: Path, script: Script, late: str, gate: Path
) -> None:
    del late
    again = script(turn(text="It came late."))
    with holdfast.started("run", "TASKS.md", "--practice-script", again, *ASK) as process:
        until(process, "tool_started")
        gate.write_text("go\n")
        until(process, "assistant_message", "It came late.")
        until(process, "task_finished")
        process.kill()
        process.wait()
    state = repo / ".holdfast" / "run" / "state.json"
    data = json.loads(state.read_bytes())
    data["tasks"][0] |= {"status": "running", "change": None}  # as before it was saved
    state.write_text(json.dumps(data))
    head = git(repo, "rev-parse", "HEAD~1").strip()
    git(repo, "update-ref", "refs/worktree/holdfast/running", head)
    events = holdfast("run", "TASKS.md", "--practice-script", script(writes("two")), *ASK).events
    assert states_of(events) == ["completed", "completed"]
    assert log(repo) == ["make two", "make one", "first"]
    assert git(repo, "show", "HEAD~1:late.txt") == "late\n"


def test_3_where_a_task_has_to_begin_again_its_command_is_stopped_first(
    holdfast: Program, repo: Path, script: Script, late: str
) -> None:
    again = script(writes("one") + writes("two"))
    file = ("run", "TASKS.md", "--parallel", "2")  # it was begun here, not in a worktree
    events = holdfast(*file, "--practice-script", again, *ASK).events
    said = " ".join(event["text"] for event in of_type(events, "notice"))
    assert f"Its command was still running and has been stopped: {late}." in said
    with pytest.raises(OSError, match="No such device"):  # nobody reads it any more
        os.open(repo.parent / "gate", os.O_WRONLY | os.O_NONBLOCK)
    assert states(repo) == ["completed", "completed"]
    assert "late.txt" not in git(repo, "ls-files")


@pytest.mark.slow
def test_A26_models_of_the_configuration_are_swapped_between_attempts_only(
    holdfast: Program, repo: Path, home: Path, script: Script
) -> None:
    config = home / "config" / "config.toml"
    config.write_text('fallback_models = ["other"]\n' + config.read_text())
    file = tasks(repo, "- [ ] make one\n")
    path = script(writes("one", faults="{stall_s = 0}, {stall_s = 0}"))
    events = holdfast("run", file, "--practice-script", path, *ASK).events
    assert not of_type(events, "model_switched")
    notices = [event["text"] for event in of_type(events, "notice")]
    assert "  failover: switching from practice to other" in notices
    asked = [event["model"] for event in of_type(events, "request_sent")]
    assert asked == ["practice", "practice", "other", "other"]  # the retry is inside the request


def test_status_as_json_has_the_fields_of_the_interface(holdfast: Program, repo: Path) -> None:
    holdfast("run", tasks(repo, "- read README.md\n"), "--practice")
    shown = json.loads(holdfast("run", "--status", "--json").stdout)
    assert {"task_file", "sha256", "started_at", "tasks"} <= shown.keys()
    fields = "index group task status session_id change log attempts interrupted_at"
    more = "partial_context error_class usage cost_usd"
    assert {*fields.split(), *more.split()} <= shown["tasks"][0].keys()


@pytest.mark.slow
def test_the_tasks_of_a_run_share_the_mcp_servers(
    holdfast: Program, repo: Path, home: Path, script: Script
) -> None:
    starts = home / "starts"
    serve = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); open({str(starts)!r}, 'a').write('x'); "
        "from tests.tools.mcp.server import server; server.run('stdio')"
    )
    with (home / "config" / "config.toml").open("a") as config:
        config.write(f"[mcp.odd]\ncommand = {json.dumps([sys.executable, '-c', serve])}\n")
    file = tasks(repo, "## one\n- [ ] a\n- [ ] b\n## two\n- [ ] c\n## three\n- [ ] d\n")
    echo = '{name = "mcp__odd__echo", input = {text = "from afar"}}'
    die = '{name = "mcp__odd__die", input = {}}'
    answer = turn(tool=echo) + turn(text="Done.")
    summary = turn(text="It was said.")
    played = script(answer + answer + summary + turn(tool=die) + answer + summary + answer * 2)
    told = holdfast("run", file, "--practice-script", played, *ASK).events
    assert states(repo) == ["completed"] * 4
    finished = of_type(told, "tool_finished")
    said = [(e["name"].removeprefix("mcp__odd__"), e["is_error"]) for e in finished]
    assert said[:3] == [("echo", False), ("echo", False), ("die", True)]
    assert set(said[3:]) == {("echo", False)}  # it was started again by the call
    assert starts.read_text() == "xx"


def test_tasks_in_parallel_are_split_run_merged_and_refused_in_words(
    holdfast: Program, repo: Path, script: Script
) -> None:
    file = tasks(repo, "## a\n- [ ] one\n## b\n- [ ] two\n")
    told = holdfast("run", file, "--parallel", "2", "--dry-run", "--practice")
    assert "parallel: 2 tasks at a time, each group in a checkout of its own" in told.stdout
    turns = script(writes("same") + writes("same"))  # in whatever order: each makes the same file
    done = holdfast("run", file, "--parallel", "2", "--practice-script", turns, *ASK)
    assert [e["at_once"] for e in of_type(done.events, "run_started")] == [2]
    assert {e["task"] for e in of_type(done.events, "turn_finished")} == {0, 1}
    git(repo, "checkout", "-q", "--detach")
    no = holdfast("run", file, "--parallel", "2", "--practice", code=2)
    assert "is on none" in no.stderr
