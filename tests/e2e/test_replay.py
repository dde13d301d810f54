"""`holdfast replay` as a process: prompts run again, judged, killed, continued, limited."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from hashlib import sha256
from math import isclose
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.batch.test_git import git
from tests.e2e.conftest import Serve
from tests.e2e.test_run import turn
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.program import Program
from tests.support.server_script import Json
from tests.support.server_script import Script as ServerScript
from tests.support.serving import serving

Script = Callable[[str], str]
CHECK = 'test "$(cat answer.txt)" = 42\n'
READ = '{name = "read_file", input = {path = "answer.txt"}}'
TEST = '{name = "run_command", input = {command = "sh test.sh 2>&1 | tail -3"}}'


def writes(answer: int) -> str:
    """The turns that put an answer into its file and test it."""
    write = f'{{name = "write_file", input = {{path = "answer.txt", content = "{answer}"}}}}'
    return (
        turn(text="Looking.", tool=READ)
        + turn(text="Fixing.", tool=write)
        + turn(text="Testing.", tool=TEST)
        + turn(text=f"It is {answer} now.")
    )


@pytest.fixture
def project(work: Path) -> Path:
    """A repository with a wrong answer, and a folder that git ignores."""
    (work / "answer.txt").write_text("41")
    (work / "test.sh").write_text(CHECK)
    (work / ".gitignore").write_text("node_modules/\n")
    (work / "node_modules" / "dep").mkdir(parents=True)
    (work / "node_modules" / "dep" / "index.js").write_text("0")
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.email", "test@example.org")
    git(work, "config", "user.name", "Test")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    return work


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "suite.toml"


def recorded(holdfast: Program, script: Script, turns: str, prompt: str) -> str:
    """The session in which a prompt was answered."""
    holdfast("-p", prompt, "--practice-script", script(turns), "--yolo")
    (listed,) = json.loads(holdfast("sessions", "list", "--json").stdout)
    return str(listed["id"])


def contents(*folders: Path) -> Mapping[str, str]:
    """A hash of each file below some folders, whatever made it."""
    return {
        str(path): sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def of(home: Path, id_: str) -> list[Path]:
    """What is kept of a session: its file, and the checkpoints of its workspace."""
    kept = [*(home / "data" / "sessions").rglob(f"*{id_}*"), *(home / "data").glob("checkpoints")]
    assert len(kept) > 1
    return [path.parent if path.is_file() else path for path in kept]


def test_a_prompt_is_run_again_in_its_workspace_and_judged(
    holdfast: Program, project: Path, home: Path, suite: Path, script: Script, tmp_path: Path
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    (project / "answer.txt").write_text("something else by now")
    said = holdfast("replay", str(suite), "--add", id_)
    assert "put-the-answer-right: sh test.sh" in said.stdout
    assert "Checkpoints are kept for 30 days" in said.stderr
    kept = (datetime.now().astimezone() + timedelta(days=30)).date()
    assert f"there until {kept}, less if" in said.stderr
    assert 'linked = ["node_modules"]' in suite.read_text()
    before = contents(project, *of(home, id_))

    solved = holdfast(
        "replay",
        f"{project}/../{suite.name}",
        "--practice-script",
        script(writes(42)),
        "--yolo",
        "--json",
    )
    (case,) = solved.object["cases"]
    assert (case["verdict"], case["now"]["calls"], case["then"]["calls"]) == ("solved", 3, 3)
    assert case["now"]["tokens"] > 0
    place = Path(case["folder"])
    assert (place / "answer.txt").read_text() == "42"
    assert git(place, "log", "--format=%s").strip() == "The files as they were"
    assert git(place, "status", "--short").strip() == "M answer.txt"
    assert (place / "node_modules" / "dep" / "index.js").read_text() == "0"
    assert "It is 42 now." in holdfast("sessions", "show", case["session_id"]).stdout

    junit = tmp_path / "results.xml"
    wrong = holdfast(
        "replay", str(suite), "--practice-script", script(writes(43)), "--yolo",
        "--junit", str(junit), code=1,
    )  # fmt: skip
    assert "put-the-answer-right  unsolved" in wrong.stdout
    assert "Red: sh test.sh (exit 1)." in wrong.stdout
    (failure,) = ElementTree.parse(junit).iter("failure")
    assert failure.get("message") == "Red: sh test.sh (exit 1)."
    told = holdfast("replay", str(suite), "--status").stdout.splitlines()
    assert [line.split(":")[2].split(" · ")[0].strip() for line in told] == [
        "1 solved",
        "1 unsolved",
    ]

    after = contents(project, *of(home, id_))
    assert {name: after.get(name) for name in before} == before
    assert {name for name in after if str(project) in name} == {
        name for name in before if str(project) in name
    }


def test_what_was_said_before_comes_along_and_the_variation_counts(
    serve: Serve, project: Path, env: dict[str, str], suite: Path, tmp_path: Path
) -> None:
    def answers(answer: int) -> list[dict[str, Any]]:
        write = {"path": "answer.txt", "content": str(answer)}
        return [
            {"text": "Looking.", "tools": [{"name": "read_file", "input": {"path": "answer.txt"}}]},
            {"text": "Fixing.", "tools": [{"name": "write_file", "input": write}]},
            {"tools": [{"name": "run_command", "input": {"command": "sh test.sh"}}]},
            {"text": "Done."},
        ]

    hello = {"text": f"The folder is {project}, and the answer 42."}
    server = serve(hello, *answers(42), *answers(42), priced=True, catalogue=True)
    program = Program(project, {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url})
    program("-p", "What is the answer?", "--yolo")
    program("-c", "-p", f"Put it into {project}/answer.txt.", "--yolo")
    (listed,) = json.loads(program("sessions", "list", "--json").stdout)
    program("replay", str(suite), "--add", f"{listed['id']}:2")
    (tmp_path / "OTHER.md").write_text("Write numbers as digits.")
    sent, paid = len(server.posts), server.cache.dollars

    done = program(
        "replay", str(suite), "--model", "claude-haiku-4-5", "--agents-md",
        str(tmp_path / "OTHER.md"), "--append-system-prompt", "Be brief.", "--yolo", "--json",
    )  # fmt: skip
    (case,) = done.object["cases"]
    assert case["verdict"] == "solved"
    assert isclose(case["now"]["cost_usd"], server.cache.dollars - paid)
    first = json.loads(server.posts[sent].raw)
    assert first["model"] == "claude-haiku-4-5"
    system = json.dumps(first["system"])
    assert "Write numbers as digits." in system
    assert "Be brief." in system
    said = json.dumps(first["messages"])
    assert "What is the answer?" in said
    assert f"The folder is {case['folder']}, and the answer 42." in said
    assert f"Put it into {case['folder']}/answer.txt." in said
    assert str(project) not in said + system


def test_a_case_that_is_run_several_times_tells_how_often_it_was_solved(
    holdfast: Program, project: Path, suite: Path, script: Script, tmp_path: Path
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    longer = turn(text="Looking first.", tool=READ) + writes(42)
    turns, junit = script(writes(42) + writes(43) + longer), tmp_path / "results.xml"
    words = ("replay", str(suite), "--practice-script", turns, "--yolo", "--runs", "3")
    done = holdfast(*words, "--junit", str(junit), code=1)
    table = done.stdout.split("case  ")[1].splitlines()
    assert " ".join(table[1].split()).startswith("put-the-answer-right 2/3 solved 3 (3–4) ")
    assert [line.split()[:3] for line in table[2:5]] == [
        ["run", "1", "solved"],
        ["run", "2", "unsolved"],
        ["run", "3", "solved"],
    ]
    assert "1 case, 3 runs each: 2 solved, 1 unsolved" in done.stdout
    assert "  put-the-answer-right (run 2): Red: sh test.sh (exit 1)." in done.stdout
    named = [one.get("name") for one in ElementTree.parse(junit).iter("testcase")]
    assert named == [f"put-the-answer-right (run {n})" for n in (1, 2, 3)]
    (told,) = json.loads(holdfast("replay", str(suite), "--status", "--json").stdout)
    assert told["solved"] == {"put-the-answer-right": 2}
    assert len({case["session_id"] for case in told["cases"]}) == 3


class _Together(ServerScript):
    """Answers each conversation by how far it is; `steps` are those in the order of requests."""

    def __init__(self) -> None:
        super().__init__(catalogue=True)
        self.steps: list[int] = []

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        self._turn += 1
        said = [m for m in (body or {}).get("messages", ()) if m["role"] == "assistant"]
        calls: list[Json] = [
            {"name": "read_file", "input": {"path": "answer.txt"}},
            {"name": "write_file", "input": {"path": "answer.txt", "content": "42"}},
            {"name": "run_command", "input": {"command": "sh test.sh"}},
        ]
        step = len(said)
        self.steps.append(step)
        answer: Json = {"tools": [calls[step]]} if step < len(calls) else {"text": "Done."}
        return answer, None, self._turn


def test_cases_are_run_at_the_same_time(
    holdfast: Program, project: Path, env: dict[str, str], suite: Path, script: Script
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    answers = _Together()
    with serving(answers) as server:
        key = {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        words = ("replay", str(suite), "--yolo", "--runs", "3", "--parallel", "3")
        done = Program(project, key)(*words)
    assert "1 case, 3 runs each: 3 solved" in done.stdout
    assert answers.steps[:3] != [0, 1, 2]
    assert sorted(answers.steps) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert {line[:3] for line in done.stdout.splitlines() if "» run_command" in line} == {
        "[1]",
        "[2]",
        "[3]",
    }
    home = suite.with_name("suite.replays") / "001"
    assert sorted(one.name for one in home.iterdir() if one.name[0] != ".") == [
        "001", "002", "003", "replay.json",
    ]  # fmt: skip


def test_the_answer_that_reaches_the_limit_of_cost_still_counts_for_its_case(
    holdfast: Program, project: Path, env: dict[str, str], suite: Path, script: Script
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    with serving(_Together()) as server:
        key = {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        words = ("replay", str(suite), "--yolo", "--json")
        (alone,) = Program(project, key)(*words).object["cases"]
        most = 0.9 * alone["now"]["cost_usd"]  # the last of four answers that cost the same
        again = Program(project, key)(*words, "--parallel", "2", "--max-cost", f"{most:.9f}")
    assert again.object["counts"] == {"solved": 1}


@pytest.mark.slow
def test_results_go_through_no_link(
    holdfast: Program, project: Path, suite: Path, script: Script, tmp_path: Path
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    home = suite.with_name("suite.replays")
    home.symlink_to(elsewhere)
    words = ("replay", str(suite), "--practice-script", script(writes(42)), "--yolo", "--json")
    assert "is a link" in holdfast(*words, code=2).stderr
    home.unlink()
    home.mkdir()
    (home / "001").symlink_to(elsewhere)
    done = holdfast(*words)
    assert Path(done.object["folder"]) == home / "002"
    # nor does a case that is cut off and begins again
    state = home / "002" / "replay.json"
    state.write_text(state.read_text().replace('"solved"', '""'))
    shutil.rmtree(home / "002" / "001")
    (home / "002" / "001").symlink_to(elsewhere)
    tasks = home / "002" / ".holdfast" / "run" / "state.json"
    tasks.write_text(tasks.read_text().replace('"completed"', '"running"'))
    (case,) = holdfast(*words).object["cases"]
    assert case["verdict"] == "solved"
    assert not [*elsewhere.iterdir()]


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("certain", [True, False])
def test_a_replay_that_was_killed_continues(
    holdfast: Program, project: Path, home: Path, suite: Path, script: Script, certain: bool
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    again = suite.read_text().replace("put-the-answer-right", "another")
    suite.write_text(suite.read_text() + again)
    command = "until test -e go; do sleep 0.05; done; echo 42 > answer.txt"
    waits = f'{{name = "run_command", input = {{command = "{command}"}}}}'
    turns = script(writes(42) + turn(text="Half of it.", tool=waits))
    words = ("replay", str(suite), "--practice-script", turns, "--yolo")
    with holdfast.started(*words) as process:
        assert process.stdout
        assert any("» run_command until" in line for line in process.stdout)
        process.kill()
        process.wait()
    (state,) = suite.with_name("suite.replays").glob("*/.holdfast/run/state.json")
    first, second = json.loads(state.read_bytes())["tasks"]
    assert (first["status"], second["status"]) == ("completed", "running")
    place = state.parents[2] / "002"

    for left in (".002.0123abcd", "check-002", ".check-001.0123abcd"):  # of an earlier moment
        (place.with_name(left) / "sub").mkdir(parents=True)
    if certain:
        (place / "go").touch()
        Path(turns).write_text(turn(text="It is 42 now."))
    else:
        (session,) = (home / "data" / "sessions").rglob(f"*{second['session_id']}.jsonl")
        session.unlink()
        Path(turns).write_text(writes(42))
    done = holdfast(*words, "--json")
    assert Path(done.object["folder"]) == state.parents[2]
    one, other = done.object["cases"]
    assert (one["verdict"], other["verdict"]) == ("solved", "solved")
    assert one["session_id"] == first["session_id"]
    assert (other["session_id"] == second["session_id"]) is certain
    assert other["now"]["calls"] == (1 if certain else 3)
    names = sorted(one.name for one in state.parents[2].iterdir())
    assert names == [".holdfast", "001", "002", "replay.json"]  # no draft of a folder is left


@pytest.mark.slow
def test_ctrl_c_leaves_the_case_to_the_next_time(
    holdfast: Program, project: Path, suite: Path, script: Script
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    waits = '{name = "run_command", input = {command = "echo 1 > answer.txt; exec sleep 300"}}'
    turns = script(turn(text="Half of it.", tool=waits))
    words = ("replay", str(suite), "--practice-script", turns, "--yolo")
    with holdfast.started(*words) as process:
        assert process.stdout
        assert any("» run_command echo" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(PATIENCE_S) == 130
    assert "stopped early: interrupted" in rest
    assert "The same command continues with the rest." in rest
    Path(turns).write_text(writes(42))
    (case,) = holdfast(*words, "--json").object["cases"]
    assert (case["verdict"], case["now"]["calls"]) == ("solved", 3)
    (lost,) = case["cut_off"].values()  # what was paid for in vain is told
    assert (lost["calls"], lost["tokens"] > 0) == (1, True)
    assert (
        " more for 1 attempt that began again" in holdfast("replay", str(suite), "--status").stdout
    )
    assert (suite.with_name("suite.replays") / "001").is_dir()
    assert not (suite.with_name("suite.replays") / "002").exists()


def test_a_limit_of_cost_ends_it_and_the_rest_follows(
    serve: Serve, project: Path, env: dict[str, str], suite: Path
) -> None:
    write = {"path": "answer.txt", "content": "42"}
    turns: list[dict[str, Any]] = [
        {"tools": [{"name": "read_file", "input": {"path": "answer.txt"}}]},
        {"tools": [{"name": "write_file", "input": write}]},
        {"tools": [{"name": "run_command", "input": {"command": "sh test.sh"}}]},
        {"text": "Done."},
    ]
    server = serve(*turns, *turns[:1], *turns, priced=True, catalogue=True)
    program = Program(project, {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url})
    program("-p", "Put the answer right.", "--yolo")
    (listed,) = json.loads(program("sessions", "list", "--json").stdout)
    program("replay", str(suite), "--add", listed["id"])
    sent = len(server.posts)
    words = ("replay", str(suite), "--yolo", "--json")
    ended_early = program(*words, "--max-cost", "0.000001", code=1)
    assert len(server.posts) == sent + 1
    assert ended_early.object["reason"] == "reached the limit of $0.00"
    assert ended_early.object["counts"] == {"to do": 1}
    again = program(*words[:-1], "--max-cost", "0.000001", code=1).stdout
    assert len(server.posts) == sent + 1
    assert re.search(r"stopped early: reached the limit of \$0\.00 \(\$0\.\d+ spent\)\n", again)
    assert "With a higher --max-cost, the same command continues with the rest.\n" in again
    done = program(*words)
    assert done.object["counts"] == {"solved": 1}
    assert done.object["folder"] == ended_early.object["folder"]


def test_checks_that_tell_nothing_leave_a_case_out(
    holdfast: Program, project: Path, home: Path, suite: Path, script: Script
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    case = suite.read_text()

    def reason(text: str) -> str:
        suite.write_text(text)
        told = holdfast("replay", str(suite), "--practice-script", script(writes(42)), code=1)
        assert "1 left out" in told.stdout
        return told.stdout.split("Not solved:\n")[1].splitlines()[0]

    assert "Already green before the prompt" in reason(
        case.replace("sh test.sh", "test -f test.sh")
    )
    asked = case.replace("sh test.sh", "test -f big.bin").replace(
        "missing = []", 'missing = ["big.bin"]'
    )
    assert reason(asked).endswith(
        "No longer green, even with the files of then: test -f big.bin (exit 1)."
        " Not in the checkpoint: big.bin."
    )
    assert "It has no checks" in reason(case.replace('["sh test.sh"]', "[]"))
    assert "isn't stored any more" in reason(case.replace('before = "', 'before = "0000'))
    assert "isn't in the session any more" in reason(case.replace('prompt = "', 'prompt = "f'))
    told = holdfast("replay", str(suite), "--status").stderr
    assert "put-the-answer-right can't be run any more: Its prompt isn't in the session" in told
    suite.write_text(case)
    assert "can't be run any more" not in holdfast("replay", str(suite), "--status").stderr
    (file,) = (home / "data" / "checkpoints").glob("*.sqlite3")
    with closing(sqlite3.connect(file)) as store, store:
        store.execute("DELETE FROM checkpoint WHERE n = (SELECT max(n) FROM checkpoint)")
    told = holdfast("replay", str(suite), "--status").stderr
    assert "with which its checks were green isn't stored any more" in told
    other = holdfast("replay", str(suite.with_name("other.toml")), "--add", id_, code=1).stderr
    assert "with which its checks were green isn't stored any more" in other
    shutil.rmtree(home / "data" / "checkpoints")
    assert "Its checkpoint isn't stored any more" in reason(case)
    shutil.rmtree(home / "data" / "sessions")
    assert "Its session can't be read" in reason(case)


def test_a_check_whose_failure_is_hidden_is_not_added(
    holdfast: Program, project: Path, suite: Path, script: Script
) -> None:
    hidden = TEST.replace("sh test.sh 2>&1 | tail -3", "sh test.sh || true")
    turns = writes(42).replace(TEST, hidden)
    assert hidden in turns
    id_ = recorded(holdfast, script, turns, "Put the answer right.")
    refused = holdfast("replay", str(suite), "--add", id_, code=1)
    why = "Prompt 1: no check, since it may end with 0 where that fails: sh test.sh || true"
    assert why in refused.stderr
    assert "Prompt 1: left out. No check ended with 0 in its turn." in refused.stderr
    assert not suite.exists()
    assert project.is_dir()


def test_what_cannot_be_replayed_is_refused_with_the_reason(
    holdfast: Program, project: Path, suite: Path, script: Script
) -> None:
    id_ = recorded(holdfast, script, turn(text="Hello."), "Say hello.")
    refused = holdfast("replay", str(suite), "--add", id_, code=1)
    assert "Prompt 1: left out. There is no checkpoint of its files" in refused.stderr
    assert not suite.exists()
    missing = holdfast("replay", str(suite), "--add", f"{id_}:7", code=2)
    assert f"The session {id_} has no prompt 7." in missing.stderr
    none = holdfast("replay", str(suite), "--practice", code=2)
    assert "holdfast replay SUITE --add ID" in none.stderr
    suite.write_text("[[case]]\nname = 3\n")
    wrong = holdfast("replay", str(suite), "--practice", code=2)
    assert "isn't a suite: Expected `str`, got `int` - at `$.case[0].name`" in wrong.stderr
    git_less = holdfast("replay", str(suite), "--agents-md", "no-such-revision", code=2)
    assert "no-such-revision" in git_less.stderr or "isn't a suite" in git_less.stderr
    assert project.is_dir()


@pytest.mark.slow
def test_nothing_reaches_the_original_from_a_replay(
    holdfast: Program, project: Path, home: Path, suite: Path, script: Script, tmp_path: Path
) -> None:
    id_ = recorded(holdfast, script, writes(42), "Put the answer right.")
    holdfast("replay", str(suite), "--add", id_)
    link, secret = "node_modules/dep", tmp_path / "secret"
    secret.write_text("nobody's business")
    check = f"touch {link}/checked {project}/checked; ! cat {secret} && sh test.sh"
    named = suite.read_text().replace('linked = ["', f'linked = ["{secret}", "')
    suite.write_text(named.replace("sh test.sh", check))
    calls = [
        f'{{name = "read_file", input = {{path = "{secret}"}}}}',
        f'{{name = "read_file", input = {{path = "{link}/index.js"}}}}',
        f'{{name = "write_file", input = {{path = "{link}/written", content = "x"}}}}',
        f'{{name = "read_file", input = {{path = "{project}/answer.txt"}}}}',
        f'{{name = "write_file", input = {{path = "{project}/written", content = "x"}}}}',
        f'{{name = "run_command", input = {{command = "touch {link}/run; touch {project}/run"}}}}',
        f'{{name = "run_command", input = {{command = "cd {project} && git tag x"}}}}',
    ]
    before = contents(project, *of(home, id_))
    turns = script(turn(text="Trying.", tool=", ".join(calls)) + writes(42))
    words = ("replay", str(suite), "--practice-script", turns, "--yolo", "--json")
    (case,) = holdfast(*words, env={"HOLDFAST_SANDBOX": "auto"}).object["cases"]
    assert case["verdict"] == "solved"
    after = contents(project, *of(home, id_))
    assert {name: after.get(name) for name in before} == before
    assert {name for name in after if str(project) in name} <= before.keys()
    shown = holdfast("sessions", "show", case["session_id"]).stdout.split("Looking.")[0]
    assert shown.count("result (failed):") == 6
    assert "1\t0" in shown  # what is linked can be read
