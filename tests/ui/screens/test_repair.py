"""A damaged session is opened: it is told, nothing is written, and the person decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.context.sessions import answer, prompt, records
from tests.context.wild import call
from tests.support.world import OldSession, World
from tests.ui.screens.driving import NARROW, WIDE, items, running, until
from tui.app.damage_report import Damage, damage_findings, findings_summary
from tui.app.services import SessionChoice
from tui.core.facts import RepairApplied
from tui.session.reader import read
from tui.session.records import Finding
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.repair import RepairScreen
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.questions import Choice
from tui.ui.widgets.row_list import RowList


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One session with a broken line and a line of NULs before a record."""
    made = World(tmp_path)
    made.add_row("fix the flaky test", hours=2)
    path = made.rows[0].path
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3][:60] + b"\n"
    lines[6] = b"\0\0\0" + lines[6]
    path.write_bytes(b"".join(lines))
    made.old[path] = OldSession()
    return made


def asked(app: HoldfastApp) -> RepairScreen | None:
    return app.screen if isinstance(app.screen, RepairScreen) else None


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_R9_what_was_found_is_shown_before_and_after(
    world: World, size: tuple[int, int]
) -> None:
    path = world.rows[0].path
    before = path.read_bytes()
    async with running(world, size, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        screen = asked(app)
        assert screen
        await until(pilot, lambda: screen.sides()[1] == "(skipped: not valid JSON)")
        assert screen.sides()[0].replace("\n", "").startswith('{"type":"user","id"')
        await pilot.press("down")
        await until(pilot, lambda: "\\x00" in screen.sides()[0])
        assert "(NUL bytes left out)" in screen.sides()[1]
        assert '"role"' not in screen.sides()[1]
        assert path.read_bytes() == before


@pytest.mark.parametrize("size", [(40, 10), (60, 20)], ids=str)
async def test_every_answer_is_in_sight_on_a_small_screen(
    world: World, size: tuple[int, int]
) -> None:
    async with running(world, size, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        screen = asked(app)
        assert screen
        await until(pilot, lambda: bool(screen.query(RowList)) and screen.rows.size.height >= 2)
        width, height = size
        for choice in screen.query(Choice):
            assert choice.region.right <= width
            assert choice.region.bottom <= height
            assert choice.region.height == 1


async def test_continue_opens_it(world: World) -> None:
    path = world.rows[0].path
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        world.clock.elapsed += 1
        await pilot.press("c")
        await until(pilot, lambda: app.conversation.agent is world.agent)
        assert world.agent.session.path == path


async def test_back_opens_a_new_session_and_lets_the_damaged_one_go(world: World) -> None:
    path = world.rows[0].path
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        world.clock.elapsed += 1
        await pilot.press("escape")
        await until(pilot, lambda: len(world.agents) == 2)
        assert world.agents[0].closed
        assert world.chosen[-1] == SessionChoice()


async def test_read_only_asks_for_it_without_the_lease(world: World) -> None:
    path = world.rows[0].path
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        world.clock.elapsed += 1
        await pilot.press("r")
        await until(pilot, lambda: len(world.agents) == 2 and app.conversation.agent is world.agent)
        assert world.chosen[-1] == SessionChoice(path, read_only=True)


async def test_R10_a_repaired_copy_is_sound_and_the_originals_bytes_lie_beside_it(
    world: World,
) -> None:
    path = world.rows[0].path
    before = path.read_bytes()
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        world.clock.elapsed += 1
        await pilot.press("w")
        await until(pilot, lambda: len(world.agents) == 2)
        copy = world.chosen[-1].path
        assert copy is not None
        assert copy != path
        assert not read(copy).findings
        assert copy.with_name(copy.name + ".original").read_bytes() == before
        assert path.read_bytes() == before


async def test_an_interrupted_session_is_not_called_damaged(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add_row("x", hours=1)
    path = world.rows[0].path
    open_call = records(prompt("go"), answer("I look.", call("t1")))
    world.old[path] = OldSession(records=open_call)
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: app.conversation.agent is world.agent)
        assert asked(app) is None


async def test_what_was_told_once_is_not_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add_row("x", hours=1)
    path = world.rows[0].path
    finding = Finding("B52", "line 4 (byte 100)", "skipped: not valid JSON")
    told = records(prompt("go"), answer("Done."), ("repair", {"findings": [finding.to_json()]}))
    world.old[path] = OldSession(records=told, findings=(finding,))
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: app.conversation.agent is world.agent)
        assert asked(app) is None
        lines = [each.text for each in items(app, NoticeItem)]
        assert lines == ["Repaired this session in one place; its file is unchanged."]


async def test_ten_thousand_findings_cost_what_is_in_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.add_row("x", hours=1)
    path = world.rows[0].path
    findings = tuple(
        Finding("B52", f"line {n} (byte {n})", "skipped: not valid JSON") for n in range(10_000)
    )
    session = OldSession()
    session.findings = findings
    world.old[path] = session
    made: list[int] = []
    real: Callable[[Damage, int], tuple[str, str]] = Damage.sides

    def counting(self: Damage, number: int) -> tuple[str, str]:
        made.append(number)
        return real(self, number)

    monkeypatch.setattr(Damage, "sides", counting)
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: asked(app) is not None)
        screen = asked(app)
        assert screen
        screen.rows.action_edge(1)
        await until(pilot, lambda: 9_999 in made)
        assert len(made) < 5


def test_a_message_is_shown_with_what_becomes_of_it() -> None:
    told = records(
        prompt("one"),
        answer("first"),
        prompt("two"),
        answer(call("t1") | {"input": "not an object"}),
        prompt("three"),
        answer("third"),
    )
    found = Finding("B07", "messages.3.content.0", "the input made an object")
    before, after = Damage(Path("none"), told, [found]).sides(0)
    assert "not an object" in before
    assert "raw_input" in after
    assert "first" not in before
    assert "third" not in before + after


def test_findings_in_words_are_counted_by_kind() -> None:
    found = [Finding("B52", "", "")] * 3 + [Finding("B40", "", ""), Finding("B01", "", "")]
    assert findings_summary(damage_findings(found)) == (
        "3 lines that can't be read, 1 last line cut short"
    )


async def test_R10_looking_leaves_no_trace_and_the_next_prompt_notes_the_repair(
    world: World,
) -> None:
    path = world.rows[0].path
    before = path.read_bytes()
    session = Session.open(path, clock=world.clock)
    found = tuple(finding.to_json() for finding in session.findings)
    session.with_next_prompt(RepairApplied(found))
    await session.close()
    assert path.read_bytes() == before
