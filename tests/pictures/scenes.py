"""What each picture shows: a project, a script for the practice model, and the keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from textual.pilot import Pilot

from tui.demo.tour_screen import TourApp
from tui.ui.app import HoldfastApp
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.screens.settings import SettingsScreen
from tui.ui.tasks.run import TasksApp
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.view import ConversationView

Settled: TypeAlias = Callable[[Pilot[None], Callable[[], bool]], Awaitable[None]]
Drive: TypeAlias = Callable[[Any, Pilot[None], Settled], Awaitable[None]]

RULES = ("--allow", "run_command(pytest*)", "--allow", "run_command(python*)")

FILES = {
    "store.py": '''\
"""A store whose values grow old."""

import time


class Store:
    def __init__(self, ttl: float, clock=time.monotonic):
        self.ttl = ttl
        self.clock = clock
        self._values = {}

    def put(self, key, value):
        self._values[key] = (value, self.clock())

    def get(self, key, default=None):
        value, born = self._values.get(key, (default, self.clock()))
        return value if self.clock() - born > self.ttl else default
''',
    "test_store.py": """\
from store import Store


def test_a_fresh_value_is_returned():
    store = Store(ttl=10, clock=lambda: 0.0)
    store.put("a", 1)
    assert store.get("a") == 1


def test_an_old_value_is_gone():
    now = [0.0]
    store = Store(ttl=10, clock=lambda: now[0])
    store.put("a", 1)
    now[0] = 11.0
    assert store.get("a") is None
""",
    "replay.py": """\
for number in range(12_000):
    print(f"12:00:{number % 60:02d} request {number:05d} GET /items/{number % 97} 200 in 3 ms")
""",
    "soak.py": """\
import time

from store import Store

store = Store(ttl=1)
for second in range(600):
    store.put(second, "x" * 1000)
    print(f"{second:3d} s, 1 value put, {len(store._values)} held", flush=True)
    time.sleep(1 if second > 11 else 0)
""",
    "TASKS.md": """\
# The store

<!-- boot: store.py -->

## repair
- [ ] find out why the tests fail, and fix it
- [ ] say in the docstring what ttl is counted in

## soak
- [ ] soak it for ten minutes and watch how many values it holds
- [ ] drop old values when new ones are put

## release
- [ ] write CHANGES.md
""",
}

_LOOK = """
[[turn]]
thinking = "I run the tests first to see what fails."
text = "I'll run the tests first."
tools = [{name = "run_command", input = {command = "pytest -q --tb=line"}}]
[[turn]]
text = "Both tests fail in `Store.get`. I'll read it."
tools = [{name = "read_file", input = {path = "store.py"}}]
"""
_EDIT = """
[[turn]]
text = "The comparison is the wrong way round: it gives what is **too old**, and drops the fresh."
[[turn.tools]]
name = "edit_file"
[turn.tools.input]
path = "store.py"
old_string = "return value if self.clock() - born > self.ttl else default"
new_string = "return value if self.clock() - born <= self.ttl else default"
"""
_DONE = """
[[turn]]
text = "Now the tests again."
tools = [{name = "run_command", input = {command = "pytest -q"}}]
[[turn]]
text = '''
Fixed. `Store.get` compared the age with `>` where it meant `<=`.

- a fresh value is returned again
- one that is older than `ttl` gives the default

Both tests pass.
'''
"""
_LOGS = """
[[turn]]
text = "I'll replay the requests and look for slow ones."
tools = [{name = "run_command", input = {command = "python replay.py"}}]
[[turn]]
text = "12,000 requests, none slower than 3 ms. The output was cut for me; the whole of it is kept."
"""
_TASKS = """
[[turn]]
text = "I'll say what `ttl` is counted in."
[[turn.tools]]
name = "edit_file"
[turn.tools.input]
path = "store.py"
old_string = "values grow old."
new_string = "values are gone ttl seconds after they were put."
[[turn]]
text = "The docstring says it now: seconds."
[[turn]]
text = "I'll run the soak and watch what it holds."
tools = [{name = "run_command", input = {command = "python soak.py"}}]
"""
_NOTES = """
[[turn]]
text = "I'll look at what there is."
tools = [{name = "read_file", input = {path = "store.py"}}]
[[turn]]
text = '''
`Store` keeps a value and the moment of its birth. `get` gives it back for `ttl` seconds.

1. old values are never dropped: `put` could do it
2. `clock` can be named, so that tests need no sleep
'''
"""
_FAULT = """
[[turn]]
text = "All tests pass."
faults = [{status = 429, retry_after = 25}]
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """`name` is the file's. `drive` goes from an open screen to what is to be seen.

    `app` is which: a chat, the tour, or a run of TASKS.md. `before` are prompts of sessions that
    are there already, each answered by the same script; `damaged`: one of them was cut short.
    """

    name: str
    drive: Drive
    script: str = ""
    size: tuple[int, int] = (120, 36)
    theme: str = "midnight"
    app: Literal["chat", "tour", "run"] = "chat"
    before: tuple[str, ...] = ()
    damaged: bool = False


def _idle(app: HoldfastApp) -> bool:
    return app.frontend.renderer.last_answer != "" and not app.conversation.busy


async def _approval(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.conversation.submit("the tests fail: find out why and fix it")
    await settled(pilot, lambda: isinstance(app.screen, ApprovalModal))


async def _fix(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    await _approval(app, pilot, settled)
    await pilot.pause(1)  # an approval takes no key in its first half second
    await pilot.press("1")
    await settled(pilot, lambda: _idle(app))


async def _output(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.conversation.submit("are there slow requests in the log?")
    await settled(pilot, lambda: _idle(app))
    await pilot.press("f4")


async def _context(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    await _fix(app, pilot, settled)
    await _output(app, pilot, settled)
    await pilot.press("f2")
    await settled(pilot, lambda: len(app.screen_stack) > 1)
    await pilot.press("down", "down", "m", "p")  # past the system prompt, which is always sent
    await pilot.pause(1)


async def _retry(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.conversation.submit("run the tests")
    await settled(pilot, lambda: app.chat.retry.display)


async def _settings(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    await app.action_command("config")
    await settled(pilot, lambda: isinstance(app.screen, SettingsScreen) and bool(app.screen.shown))
    await pilot.press(*["down"] * 7)
    await pilot.pause(1)


async def _sessions(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    await pilot.press("f3")
    await settled(pilot, lambda: isinstance(app.screen, SessionsScreen))
    preview = app.screen.query_one("#preview", ConversationView)
    await settled(pilot, lambda: bool(preview.items))


async def _tour(app: TourApp, pilot: Pilot[None], settled: Settled) -> None:
    await settled(pilot, lambda: bool(app.chat.prompt.text))
    await pilot.press("enter")
    await settled(pilot, lambda: app.tour.step.name == "approval" and not app.conversation.busy)
    await settled(pilot, lambda: "append" in app.chat.prompt.text)


async def _tasks(app: TasksApp, pilot: Pilot[None], settled: Settled) -> None:
    await settled(pilot, lambda: app.run_on.running == (2,))  # the third
    await pilot.pause(12)


SCENES = (
    Scene("screen", _fix, _LOOK + _EDIT + _DONE),
    Scene("approval", _approval, _LOOK + _EDIT, (100, 32)),
    Scene("output", _output, _LOGS, (120, 24), "daylight"),
    Scene("context", _context, _LOOK + _EDIT + _DONE + _LOGS, (120, 28)),
    Scene("retry", _retry, _FAULT, (100, 18)),
    Scene("settings", _settings, _NOTES, (120, 30)),
    Scene(
        "sessions",
        _sessions,
        _NOTES,
        (120, 26),
        before=(
            "how does the store drop old values?",
            "what would a test without a sleep look like?",
            "explain store.py to a newcomer",
            "is ttl in seconds?",
        ),
        damaged=True,
    ),
    Scene("tasks", _tasks, _LOOK + _EDIT + _DONE + _TASKS, (120, 28), app="run"),
    Scene("tour", _tour, size=(120, 32), app="tour"),
)
