"""A command that runs swaps a folder with a link, just when a tool has found the real path."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tests.tools.folder import Folder
from tui.core.errors import ToolError
from tui.core.messages import blocks_of, text_of
from tui.core.workspace import Workspace
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.tools.base import Tool
from tui.tools.edit_file import EditFile
from tui.tools.find_by_name import FindByName
from tui.tools.grep_search import GrepSearch
from tui.tools.list_dir import ListDir
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

SECRET = "the text outside"


def swap(folder: Path, target: Path) -> None:
    if not folder.is_symlink():
        folder.rename(folder.with_name("kept"))
        folder.symlink_to(target)


def content(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


CALLS: list[tuple[Tool[Any], dict[str, Any]]] = [
    (ReadFile(), {"path": "deep/file"}),
    (ReadFile(), {"path": "deep/far"}),
    (ListDir(), {"path": "deep"}),
    (GrepSearch(), {"path": "deep", "pattern": "text"}),
    (GrepSearch(), {"path": "deep/file", "pattern": "text"}),
    (FindByName(), {"path": "deep", "pattern": "*"}),
    (WriteFile(), {"path": "deep/new", "content": "x"}),
    (WriteFile(), {"path": "deep/a/b/new", "content": "x"}),
    (EditFile(), {"path": "deep/file", "edits": [{"old_text": "text", "new_text": "x"}]}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=lambda given: getattr(given, "name", ""))
async def test_no_tool_follows_it(
    folder: Folder,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    tool: Tool[Any],
    arguments: dict[str, Any],
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for name in ("file", "far", "near"):
        (outside / name).write_text(SECRET)
    folder.write("deep/file", "the text inside")
    await folder.call(ReadFile(), path="deep/file")
    before, resolve = content(outside), Workspace.resolve

    def swapped_after(workspace: Workspace, path: str) -> Path:
        real = resolve(workspace, path)
        swap(folder.root / "deep", outside)
        return real

    monkeypatch.setattr(Workspace, "resolve", swapped_after)
    try:
        answer = await folder.text(tool, **arguments)
    except ToolError as error:
        answer = str(error)
    assert SECRET not in answer
    assert "near" not in answer
    assert content(outside) == before


@dataclass
class Swapping(RulesOnly):
    """Says yes, after the folder has become a link."""

    workspace: Path
    asked: list[str] = field(default_factory=list[str])

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append(call.subject)
        swap(self.workspace / "deep", self.workspace / ".git")
        return Answer("once")


async def test_what_was_allowed_is_what_is_written(tmp_path: Path) -> None:
    for name in ("deep", ".git"):
        (tmp_path / name).mkdir()
    hook = [call("write_file", path="deep/hook", content="#!/bin/sh\n")]
    provider, approver = ScriptedProvider(hook, say("done")), Swapping(tmp_path)
    agent = make_agent(tmp_path, provider, approver=approver)
    await events_of(agent, "go")
    result = provider.requests[1].messages[-1]["content"][0]
    assert approver.asked == ["deep/hook"]
    assert "no longer leads to the path that was allowed" in text_of(blocks_of(result["content"]))
    assert not (tmp_path / ".git/hook").exists()
