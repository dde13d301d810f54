"""The figures on the screen are those of the record, and those that `sessions view` prints."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from tests.support.world import World
from tests.ui.screens.driving import WIDE, app_of, session_open, until
from tui.agent.composition import make_agent
from tui.app import launch_config
from tui.app.options.parser import parse
from tui.cli import main
from tui.context.token_ledger import PARTS, Kind
from tui.core.clock import SystemClock
from tui.core.fact_words import ITEM_STATES
from tui.core.formatting import tokens
from tui.core.messages import text_block
from tui.core.paths import folders
from tui.permissions.gate import RulesOnly
from tui.session.reader import read
from tui.session.session import Session
from tui.ui.screens.context import ContextScreen
from tui.ui.screens.context_item import receipt_line, texts_of
from tui.ui.widgets.conversation.tool_card import badge, copy_state

MODEL = "claude-sonnet-5-5"
RECEIPT: dict[str, Any] = {
    "stages": ["spill"], "bytes_total": 482_300, "bytes_shown": 3100, "lines_total": 9000,
    "lines_shown": 40, "tokens_total": 120_000, "tokens_shown": 900, "kept": "ends",
    "path": "/kept/a.txt", "sha256": "0", "bytes_kept": 482_300,
}  # fmt: skip


def session_file() -> Path:
    """Two calls, one cut and one masked, and what the server measured."""
    session = Session.create(Path.cwd(), folders=folders(), clock=SystemClock())

    def call(id_: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id_, "name": "run_command", "input": {"command": id_}}

    async def write() -> None:
        session.append("user", content=[text_block("build it")])
        session.append("assistant", content=[call("a"), call("b")], model=MODEL)
        session.append(
            "tool_result", call_id="a", content=[text_block("word " * 900)], receipt=RECEIPT
        )
        long = session.append("tool_result", call_id="b", content=[text_block("line\n" * 3000)])
        usage = {"input_tokens": 9000, "output_tokens": 12}
        session.append("assistant", content=[text_block("Done.")], model=MODEL, usage=usage)
        session.append("overlay", target=long.id, view="masked", by="person", reason="")
        await session.close()

    asyncio.run(write())
    assert session.path is not None
    return session.path


def test_the_screen_shows_what_sessions_view_prints(capsys: pytest.CaptureFixture[str]) -> None:
    path = session_file()
    assert main.main(["sessions", "view", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["ledger"]
    assert {"cut", "masked", "full"} <= {each["state"] for each in printed}
    asyncio.run(_compare(path, printed))


async def _compare(path: Path, printed: list[dict[str, Any]]) -> None:
    prepared = launch_config.prepare(parse(["sessions", "view", str(path), "--json"]))
    agent = make_agent(
        prepared, Session.of(read(path), clock=SystemClock()), RulesOnly(), clock=SystemClock()
    )
    app = app_of(World())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: session_open(app))
        screen = ContextScreen(agent, lambda _: None)
        await app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("t", "right")  # the order of the request, the system prompt in parts
        tools = next(at for at, row in enumerate(screen.shown) if row.item.id == "tools:")
        screen.rows.move_to(tools)
        await pilot.press("right", "home")
        sums = {row.item.kind: row.item.tokens for row in screen.shown if row.parts}
        items = [row.item for row in screen.shown if not row.parts]
        assert [
            {"item": item.id, "kind": item.kind, "tokens": item.tokens, "state": item.state}
            for item in items
        ] == printed
        strips = screen.rows.render_lines(screen.rows.size.region)
        for strip, shown in zip(strips, screen.shown, strict=False):
            assert strip.text.split()[0] == shown.item.kind
            state = ITEM_STATES.get(shown.item.state, shown.item.state)
            assert strip.text.rstrip().endswith(state or " %")
            assert f" {tokens(shown.item.tokens)} " in strip.text
        title = str(screen.query_one("#title", Static).visual)
        assert f" {tokens(agent.context.ledger.tokens)} / " in title
        totals = str(screen.query_one("#totals", Static).visual)
        kinds: dict[Kind, int] = {item.kind: 0 for item in items}
        for item in items:
            kinds[item.kind] += item.tokens
        assert sums == {kind: kinds[kind] for kind in ("system", "tools")}
        for part in set(PARTS.values()):
            size = sum(count for kind, count in kinds.items() if PARTS[kind] == part)
            assert (f"{part} {tokens(size)}" in totals) == bool(size)
    await agent.close()


def test_every_badge_is_drawn_from_the_one_receipt() -> None:
    record = next(r for r in read(session_file()).records if r.data.get("receipt"))
    kept = record.data["receipt"]
    assert kept == RECEIPT
    assert badge(kept) == "✂ 471→3.0 KB"
    line = receipt_line(texts_of(record, None))
    assert line.startswith("✂ 471 KB → 3.0 KB by spill · 9,000 → 40 lines · full copy: /kept/a.txt")


def test_a_badge_says_where_no_full_copy_was_kept() -> None:
    assert badge(RECEIPT | {"path": None}) == "✂ 471→3.0 KB not kept"
    assert copy_state(RECEIPT | {"path": None}) == "no full copy kept"
    assert copy_state(RECEIPT | {"bytes_kept": 2048}) == "kept only the first 2.0 KB"


@pytest.mark.parametrize(("total", "shown", "text"), [(5, 90, "✂ 5 B"), (900, 900, "✂ 900 B")])
def test_what_grew_is_not_said_to_have_shrunk(total: int, shown: int, text: str) -> None:
    """The notice about little, and bytes that are no text: a character of three bytes each."""
    assert badge(RECEIPT | {"bytes_total": total, "bytes_shown": shown}) == text
