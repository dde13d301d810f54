"""Pictures of the main states, at the two common sizes. `--snapshot-update` takes them anew."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, answer, app_of, turn, until
from tests.ui.screens.pictures import Compare, Drive, here, opened, prompt
from tui.core import facts
from tui.core.messages import Usage

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["120x40", "80x24"])

METER = facts.ContextMeasured(
    82_100,
    81_400,
    700,
    200_000,
    {"system": 4000, "tools": 6000, "messages": 40_000, "results": 32_000},
    "server",
    cache_share=0.97,
    cost_usd=0.42,
)


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")


def work() -> list[Any]:
    """The beginning of a turn in which everything happens."""
    return [
        facts.ThinkingDelta("The test opens a file and never closes it."),
        facts.TextDelta("I'll run it first."),
        facts.AssistantMessage("I'll run it first.", "tool_use", Usage(81_400, 300)),
        METER,
        facts.ToolStarted("t1", "run_command", {"command": "pytest -q"}, "pytest -q"),
        facts.ToolOutputChunk("t1", "....F\n1 failed, 4 passed in 0.31s\n"),
        facts.ToolFinished(
            "t1", "run_command", True, 12.3, None, "exit code 1", "....F\n1 failed, 4 passed"
        ),
        facts.TodosChanged(
            (
                {"text": "run the test", "status": "completed"},
                {"text": "find what makes it flaky", "status": "in_progress"},
                {"text": "fix it", "status": "pending"},
            )
        ),
    ]


def untitled() -> World:
    """A world whose sessions take no title from their first prompt."""
    world = World()
    world.untitled = True
    return world


def shoot(
    compare: Compare, world: World, drive: Drive, size: tuple[int, int], **options: Any
) -> None:
    app = app_of(world, **options)
    assert compare(app, terminal_size=size, run_before=drive)


@SIZES
def test_a_new_session(snap_compare: Compare, size: tuple[int, int]) -> None:
    shoot(snap_compare, World(), opened, size)


@SIZES
def test_at_work(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = untitled()
    retry = facts.RetryScheduled(2, 3, 4.0, "rate limited", 429, "rate_limit")
    lights = facts.DirectivesChanged(think=True, verbose=True, elevated=True)
    world.scripts.append(turn(*work(), lights, retry, Hold()))

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        here(pilot.app).chat.calm = True  # a turning glyph is another one in every picture
        task = "fix the flaky test in test_store.py"
        await prompt(task, lambda app: app.chat.retry.display)(pilot)
        await prompt("also update the changelog", lambda app: app.chat.queued.display)(pilot)

    shoot(snap_compare, world, drive, size)


@SIZES
def test_done(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = untitled()
    text = "The file was never closed. It is now:\n\n- `Store` is used as a context manager\n"
    done = facts.TurnFinished("done", Usage(1, 1), 0.42)
    world.scripts.append(turn(*work(), *answer(text), done))
    drive = prompt(
        "fix the flaky test", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy
    )
    shoot(snap_compare, world, drive, size)


@pytest.mark.parametrize("theme", ["daylight", "contrast"])
def test_done_in_other_colours(snap_compare: Compare, theme: str) -> None:
    world = untitled()
    world.scripts.append(turn(*work(), *answer("It is fixed.")))
    drive = prompt(
        "fix the flaky test", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy
    )
    shoot(snap_compare, world, drive, WIDE, theme=theme)


@SIZES
def test_a_failed_turn(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = untitled()
    failed = facts.ErrorRaised(
        "network", "The server cannot be reached.", True, "Check the connection and send it again."
    )
    trouble = facts.StorageChanged(False, "no space left on device")
    world.scripts.append([failed, trouble, facts.TurnFinished("failed")])
    drive = prompt("fix the flaky test", lambda app: bool(app.chat.prompt.text))
    shoot(snap_compare, world, drive, size)


def test_an_unknown_command(snap_compare: Compare) -> None:
    drive = prompt("/modle x", lambda app: bool(app.chat.notice.text))
    shoot(snap_compare, World(), drive, NARROW)


def test_the_output_over_the_conversation(snap_compare: Compare) -> None:
    world = untitled()
    world.scripts.append(turn(*work()))

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("go", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy)(
            pilot
        )
        await pilot.press("f4")
        await pilot.pause()

    shoot(snap_compare, world, drive, NARROW)


def test_a_cut_output(snap_compare: Compare) -> None:
    world = untitled()
    receipt = {"bytes_total": 482_300, "bytes_shown": 3100, "path": "/p/full.txt"}
    started = facts.ToolStarted("c", "run_command", {"command": "make"}, "make")
    cut = facts.ToolFinished("c", "run_command", False, 75, receipt, "exit code 0", "all\nof it")
    world.scripts.append(turn(started, cut, *answer("Done.")))
    drive = prompt("go", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy)
    shoot(snap_compare, world, drive, WIDE)


CODE = """There are **two** ways.

```python
def close(file: TextIO) -> None:
    file.close()
```

1. Run the tests
   ```sh
   pytest -q tests/test_store.py --maxfail=1 --durations=10 -p no:cacheprovider
   ```

```
no language
```
"""


@pytest.mark.parametrize(
    ("theme", "size"),
    [
        ("midnight", WIDE),
        ("midnight", NARROW),
        ("midnight", (40, 10)),
        ("midnight", (200, 50)),
        ("linen", NARROW),
        ("contrast", NARROW),
    ],
)
def test_code_with_numbers_and_the_keys_of_the_conversation(
    snap_compare: Compare, theme: str, size: tuple[int, int]
) -> None:
    world = untitled()
    world.scripts.append(turn(*answer(CODE)))

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("how?", lambda app: app.chat.status.state.turns == 1 and not app.chat.busy)(
            pilot
        )
        await pilot.press("tab", "k", "y")
        await until(pilot, lambda: here(pilot.app).clipboard == CODE)

    shoot(snap_compare, world, drive, size, theme=theme)
