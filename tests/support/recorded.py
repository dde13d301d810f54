"""Sessions in which a scripted model makes given calls, recorded with their checkpoints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.checkpoints.store import store_of
from tui.session.session import Session

Calls: TypeAlias = list[tuple[str, dict[str, Any]]]


async def _session(root: Path, *turns: Calls, prompts: tuple[str, ...] = ()) -> str:
    answers: list[Any] = []
    for number, calls in enumerate(turns):
        answers += [[call(name, **arguments)] for name, arguments in calls]
        answers.append(say(f"Turn {number + 1}."))
    agent = make_agent(
        root,
        ScriptedProvider(*answers),
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=lambda: store_of(folders(), root),
    )
    for number, _ in enumerate(turns):
        await events_of(agent, prompts[number] if prompts else f"prompt {number + 1}")
    await agent.close()
    return agent.session.id


def session(root: Path, *turns: Calls, prompts: tuple[str, ...] = ()) -> str:
    """The id of a session in which each turn makes its calls one after another."""
    return asyncio.run(_session(root, *turns, prompts=prompts))


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def run(command: str) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": command}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old_string": old, "new_string": new}
