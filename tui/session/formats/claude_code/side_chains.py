"""Sub-agents of Claude Code: side chains in a session's own file (up to 2.0), and files beside it,
`{session}/subagents/…/agent-{id}.jsonl` (before, `agent-{id}.jsonl` in the same folder).

The records of one sub-agent share an `agentId`; where they have none, a chain of links. The call
that it worked for is told by `toolUseResult.agentId` beside the call's result, by `toolUseId` in
`agent-{id}.meta.json`, or by its prompt, which is the first thing that the sub-agent was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from tui.core.dataclass import dataclass
from tui.core.messages import Block, Usage, blocks_of, object_of, string_of, text_of, tool_calls
from tui.session.formats.conversion import (
    Conversion,
    ParsedLine,
    SubAgentFile,
    SubAgentSession,
    string,
)
from tui.session.jsonl import JsonObject
from tui.session.records import SUB_AGENT


@dataclass(slots=True)
class PlacedRecord:
    """A record of the file. `blocks` is its content, None if it is no message; `group` is the key
    of the answer it belongs to."""

    where: str
    value: JsonObject
    blocks: list[Block] | None
    group: str = ""

    @property
    def key(self) -> str:
        return str(self.value["uuid"])


_Tell: TypeAlias = Callable[[Sequence[ParsedLine], Conversion], list[PlacedRecord]]
"""Adds what one sub-agent said to a conversion; returns its records."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """A call of the session by which a sub-agent may have been started."""

    id: str
    prompt: str
    agent: str
    description: str


def sub_agents(
    entries: Sequence[PlacedRecord], side: Sequence[ParsedLine], telling: Conversion, tell: _Tell
) -> list[SubAgentSession]:
    """The sub-agents of a session: those of side chains in its file, and of the files beside it."""
    callers, by_agent = _callers(entries), _results_by_agent(entries)
    free = dict(callers)
    made: list[SubAgentSession] = []
    here = (SubAgentFile(id_, lines, {}, telling.findings) for id_, lines in _chains(side).items())
    for file in (*here, *telling.beside):
        told, facts = Conversion(telling.program, file.findings), file.facts
        own = tell(file.places, told)
        if file.findings is not telling.findings:
            for one in file.findings.all():
                telling.findings.add(one.code, f"{file.name} {one.where}", one.action)
        # a chain without a message would become an empty session
        if not any(entry.blocks is not None for entry in own):
            telling.leave_out("of a sub-agent that said nothing", file.name)
            continue
        id_ = _agent_of(file.places) or file.name
        told.session_id = f"{telling.session_id}:{id_}"
        call = string(facts, "toolUseId") or by_agent.get(id_, "") or _by_prompt(own, free)
        caller = free.pop(call, None) or callers.get(call)
        made.append(
            SubAgentSession(
                told,
                call,
                string(facts, "agentType") or (caller.agent if caller else ""),
                string(facts, "description") or (caller.description if caller else "") or id_,
            )
        )
    return made


def name_sub_agent(child: SubAgentSession, telling: Conversion) -> None:
    """Add the record by which a session names a sub-agent's, once."""
    if child.named:
        return
    child.named, told = True, child.told
    answers = [record.data for record in told.records if record.type == "assistant"]
    # an answer that ends in calls was waiting for their results
    last = blocks_of(answers[-1].get("content")) if answers else []
    spent: dict[str, tuple[int, Usage]] = {}
    for data in answers:
        requests, usage = spent.get(string(data, "model"), (0, Usage()))
        more = Usage.from_json(data.get("usage"))
        spent[string(data, "model")] = requests + 1, usage + more
    header = told.header(told.session_id, "")
    telling.add(
        SUB_AGENT,
        header.id,
        told.records[-1].time if told.records else "",
        call_id=child.call,
        session=header.id,
        path="",
        agent=child.agent or "sub-agent",
        description=child.description,
        model=string(answers[-1], "model") if answers else "",
        state="done" if last and not tool_calls(last) else "interrupted",
        calls=sum(record.type == "tool_result" for record in told.records),
        spent=[
            {"model": model, "requests": requests, "usage": usage.to_json()}
            for model, (requests, usage) in spent.items()
        ],
    )


def _chains(side: Sequence[ParsedLine]) -> dict[str, list[ParsedLine]]:
    """The records of side chains, by sub-agent."""
    parents = {string(value, "uuid"): string(value, "parentUuid") for _, value in side}
    roots: dict[str, str] = {}

    def root(uuid: str) -> str:
        path: list[str] = []
        at = uuid
        while at not in roots and parents.get(at, "") in parents and at not in path:
            path.append(at)
            at = parents[at]
        top = roots.get(at, at)
        roots.update(dict.fromkeys((*path, at), top))
        return top

    keys = {root(string(v, "uuid")): id_ for _, v in side if (id_ := string(v, "agentId"))}
    chains: dict[str, list[ParsedLine]] = {}
    for line, value in side:
        top = root(string(value, "uuid"))
        key = string(value, "agentId") or keys.get(top, top)
        chains.setdefault(key, []).append((line, value))
    return chains


def _agent_of(places: Iterable[ParsedLine]) -> str:
    """The id of the sub-agent whose file this is."""
    return next((id_ for _, value in places if (id_ := string(value, "agentId"))), "")


def _callers(entries: Sequence[PlacedRecord]) -> dict[str, _Caller]:
    callers: dict[str, _Caller] = {}
    for block in _blocks(entries, "tool_use"):
        given, id_ = object_of(block.get("input")), string(block, "id")
        if id_ and (prompt := string(given, "prompt").strip()):
            agent, about = string(given, "subagent_type"), string(given, "description")
            callers[id_] = _Caller(id_, prompt, agent, about)
    return callers


def _results_by_agent(entries: Sequence[PlacedRecord]) -> dict[str, str]:
    """The calls whose results say which sub-agent they are from, by the sub-agent's id."""
    found: dict[str, str] = {}
    for entry in entries:
        result = object_of(entry.value.get("toolUseResult"))
        agent = string(result, "agentId") or string(entry.value, "agentId")
        for block in _blocks([entry], "tool_result") if agent else ():
            found.setdefault(agent, string_of(block.get("tool_use_id")))
    return found


def _by_prompt(entries: Sequence[PlacedRecord], free: dict[str, _Caller]) -> str:
    """The first call with the words that a sub-agent was told first."""
    first = next((one.blocks for one in entries if one.value.get("type") == "user"), None)
    words = text_of(first or ()).strip()
    return next((one.id for one in free.values() if words and one.prompt == words), "")


def _blocks(entries: Iterable[PlacedRecord], kind: str) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield from (block for block in entry.blocks or () if block.get("type") == kind)
