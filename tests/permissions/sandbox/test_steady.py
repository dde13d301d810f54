"""A command that only reads, without walls: what is exchanged while it runs leads it nowhere."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, cast

import pytest

from tests.agent.test_guards import results
from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.errors import ToolError
from tui.core.messages import text_of
from tui.core.workspace import Workspace
from tui.keeper.command import Keep, Starter
from tui.permissions.gate import RulesOnly
from tui.permissions.plain_command import ReadableArea
from tui.permissions.sandbox import steady_command
from tui.permissions.sandbox.steady import steady
from tui.permissions.sandbox.steady_command import MovedError, Place, marks, trail
from tui.permissions.types import Answer, Call, Decision

AWAY = "mv x .x; ln -s ../secret x; "
BACK = "; rm x; mv .x x"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/y").write_text("do not tell\n")
    root = tmp_path / "w"
    (root / "x/deep").mkdir(parents=True)
    (root / "x/y").write_text("hello\n")
    (root / "link").symlink_to("x")
    monkeypatch.chdir(root)
    return root


def places(root: Path, *named: str, below: bool = False) -> list[Place]:
    made: list[Place] = [(".", str(root), False)]
    return [*made, *((name, os.path.realpath(root / name), below) for name in named)]


def ran(root: Path, line: str, *named: str, below: bool = False) -> tuple[int | None, str]:
    with TemporaryFile() as output:
        code = steady_command.run(places(root, *named, below=below), ["sh", "-c", line], output)
        output.seek(0)
        return code, output.read().decode()


def test_what_stays_as_it_was_is_shown(root: Path) -> None:
    assert ran(root, "cat x/y; exit 3", "x/y") == (3, "hello\n")
    assert ran(root, "cat link/y", "link/y") == (0, "hello\n")
    assert ran(root, "cat nope 2>/dev/null", "nope") == (1, "")
    assert ran(root, "echo more >> x/y", "x/y")[0] == 0  # a file may grow


@pytest.mark.parametrize(
    ("line", "named", "below"),
    [
        (f"{AWAY}cat x/y{BACK}", "x/y", False),
        (f"{AWAY}cat x/y", "x/y", False),
        (f"{AWAY}cat */y{BACK}", ".", True),
        ("ln -f ../secret/y x/y; cat x/y", "x/y", False),
        ("rm link; ln -s ../secret link; cat link/y; rm link; ln -s x link", "link/y", False),
        ("mv x/deep d; ln -s ../../secret x/deep; cat x/deep/y; rm x/deep; mv d x/deep", "x", True),
        ("cd ..; mv w v; ln -s secret w; cat w/y; rm w; mv v w", "../w/x", False),
    ],
)
def test_what_was_exchanged_meanwhile_counts_for_nothing(
    root: Path, line: str, named: str, below: bool
) -> None:
    code, printed = ran(root, line, named, below=below)
    assert "tell" in printed
    assert code is None


def test_what_was_exchanged_before_it_ran_is_not_read(root: Path) -> None:
    asked = places(root, "x/y")
    (root / "x").rename(root / "v")
    (root / "x").symlink_to("../secret")
    with pytest.raises(MovedError):
        marks(asked)


def test_links_are_followed_part_by_part(root: Path) -> None:
    here = str(root)
    (root / "far").symlink_to(root / "link/../x")
    (root / "loop").symlink_to("loop")
    assert list(trail("x/y", here)) == [".", "x", "x/y"]
    assert list(trail("./link//deep/../y", here)) == [".", ".", "x", "x", "x/y"]
    assert list(trail("far/y", here))[-2:] == [str(root / "x"), str(root / "x/y")]
    above = list(trail("../secret", here))
    assert (
        above
        == [".", *map(str, [*reversed(root.parent.parents), root.parent, root.parent / "secret"])][
            1:
        ]
    )
    assert list(trail("x/../..", here))[-1] == str(root.parent)
    with pytest.raises(MovedError):
        list(trail("loop", here))


def test_it_goes_where_no_link_leads(root: Path) -> None:
    steady_command.enter(str(root / "x"))
    assert Path.cwd() == root / "x"
    with pytest.raises(NotADirectoryError):
        steady_command.enter(str(root / "link"))


async def started(root: Path, line: str) -> tuple[int, str]:
    """What the shell gives by the starter, without a keeper."""
    told: list[tuple[int, str]] = []

    async def start(
        argv: Sequence[str], cwd: Path, env: Mapping[str, str], _: Keep
    ) -> tuple[int, object]:
        shell = partial(subprocess.run, argv, cwd=cwd, env=dict(env), capture_output=True)
        done = await asyncio.to_thread(shell)
        told.append((done.returncode, done.stdout.decode()))
        return 0, None

    area = ReadableArea(Workspace.at(root), (root / "own",))
    starter = steady(line, root, area, cast("Starter", start))
    keep = cast("Keep", None)
    await starter(("/bin/sh", "-c", line), root, {"PATH": os.defpath}, keep)
    return told[0]


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("cat x/y", "hello\n"),
        ("cd x && cat y", "hello\n"),
        ("grep -rn hell x | wc -l", "1\n"),
        ("ls -R x/deep", "x/deep:\n"),
        ("head -n 1 link/y && echo done", "hello\ndone\n"),
        ("wc -l < /dev/null; pwd -P", None),
    ],
)
async def test_everyday_commands_give_what_they_gave(
    root: Path, line: str, printed: str | None
) -> None:
    code, said = await started(root, line)
    for _ in range(9):  # other tests may change /tmp all the time: `cd` goes through it
        if code not in steady_command.UNWATCHED:
            break
        code, said = await started(root, line)
    assert code == 0
    assert printed is None or said == printed


@pytest.mark.parametrize("line", ["cat ../secret/y", "cd ../secret && cat y", "ls -l own/key"])
def test_what_leads_outside_by_now_is_not_started(root: Path, line: str) -> None:
    (root / "own").mkdir()

    async def start(*_: object) -> tuple[int, object]:
        raise AssertionError

    area = ReadableArea(Workspace.at(root), (root / "own",))
    with pytest.raises(ToolError, match="leads somewhere else"):
        steady(line, root, area, cast("Starter", start))


def test_what_names_no_path_is_started_as_it_is(root: Path) -> None:
    async def start(*_: object) -> tuple[int, object]:
        raise AssertionError

    given = cast("Starter", start)
    area = ReadableArea(Workspace.at(root))
    assert steady("echo hi; sleep 9", root, area, given) is given


@pytest.mark.parametrize("background", [False, True])
async def test_without_an_engine_a_plain_command_runs_steadily(
    root: Path, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noted(line: str, folder: Path, area: ReadableArea, start: Starter) -> Starter:
        seen.append(line)
        return steady(line, folder, area, start)

    monkeypatch.setattr("tui.permissions.sandbox.steady.steady", noted)
    asked = call("run_command", "c", command="cat x/y", background=background)
    agent = make_agent(root, ScriptedProvider([asked], say("ok")))
    await events_of(agent, "go")
    await agent.close()
    (record,) = results(agent)
    assert seen == ["cat x/y"]
    assert background or text_of(record.data["content"]).startswith("hello\n")


class Person(RulesOnly):
    """Gives the same answer to everything, and keeps why it was asked."""

    def __init__(self, answer: Literal["once", "no"]) -> None:
        self.answer: Literal["once", "no"] = answer
        self.asked: list[str] = []

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append(decision.reason)
        return Answer(self.answer, "not here" if self.answer == "no" else "")


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most three folders are watched."""
    program = tmp_path / "few.py"
    text = Path(str(steady_command.__file__)).read_text(encoding="utf-8")
    program.write_text(text.replace("FOLDERS = 50_000", "FOLDERS = 3"))
    monkeypatch.setattr(steady_command, "__file__", str(program))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("answer", "shown"),
    [("once", "x/y:hello\n"), ("no", "[to run it unwatched was not allowed. not here]")],
)
async def test_a_person_decides_about_more_folders_than_are_watched(
    root: Path, answer: Literal["once", "no"], shown: str
) -> None:
    for name in "abcd":
        (root / name).mkdir()
    asked = call("run_command", "c", command="grep -rs hello x .")
    person = Person(answer)
    agent = make_agent(root, ScriptedProvider([asked], say("ok")), approver=person)
    await events_of(agent, "go")
    await agent.close()
    (record,) = results(agent)
    assert shown in text_of(record.data["content"])
    (why,) = person.asked
    assert why.startswith("It reads more than 50,000 folders, too many to watch")
    assert "unwatched" in why


@pytest.mark.slow
def test_an_exchange_while_it_runs_gets_nothing_out(root: Path) -> None:
    swap = (
        "import os, random, sys, time\n"
        "os.chdir(sys.argv[1]); chance = random.Random(7)\n"
        "while True:\n"
        " os.rename('x', '.x'); os.symlink('../secret', 'x')\n"
        " time.sleep(chance.choice([0, 0.0005, 0.002, 0.01, 0.05]))\n"
        " os.unlink('x'); os.rename('.x', 'x')\n"
        " time.sleep(chance.choice([0, 0.001, 0.02, 0.05, 0.1, 0.3]))\n"
    )
    swapper = subprocess.Popen([sys.executable, "-c", swap, str(root)])
    shown = ""
    fixed: list[Place] = [(".", str(root), False), ("x/y", str(root / "x/y"), False)]
    end = time.monotonic() + 4
    try:
        while time.monotonic() < end:
            with TemporaryFile() as output:
                if steady_command.run(fixed, ["cat", "x/y"], output) is not None:
                    output.seek(0)
                    shown += output.read().decode()
    finally:
        swapper.kill()
        swapper.wait()
    assert "tell" not in shown
