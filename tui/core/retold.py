"""The facts of a record, for readers of a session that is over.

A record tells the fact that was published when it was written, so that a session looks the same
live and again. A field that a record lacks is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, get_args

from tui.core import facts
from tui.core.fact_words import RELOAD_WAITS, bill_of_break, fact_lines, without_feature, words
from tui.core.facts import Fact, Told
from tui.core.messages import Block, as_meant, list_of, object_of, sentences, string_of
from tui.core.server_results import is_result, result_of, sources_of

Data: TypeAlias = Mapping[str, Any]


class Recorded(Protocol):
    """A record: its type and its fields, which nobody changes."""

    @property
    def type(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


WARMED: Final = "cache_warmed"

R = TypeVar("R", bound=Recorded)


def retold(records: Sequence[R]) -> Iterator[tuple[R, Told | None]]:
    """Every record with the fact that it tells again, if any. Results that were pruned one after
    another are told with the first."""
    place = 0
    while place < len(records):
        record = records[place]
        if record.type == "overlay" and (run := _pruned_run(records, place)):
            yield record, facts.Pruned(run, 0)
            yield from ((one, None) for one in records[place + 1 : place + run])
            place += run
            continue
        if [one.type for one in records[place : place + 2]] == [WARMED, WARMED]:
            yield record, None  # the last of a pause tells of all
            place += 1
            continue
        make = _FACTS.get(record.type)
        yield record, make(record.data) if make else None
        place += 1


def retold_lines(fact: Told | None) -> tuple[str, ...]:
    """Return the lines of a fact; none where it has no words."""
    if isinstance(fact, facts.ErrorRaised):
        return fact_lines(fact)  # with its class
    said = words(fact) if fact else None
    return said.lines if said else ()


def answer_facts(answer: facts.AssistantMessage) -> Iterator[Fact]:
    """Tell again what came of an answer, from its blocks: thinking, text, the calls, what the
    server's own tools found; then the pages that it cites."""
    texts: list[Block] = []
    for block in answer.content:
        if block.get("type") == "text":
            texts.append(block)
            continue
        if texts:
            yield from _texts(texts)
            texts = []
        match block.get("type"):
            case "thinking":
                yield facts.ThinkingDelta(string_of(block.get("thinking")))
            case "tool_use" | "server_tool_use":
                call = as_meant(block)
                name, input_ = string_of(call.get("name")), object_of(call.get("input"))
                yield facts.ToolStarted(string_of(block.get("id")), name, input_)
            case _ if is_result(block):
                yield result_of(block)
            case _:
                pass
    yield from _texts(texts)
    yield from sources_of(answer.content)


def _texts(texts: Sequence[Block]) -> Iterator[Fact]:
    """Texts, those of one sentence together."""
    for parts in sentences(texts):
        yield facts.TextDelta("".join([str(part.get("text") or "") for part in parts]))


def _pruned_run(records: Sequence[Recorded], place: int) -> int:
    """Count the records from a place on that each prune a result."""
    last = place
    while last < len(records) and _is_pruned(records[last]):
        last += 1
    return last - place


def _is_pruned(record: Recorded) -> bool:
    data = record.data
    return record.type == "overlay" and data.get("view") == "pruned" and data.get("by") != "person"


def _sub_agent(data: Data) -> Fact:
    begun = data.get("state") == "started"
    return (facts.SubAgentStarted if begun else facts.SubAgentFinished).of_record(data)


def _job_moved(data: Data) -> Fact:
    moved = facts.JobMoved.of_record(data)
    return facts.JobStarted(moved.job, moved.call_id, "", moved.pid, moved.by)


def _notice(data: Data) -> Told | None:
    """Tell again what the person, too, was told when the model was."""
    told = facts.ModelNotice.of_record(data)
    match told.kind:
        case "changed":
            said = re.sub(r"(?<=[a-z] )you last saw", "the model last saw", told.text)
            said = re.sub(r" Read (it|them) again before you rely on \1\.", "", said)
            return facts.FilesChanged((), said)
        case "tools":
            return facts.ToolsChanged("", (), (), told.text)
        case _:
            return None


def _overlay(data: Data) -> Fact:
    images = {"images": len(object_of(data["images"]))} if "images" in data else {}
    return facts.ContextChanged(({**data, **images},))


def _feature(data: Data) -> Fact:
    missing = facts.FeatureMissing.of_record(data)
    return facts.Notice(without_feature(missing.feature, missing.tokens))


def _mcp(data: Data) -> Fact:
    off = object_of(data.get("off")).items()
    names = [
        f"mcp__{server}__{string_of(tool)}" for server, tools in off for tool in list_of(tools)
    ]
    return facts.Notice(f"Tools that the model does not get: {', '.join(names) or 'none'}.")


_FACTS: Final[Mapping[str, Callable[[Data], Told | None]]] = {
    **{
        kind.recorded_as(): cast("Callable[[Data], Told]", kind.of_record)
        for kind in (*get_args(Told), facts.Note)
        if issubclass(kind, facts.DurableFact)
    },
    "break_billed": lambda data: bill_of_break(facts.BreakBilled.of_record(data)),
    "feature": _feature,
    "job_moved": _job_moved,
    "mcp": _mcp,
    "notice": _notice,
    "overlay": _overlay,
    "pin": lambda data: facts.ContextChanged((dict(data),)),
    "reload": lambda _: facts.Notice(RELOAD_WAITS),
    "sub_agent": _sub_agent,
}
"""The maker of the fact for each type of record: its own class, or a function."""
