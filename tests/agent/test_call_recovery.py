"""A call that a kill left open has one owner of its recovery: nothing runs twice, and what is said
of it is true. With real keepers."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.agents import Yes, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.dying_zygote import KILL_AT
from tests.support.killed_calls import KINDS
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.agent.supervised_commands import place_of
from tui.app.interruption import known, taken_over
from tui.context.repair import INTERRUPTED
from tui.core.clock import SystemClock
from tui.core.errors import SessionInUseError, StorageError
from tui.core.messages import text_of
from tui.core.paths import Folders, folders
from tui.keeper import folder as names
from tui.keeper.command import (
    Keep,
    PlainStarter,
    Starter,
    SupervisedCommand,
    lives,
    note,
    state_of,
)
from tui.keeper.parent import WarmParent
from tui.session.checkpoints.store import CheckpointStore
from tui.session.session import Session
from tui.tools.jobs import Jobs

ID = "toolu_1"
LINE = "echo once >> ran; echo printed"
WAITS = f"{LINE}; until test -e go; do sleep 0.01; done"


class Desk:
    """A session whose program was killed while a call was open, and the programs after it."""

    def __init__(self, root: Path) -> None:
        self.work = root / "work"
        self.work.mkdir()
        self.home: Folders = folders({"HOLDFAST_HOME": str(root / "home")})
        self.starter = PlainStarter()
        self.agents: list[Agent] = []
        self.path = Path()
        self.waiting: asyncio.Task[SupervisedCommand] | None = None
        """A start that never comes to its end, as of a program that was killed."""

    @property
    def folder(self) -> Path:
        """Where the command of the call is kept."""
        return self.kept / ID

    @property
    def kept(self) -> Path:
        return place_of(self.home, json.loads(self.path.read_text().splitlines()[0])["id"])

    @property
    def ran(self) -> int:
        """How often the command ran."""
        file = self.work / "ran"
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def killed(self, line: str = LINE, *, intent: bool = True, **arguments: Any) -> Session:
        """The record of a program that was killed before the result of its call was recorded."""
        session = Session.create(self.work, folders=self.home, clock=SystemClock())
        session.append("user", content=[{"type": "text", "text": "go"}], text="go")
        asked = call("run_command", ID, command=line, **arguments)
        session.append("assistant", content=[asked], model="m")
        if intent:
            session.append("intent", call_id=ID, tool="run_command", effect="run", label=line)
        assert session.path is not None
        self.path = session.path
        await session.close()
        return session

    async def begun(
        self, line: str = LINE, *, starter: Starter | None = None, **note_: str
    ) -> SupervisedCommand:
        """Its command, as the program had started it."""
        return await SupervisedCommand.start(
            ("/bin/sh", "-c", line), cwd=self.work, env=os.environ, folder=self.folder,
            starter=starter or self.starter, limit=1 << 20, min_free=0,
            call={"call_id": ID, "command": line, "session": str(self.path), **note_},
        )  # fmt: skip

    async def over(self, command: SupervisedCommand) -> None:
        """Wait until it has ended, and nobody watches over it any longer."""
        assert await command.wait(PATIENCE_S)
        command.close()
        while lives(self.folder):  # noqa: ASYNC110 - another process holds the lock
            await asyncio.sleep(0.001)

    async def opened(self, *answers: Any, **fields: Any) -> tuple[Agent, ScriptedProvider]:
        """The next program with the session."""
        provider = ScriptedProvider(*(answers or [say("done")]))
        session = Session.open(self.path, clock=SystemClock())
        jobs = Jobs(SystemClock(), self.starter, session.path)
        agent = make_agent(
            self.work,
            provider,
            approver=Yes(),
            session=session,
            kept=self.kept,
            jobs=jobs,
            **fields,
        )
        self.agents.append(agent)
        await agent.start()
        return agent, provider

    async def recovered(self, *, repeat: bool = False) -> tuple[str, str]:
        """What is said of the call, and what the model gets as its result, when the turn goes on
        by itself; with `repeat` a person says that it is to run again."""
        agent, provider = await self.opened()
        work = await asyncio.to_thread(agent.interrupted_work)
        (left,) = work.calls
        async for _ in agent.go_on([left.call_id], repeat=repeat):
            pass
        for owned in agent.jobs.all:
            assert await owned.job.wait(PATIENCE_S)
        said = f"{known(left)} {taken_over(work)}" if work.supervised else known(left)
        return said, result_in(provider)


def result_in(provider: ScriptedProvider) -> str:
    """The result of the call in the last request."""
    sent = json.dumps(provider.requests[-1].messages)
    assert sent.count(f'"tool_use_id": "{ID}"') == 1
    (block,) = [
        block
        for message in provider.requests[-1].messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    return text_of(cast("list[Any]", block["content"]))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    (made.work / "go").touch()
    for agent in made.agents:
        with suppress(StorageError):
            await agent.close()
    await asyncio.to_thread(made.starter.close)


async def test_R2_a_background_command_is_taken_over_and_not_run_again(desk: Desk) -> None:
    await desk.killed(WAITS, background=True)
    command = await desk.begun(WAITS, job="job-1")
    command.close()
    agent, provider = await desk.opened()
    work = await asyncio.to_thread(agent.interrupted_work)
    assert list(map(known, work.calls)) == ["still running"]
    assert work.resumable
    async for _ in agent.go_on([ID]):
        pass
    heard = result_in(provider)
    assert heard.startswith(
        f"Started in the background as job-1 (process {command.pid}); Holdfast was restarted, and "
        'it runs on. Use command_status with job="job-1"'
    )
    (owned,) = agent.jobs.all
    assert not owned.job.ended
    (desk.work / "go").touch()
    assert await owned.job.wait(PATIENCE_S)
    assert desk.ran == 1


async def test_R2_one_that_has_ended_meanwhile_has_its_end_said(desk: Desk) -> None:
    await desk.killed(background=True)
    await desk.over(await desk.begun(job="job-1"))
    said, heard = await desk.recovered()
    assert "has ended meanwhile: its output and result are kept." in said
    assert "as job-1" in heard
    assert "has ended since: exit code 0" in heard
    assert desk.ran == 1


@pytest.mark.parametrize(("level", "changed"), [("read-only", None), ("workspace", ["other"])])
async def test_R2_one_that_could_only_read_has_changed_nothing_that_changed_meanwhile(
    desk: Desk, tmp_path: Path, level: str, changed: list[str] | None
) -> None:
    def store() -> CheckpointStore:
        return CheckpointStore(tmp_path / "checkpoints.sqlite3", desk.work)

    session = await desk.killed("echo printed")
    line = {"type": "permission", "call_id": ID, "tool": "run_command", "answer": "allow"}
    record = {"id": "z1", "parent": session.records[-1].id, "time": session.records[-1].time}
    with desk.path.open("a") as file:
        file.write(json.dumps({**line, **record, "by": "safe", "level": level}) + "\n")
    before = store()
    before.take()
    before.close()
    (desk.work / "other").write_text("by somebody else")
    await desk.over(await desk.begun("echo printed"))
    agent, _ = await desk.opened(open_checkpoints=store)
    async for _ in agent.go_on([ID]):
        pass
    (result,) = [one for one in agent.session.records if one.type == "tool_result"]
    assert result.data["details"].get("changed_files") == changed


async def test_R2_its_recorded_end_is_enough_where_its_folder_is_gone(desk: Desk) -> None:
    session = await desk.killed(background=True)
    line = {"type": "job_ended", "call_id": ID, "job": "job-1", "command": LINE, "exit_code": 0}
    record = {"id": "z1", "parent": session.records[-1].id, "time": session.records[-1].time}
    with desk.path.open("a") as file:
        file.write(json.dumps({**line, **record, "state": "exit code 0", "text": "printed"}) + "\n")
    said, heard = await desk.recovered()
    assert said.startswith("finished; its result is kept")
    assert heard == "Started in the background as job-1. It has ended since, as you were told."
    assert desk.ran == 0


async def test_R2_a_command_that_was_moved_has_one_owner(desk: Desk) -> None:
    await desk.killed(WAITS, timeout=1)
    command = await desk.begun(WAITS, job="job-1", moved_by="person")
    agent, provider = await desk.opened()
    command.close()
    async for _ in agent.go_on([ID]):
        pass
    assert result_in(provider).startswith("Moved to the background by the user, as job-1")
    assert not any(owned.job.ended for owned in agent.jobs.all), "its time limit is over"


async def test_R2_a_command_whose_keeper_was_killed_is_called_unknown(desk: Desk) -> None:
    await desk.killed()
    await without_keeper(desk)
    said, heard = await desk.recovered()
    assert said == "started; may or may not have finished"
    assert heard == INTERRUPTED
    assert desk.ran == 1


@pytest.mark.parametrize("step", [12, 18, 19])
async def test_a_keeper_that_is_killed_before_it_says_a_word_leaves_the_start_unknown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """It may have run: it is not said that it did not start."""
    await desk.killed(intent=False)
    monkeypatch.setenv(KILL_AT, str(step))
    await asyncio.to_thread(desk.starter.close)
    desk.starter = PlainStarter(WarmParent("tests.support.dying_zygote"))
    agent, provider = await desk.opened([call("run_command", "2", command=LINE)], say("done"))
    await events_until_end(agent)
    sent = json.dumps(provider.requests[-1].messages)
    assert "nobody knows how it ended, or whether it did" in sent
    assert "start the command" not in sent


async def without_keeper(desk: Desk, **note_: Any) -> None:
    """Its command begins, then its keeper is killed, then all of it."""
    command = await desk.begun(WAITS, **note_)
    while not await asyncio.to_thread(command.read):
        pass
    os.kill(note(desk.folder, names.STATE)["keeper"], signal.SIGKILL)
    assert await command.wait(PATIENCE_S)
    os.kill(command.pid, signal.SIGKILL)
    command.close()


@pytest.mark.parametrize("moved", [{}, {"moved_by": "person"}])
async def test_R2_a_background_command_whose_keeper_was_killed_is_called_unknown(
    desk: Desk, moved: dict[str, str]
) -> None:
    await desk.killed(background=not moved)
    await without_keeper(desk, job="job-1", **moved)
    said, heard = await desk.recovered()
    assert said == "started; may or may not have finished"
    assert heard == INTERRUPTED
    again, provider = await desk.opened()
    async for _ in again.send(parse("and?")):
        pass
    sent = json.dumps(provider.requests[-1].messages)
    assert "background command job-1 was killed: nobody knows how it ended, or whether" in sent
    assert "has ended" not in sent
    assert desk.ran == 1


async def test_R2_a_background_command_without_a_keeper_runs_again_for_a_person(
    desk: Desk,
) -> None:
    await desk.killed(background=True)
    await without_keeper(desk, job="job-1")
    _, heard = await desk.recovered(repeat=True)
    assert heard.startswith("Started in the background as job-2 (process ")
    assert desk.ran == 2


async def test_R2_that_nobody_knows_its_end_is_known_after_the_next_kill_too(desk: Desk) -> None:
    session = await desk.killed(background=True)
    line = {"type": "job_ended", "call_id": ID, "job": "job-1", "exit_code": None}
    record = {"id": "z1", "parent": session.records[-1].id, "time": session.records[-1].time}
    with desk.path.open("a") as file:
        file.write(json.dumps({**line, **record, "state": "end unknown"}) + "\n")
    said, heard = await desk.recovered()
    assert said == "started; may or may not have finished"
    assert heard == INTERRUPTED


async def test_a_command_whose_keeper_is_killed_may_still_run_and_it_is_said(desk: Desk) -> None:
    await desk.killed(intent=False)
    (desk.work / "ran").unlink(missing_ok=True)
    agent, provider = await desk.opened([call("run_command", "2", command=WAITS)], say("done"))
    turn = asyncio.create_task(events_until_end(agent))
    while not desk.ran:  # noqa: ASYNC110 - real processes
        await asyncio.sleep(0.01)
    (folder,) = [one for one in desk.kept.iterdir() if (one / names.STATE).exists()]
    while "pid" not in (state := note(folder, names.STATE)):  # noqa: ASYNC110 - real processes
        await asyncio.sleep(0.01)
    os.kill(state["keeper"], signal.SIGKILL)
    await turn
    sent = json.dumps(provider.requests[-1].messages)
    assert "nobody knows how it ended, or whether it did; it may still run as process" in sent
    assert "[end unknown" in sent


async def events_until_end(agent: Agent) -> None:
    async for _ in agent.go_on([]):
        pass


async def test_R2_only_a_person_lets_it_run_again(desk: Desk) -> None:
    await desk.killed()
    await without_keeper(desk)
    _, heard = await desk.recovered(repeat=True)
    assert "exit code 0" in heard
    assert desk.ran == 2


@pytest.mark.parametrize("repeat", [False, True])
async def test_R2_an_intent_alone_is_no_start_and_no_leave_to_start(
    desk: Desk, repeat: bool
) -> None:
    await desk.killed()
    said, heard = await desk.recovered(repeat=repeat)
    assert said == "may or may not have run"
    assert ("exit code 0" in heard) == repeat
    assert desk.ran == repeat


@pytest.mark.parametrize("intent", [False, True])
@pytest.mark.parametrize("background", [False, True])
async def test_R2_what_was_not_started_runs_once(
    desk: Desk, intent: bool, background: bool
) -> None:
    """The program was killed before its request reached a zygote, or before that served it."""
    await desk.killed(intent=intent, background=background)
    late = await unserved(desk, **({"job": "job-1"} if background else {}))
    said, heard = await desk.recovered()
    assert said == "never started"
    assert ("as job-1" if background else "exit code 0") in heard
    with pytest.raises(OSError, match=r"No such file|its folder is another one"):
        await late()
    assert desk.ran == 1


async def test_R2_a_start_that_comes_late_is_the_one_start(desk: Desk) -> None:
    await desk.killed()
    late = await unserved(desk)
    await late()
    said, heard = await desk.recovered()
    assert "its" in said
    assert "exit code 0" in heard
    assert desk.ran == 1


async def unserved(desk: Desk, **note_: str) -> Callable[[], Awaitable[None]]:
    """Make the folder of the call; returns what serves the request for it, so late."""
    asked: asyncio.Future[tuple[Any, ...]] = asyncio.get_running_loop().create_future()

    async def starter(argv: Any, cwd: Path, env: Any, keep: Keep) -> Any:
        asked.set_result((argv, cwd, env, replace(keep, output=os.dup(keep.output))))
        await asyncio.Event().wait()

    desk.waiting = asyncio.create_task(desk.begun(starter=starter, **note_))
    argv, cwd, env, keep = await asked

    async def serve() -> None:
        try:
            _, report = await desk.starter(argv, cwd, env, keep)
            while (await report.next()).get("status") is None:
                pass
        finally:
            os.close(keep.output)

    return serve


async def test_R2_after_a_restart_of_the_machine_nobody_knows(desk: Desk) -> None:
    await desk.killed()
    desk.folder.mkdir(parents=True)
    (desk.folder / names.CALL).write_text(json.dumps({"call_id": ID, "boot": "another"}))
    assert state_of(desk.folder) == "lost"
    said, heard = await desk.recovered()
    assert said == "started; may or may not have finished"
    assert heard == INTERRUPTED
    assert desk.ran == 0


async def test_R2_the_folder_counts_where_the_record_lost_its_last_line(desk: Desk) -> None:
    await desk.killed(intent=False)
    await desk.over(await desk.begun())
    said, heard = await desk.recovered()
    assert said.startswith("finished; its result is kept")
    assert heard.startswith("printed\n")
    assert desk.ran == 1


def full_disk(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_R2_nothing_runs_where_neither_record_nor_folder_can_say_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.killed()
    desk.kept.parent.mkdir(parents=True, exist_ok=True)
    desk.kept.write_text("a file")
    agent, provider = await desk.opened([call("run_command", "2", command=LINE)], say("done"))
    monkeypatch.setattr("tui.session.writer.os.write", full_disk)
    async for _ in agent.go_on():
        pass
    assert "Couldn't start the command" in json.dumps(provider.requests[-1].messages)
    assert desk.ran == 0


async def test_R2_who_lost_the_session_starts_nothing(desk: Desk) -> None:
    await desk.killed(intent=False)
    agent, _ = await desk.opened()
    with pytest.raises(SessionInUseError):
        other_program(desk.path)
    other_program(desk.path, "take over")
    async for _ in agent.go_on([ID]):
        pass
    assert desk.ran == 0


async def test_R2_who_lost_the_session_stops_no_command_of_the_other(desk: Desk) -> None:
    await desk.killed(intent=False)
    asked = call("run_command", "2", command=WAITS, background=True)
    agent, _ = await desk.opened([asked], say("done"))
    async for _ in agent.go_on():
        pass
    (owned,) = agent.jobs.all
    other_program(desk.path, "take over")
    with suppress(StorageError):
        await agent.close()
    assert state_of(owned.job.kept.folder) == "running"
    other, _ = await desk.opened()
    (taken,) = other.jobs.all
    (desk.work / "go").touch()
    assert await taken.job.wait(PATIENCE_S)
    assert taken.job.exit_code == 0
    assert desk.ran == 1


def other_program(path: Path, *words: str) -> None:
    """Another program opens the session. Raises SessionInUseError where it can't."""
    code = (
        "import sys; from pathlib import Path; from tui.core.clock import SystemClock\n"
        "from tui.core.errors import SessionInUseError; from tui.session.session import Session\n"
        "try:\n"
        f"  s = Session.open(Path(sys.argv[1]), clock=SystemClock(), take_over={bool(words)})\n"
        "except SessionInUseError: sys.exit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    if done.returncode:
        raise SessionInUseError("in use")


async def test_R2_a_folder_in_the_way_gives_a_new_call_another_id(desk: Desk) -> None:
    """Some servers count from 0 again: after a rewind, a branch that was left has that command."""
    await desk.killed(intent=False)
    (desk.kept / "toolu_9").mkdir(parents=True)
    asked = call("run_command", "toolu_9", command=LINE)
    agent, provider = await desk.opened([asked], say("done"))
    async for _ in agent.go_on():
        pass
    assert '"toolu_9_2"' in json.dumps(provider.requests[-1].messages)
    assert desk.ran == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_R2_a_kill_at_any_step_lets_nothing_run_twice(tmp_path: Path) -> None:
    """A sample; the driver does a thousand by hand."""
    kills = [
        *({"kind": kind, "at": at} for kind in KINDS for at in (5, 17, 29, 41)),
        *({"kind": kind, "at": 30, "torn": True} for kind in KINDS),
        *({"kind": "background", "at": 0, "keeper": keeper} for keeper in (1, 9, 18, 20)),
        *({"kind": "front", "at": 0, "keeper": keeper} for keeper in (9, 18)),
    ]
    asked = "".join(json.dumps(kill | {"place": str(tmp_path / "k")}) + "\n" for kill in kills)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_calls"], input=asked, text=True,
        capture_output=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(seen) == len(kills)
    assert [one for one in seen if one["fault"]] == []
