"""The context inspector: what it shows, what its keys do, and that all of it can be undone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time
from typing import Any, cast

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.context.sessions import answer, prompt
from tests.support.clock import PATIENCE_S
from tests.support.idle import threads_held
from tests.support.world import OldSession, World, old_path
from tests.ui.screens.driving import ROOMY, WIDE, app_of, items, session_open, until
from tests.ui.screens.inspected import Inspected, worked
from tui.agent.request.break_cost import ChangePrice
from tui.app.services import SessionChoice
from tui.context.masks import FileRead, MaskableResult, MaskPlan
from tui.context.overrides import overlays_of, pins_of
from tui.core.facts import ContextChanged, Fact, Overlay
from tui.ui.screens import context
from tui.ui.screens.context import ContextScreen
from tui.ui.screens.context_changes import BulkMenu
from tui.ui.screens.context_item import ContextItemScreen
from tui.ui.widgets.conversation.items import ToolItem
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.notices import NoticeLine
from tui.ui.widgets.panes import PaneRule

RESULT = 4
"""The row of the first result in the order of the request: behind the layer, the tool, the prompt
and the answer."""


@asynccontextmanager
async def inspecting(
    agent: Inspected, size: tuple[int, int] = WIDE, *, as_opened: bool = False
) -> AsyncGenerator[tuple[ContextScreen, Pilot[None], list[Fact]]]:
    """The inspector, in the order of the request or as it opens."""
    app, told = app_of(World()), list[Fact]()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: session_open(app))
        screen = ContextScreen(cast("Any", agent), told.append)
        await app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        if not as_opened:
            await pilot.press("t")
        yield screen, pilot, told


def labels(screen: ContextScreen) -> list[str]:
    return [row.item.label for row in screen.shown]


def text_of(screen: Any, selector: str) -> str:
    return str(screen.query_one(selector, Static).visual)


async def go_to(screen: ContextScreen, row: int) -> None:
    screen.rows.move_to(row)


async def test_m_masks_and_unmasks_and_u_undoes() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, told):
        await go_to(screen, RESULT)
        await pilot.press("m")
        await until(pilot, lambda: agent.state_of(2) == "masked")
        assert isinstance(told[0], ContextChanged)
        await until(pilot, lambda: "1 item hidden: saves ~" in screen.notice.text)
        assert screen.chosen is not None
        assert screen.chosen.item.state == "masked"
        await pilot.press("u")
        await until(pilot, lambda: agent.state_of(2) == "full")
        await pilot.press("m", "m")
        await until(pilot, lambda: len(agent.session.records) == 36)
        assert agent.state_of(2) == "full"


async def test_it_opens_on_the_largest_result_and_one_key_gives_the_order_of_the_request() -> None:
    async with inspecting(worked(), as_opened=True) as (screen, pilot, _):
        sizes = [row.item.tokens for row in screen.shown]
        assert sizes == sorted(sizes, reverse=True)
        assert screen.chosen is not None
        results = [row.item for row in screen.shown if row.item.kind == "result"]
        assert screen.chosen.item == max(results, key=lambda item: item.tokens)
        assert str(screen.query_one("#items-rule", PaneRule).right) == "largest first"
        await pilot.press("t")
        assert [row.item.kind for row in screen.shown[:3]] == ["system", "tools", "user"]
        assert screen.rows.cursor == 0


async def test_the_open_tab_is_the_one_in_colour() -> None:
    async with inspecting(worked()) as (screen, pilot, _):
        rule = screen.query_one("#items-rule", PaneRule)
        assert coloured(rule) == ["items"]
        await pilot.press("tab")
        await until(pilot, lambda: coloured(rule) == ["request"])


def coloured(rule: PaneRule) -> list[str]:
    """The words of a title that stand out."""
    bold = (span for span in rule.title.spans if "bold" in str(span.style))
    return [rule.title.plain[span.start : span.end] for span in bold]


async def test_three_large_results_are_masked_one_after_the_other() -> None:
    """However fast the keys come: each finds the rows as the one before it left them."""
    agent = worked()
    write = agent.overlay

    async def slowly(changes: Sequence[Overlay]) -> Sequence[Fact]:
        for _ in range(20):
            await asyncio.sleep(0)
        return await write(changes)

    agent.overlay = slowly
    async with inspecting(agent, as_opened=True) as (screen, pilot, _):
        first = screen.rows.cursor
        largest = [row.item.id for row in screen.shown[first : first + 4]]
        for _ in range(3):
            pilot.app.post_message(Key("m", "m"))
        await until(pilot, lambda: len(overlays_of(agent.session.records)) == 3)
        assert set(overlays_of(agent.session.records)) == set(largest[:3])
        await until(pilot, lambda: screen.shown[first].item.id == largest[3])
        assert screen.rows.cursor == first
        await pilot.press("u", "u", "u")
        await until(pilot, lambda: [row.item.id for row in screen.shown[first:]][:4] == largest)


async def test_a_row_that_a_turn_adds_above_leaves_the_cursor_on_its_item() -> None:
    agent = worked()
    async with inspecting(agent, as_opened=True) as (screen, pilot, _):
        before, at = screen.chosen, screen.rows.cursor
        assert before is not None
        agent.say(prompt("word " * 40_000))
        await until(pilot, lambda: len(screen.shown) == 35)
        assert screen.chosen is not None
        assert (screen.chosen.item.id, screen.rows.cursor) == (before.item.id, at + 1)


async def test_system_and_tools_are_a_row_each_that_unfolds() -> None:
    agent = worked()
    tools = [{"name": f"tool_{n}", "description": "It does much. " * 9 * n} for n in range(1, 4)]
    agent.ledger.fixed([("identity", "You are a test. " * 200), ("env", "Linux")], tools)
    async with inspecting(agent) as (screen, pilot, _):
        assert labels(screen)[:2] == ["2 parts: identity, env", "3 tools: tool_1, tool_2, tool_3"]
        items = {item.id: item for item in agent.ledger.items()}
        alone = [items[f"tool:tool_{n}"].tokens for n in range(1, 4)]
        assert screen.shown[1].item.tokens == sum(alone)
        await pilot.press("down", "right")
        assert labels(screen)[1:5] == [labels(screen)[1], "tool_1", "tool_2", "tool_3"]
        assert screen.rows.cursor == 1
        await pilot.press("down", "down", "m")
        await until(pilot, lambda: "can't be hidden" in screen.notice.text)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        await pilot.press("escape", "t")
        at = labels(screen).index("tool_3")
        assert labels(screen)[at - 1 : at + 3] == [
            labels(screen)[at - 1],
            "tool_3",
            "tool_2",
            "tool_1",
        ]
        screen.rows.move_to(at + 1)
        await pilot.press("left")
        assert "tool_2" not in labels(screen)
        assert screen.chosen is not None
        assert screen.chosen.item.id == "tools:"
        await pilot.press("left", "enter", "enter", "right", "enter")
        assert "tool_2" not in labels(screen)
        await pilot.press("slash", *"tool_2")
        await until(pilot, lambda: labels(screen) == ["tool_2"])


@pytest.mark.parametrize("size", [(40, 10), (60, 20), (80, 24)], ids=str)
async def test_rows_price_and_keys_are_in_sight_in_every_size(size: tuple[int, int]) -> None:
    async with inspecting(worked(), size, as_opened=True) as (screen, pilot, _):
        await until(pilot, lambda: "m hide: −" in text_of(screen, "#price"))
        assert screen.rows.size.height >= 3
        assert screen.query_one("#keys").region.bottom == size[1]
        drawn = "\n".join(strip.text for strip in screen.rows.render_lines(screen.rows.size.region))
        assert "full" not in drawn
        assert "…" not in text_of(screen, "#title")


async def test_p_pins_and_u_lets_go() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, _):
        await go_to(screen, RESULT)
        await pilot.press("p")
        await until(pilot, lambda: len(pins_of(agent.session.records)) == 1)
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.item.pinned)
        await pilot.press("u")
        await until(pilot, lambda: not pins_of(agent.session.records))
        await pilot.press("u")
        await until(pilot, lambda: "Nothing to undo here" in screen.notice.text)


async def test_the_price_of_a_mask_stands_there_before_the_key() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, _):
        assert text_of(screen, "#price") == ""  # every request carries what stands there
        await go_to(screen, RESULT)
        await until(pilot, lambda: "m hide: −" in text_of(screen, "#price"))
        price = text_of(screen, "#price")
        assert "41.0k cached again once (≈ $0.10), 7 thoughts lost" in price
        assert price.endswith(" · w waits for a cache restart")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        assert "41.0k cached again once" in text_of(pilot.app.screen, "#price")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("w")
        await until(pilot, lambda: "when the cache restarts" in screen.notice.text)
        assert agent.state_of(2) == "full"
        (waiting,) = agent.pending.values()
        assert (waiting.view, waiting.wait) == ("masked", True)
        await until(
            pilot, lambda: text_of(screen, "#price").startswith("waits for a cache restart")
        )
        assert "w waits" not in text_of(screen, "#price")
        await until(pilot, lambda: "waits for a cache restart" in text_of(screen, "#price"))
        await pilot.press("u")
        await until(pilot, lambda: not agent.pending)
        await pilot.press("m")
        await until(pilot, lambda: "m show: +" in text_of(screen, "#price"))
        before = len(agent.session.records)
        await pilot.press("w")  # nothing is masked a second time
        await pilot.press("home", "w")
        await until(pilot, lambda: "can't be hidden or pinned" in screen.notice.text)
        assert len(agent.session.records) == before


async def test_in_a_long_session_the_price_comes_where_the_cursor_rests() -> None:
    told = [each for n in range(700) for each in (prompt(f"p{n}"), answer(f"a{n}"))]
    agent = Inspected(*told)
    asked: list[object] = []
    price = agent.price_of_changes

    async def counted(changes: Sequence[Overlay], saved: int) -> ChangePrice:
        asked.append(changes)
        return await price(changes, saved)

    agent.price_of_changes = counted
    async with inspecting(agent) as (screen, pilot, _):
        await go_to(screen, 100)
        await pilot.press(*["down"] * 20)
        await until(pilot, lambda: "m hide: " in text_of(screen, "#price"))
        assert len(asked) < 20


async def test_what_every_request_carries_cannot_be_masked() -> None:
    agent = worked()
    before = len(agent.session.records)
    async with inspecting(agent) as (screen, pilot, _):
        await pilot.press("m", "p")
        await until(pilot, lambda: "can't be hidden or pinned" in screen.notice.text)
        assert len(agent.session.records) == before


async def test_sorting_and_filtering() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, _):
        await pilot.press("a")
        assert screen.shown[0].age == 7
        await pilot.press("k")
        assert screen.shown[0].item.kind == "system"
        await pilot.press("k", "slash", *"pytest")
        await until(pilot, lambda: len(screen.shown) == 4)
        await pilot.press(*"zzz")
        await until(pilot, lambda: not screen.shown)
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.shown) == 34)
        assert screen.query_one("#filter", Input).value == ""


async def test_enter_opens_both_sides_with_the_receipt(tmp_path: Path) -> None:
    copy = tmp_path / "big.txt"
    copy.write_text("first line\n" + "x\n" * 1000 + "error: at the end\n")
    agent = worked(str(copy))
    agent.full_outputs = tmp_path
    async with inspecting(agent) as (screen, pilot, _):
        await go_to(screen, len(screen.shown) - 2)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        opened = pilot.app.screen
        whole, sent = (opened.query_one(name, FilePane).view for name in ("#whole", "#sent"))
        await until(pilot, lambda: "error: at the end" in whole.text())
        assert sent.text() == "Output too large (468.8 KB)."
        assert "469 KB → 3.0 KB" in text_of(opened, "#receipt")
        assert str(copy) in text_of(opened, "#receipt")
        await pilot.press("m")
        await until(pilot, lambda: agent.state_of(34) == "masked")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        masked = pilot.app.screen.query_one("#sent", FilePane).view.text()
        assert masked.startswith("[Masked by the person: run_command result")


async def test_a_copy_outside_the_folder_of_results_is_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("do not tell")
    async with inspecting(worked(str(secret))) as (screen, pilot, _):
        await go_to(screen, len(screen.shown) - 2)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        opened = pilot.app.screen
        await until(pilot, lambda: "wasn't opened" in opened.query_one(NoticeLine).text)
        shown = opened.query_one("#whole", FilePane).view.text()
        assert shown == "Output too large (468.8 KB)."


async def test_a_full_copy_that_is_gone_is_said_to_be() -> None:
    agent = worked("/nowhere/big.txt")
    async with inspecting(agent) as (screen, pilot, _):
        await go_to(screen, len(screen.shown) - 2)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
        whole = pilot.app.screen.query_one("#whole", FilePane).view
        await until(pilot, lambda: "Output too large" in whole.text())


async def test_b_shows_the_effect_before_it_masks() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, _):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, BulkMenu))
        menu = pilot.app.screen
        assert isinstance(menu, BulkMenu)
        assert [len(plan.targets) for plan in menu.plans()[:1]] == [1]
        await pilot.press("left", "left", "left")
        plan = menu.plans()[0]
        assert plan.reason == "older than 2 prompts"
        assert not overlays_of(agent.session.records)
        before = agent.ledger.tokens
        await pilot.press("enter")
        await until(pilot, lambda: len(overlays_of(agent.session.records)) == len(plan.targets))
        assert abs(before - agent.ledger.tokens - plan.saves) <= len(plan.targets)
        await until(pilot, lambda: "items hidden" in screen.notice.text)
        await pilot.press("u")
        await until(pilot, lambda: not overlays_of(agent.session.records))
        assert agent.ledger.tokens == before


async def test_the_bulk_dialog_is_there_before_its_price() -> None:
    agent, known = worked(), asyncio.Event()

    async def late(changes: Sequence[Overlay], saved: int) -> ChangePrice:
        await known.wait()
        return ChangePrice(saved, 41_000, 0)

    agent.price_of_changes = late
    async with inspecting(agent) as (_, pilot, _):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, BulkMenu))
        menu = pilot.app.screen
        await until(pilot, lambda: "hide 1 result: …" in text_of(menu, "#price"))
        known.set()
        await until(pilot, lambda: "41.0k cached again once" in text_of(menu, "#price"))


async def test_the_bulk_dialog_is_there_before_it_has_looked_at_the_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = threading.Event()
    outdated = context.masks.outdated

    def late(found: Sequence[MaskableResult], changed: Callable[[FileRead], bool]) -> MaskPlan:
        if not found:  # what the dialog begins with
            return outdated(found, changed)
        assert known.wait(PATIENCE_S)
        return MaskPlan("reads of files changed since", ("r1", "r2"), 900)

    monkeypatch.setattr(context.masks, "outdated", late)
    async with inspecting(worked()) as (_, pilot, _):
        with threads_held():
            await pilot.press("b")
            await until(pilot, lambda: isinstance(pilot.app.screen, BulkMenu))
            menu = pilot.app.screen
            assert isinstance(menu, BulkMenu)

            def row() -> str:
                return menu.rows.render_line(2).text.rstrip()

            assert row() == " reads of files changed since    …"
            known.set()
        await until(pilot, lambda: "hides 2 results" in row())


async def test_tab_shows_the_exact_request_and_y_copies_it() -> None:
    agent = worked()
    async with inspecting(agent) as (screen, pilot, _):
        await pilot.press("tab")
        view = screen.query_one("#request", FilePane).view
        await until(pilot, lambda: "// system · block 1 of 1 · ◆ cache breakpoint" in view.text())
        assert '"text": "You are a test.\\n' in view.text()
        assert view.text().startswith("// claude-"), "nothing is known of requests before it"
        await pilot.press("escape")
        await until(pilot, lambda: screen.rows.has_focus)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not screen)


async def test_m_and_p_in_the_opened_output_mark_its_tool_call() -> None:
    world = World()
    path = old_path()
    records = worked().session.records
    world.old[path] = OldSession(records=records)
    app = app_of(world, choice=SessionChoice(path))
    async with app.run_test(size=ROOMY) as pilot:
        await until(pilot, lambda: session_open(app))
        app.chat.conversation.focus()
        await pilot.press("up", "up", "enter", "tab")
        assert app.chat.side.has_focus_within
        await pilot.press("m", "p")
        item = items(app, ToolItem)[-1]
        await until(pilot, lambda: item.masked and item.pinned)
        await pilot.press("m", "p")
        await until(pilot, lambda: not item.masked and not item.pinned)


async def test_f2_and_the_command_open_the_context() -> None:
    app = app_of(World())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: session_open(app))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ContextScreen))
        await pilot.press("f2")
        await until(pilot, lambda: app.screen is app.chat)


async def test_an_empty_session_says_what_will_stand_here() -> None:
    async with inspecting(Inspected()) as (screen, pilot, _):
        await pilot.pause()
        assert "Nothing here yet" in text_of(screen, "#empty")
        assert screen.query_one("#empty").display


async def test_5000_items_stay_fluent() -> None:
    told = [each for n in range(2500) for each in (prompt(f"p{n}"), answer(f"a{n}"))]
    async with inspecting(Inspected(*told)) as (screen, pilot, _):
        for key in ("t", "end", "pageup", "a", "home"):
            started = process_time()
            await pilot.press(key)
            assert process_time() - started < 1.0
        assert len(screen.shown) == 5002
