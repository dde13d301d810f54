"""A workspace on disk for the tests of file tools, and calls of tools in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import FakeClock
from tui.core.errors import ToolError
from tui.core.files import safe_name
from tui.core.messages import ToolOutput, text_of
from tui.core.workspace import Workspace
from tui.tools.base import CallPreview, Tool, ToolContext
from tui.tools.file_ledger import FileLedger
from tui.tools.jobs import Jobs


def _told() -> None:
    raise AssertionError("these tools have nothing to tell while they work")


@dataclass
class Folder:
    """`call` runs a tool the way the dispatcher does: arguments parsed, one context a call."""

    root: Path
    files: FileLedger = field(default_factory=FileLedger)
    host: FakeHost = field(default_factory=lambda: FakeHost(on_output=_told))
    calls: int = 0
    changes: dict[str, Any] = field(default_factory=dict[str, Any])

    def context(self) -> ToolContext:
        self.calls += 1
        call_id = f"toolu_{self.calls}"
        workspace = Workspace.at(self.root, ceiling=self.root)
        given: dict[str, Any] = {
            "call_id": call_id,
            "workspace": workspace,
            "clock": FakeClock(),
            "files": self.files,
            "jobs": Jobs(FakeClock()),
            "spill_path": workspace.tool_results / f"{safe_name(call_id)}.txt",
            "kept": workspace.tool_results / f"{safe_name(call_id)}.kept",
            "host": self.host,
        }
        return ToolContext(**{**given, **self.changes})

    async def call(self, tool: Tool[Any], **arguments: Any) -> ToolOutput:
        return await tool.run(tool.parse(arguments), self.context())

    async def text(self, tool: Tool[Any], **arguments: Any) -> str:
        return text_of((await self.call(tool, **arguments)).content)

    async def preview(self, tool: Tool[Any], **arguments: Any) -> CallPreview:
        return await tool.preview(tool.parse(arguments), self.context())

    async def error(self, tool: Tool[Any], **arguments: Any) -> str:
        """What a call that must fail says."""
        with pytest.raises(ToolError) as failed:
            await self.call(tool, **arguments)
        return str(failed.value)

    def write(self, path: str, content: str | bytes = "") -> Path:
        """A file as someone else would make it, its folders too."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def left_over(self) -> list[str]:
        """Temporary files that should not be there."""
        return [str(p) for p in self.root.rglob("*.tmp")]


def said(output: ToolOutput) -> str:
    return text_of(output.content)
