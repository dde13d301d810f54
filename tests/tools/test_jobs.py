"""Background commands and command_status, on real processes."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.processes import gone
from tests.support.starting import HeldStarter
from tests.tools.test_run_command import Bench
from tui.core import process_birth
from tui.core.clock import SystemClock
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.tools.base import ToolContext
from tui.tools.command_status import CommandStatus
from tui.tools.jobs import Job, Jobs, Origin
from tui.tools.run_command import RunCommand


class Background:
    """Jobs on the real clock, driven through the two tools as the model drives them."""

    def __init__(self, root: Path) -> None:
        self.bench = Bench(root)
        self.jobs = Jobs()
        self._calls = itertools.count(1)

    def context(self) -> ToolContext:
        """Of a new call."""
        kept = self.bench.context().kept.with_name(f"call-{next(self._calls)}")
        return self.bench.context(jobs=self.jobs, clock=SystemClock(), kept=kept)

    async def start(self, command: str) -> str:
        tool = RunCommand()
        params = tool.parse({"command": command, "background": True})
        return str((await tool.run(params, self.context())).details["job"])

    async def status(self, job: str = "", action: str = "read", **arguments: Any) -> ToolOutput:
        tool = CommandStatus()
        params = tool.parse({"job": job, "action": action, **arguments})
        return await tool.run(params, self.context())

    def running(self) -> list[Job]:
        return [job for job in self.jobs.list() if not job.ended]


@pytest.fixture
def background(tmp_path: Path) -> Background:
    return Background(tmp_path)


def test_what_is_no_process_was_never_born(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal to the group 0 would end the program itself."""

    def stat_of(_: int | str) -> list[str]:
        return ["S", *map(str, range(20))]  # as macOS has a process 0

    monkeypatch.setattr(process_birth, "_stat_of", stat_of)
    assert process_birth.born(1)
    assert process_birth.born(0) == process_birth.born(-1) == ""


async def test_a_process_that_nobody_knows_is_not_said_to_be_0(background: Background) -> None:
    job = background.jobs.get(await background.start("true"))
    assert job.process == f"process {job.pid}"
    job.pid = 0
    assert "· process unknown ·" in text_of((await background.status()).content)


async def test_a_link_in_the_place_of_its_output_is_not_read(
    background: Background, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("the secret")
    job = await background.start("echo one; echo two two")
    path = background.jobs.get(job).path
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    try:
        said = text_of((await background.status(job, "wait")).content)
    except (ToolError, OSError) as error:
        said = str(error)
    assert "secret" not in said.replace(str(tmp_path), "")


async def test_wait_returns_the_output_and_the_exit_code(background: Background) -> None:
    job = await background.start("echo one; echo two >&2; exit 4")
    output = await background.status(job, "wait")
    text = text_of(output.content)
    assert text.startswith("one\ntwo\n[job-1 · exit code 4 · ")
    assert output.is_error
    assert output.details["exit_code"] == 4
    path = background.jobs.get(job).path
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(path) in text


async def test_read_gives_only_what_is_new(background: Background, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    job = await background.start("echo first; while [ -e go ]; do sleep 0.01; done; echo second")
    seen = ""
    async with asyncio.timeout(PATIENCE_S):
        while "first" not in seen:
            seen += text_of((await background.status(job, "wait", timeout=0.05)).content)
    assert "running" in seen
    (tmp_path / "go").unlink()
    text = text_of((await background.status(job, "wait")).content)
    assert text.startswith("second\n[job-1 · exit code 0")
    again = await background.status(job)
    assert text_of(again.content).startswith("(no new output)\n")
    assert not again.is_error


async def test_wait_gives_up_after_its_timeout_and_the_job_goes_on(background: Background) -> None:
    job = await background.start("sleep 1000")
    output = await background.status(job, "wait", timeout=0.05)
    assert output.details["running"] is True
    assert output.summary == "job-1 running"
    assert [running.command for running in background.running()] == ["sleep 1000"]
    await background.jobs.close()


async def test_stop_ends_the_whole_group_and_is_no_error(background: Background) -> None:
    job = await background.start("sleep 1000 & echo $!; wait")
    async with asyncio.timeout(PATIENCE_S):
        text = ""
        while not text[:1].isdigit():
            text = text_of((await background.status(job, "wait", timeout=0.02)).content)
    output = await background.status(job, "stop")
    assert gone(int(text.split()[0]))
    assert gone(background.jobs.get(job).pid)
    assert "· stopped ·" in text_of(output.content)
    assert not output.is_error
    assert background.running() == []


async def test_close_stops_all_and_may_be_called_again(background: Background) -> None:
    started = [await background.start("sleep 1000") for _ in range(3)]
    pids = [background.jobs.get(job).pid for job in started]
    assert [running.pid for running in background.running()] == pids
    await background.jobs.close()
    await background.jobs.close()
    assert all(map(gone, pids))
    assert background.running() == []


async def test_a_job_that_ignores_sigterm_is_killed_on_close(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    jobs = Jobs(bench.clock)
    job = await jobs.start(
        "trap '' TERM; while :; do sleep 0.01; done", cwd=tmp_path, path=tmp_path / "out.txt"
    )
    await jobs.close()
    assert gone(job.pid)
    assert sum(bench.clock.slept) <= 2.1


async def test_a_daemon_that_keeps_the_pipe_does_not_keep_the_job_open(
    background: Background,
) -> None:
    job = await background.start("sleep 1000 & echo $!")
    output = await background.status(job, "wait", timeout=10)
    assert output.details["running"] is False
    assert gone(int(text_of(output.content).split()[0]))


async def test_O21_a_very_long_output_is_read_by_its_ends(background: Background) -> None:
    job = await background.start("echo begin; head -c 3000000 /dev/zero | tr '\\0' z; echo end")
    text = text_of((await background.status(job, "wait")).content)
    assert text.startswith("begin\n")
    assert "z" * 1000 + "end\n[job-1" in text
    assert len(text) < 201_000
    assert "the middle of 3000010 bytes isn't shown here" in text
    assert background.jobs.get(job).path.stat().st_size == 3_000_010


async def test_O21_no_character_is_cut_where_the_middle_is_left_out(background: Background) -> None:
    job = await background.start("printf a; head -c 150000 /dev/zero | sed 's/\\x0/é/g'; printf b")
    output = await background.status(job, "wait")
    text = text_of(output.content)
    assert "the middle of 300002 bytes isn't shown here" in text
    assert "\ufffd" not in text
    assert output.raw is not None
    assert (output.raw.bytes, output.raw.partial) == (300_002, True)


async def test_a_character_cut_in_two_between_looks_is_whole(
    background: Background, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    job = await background.start(
        r"printf 'a\xc3'; while [ -e go ]; do sleep 0.01; done; printf '\xa9b\n'"
    )
    seen = ""
    async with asyncio.timeout(PATIENCE_S):
        while not seen.startswith("a"):
            seen = text_of((await background.status(job, "wait", timeout=0.05)).content)
    assert seen.startswith("a\n[job-1 · running")
    (tmp_path / "go").unlink()
    assert text_of((await background.status(job, "wait")).content).startswith("éb\n")


async def test_jobs_are_listed_and_an_unknown_one_is_named(background: Background) -> None:
    assert text_of((await background.status()).content) == "(no jobs)"
    with pytest.raises(ToolError, match="None was started"):
        await background.status("job-9")
    await background.start("sleep 1000")
    listed = text_of((await background.status()).content)
    assert listed.startswith("job-1 · running · process ")
    assert listed.endswith("sleep 1000")
    with pytest.raises(ToolError, match="Known: job-1"):
        await background.status("job-9")
    await background.jobs.close()


async def test_a_job_that_cannot_start_is_not_listed(
    background: Background, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match="Couldn't start"):
        await background.jobs.start("x", cwd=tmp_path / "nowhere", path=tmp_path / "x")
    assert background.jobs.list() == ()


async def test_two_jobs_do_not_share_a_file(background: Background) -> None:
    first = await background.start("echo 1")
    second = await background.start("echo 2")
    await background.status(first, "wait")
    await background.status(second, "wait")
    jobs = background.jobs
    assert jobs.get(first).path.read_text() == "1\n"
    assert jobs.get(second).path.read_text() == "2\n"


@pytest.mark.parametrize("background_too", [True, False])
async def test_a_call_starts_no_second_command(
    background: Background, tmp_path: Path, background_too: bool
) -> None:
    tool, ctx = RunCommand(), background.context()
    once = tool.parse({"command": "echo x >> ran", "background": True})
    job = str((await tool.run(once, ctx)).details["job"])
    with pytest.raises(ToolError, match="this call has started one before"):
        await tool.run(tool.parse({"command": "echo y >> ran", "background": background_too}), ctx)
    await background.status(job, "wait")
    assert (tmp_path / "ran").read_text() == "x\n"


async def in_front(background: Background, command: str, printed: str) -> asyncio.Task[ToolOutput]:
    """A command that runs in front and has printed a text; nobody has moved it yet."""
    seen = asyncio.Event()

    def heard() -> None:
        if printed in "".join(background.bench.host.emitted):
            seen.set()

    background.bench.host.on_output = heard
    tool = RunCommand()
    run = tool.run(tool.parse({"command": command}), background.context())
    task = asyncio.create_task(run)
    async with asyncio.timeout(PATIENCE_S):
        await seen.wait()
    return task


async def test_a_wish_moves_the_command_that_it_was_made_for(background: Background) -> None:
    """While one waits for an answer, another runs: the person's own, or a sub-agent's."""
    jobs = background.jobs
    moved: list[bool] = []

    async def waits(wished: asyncio.Event, go: asyncio.Event) -> None:
        with jobs.coming():
            wished.set()
            await go.wait()
            with jobs.in_front() as wanted:
                moved.append(wanted.is_set())

    wished, go = asyncio.Event(), asyncio.Event()
    waiting = asyncio.create_task(waits(wished, go))
    await wished.wait()
    assert jobs.move() == 1
    with jobs.in_front() as another:
        assert not another.is_set()
    go.set()
    await waiting
    assert moved == [True]


async def test_a_command_that_runs_in_front_is_moved(
    background: Background, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    command = "echo first; while [ -e go ]; do sleep 0.01; done; echo second; exit 3"
    task = await in_front(background, command, "first")
    assert background.jobs.move() == 1
    async with asyncio.timeout(PATIENCE_S):
        output = await task
    (job,) = background.running()
    assert background.jobs.move() == 0
    assert text_of(output.content).startswith(
        f"first\n[moved to the background by the user, still running as job-1 (process {job.pid})"
    )
    assert not output.is_error
    assert output.details["job"] == "job-1"
    assert output.details["moved_by"] == job.origin.moved_by == "person"
    assert job.origin.call_id == "toolu_1"
    (tmp_path / "go").unlink()
    rest = await background.status("job-1", "wait", timeout=PATIENCE_S)
    assert text_of(rest.content).startswith("second\n[job-1 · exit code 3")
    assert job.path.read_text() == "first\nsecond\n"
    assert job.end_read


async def test_a_command_can_be_moved_while_it_is_being_started(background: Background) -> None:
    background.jobs.starter = starter = HeldStarter(background.jobs.starter)
    tool = RunCommand()
    run = tool.run(tool.parse({"command": "sleep 1000"}), background.context())
    task = asyncio.create_task(run)
    async with asyncio.timeout(PATIENCE_S):
        await starter.begun.wait()
        assert background.jobs.move() == 1
        starter.go.set()
        output = await task
    (job,) = background.running()
    assert output.details["job"] == job.id
    await background.status(job.id, "stop")


async def test_all_of_a_long_output_is_in_the_file_of_a_moved_command(
    background: Background, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    command = "seq 1 40000; echo there; while [ -e go ]; do sleep 0.01; done; echo end"
    task = await in_front(background, command, "there")
    background.jobs.move()
    async with asyncio.timeout(PATIENCE_S):
        output = await task
    (job,) = background.running()
    so_far = "".join(f"{n}\n" for n in range(1, 40_001)) + "there\n"
    assert output.full is not None
    assert output.full != job.path
    assert output.full.read_text() == so_far
    (tmp_path / "go").unlink()
    assert await job.wait(PATIENCE_S)
    assert job.path.read_text() == f"{so_far}end\n"
    assert job.bytes == len(so_far) + 4


async def test_a_moved_command_is_stopped_with_all_it_started(background: Background) -> None:
    task = await in_front(background, "echo go; sleep 1000 & sleep 1000", "go")
    background.jobs.move()
    async with asyncio.timeout(PATIENCE_S):
        await task
    (job,) = background.running()
    await job.stop("person")
    assert gone(job.pid)
    assert (job.state(), job.stopped_by) == ("stopped", "person")


async def test_the_end_of_the_output_is_there_at_any_time(background: Background) -> None:
    job_id = await background.start("seq 1 9000; printf 'half\\rwhole'")
    job = background.jobs.get(job_id)
    assert await job.wait(PATIENCE_S)
    assert job.tail(lines=2, chars=100) == "9000\nwhole"
    assert job.tail(lines=3, chars=100).startswith("8999\n")
    assert job.tail(lines=9, chars=3) == "ole"


async def test_what_is_hidden_from_the_model_is_not_listed(background: Background) -> None:
    job_id = await background.start("true")
    job = background.jobs.get(job_id)
    job.origin = Origin(hidden=True)
    assert background.jobs.list() == (job,)
    assert text_of((await background.status()).content) == "(no jobs)"
    with pytest.raises(ToolError, match="None was started"):
        background.jobs.get(job_id)
    await background.jobs.close()
