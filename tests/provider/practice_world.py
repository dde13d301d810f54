"""A conversation with the practice model and the real tools, in a folder of its own.

It does what the agent does, as far as a model can tell: every call gets one result, results come
first in the next user message, a refusal is a result with is_error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.call_host import FakeHost
from tests.support.clock import FakeClock
from tui.core.clock import SystemClock
from tui.core.errors import ToolError
from tui.core.messages import Block, Message, ToolOutput, text_block, text_of, tool_calls
from tui.core.workspace import Workspace
from tui.provider.base import Completed, Provider, Request, StreamPart
from tui.provider.practice.provider import PracticeModel
from tui.tools.base import ToolContext
from tui.tools.file_ledger import FileLedger
from tui.tools.jobs import Jobs
from tui.tools.registry import builtin_tools

INTERRUPTED = "Session was interrupted before tool execution completed"


def no_tool(_call: Block) -> str | None:
    return None


@dataclass
class World:
    """`refuse` gives the text of a refusal for a call, None to carry it out."""

    root: Path
    model: Provider = field(default_factory=lambda: PracticeModel(FakeClock()))
    tools: dict[str, Any] = field(default_factory=builtin_tools)
    messages: list[Message] = field(default_factory=list[Message])
    calls: list[tuple[str, dict[str, Any]]] = field(
        default_factory=list[tuple[str, dict[str, Any]]]
    )
    refuse: Callable[[Block], str | None] = no_tool
    files: FileLedger = field(default_factory=FileLedger)
    jobs: Jobs = field(default_factory=lambda: Jobs(SystemClock()))
    ids: set[str] = field(default_factory=set[str])
    thinking: dict[str, Any] | None = None

    def request(self, **changes: Any) -> Request:
        given: dict[str, Any] = {
            "model": "practice",
            "system": [text_block("You are a test.")],
            "messages": copy.deepcopy(self.messages),
            "tools": [tool.schema() for tool in self.tools.values()],
            "max_tokens": 4096,
            "thinking": self.thinking,
        }
        return Request(**(given | changes))

    async def ask(self, text: str) -> str:
        """Send a prompt, work until the model is done, and return what it said at the end."""
        self.type(text)
        return await self.go_on()

    def type(self, text: str) -> None:
        """Add typed text: to the user message that is last, as the view does."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].append(text_block(text))
        else:
            self.messages.append(Message(role="user", content=[text_block(text)]))

    async def go_on(self, *, requests: int = 30) -> str:
        for _ in range(requests):
            answer = await self.step()
            if not tool_calls(answer.content):
                return text_of(answer.content)
        raise AssertionError(f"no end after {requests} requests: {self.calls}")

    async def step(self) -> Completed:
        """One request, and the results of its calls."""
        answer = (await parts_of(self.model, self.request()))[-1]
        assert isinstance(answer, Completed)
        self.messages.append(Message(role="assistant", content=answer.content))
        calls = tool_calls(answer.content)
        if calls:
            results = [await self.result(call) for call in calls]
            self.messages.append(Message(role="user", content=results))
        return answer

    async def result(self, call: Block) -> Block:
        assert call["id"] not in self.ids
        self.ids.add(call["id"])
        self.calls.append((call["name"], call["input"]))
        refusal = self.refuse(call)
        if refusal is not None:
            return result_block(call, refusal, is_error=True)
        tool = self.tools[call["name"]]
        try:
            output: ToolOutput = await tool.run(tool.parse(call["input"]), self.context(call["id"]))
        except ToolError as error:
            return result_block(call, str(error), is_error=True)
        block = result_block(call, "", is_error=output.is_error)
        return block | {"content": output.content}

    def context(self, call_id: str) -> ToolContext:
        workspace = Workspace.at(self.root, ceiling=self.root)
        return ToolContext(
            call_id=call_id,
            workspace=workspace,
            clock=SystemClock(),
            files=self.files,
            jobs=self.jobs,
            spill_path=workspace.tool_results / f"{call_id}.txt",
            kept=self.root.parent / f"{self.root.name}.kept" / call_id,
            host=FakeHost(),
        )

    def interrupt(self) -> None:
        """What a kill during the last calls leaves of them, after repair."""
        call_ids = {block["tool_use_id"] for block in self.messages[-1]["content"]}
        self.messages[-1]["content"] = [
            {"type": "tool_result", "tool_use_id": i, "content": INTERRUPTED, "is_error": True}
            for i in call_ids
        ]
        self.files = FileLedger()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    @property
    def said(self) -> str:
        """Everything that the model has said."""
        spoken = [m["content"] for m in self.messages if m["role"] == "assistant"]
        return "\n".join(text_of(content) for content in spoken)


def result_block(call: Block, text: str, *, is_error: bool) -> Block:
    content = [text_block(text)]
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": content,
        "is_error": is_error,
    }


async def parts_of(model: Provider, request: Request) -> list[StreamPart]:
    async with aclosing(model.stream(request)) as parts:
        return [part async for part in parts]
