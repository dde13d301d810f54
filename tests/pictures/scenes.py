"""What each picture shows: a project, a script for the practice model, and the keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from textual.pilot import Pilot

from tui.app import HoldfastApp
from tui.widgets.approval import ApprovalModal

Settled: TypeAlias = Callable[[Pilot[None], Callable[[], bool]], Awaitable[None]]
Drive: TypeAlias = Callable[[HoldfastApp, Pilot[None], Settled], Awaitable[None]]

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
text = "The comparison is the wrong way round: it returns what is **too old** and drops what is fresh."
tools = [{name = "edit_file", input = {path = "store.py", old_string = "return value if self.clock() - born > self.ttl else default", new_string = "return value if self.clock() - born <= self.ttl else default"}}]
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
_FAULT = """
[[turn]]
text = "All tests pass."
faults = [{status = 429, retry_after = 25}]
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """`name` is the file's. `drive` goes from an open session to what is to be seen."""

    name: str
    drive: Drive
    script: str
    size: tuple[int, int] = (120, 36)
    theme: str = "midnight"


def _idle(app: HoldfastApp) -> bool:
    return app.bridge.presenter.last_answer != "" and not app.bridge.busy


async def _work(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.bridge.submit("the tests fail: find out why and fix it")
    await settled(pilot, lambda: isinstance(app.screen, ApprovalModal))
    await pilot.pause(1)  # an approval takes no key in its first half second
    await pilot.press("1")
    await settled(pilot, lambda: _idle(app))


async def _approval(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.bridge.submit("the tests fail: find out why and fix it")
    await settled(pilot, lambda: isinstance(app.screen, ApprovalModal))


async def _output(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.bridge.submit("are there slow requests in the log?")
    await settled(pilot, lambda: _idle(app))


async def _context(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    await _output(app, pilot, settled)
    await pilot.press("f2")
    await settled(pilot, lambda: len(app.screen_stack) > 1)


async def _retry(app: HoldfastApp, pilot: Pilot[None], settled: Settled) -> None:
    app.bridge.submit("run the tests")
    await settled(pilot, lambda: app.chat.retry.display)


SCENES = (
    Scene("screen", _work, _LOOK + _EDIT + _DONE),
    Scene("approval", _approval, _LOOK + _EDIT, (100, 30)),
    Scene("output", _output, _LOGS, (120, 24), "daylight"),
    Scene("context", _context, _LOGS, (120, 24)),
    Scene("retry", _retry, _FAULT, (100, 18)),
)
