"""The model of a run under faults: a strict server on the loopback that notes who asks.

It answers by the conversation: the next step is the one after the last that was made. A worker that
goes on where another was goes on there, too, and a conversation that the API would refuse is
refused.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from tests.batch.cluster.real import processes
from tests.support.server import LoopbackServer
from tests.support.server_http import SeenRequest
from tests.support.server_script import Json, Script

STEPS = 5
"""Requests of a task whose answer changes a file; one more ends it."""
ANSWERS = STEPS + 1
_TASK = re.compile(r"Do task (\d{4})\b")
_MADE = re.compile(r"made step (\d)")
_KEY: ContextVar[str] = ContextVar("key")
_SUICIDE = (
    "k=$(basename $(dirname $PWD)); for p in /proc/[0-9]*; do "
    "if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q -- \"tui work [^ ]*/$k \"; then "
    "kill -KILL -- -${p#/proc/} ${p#/proc/}; fi; done; "
)
"""A command that kills the group of its own worker, where no wall hides it."""


@dataclass
class _Client:
    """The other end of a connection: its port, and its process once that is known."""

    port: int
    process: str = ""


_CLIENT: ContextVar[_Client] = ContextVar("client")


def task_name(number: int) -> str:
    """The text of a task, by which the model knows it."""
    return f"Do task {number:04}"


class Asked(NamedTuple):
    """A request that the server took: when, of which task and step, by which process. `message` is
    the id of its answer."""

    at: float
    task: int
    step: int
    process: str
    message: str


class _Steps(Script):
    """A script without turns: each answer comes from the conversation."""

    model_server: TaskModel

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        assert body is not None
        return self.model_server.turn_of(body), None, len(self.model_server.asked)


class TaskModel(LoopbackServer):
    """Answers after `delay_s`. The task `killer`, 0 for none, kills its worker; where its command
    can't, this does it."""

    def __init__(self, delay_s: float, killer: int) -> None:
        script = _Steps()
        script.model_server = self
        super().__init__(script)
        self.delay_s, self.killer = delay_s, killer
        self.asked: list[Asked] = []
        self.latest: dict[str, Asked] = {}
        """The last request of each process."""
        self.keys: defaultdict[str, int] = defaultdict(int)
        """The requests with each API key."""

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _CLIENT.set(_Client(writer.get_extra_info("peername")[1]))
        super()._accept(reader, writer)

    async def _note(self, seen: SeenRequest) -> None:
        _KEY.set(seen.headers.get("x-api-key", ""))

    def turn_of(self, body: Json) -> Json:
        """The next turn of a conversation."""
        texts = [*_texts(body["messages"])]
        task = next((int(found[1]) for text in texts if (found := _TASK.search(text))), 0)
        made = [int(found[1]) for text in texts if (found := _MADE.search(text))]
        step = max(made, default=0) + 1
        client = _CLIENT.get()
        client.process = client.process or processes.at_port(client.port)
        number = len(self.asked) + 1
        asked = Asked(time.monotonic(), task, step, client.process, f"msg_{number:04}")
        self.asked.append(asked)
        self.latest[asked.process] = asked
        self.keys[_KEY.get()] += 1
        if task == self.killer and step > 1:
            processes.kill_group(asked.process)
        if step > STEPS:
            return {"text": "Done.", "delay_s": self.delay_s}
        name = f"made/{task:04}.txt"
        command = f"mkdir -p made && echo {step} >> {name} && printf 'made %s\\n' 'step {step}'"
        if task == self.killer:
            command = _SUICIDE + command
        tool: dict[str, Any] = {"name": "run_command", "input": {"command": command}}
        return {"text": f"Step {step}.", "delay_s": self.delay_s, "tools": [tool]}


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of prompts and results in messages, not those of calls."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _texts(one)
    elif isinstance(value, dict):
        block = cast("dict[str, Any]", value)
        if block.get("type") != "tool_use":
            for name, one in block.items():
                if name != "role":
                    yield from _texts(one)
