"""Each part of a sub-agent's context is its parent's, or is named here with the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider
from tui.agent.agent_context import AgentContext
from tui.context.system_prompt import SystemPrompt
from tui.core.workspace import Workspace
from tui.provider import catalogue
from tui.session.session import Session

OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "context": {
        "session": "a session of its own",
        "workspace": "its worktree, where it has one",
        "link": "see below",
        "toolbox": "see below",
        "rules": "see below",
        "sources": "see below",
        "folders": "it reads no other session",
        "parent": "this is what makes it one",
        "isolated": "by its definition",
        "role": "by its definition",
    },
    "link": {
        "provider": "without fallbacks: its parent's turn knows of none",
        "model": "by its definition",
        "own": "its cache is over soon, unless the person chose an hour",
        "others": "their caches, too",
    },
    "toolbox": {
        "tools": "fewer, and no servers' until they join",
        "jobs": "of its own",
        "outputs": "beside its own session",
        "servers_shared": "the parent closes them",
        "kept": "beside its own session",
        "find_agents": "it starts no others",
        "may_have": "by its definition",
        "answers_only": "it is asked to work",
    },
    "rules": {"limits": "what it spends counts at its parent"},
    "sources": {
        "system": "a prompt of its own",
        "prompt": "a prompt of its own",
        "injected": "the person was told by the parent",
        "find_files": "with its role",
        "memory_file": "it writes no memory",
        "directives": "the level of effort alone",
        "notices": "the person was told by the parent",
    },
}


@pytest.fixture
def both(tmp_path: Path) -> tuple[AgentContext, AgentContext]:
    """A parent, all of whose fields have something in them, and its sub-agent."""
    agent = make_agent(tmp_path, ScriptedProvider(), session=None)
    parent = agent._ctx  # pyright: ignore[reportPrivateUsage] - the subject
    for part in (parent, parent.link, parent.toolbox, parent.rules, parent.sources):
        for field in fields(part):
            if field.init and getattr(part, field.name) in (None, "", b"", (), False):
                object.__setattr__(part, field.name, object())
    parent.toolbox.outputs = None
    parent.toolbox.kept = tmp_path / "kept" / "x"
    clock = parent.clock
    session = Session.in_memory(tmp_path, clock=clock)
    child = parent.for_sub_agent(
        session,
        Workspace.at(tmp_path / "own", ceiling="/"),
        parent.link.for_sub_agent(catalogue.model_info("claude-haiku-5-5"), "5m"),
        parent.toolbox.for_sub_agent(session, clock, (), lambda _: True),
        parent.sources.for_sub_agent(SystemPrompt((), ()), lambda: (), "low"),
        isolated=False,
        role="explore",
    )
    return parent, child


@pytest.mark.parametrize("name", OWN)
def test_a_field_is_the_parents_or_has_a_reason(
    both: tuple[AgentContext, AgentContext], name: str
) -> None:
    parts: list[Any] = [one if name == "context" else getattr(one, name) for one in both]
    parent, child = parts
    assert is_dataclass(parent)
    given = {field.name for field in fields(parent) if field.init}
    assert OWN[name].keys() <= given
    other = {one for one in given if getattr(parent, one) is not getattr(child, one)}
    assert other <= OWN[name].keys(), f"no reason in OWN: {other - OWN[name].keys()}"


def test_what_an_hour_of_cache_costs_is_the_persons_choice(tmp_path: Path) -> None:
    link = make_agent(tmp_path, ScriptedProvider())._ctx.link  # pyright: ignore[reportPrivateUsage] - the subject
    chosen = replace(link, own=replace(link.own, cache_life="1h"))
    assert chosen.for_sub_agent(link.model, "1h").cache_life == "1h"
    assert chosen.for_sub_agent(link.model, "5m").cache_life == "5m"
