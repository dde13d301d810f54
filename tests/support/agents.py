"""Real agents on a scripted provider and a session in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui.agent.agent import Agent
from tui.agent.agent_context import AgentContext
from tui.agent.call_rules import CallRules
from tui.agent.frame_sources import FrameSources
from tui.agent.limits import Limits
from tui.agent.model_link import ModelLink, ModelServer
from tui.agent.prompts import parse
from tui.agent.toolbox import Toolbox
from tui.core.clock import Clock, SystemClock
from tui.core.config import Config
from tui.core.facts import Fact
from tui.core.messages import text_block
from tui.core.output_store import OutputStore
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.permissions.types import Answer, Approver, Call, Decision
from tui.provider.base import ModelInfo, Provider
from tui.session.session import Session
from tui.tools.base import Tool
from tui.tools.jobs import Jobs
from tui.tools.registry import builtin_tools

MODEL = ModelInfo("test-model", 200_000, 8192, "server", thinking_types=("adaptive",))


class Yes(RulesOnly):
    """Says yes once to everything that is asked."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        return Answer("once")


def make_agent(
    root: Path,
    provider: Provider,
    *,
    approver: Approver | None = None,
    session: Session | None = None,
    limits: Limits | None = None,
    config: Config | None = None,
    tools: Mapping[str, Tool[Any]] | None = None,
    model: ModelInfo | None = None,
    clock: Clock | None = None,
    gate: Gate | None = None,
    outputs: OutputStore | None = None,
    jobs: Jobs | None = None,
    workspace: Workspace | None = None,
    **fields: Any,
) -> Agent:
    """An agent in the folder `root`; `fields` are further ones of `AgentContext` and its groups."""
    clock, workspace = clock or SystemClock(), workspace or Workspace.at(root, ceiling="/")
    session = session or Session.in_memory(root, clock=clock)
    if session.path:
        fields.setdefault("memory_file", workspace.tool_results.parent / "MEMORY.md")
    return Agent(
        agent_context(
            session=session,
            provider=provider,
            model=model or MODEL,
            tools=dict(tools) if tools is not None else builtin_tools(),
            gate=gate or Gate(Policy()),
            approver=approver or RulesOnly(),
            workspace=workspace,
            system=[text_block("You are a test.")],
            config=config or Config(),
            clock=clock,
            jobs=jobs or Jobs(clock, session=session.path),
            limits=limits or Limits(),
            outputs=outputs,
            **fields,
        )
    )


def agent_context(**fields: Any) -> AgentContext:
    """A context from the fields of all its groups, by their names alone; `server` is the host."""

    def group(kind: type[Any]) -> Any:
        names = [each.name for each in dataclasses.fields(kind) if each.init]
        return kind(**{name: fields.pop(name) for name in names if name in fields})

    if host := fields.pop("server", ""):
        fields["host"] = host
    fields.setdefault("own", group(ModelServer))
    link, toolbox = group(ModelLink), group(Toolbox)
    rules, sources = group(CallRules), group(FrameSources)
    return AgentContext(link=link, toolbox=toolbox, rules=rules, sources=sources, **fields)


async def events_of(agent: Agent, text: str) -> list[Fact]:
    """All events of one turn."""
    return [event async for event in agent.send(parse(text))]


def record_types(agent: Agent) -> list[str]:
    """The types of the records, less those that every request brings along."""
    own = {"frame", "request"}
    return [record.type for record in agent.session.records if record.type not in own]
