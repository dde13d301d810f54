"""Another machine at the desk: rows, channels, requests, and cuts of the line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.cut_line import CutLine, CutLines
from tests.support.far_machine import ScriptedHost, ScriptedMachine, question, until
from tests.support.watcher import Watcher
from tui.app.door.lines import GiveAnswer, Hello, SendPrompt
from tui.core.errors import HoldfastError
from tui.desk.far_host import FarHost


@asynccontextmanager
async def _desk(
    machine: ScriptedMachine, tmp_path: Path, *, retries: bool = True
) -> AsyncGenerator[tuple[FarHost, CutLines, ManualClock]]:
    clock = ManualClock()
    lines = CutLines(machine.host, tmp_path, clock)
    host = FarHost("ann@box", dial=lines, clock=clock)
    if retries:
        host.follow(lambda: host.retry() if host.problem else None)
    try:
        yield host, lines, clock
    finally:
        await host.close()


async def _pass(clock: ManualClock, seconds: float) -> None:
    """Let time pass, in steps in which all do what they have to."""
    for _ in range(int(seconds * 2)):
        for _ in range(30):
            await asyncio.sleep(0)
        clock.advance(0.5)


async def test_the_rows_of_the_machine_come_with_its_name_and_only_changes_after_that(
    tmp_path: Path,
) -> None:
    machine = ScriptedMachine()
    for number in range(100):
        machine.session(f"s{number}")
    async with _desk(machine, tmp_path) as (host, lines, _):
        await until(host, lambda: len(host.rows) == 100)
        assert host.problem == ""
        assert {row.host for row in host.rows} == {"ann@box"}
        before = {row.id: row for row in host.rows}
        passed = lines.lines[0].passed
        session = machine.session("s7")
        session.row = msgspec.structs.replace(session.row, detail="run_command pytest")
        del machine.sessions["s8"]
        machine.changed()
        await until(host, lambda: len(host.rows) == 99)
        await until(host, lambda: any(row.detail for row in host.rows))
        after = {row.id: row for row in host.rows}
        assert after["s7"].detail == "run_command pytest"
        assert all(after[id_] is before[id_] for id_ in after if id_ != "s7")
        assert lines.lines[0].passed - passed < 1000


async def test_rows_with_questions_come_first(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    for number in range(300):
        machine.session(f"s{number}")
    last = machine.session("s299")
    last.row = msgspec.structs.replace(last.row, state="waiting", questions=(question("q"),))
    async with _desk(machine, tmp_path) as (host, _, _):
        await until(host, lambda: host.rows)
        assert next(row.id for row in host.rows) == "s299"


async def test_what_is_typed_and_answered_gets_there_and_its_outcome_back(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    session = machine.session("abc")
    session.record("user", "hello")
    session.ask("q1")
    async with _desk(machine, tmp_path) as (host, _, _):
        watcher = Watcher(host, "abc")
        await watcher.until(lambda: watcher.questions)
        watcher.request(SendPrompt(number="1", text="and now this"))
        watcher.request(GiveAnswer(number="2", to="q1", answer={"answers": ["yes"]}))
        await watcher.until(lambda: len(watcher.outcomes) == 2)
        await watcher.until(lambda: not watcher.questions)
        assert watcher.outcomes["1"].outcome == "sent"
        assert session.answers == [("q1", {"answers": ["yes"]})]
        assert list(watcher.records.values()) == ["hello", "and now this"]
        await watcher.close()


async def test_large_lines_go_both_ways_in_pieces(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    session = machine.session("abc")
    text = 'ä\n"\x1b' * 300_000
    session.record("user", text)
    async with _desk(machine, tmp_path) as (host, _, _):
        watcher = Watcher(host, "abc")
        watcher.request(SendPrompt(number="1", text=text))
        await watcher.until(lambda: watcher.outcomes and len(watcher.records) == 2)
        assert list(watcher.records.values()) == [text, text]
        await watcher.close()


async def test_what_is_urgent_comes_before_what_is_large(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    session = machine.session("abc")
    for number in range(400):
        session.record("user", f"{number} " * 5000)
    async with _desk(machine, tmp_path) as (host, lines, _):
        watcher = Watcher(host, "abc")
        await watcher.until(lambda: watcher.records)
        line = lines.lines[0]
        line.open.clear()
        session.ask("q1")
        watcher.request(GiveAnswer(number="1", to="q1", answer="yes"))
        line.open.set()
        await watcher.until(lambda: watcher.outcomes)
        assert watcher.outcomes["1"].outcome == "done"
        assert len(watcher.records) < 400
        await watcher.until(lambda: len(watcher.records) == 400)
        assert watcher.twice == []
        await watcher.close()


async def test_a_slow_line_keeps_a_session_waiting_and_not_in_memory(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    session = machine.session("abc")
    async with _desk(machine, tmp_path) as (host, lines, clock):
        watcher = Watcher(host, "abc")
        await watcher.until(watcher.live.is_set)
        lines.lines[0].open.clear()
        for number in range(100):
            session.say(f"{number} " * 20_000)
        await _pass(clock, 5)
        assert 60 < session.channels[0].backlog < 100
        lines.lines[0].open.set()
        await watcher.until(lambda: len(watcher.said) == 100)
        assert watcher.said == session.said
        await watcher.close()


async def test_a_session_is_started_and_dismissed_there(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    async with _desk(machine, tmp_path) as (host, _, _):
        assert await host.start("/home/ann", "fix it") == "new1"
        assert machine.started == [("/home/ann", "fix it")]
        with pytest.raises(HoldfastError, match="nothing to do") as refused:
            await host.start("/home/ann", "")
        assert refused.value.hint == "Type a prompt."
        await host.dismiss("new1")
        await until(host, lambda: host.rows)
        await machine.dismissal.wait()
        assert machine.dismissed == ["new1"]


async def test_a_session_that_is_not_there_is_refused_with_the_machines_words(
    tmp_path: Path,
) -> None:
    async with _desk(ScriptedMachine(), tmp_path) as (host, _, _):
        with pytest.raises(HoldfastError, match="no session nope") as refused:
            await host.open("nope")
        assert refused.value.hint == "Look at the list."


async def test_a_cut_keeps_the_rows_says_why_and_ends_the_channels(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    machine.session("abc")
    async with _desk(machine, tmp_path, retries=False) as (host, lines, clock):
        channel = await host.open("abc")
        assert isinstance(await channel.receive(), Hello)
        await until(host, lambda: host.rows)
        lines.lines[0].cut()
        await until(host, lambda: host.problem)
        assert host.problem == "The line to ann@box is cut: it ended."
        assert [row.id for row in host.rows] == ["abc"]
        while await channel.receive() is not None:
            pass
        channel.send(SendPrompt(number="1", text="into the void"))
        with pytest.raises(HoldfastError, match="is cut"):
            await host.open("abc")
        machine.session("def")
        del machine.sessions["abc"]
        await _pass(clock, 1)
        await until(host, lambda: [row.id for row in host.rows] == ["def"])
        assert host.problem == ""


async def test_each_failure_in_a_row_waits_longer_and_a_key_tries_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    dials: list[float] = []
    dialled = asyncio.Event()
    dead = CutLines(ScriptedMachine().host, tmp_path, clock, lambda: 0)

    async def dial() -> CutLine:
        dials.append(clock.elapsed)
        dialled.set()
        return await dead()

    host = FarHost("box", dial=dial, clock=clock)
    host.follow(lambda: None)
    for _ in range(3000):
        await _pass(clock, 0.5)
        if len(dials) > 8:
            break
    waits = [after - before for before, after in pairwise(dials)]
    assert waits[0] < 2
    assert 28 < waits[-1] < 35
    dialled.clear()
    host.retry()
    await dialled.wait()
    await host.close()


async def test_a_fault_is_a_problem_that_is_named_and_another_try(tmp_path: Path) -> None:
    clock, machine = ManualClock(), ScriptedMachine()
    machine.session("abc")
    lines = CutLines(machine.host, tmp_path, clock)

    async def dial() -> CutLine:
        if not problems:
            raise RuntimeError("a fault")
        return await lines()

    problems: list[str] = []
    host = FarHost("box", dial=dial, clock=clock)
    host.follow(lambda: problems.append(host.problem))
    await _pass(clock, 1)
    await until(host, lambda: host.rows)
    assert problems[0] == (
        "The line to box is cut: something went wrong (RuntimeError); the log file has details."
    )
    assert host.problem == ""
    await host.close()


async def test_a_follower_that_fails_ends_nothing(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    machine.session("abc")

    def fail() -> None:
        raise RuntimeError("a fault")

    async with _desk(machine, tmp_path, retries=False) as (host, _, _):
        host.follow(fail)
        await until(host, lambda: host.rows)
        machine.session("def")
        await until(host, lambda: len(host.rows) == 2)
        assert host.problem == ""


async def test_a_fault_on_the_other_machine_cuts_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = ScriptedMachine()
    machine.session("abc")

    async def fail(self: ScriptedHost, session: str) -> None:
        monkeypatch.undo()
        raise RuntimeError("a fault")

    monkeypatch.setattr(ScriptedHost, "dismiss", fail)
    async with _desk(machine, tmp_path) as (host, lines, _):
        await until(host, lambda: host.rows)
        await host.dismiss("abc")
        await until(host, lambda: host.problem)
        assert host.problem == "The line to ann@box is cut: it ended."
        await until(host, lambda: not host.problem)
        assert len(lines.lines) == 2


async def test_silence_cuts_the_line_and_so_does_sleep(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    machine.session("abc")
    async with _desk(machine, tmp_path) as (host, lines, clock):
        problems: list[str] = []
        host.follow(lambda: problems.append(host.problem))
        await until(host, lambda: host.rows)
        lines.lines[0].open.clear()
        await _pass(clock, 20)
        await until(host, lambda: len(lines.lines) == 2 and not host.problem)
        assert "The line to ann@box is cut: nothing came for 15 seconds." in problems
        await _pass(clock, 1)
        clock.advance(3600)
        await until(host, lambda: len(lines.lines) == 3 and not host.problem)
        assert problems[-2:] == ["The line to ann@box is cut: this machine slept.", ""]


async def test_heartbeats_keep_an_idle_line(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    machine.session("abc")
    async with _desk(machine, tmp_path, retries=False) as (host, lines, clock):
        await until(host, lambda: host.rows)
        await _pass(clock, 100)
        assert host.problem == ""
        assert len(lines.lines) == 1


async def test_a_start_whose_outcome_is_cut_off_says_that_it_may_have_been(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    async with _desk(machine, tmp_path, retries=False) as (host, lines, _):
        await until(host, lambda: not host.problem)
        lines.lines[0].limit = lines.lines[0].passed + 150
        with pytest.raises(HoldfastError, match="may have been started"):
            await host.start("/tmp", "x" * 100_000)


async def test_ids_that_could_be_words_of_a_command_are_not_listed(tmp_path: Path) -> None:
    machine = ScriptedMachine()
    for id_ in ("-rf", "a b", "a;b", "$(x)", "ok-1"):
        machine.session(id_)
    async with _desk(machine, tmp_path) as (host, _, _):
        await until(host, lambda: host.rows)
        assert [row.id for row in host.rows] == ["ok-1"]


@pytest.mark.parametrize("seed", [7])
async def test_nothing_is_lost_or_done_twice_by_a_hundred_cuts(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    machine = ScriptedMachine()
    session = machine.session("abc")
    async with _desk(machine, tmp_path) as (host, lines, _):
        lines.limit = lambda: random.choice((600, 2000, 10_000, 60_000)) * random.random() + 300
        watcher = Watcher(host, "abc")
        prompts: list[str] = []
        step = 0
        while watcher.cuts < 100 or len(prompts) < 20:
            step += 1
            session.say(f"word {step} ")
            if random.random() < 0.1:
                session.record("assistant", "".join(session.said) + "x" * random.randrange(3000))
            if random.random() < 0.02:
                prompts.append(f"prompt {step}")
                watcher.request(SendPrompt(number=f"p{step}", text=prompts[-1]))
            if random.random() < 0.02:
                session.ask(f"q{step}")
            for number in [*watcher.questions]:
                if random.random() < 0.1:
                    watcher.request(GiveAnswer(number=f"a{number}", to=number, answer=number))
            await asyncio.sleep(0.0005)
            assert step < 100_000
        lines.limit = lambda: float("inf")
        if lines.lines:
            lines.lines[-1].cut()
        for number in [*session.questions]:
            watcher.request(GiveAnswer(number=f"a{number}", to=number, answer=number))
        async with asyncio.timeout(30):
            await watcher.until(
                lambda: (
                    session.last in watcher.records
                    and "".join(watcher.said) == "".join(session.said)
                    and len([one for one in watcher.outcomes if one.startswith("p")])
                    == len(prompts)
                    and not session.questions
                )
            )
        texts = [json.loads(line) for line in session.records]
        assert {one["id"]: one["text"] for one in texts} == watcher.records
        assert [one["text"] for one in texts if one["type"] == "user"] == prompts
        assert watcher.twice == []
        answered = [number for number, _ in session.answers]
        assert len(answered) == len({*answered})
        assert all(one.outcome == "done" for key, one in watcher.outcomes.items() if key[0] == "a")
        await watcher.close()
