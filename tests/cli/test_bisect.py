"""`holdfast bisect`: the call after which a command fails."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agent.test_sub_agents import Family, task
from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tests.support.recorded import edit, run, session, write
from tui.agent.agent import Agent
from tui.batch.state import RunFolder, begin
from tui.batch.taskfile import parse
from tui.cli.main import main
from tui.core.clock import SystemClock
from tui.core.config import SandboxSettings
from tui.core.messages import Block
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level
from tui.session import catalog
from tui.session.checkpoints.store import store_of
from tui.session.records import is_prompt
from tui.session.session import Session
from tui.settings import agent_definitions


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands run behind walls. Skips where there are none."""
    monkeypatch.setenv("HOLDFAST_SANDBOX", "auto")
    place = Workspace.at(tmp_path)
    confinement = Confinement.of_session(SandboxSettings(), place, folders(), "test")

    async def levels() -> Collection[Level]:
        try:
            return await confinement.levels()
        finally:
            await confinement.close()

    if Level.WORKSPACE not in asyncio.run(levels()):
        pytest.skip(confinement.reason)


def bisected(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["bisect", *words])
    return json.loads(capsys.readouterr().out)


def test_an_edit_between_others_is_found_with_all_about_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(
        root,
        [write("b", "b1\n"), edit("b", "b1", "b2"), run("echo two > a")],
        [edit("b", "b2", "broken"), edit("b", "broken", "broken too"), write("c", "c\n")],
        prompts=("begin", "make it better"),
    )
    shutil.rmtree(root / ".holdfast" / "cache", ignore_errors=True)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert main(["bisect", id_, "--", "! grep -s broken b"]) == 0
    out, err = capsys.readouterr()
    assert "edit_file b\n" in out
    assert "prompt    make it better" in out
    assert "model     test-model, request 5" in out
    assert "approval  Allowed once by the person." in out
    assert "-b2\n+broken\n" in out
    assert "broken too" not in out
    assert "The command said (exit code 1):\n  broken" in out
    assert f"Continue from before it, in a copy: holdfast -r {id_} --at " in err
    at = err.split(" --at ")[2].split()[0]
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert main(["sessions", "fork", id_, "--at", at]) == 0


def test_no_command_is_named_that_a_session_made_up(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", "b1\n")], [write("b", "b2\n")], prompts=("one", "two"))
    words = ("bisect", id_, "--", "! grep -s b2 b")
    assert main([*words]) == 0
    (fork,) = re.findall("holdfast -r .* --at (.*) --fork", capsys.readouterr().err)
    path = catalog.resolve(id_, folders())
    path.write_text(path.read_text().replace(fork, "$(touch pwned)"))
    assert main([*words]) == 0
    assert f"holdfast -r {id_}" in (err := capsys.readouterr().err)
    assert "pwned" not in err
    path.write_text(path.read_text().replace(f'"id":"{id_}"', '"id":"--yolo; touch pwned"', 1))
    assert main([*words]) == 0
    assert "holdfast -r" not in capsys.readouterr().err


def test_a_command_is_found_by_its_checkpoints_alone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [run("echo two > a"), run("rm a"), run("echo 3 > b")])
    shutil.rmtree(root)
    found = bisected(capsys, id_, "--json", "--", "test", "-e", "a")
    assert found["outcome"] == "found"
    (made,) = found["candidates"]
    assert (made["tool"], made["subject"]) == ("run_command", "rm a")
    assert made["permission"] == {"answer": "once", "by": "person", "reason": ""}
    assert "-two" in found["diff"]
    assert found["session_id"] == id_
    assert (found["call"], found["prompt"]) == (made["call_id"], made["prompt"])
    assert found["checkpoint"]


def test_what_the_person_changed_is_nobodys_call(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = make_agent(
        root,
        ScriptedProvider(
            [call("run_command", command="echo 1 > b")],
            say("One."),
            [call("run_command", command="echo 2 > b")],
            say("Two."),
        ),
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=lambda: store_of(folders(), root),
    )

    async def work() -> None:
        await events_of(agent, "first")
        (root / "a").write_text("mine\n")
        await events_of(agent, "second")
        await agent.close()

    asyncio.run(work())
    assert main(["bisect", agent.session.id, "--", "grep -q one a"]) == 0
    out, err = capsys.readouterr()
    assert "nobody in the session: an editor, git or another program" in out
    assert "+mine" in out
    assert "fork" not in err


def test_each_run_begins_from_the_exact_state(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", "1\n"), write("b", "2\n"), write("b", "3\n")])
    command = "test ! -e left && echo x > left && echo gone > a && test $(cat b || echo 0) -lt 2"
    assert main(["bisect", id_, "--", f"{command}"]) == 0
    out, err = capsys.readouterr()
    assert "-1\n+2\n" in out
    assert "The command changed 2 files while it was judged (a, left)" in err


def test_a_checkpoint_that_found_nothing_changed_is_blamed_on_nobody(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", "1\n")], [write("b", "2\n"), run("echo 3 > b")])
    build = "! grep -s 2 b"
    found = bisected(capsys, id_, "--json", "--build", build, "--", "! grep -s '[23]' b")
    titles = [one["title"] for one in found["candidates"]]
    assert titles == ["write_file b", "run_command echo 3 > b"]


def test_states_that_do_not_build_are_skipped_and_the_rest_is_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [write("b", f"{n}\n") for n in range(1, 9)]
    id_ = session(root, numbers)
    words = ("[ $(cat b 2>/dev/null || echo 0) -lt 5 ]",)
    build = "! grep -s '[456]' b"
    found = bisected(capsys, id_, "--json", "--build", build, "--", *words)
    assert found["outcome"] == "between"
    assert [one["title"] for one in found["candidates"]] == ["write_file b"] * 4
    skipped = [one for one in found["judged"] if one["verdict"] == "skipped"]
    assert {one["why"] for one in skipped} == {"it doesn't build"}
    assert main(["bisect", id_, "--", "grep -qs '[456]' b && exit 125; " + words[0]]) == 1
    out, err = capsys.readouterr()
    assert "Those between were skipped, so it is one of these:" in out
    assert "(exit code 125)." in err


def test_runs_that_differ_are_called_flaky(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    id_ = session(root, [write("b", f"{n}\n") for n in range(4)])
    # fails in every third run before the fault, and always after it
    count = tmp_path / "count"
    count.write_text("0")
    command = (
        f"n=$(($(cat {count}) + 1)); echo $n > {count};"
        " grep -qs '[23]' b && exit 1; [ $((n % 3)) != 0 ]"
    )
    found = bisected(capsys, id_, "--json", "--no-sandbox", "--runs", "3", "--", command)
    assert "-1\n+2\n" in found["diff"]
    flaky = [one for one in found["judged"] if one["flaky"]]
    assert flaky
    assert all(one["verdict"] == "passes" for one in flaky)
    assert (found["outcome"], found["unsure"]) == ("flaky", [3])
    count.write_text("0")
    assert main(["bisect", id_, "--no-sandbox", "--runs", "3", "--", command]) == 1
    out, err = capsys.readouterr()
    said = "is flaky, so no call is named for sure: 1 of 3 runs failed in state 3. Perhaps:\n"
    assert said in out
    assert "-1\n+2\n" in out
    assert "A flaky command may have led to the wrong state" in err


@pytest.mark.parametrize(("runs", "chance"), [(1, "3"), (3, "[56]")])
def test_a_call_is_named_for_sure_only_if_all_runs_around_it_agree(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, runs: int, chance: str
) -> None:
    """By chance the command fails where it is first tried in the middle, as often as that takes."""
    id_ = session(root, [write("b", f"{n}\n") for n in range(8)])
    count = tmp_path / "count"
    command = (
        f"n=$(($(cat {count}) + 1)); echo $n > {count};"
        f" ! grep -qs 7 b && case $n in {chance}) false;; esac"
    )
    words = ("--no-sandbox", "--runs", str(runs), "--", command)
    count.write_text("0")
    found = bisected(capsys, id_, "--json", *words)
    assert (found["outcome"], found["unsure"]) == ("flaky", [found["fails"]])
    assert found["fails"] < 9
    count.write_text("100")
    found = bisected(capsys, id_, "--json", *words)
    assert (found["outcome"], found["fails"], found["unsure"]) == ("found", 9, [])
    named = [one for one in found["judged"] if one["state"] in {8, 9}]
    assert [one["exit_codes"] for one in named] == [[0] * max(2, runs), [1] * max(2, runs)]


def test_keys_are_masked_in_all_that_is_told_of_a_call(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is pasted into an issue, or kept by a CI system."""
    key = "sk-ant-api03-" + "B" * 40
    pem = "-----BEGIN PRIVATE KEY-----\n" + "QUJD" * 16 + "\n-----END PRIVATE KEY-----\n"
    line = f"echo {'x' * 130} {key} > b"
    id_ = session(
        root,
        [write("a", "1\n")],
        [run(f"{line}; printf '{pem}' >> b")],
        prompts=("begin", f"log in with {key}"),
    )
    command = f"test -z {key}; cat b; ! grep -qs sk-ant b"
    assert main(["bisect", id_, "--", command]) == 0
    out, err = capsys.readouterr()
    assert "prompt    log in with [secret removed]\n" in out
    assert re.search(r"^\+x+ \[secret removed\]$", out, re.MULTILINE)
    assert re.search(r"^  x+ \[secret removed\]$", out, re.MULTILINE), "what the command said"
    assert re.search(r"^Removed \d+ secrets\.$", err, re.MULTILINE)
    found = bisected(capsys, id_, "--json", "--", command)
    assert found["secrets"] >= 5
    assert "[secret removed]" in found["subject" if "subject" in found else "command"]
    for told in (out, err, json.dumps(found)):
        assert not {part for part in ("sk-ant", "QUJD") if part in told.replace("sk-ant b", "")}
    assert main(["bisect", id_, "--", f"echo {key}; exit 200"]) == 1
    assert "wrong with itself, not with the state. [secret removed]" in capsys.readouterr().err


def test_a_command_that_never_changes_its_mind_is_told_apart(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", "1\n"), write("b", "2\n")])
    for words, said in (
        (["true"], "passes at the end"),
        (["false"], "fails already at the beginning"),
        (["no-such-program", "x"], "no-such-program: not found"),
        (["exit 125"], "No state could be judged: exit code 125"),
    ):
        assert main(["bisect", id_, "--", *words]) == 1
        assert said in capsys.readouterr().out
    assert main(["bisect", id_, "--", "exit 200"]) == 1
    err = capsys.readouterr().err
    assert "exit code 200" in err
    assert "1 to 124" in err


def test_what_takes_too_long_fails(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = session(root, [write("b", "1\n"), write("c", "2\n")])
    words = ("--timeout", "0.5", "--", "test ! -e c || sleep 100")
    found = bisected(capsys, id_, "--json", *words)
    assert found["candidates"][0]["subject"] == "c"
    assert [one["timed_out"] for one in found["judged"] if one["verdict"] == "fails"] == [True]


def test_an_interrupted_search_goes_on(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    id_ = session(root, [write("b", f"{n}\n") for n in range(9)])
    log, stop = tmp_path / "log", tmp_path / "stop"
    stop.touch()
    # the third state that is judged interrupts us, as Ctrl+C does
    command = (
        f"echo x >> {log}; [ -e {stop} ] && [ $(wc -l < {log}) = 3 ] && kill -INT $PPID && sleep 9;"
        " [ $(cat b || echo 0) -lt 5 ]"
    )
    build = "test -e a"
    assert main(["bisect", "--no-sandbox", "--build", build, id_, "--", command]) == 130
    err = capsys.readouterr().err
    assert "Interrupted, with 2 states of 10 judged. Continue with:" in err
    stop.unlink()
    log.unlink()
    words = shlex.split(err[err.index("holdfast bisect") :])
    assert main(words[1:]) == 0
    out, err = capsys.readouterr()
    assert "2 states judged before." in err
    assert "-4\n+5\n" in out
    assert len(log.read_text().splitlines()) <= 4 + 2, "those named are judged twice"
    assert not [*(folders().data / "bisect").iterdir()]


@pytest.mark.usefixtures("sandbox")
def test_the_command_can_write_nothing_but_its_copy(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    id_ = session(root, [write("b", "1\n"), write("c", "2\n")])
    outside = tmp_path / "outside"
    outside.mkdir()
    command = f"echo x > {outside}/x; cat {root}/b > seen; test ! -s seen && test ! -e c"
    found = bisected(capsys, id_, "--json", "--", command)
    assert found["outcome"] == "found"
    assert found["candidates"][0]["subject"] == "c"
    assert not [*outside.iterdir()]
    assert not (root / "seen").exists()


@pytest.mark.usefixtures("sandbox")
def test_the_command_leaves_nothing_in_the_caches_of_the_workspace(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it left there, a build of the workspace would run."""
    id_ = session(root, [write("b", "1\n"), write("c", "2\n")])
    command = "mkdir -p ~/.cache && echo x > ~/.cache/left-behind && test ! -e c"
    assert bisected(capsys, id_, "--json", "--", command)["outcome"] == "found"
    assert not [*folders().cache.rglob("left-behind")]


@pytest.mark.usefixtures("sandbox")
def test_dependencies_are_lent_and_the_rest_is_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("node_modules\n__pycache__\ntarget\n")
    for name in ("node_modules", "__pycache__", "target"):
        (root / name).mkdir()
        (root / name / "lib").write_text("lib\n")
    (root / "target" / "large").write_bytes(b"x" * 21_000_000)
    id_ = session(root, [write("b", "1\n"), write("c", "2\n")])
    command = "cat node_modules/lib && ! echo x > node_modules/lib && test ! -e c"
    found = bisected(capsys, id_, "--json", "--", command)
    assert (found["lent"], found["missing"]) == (["node_modules"], ["target"])
    assert found["candidates"][0]["subject"] == "c"
    assert (root / "node_modules" / "lib").read_text() == "lib\n"


def test_the_tasks_of_a_run_are_searched_together(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [session(root, [run(f"echo {n} > b"), write(f"f{n}", "x\n")]) for n in range(3)]
    tasks = root / "TASKS.md"
    tasks.write_text("- one\n- two\n- three\n")
    state = begin(tasks, parse(tasks.read_bytes()), now="2026-11-28T10:00:00Z")
    for one, id_ in zip(state.tasks, ids, strict=True):
        state = state.with_task(msgspec.structs.replace(one, session_id=id_, status="completed"))
    (root / ".holdfast" / "run").mkdir(parents=True)
    RunFolder(root).save(state)
    monkeypatch.chdir(root)
    assert main(["bisect", "TASKS.md", "--", "test ! -e f1"]) == 0
    out, _ = capsys.readouterr()
    assert "write_file f1" in out
    assert "task      2 of the run" in out
    assert f"session   {ids[1]}" in out
    assert main(["bisect", "TASKS.md", "--at", "1", "--", "true"]) == 2


def test_states_whose_checkpoints_are_gone_are_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [run("echo 1 > b"), run("echo 2 > b"), run("echo 3 > b")])
    store = store_of(folders(), root, keep_bytes=0)
    store.prune()
    store.close()
    assert main(["bisect", id_, "--", "test ! -e b"]) == 1
    out, err = capsys.readouterr()
    assert "Left out: the first 3 states, no longer stored in checkpoints." in err
    assert "fails already at the beginning, in state 1 of 1" in out
    assert "Perhaps it did in one of the 3 states before that" in out


def test_a_checkpoint_that_is_gone_in_between_may_be_where_it_broke(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [run(f"echo {n} > b") for n in range(1, 5)])
    (file,) = folders().sessions.rglob(f"*{id_}.jsonl")
    text = file.read_text()
    third = re.findall(r'"checkpoint":"([^"]+-3)"', text)[0]
    file.write_text(text.replace(third, "0000dead-3"))  # of a file that is gone
    found = bisected(capsys, id_, "--json", "--", "! grep -s '[2-9]' b")
    assert (found["outcome"], found["pruned"]) == ("between", 0)
    assert [one["subject"] for one in found["candidates"]] == ["echo 2 > b", "echo 3 > b"]


def test_a_command_that_begins_to_pass_in_the_session_is_searched_from_there(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", f"{n}\n") for n in range(12)])
    assert main(["bisect", id_, "--", "n=$(cat b) && [ $n -ge 3 ] && [ $n -lt 7 ]"]) == 0
    out, err = capsys.readouterr()
    assert "-6\n+7\n" in out
    assert "It fails in the first state, too" in err


def test_where_nothing_builds_that_is_soon_known(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", f"{n}\n") for n in range(40)])
    assert main(["bisect", id_, "--build", "echo no rule; false", "--", "true"]) == 1
    out, err = capsys.readouterr()
    assert "12 of 41 states were tried, and none could be judged: it doesn't build." in out
    assert "\n  no rule\n" in out
    assert "Skipped: states " in err


def test_what_is_not_tried_is_among_the_candidates_and_said(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [write("b", f"{n}\n") for n in range(50)])
    build = "n=$(cat b 2>/dev/null || echo 0); [ $n -lt 5 ] || [ $n -gt 44 ]"
    words = (id_, "--build", build, "--", "[ $(cat b 2>/dev/null || echo 0) -lt 20 ]")
    assert main(["bisect", *words]) == 1
    out, _ = capsys.readouterr()
    assert "passes in state 6 of 51 and fails in state 47." in out
    assert "Of those between, 13 were skipped and 27 weren't tried, so it is one of these:" in out
    found = bisected(capsys, words[0], "--json", *words[1:])
    assert (found["outcome"], found["untried"], len(found["candidates"])) == ("between", 27, 41)


def test_a_damaged_session_is_said_to_lack_calls(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [run("echo 1 > b"), run("echo 2 > b")])
    (file,) = folders().sessions.rglob(f"*{id_}.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b"echo 2" in line and b"assistant" in line)
    file.write_bytes(b"".join([*lines[:place], lines[place][:40], b"\n", *lines[place + 1 :]]))
    assert main(["bisect", id_, "--", "! grep -s 2 b"]) == 0
    out, err = capsys.readouterr()
    assert "a call that isn't in the record any more" in out
    assert f"The session {id_} is damaged, and calls may be lost" in err


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_on_a_terminal_no_line_of_ours_is_too_long(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    text = "words of a prompt that is much longer than a line, " * 5
    id_ = session(root, [run("echo 1 > b"), run("echo 2 > b")], prompts=(text,))
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["bisect", id_, "--", f"! grep -s 2 b # {text[:100]}"]) == 0
    out, err = capsys.readouterr()
    assert "echo 2 > b" in out
    ours = [one for one in (out + err).splitlines() if not one.startswith("  holdfast ")]
    assert max(map(len, ours)) <= columns  # a command to be copied is never broken
    assert main(["bisect", id_, "--", f"true {text}"]) == 1
    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns


def test_a_later_beginning(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = session(root, [run("echo 1 > b"), run("echo 2 > b"), run("echo 3 > b")])
    later = bisected(capsys, id_, "--json", "--at", "3", "--", "! grep -s 3 b")
    assert later["states"] == 2
    assert later["candidates"][0]["subject"] == "echo 3 > b"
    assert main(["bisect", id_, "--at", "99", "--", "true"]) == 2
    assert "There is no request 99" in capsys.readouterr().err
    shutil.rmtree(folders().checkpoints)
    assert main(["bisect", id_, "--", "true"]) == 1
    assert "isn't stored any more" in capsys.readouterr().err


def agent_in(root: Path, provider: ScriptedProvider) -> Agent:
    return make_agent(
        root,
        provider,
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=lambda: store_of(folders(), root),
        find_agents=lambda: agent_definitions.load([]),
    )


async def asked(agent: Agent, *prompts: str) -> str:
    for prompt in prompts:
        await events_of(agent, prompt)
    await agent.close()
    return agent.session.id


def test_what_the_record_keeps_of_edits_is_made_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def edits(old: str, new: str) -> Block:
        return call("edit_file", f"toolu_{new}", path="a", old_string=old, new_string=new)

    provider = ScriptedProvider(
        [call("run_command", command="echo 1 > b")],
        [call("read_file", path="a")],
        [edits("one", "two")],
        [edits("two", "three")],
        [call("write_file", path="a", content="four\n")],
        say("Done."),
    )
    id_ = asyncio.run(asked(agent_in(root, provider), "go"))
    shutil.rmtree(root)  # with the copies that the tools kept
    found = bisected(capsys, id_, "--json", "--", "! grep -s three a")
    assert found["outcome"] == "passes"
    found = bisected(capsys, id_, "--json", "--", "! grep -s -e three -e four a")
    assert found["candidates"][0]["call_id"] == "toolu_three"
    assert "-two\n+three\n" in found["diff"]


def test_an_edit_of_a_sub_agent_is_found_with_its_session(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = Family(
        [call("run_command", command="echo 1 > b")],
        [task("a")],
        [call("write_file", "toolu_last", path="c", content="c\n")],
        say("Done."),
        a=[
            [call("write_file", "toolu_1", path="d", content="fine\n")],
            [call("edit_file", "toolu_2", path="d", old_string="fine", new_string="broken")],
            say("found"),
        ],
    )
    id_ = asyncio.run(asked(agent_in(root, provider), "go"))
    assert main(["bisect", id_, "--", "! grep -s broken d"]) == 0
    out, _ = capsys.readouterr()
    assert "task general: do a\n" in out
    child = next(path for path in folders().sessions.rglob("*.jsonl") if id_ not in path.stem)
    assert f"sub-agent in its session {child.stem.rpartition('-')[2]}" in " ".join(out.split())
    assert "+broken" in out


def test_what_a_background_command_changed_is_told_by_its_name(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = "until [ -e go ]; do :; done; echo x > made; rm go; sleep 60"
    provider = ScriptedProvider(
        [call("run_command", "toolu_job", command=job, background=True)],
        [call("run_command", command="touch go; while [ -e go ]; do :; done")],
        say("One."),
        [call("run_command", "toolu_late", command="echo 2 > c")],
        say("Two."),
    )
    id_ = asyncio.run(asked(agent_in(root, provider), "first", "second"))
    assert main(["bisect", id_, "--", "test ! -e made"]) == 0
    out, _ = capsys.readouterr()
    assert "\nrun_command touch go; while" in out
    assert f"  beside    {job}, in the background\n" in out
    (made,) = bisected(capsys, id_, "--json", "--", "test ! -e made")["candidates"]
    assert made["background"] == [job]
    (made,) = bisected(capsys, id_, "--json", "--", "test ! -e c")["candidates"]
    assert made["call_id"] == "toolu_late"


def test_a_request_of_a_branch_that_was_left(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [[call("run_command", f"toolu_{n}", command=f"echo {n} > b")] for n in range(4)]
    provider = ScriptedProvider(*(one for turn in turns for one in (turn, say("Done."))))
    agent = agent_in(root, provider)

    async def work() -> str:
        for prompt in ("zero", "one", "two"):
            await events_of(agent, prompt)
        left = agent.session.records[-1].id
        prompts = [one for one in agent.session.records if is_prompt(one)]
        await agent.session.rewind(prompts[1].id)
        await asked(agent, "three")
        return left

    left = asyncio.run(work())
    id_ = agent.session.id
    command = ("--", "! grep -s 2 b")
    assert bisected(capsys, id_, "--json", *command)["outcome"] == "passes"
    (made,) = bisected(capsys, id_, "--json", "--branch", left, "--at", "5", *command)["candidates"]
    assert made["call_id"] == "toolu_2"
    assert main(["bisect", id_, "--branch", left, "--at", "7", *command]) == 2
    assert "no request 7 on this branch" in capsys.readouterr().err


def test_what_cannot_be_searched_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = session(root, [])
    assert main(["bisect", id_, "--", "true"]) == 1
    assert "no checkpoints" in capsys.readouterr().err
    assert main(["bisect", id_]) == 2
    assert "Which command?" in capsys.readouterr().err
    assert main(["bisect", id_, "--runs", "0", "--", "true"]) == 2
    capsys.readouterr()
    assert main(["bisect", "nothing", "--", "true"]) == 4
    pack = root / "session.holdfast.zip"
    pack.write_bytes(b"PK\3\4")
    capsys.readouterr()
    assert main(["bisect", str(pack), "--", "true"]) == 4
    assert "Unpack it first" in capsys.readouterr().err
