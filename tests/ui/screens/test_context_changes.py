"""What a key of the inspector changes, how it is undone, and what is said: without a screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.context.token_ledger import Item
from tui.core.facts import ContextMeasured, Overlay
from tui.session.session import Session
from tui.ui.screens import context_rows
from tui.ui.screens.context_changes import ContextChange, change_text, masking, pinning, undoing

ITEM = Item("r1", "result", "read_file a.py", 700, "full")


def test_a_key_turns_what_the_item_is() -> None:
    assert [each.view for each in masking(ITEM, ()).overlays] == ["masked"]
    assert [each.view for each in masking(replace(ITEM, state="masked"), ()).overlays] == ["full"]
    assert pinning(ITEM).pins == {"r1": True}
    assert pinning(replace(ITEM, pinned=True)).pins == {"r1": False}


def test_undoing_brings_back_what_was_in_force_before() -> None:
    session = Session.in_memory(Path("/w"), clock=FakeClock())
    session.append("overlay", target="r1", view="clamped", by="person", reason="long")
    session.append("pin", target="r1", pinned=True)
    change = ContextChange(
        [Overlay("r1", "masked"), Overlay("r2", "masked")], {"r1": False, "r2": True}
    )
    back = undoing(change, session.records)
    assert [(each.target, each.view) for each in back.overlays] == [
        ("r1", "clamped"),
        ("r2", "full"),
    ]
    assert back.pins == {"r1": True, "r2": False}


@pytest.mark.parametrize(
    ("change", "saved", "said"),
    [
        (
            ContextChange([Overlay("a", "masked")]),
            2000,
            "1 item hidden: saves ~2.0k tokens (1.0 %)",
        ),
        (
            ContextChange([Overlay("a", "full")]),
            -2000,
            "1 item restored: costs ~2.0k tokens",
        ),
        (ContextChange(pins={"a": True, "b": True}), 0, "2 items pinned."),
        (ContextChange(pins={"a": False}), 0, "1 item unpinned."),
    ],
)
def test_what_a_change_came_to_is_said(change: ContextChange, saved: int, said: str) -> None:
    assert change_text(change, saved, 200_000).startswith(said)


def test_the_title_says_how_full_it_is_and_how_the_items_stand() -> None:
    items = [ITEM, replace(ITEM, state="masked", pinned=True)]
    title = context_rows.context_title(items, 50_000, 200_000)
    assert title.plain == "context   50.0k / 200k  25 %   2 items · 1 hidden · 1 pinned"
    looks = [
        str(context_rows.context_title(items, full, 100).spans[1].style).removeprefix("bold ")
        for full in (50, 90, 99)
    ]
    assert looks == ["$foreground", "$text-warning", "$text-error"]


def test_the_totals_name_each_kind_once() -> None:
    items = [ITEM, ITEM, Item("s", "system", "identity", 300, "full")]
    measured = ContextMeasured(1700, 0, 1700, 200_000, {}, "server")
    bar, legend, origin = context_rows.totals(items, measured, 60).plain.split("\n")
    assert origin == "estimate; no answer yet"
    assert len(bar) == 60
    assert "results 1.4k" in legend
    assert "system 300" in legend
