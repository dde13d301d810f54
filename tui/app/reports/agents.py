"""/agents: the sub-agents of a session and the kinds there are."""

from __future__ import annotations

from typing import Final

from tui.agent.sub_agent_list import State, SubAgent
from tui.app.reports import Row
from tui.core.clock import Clock
from tui.core.formatting import duration
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.settings.agent_definitions import AgentDefinition

_MARKS: Final[dict[State, tuple[str, str]]] = {
    "waiting": ("◌", "muted"),
    "running": ("●", "primary"),
    "done": ("✓", "success"),
    "failed": ("✗", "error"),
    "limit": ("✗", "warning"),
    "stopped": ("■", "warning"),
    "interrupted": ("■", "warning"),
}


def agent_row(one: SubAgent, clock: Clock) -> Row:
    """Make the row of a sub-agent: its state, its activity, and its result."""
    mark, look = ("?", "warning") if one.asks else _MARKS[one.state]
    facts, now = facts_of(one, clock), one.now if one.works else ""
    where = shorten(one.path) if one.path else "kept in memory only"
    about = (facts + (f" · {now}" if now else ""), f"{one.model} · session {one.session_id}", where)
    return Row(
        one_line(f"{one.agent}: {one.description}"),
        (one_line(now or facts),),
        one.call_id,
        mark,
        look,
        (*about, one.problem) if one.problem else about,
        frozenset({"open", "stop"} if one.works else {"open"}),
    )


def kind_row(kind: AgentDefinition) -> Row:
    """Make the row of a kind: its purpose, model and tools."""
    names = {"": "the conversation's model", "small": "the small model"}
    model = names.get(kind.model, kind.model)
    only = " · read-only" if kind.read_only else ""
    tools = "all tools" if kind.tools is None else ", ".join(dict.fromkeys(kind.tools))
    less = f", without {', '.join(dict.fromkeys(kind.without))}" if kind.without else ""
    where = shorten(kind.path) if kind.path else "comes with Holdfast"
    left = (f"left out: {', '.join(kind.left)}",) if kind.left else ()
    about = (kind.about, f"{model}{only} · {tools}{less}", *left, where)
    return Row(
        one_line(kind.name),
        (one_line(kind.about),),
        kind_key(kind),
        about=about,
        actions=frozenset({"open", "edit"} if kind.path else {"open"}),
        file=kind.path,
    )


def kind_key(kind: AgentDefinition) -> str:
    """The key of the row of a kind: no call has an id like that."""
    return f"kind {kind.name}"


def seconds_of(one: SubAgent, clock: Clock) -> float:
    """Return the seconds that a sub-agent has worked; 0 where that is not known."""
    if one.works and one.started:
        return clock.monotonic() - one.started
    return one.seconds


def facts_of(one: SubAgent, clock: Clock) -> str:
    """Describe its state, how long it worked, and what that cost."""
    seconds = seconds_of(one, clock)
    worked = [duration(seconds)] if seconds >= 1 else []
    counted = one.calls or one.spent.requests
    return " · ".join([one.state, *worked, *([one.figures] if counted else [])])
