"""The card of an interrupted run: a row for each thing, two where there is no room for one."""

from __future__ import annotations

import pytest

from tests.ui.widgets.stage import Stage
from tui.ui.widgets.resume_card import OpenItem, ResumeCard

CALLS = (
    OpenItem("edit_file", "tui/session/store.py", "finished, but the result was lost"),
    OpenItem("write_file", "CHANGELOG.md", "never started"),
)
COMMANDS = (
    OpenItem("process 4711", "npm run dev", "still running, started 08:12 UTC", certain=False),
)


async def nothing(_: str) -> None:
    return None


async def shown(width: int) -> list[str]:
    card = ResumeCard(CALLS, COMMANDS, nothing)
    async with Stage(card).run_test(size=(width, 16)) as pilot:
        await pilot.pause()
        strips = pilot.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return [strip.text.strip() for strip in strips if strip.text.strip()]


async def test_a_thing_and_what_is_known_of_it_stand_in_one_row_where_there_is_room() -> None:
    rows = await shown(100)
    assert rows[:4] == [
        "■ the last run was interrupted   2 calls without a result · 1 command still running",
        "edit_file tui/session/store.py   finished, but the result was lost",
        "write_file CHANGELOG.md   never started",
        "process 4711 npm run dev   still running, started 08:12 UTC",
    ]


@pytest.mark.parametrize("width", [30, 40, 60])
async def test_else_what_is_known_stands_below_and_no_word_of_it_is_lost(width: int) -> None:
    said = " ".join(await shown(width))
    for text in ("finished, but the result was lost", "never started", "1 command still running"):
        assert text in said
