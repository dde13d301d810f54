"""A session as the protocol's updates: facts while it works, records when it is loaded. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal, TypeAlias

import acp
from acp import helpers, schema

from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact, TextDelta, ThinkingDelta, Told
from tui.core.messages import list_of, object_of, string_of
from tui.core.retold import answer_facts, retold, retold_lines
from tui.core.text_cleaning import current_lines, one_line, without_colours
from tui.session.records import Record
from tui.tools.diff import hunks
from tui.tools.registry import title, words_of

Update: TypeAlias = (
    helpers.SessionUpdate
    | schema.UsageUpdate
    | schema.SessionInfoUpdate
    | schema.ConfigOptionUpdate
)
Content: TypeAlias = helpers.ToolCallContentVariant
_MARKDOWN: Final = ("think", "switch_mode", "fetch", "other")
"""Kinds whose results may be Markdown."""
_ABOUT: Final = ("path", "command", "pattern", "query", "url", "name", "title", "description")
_STATUSES: Final[Mapping[object, Literal["in_progress", "completed"]]] = {
    "in_progress": "in_progress",
    "completed": "completed",
}
_TEXT_MAX: Final = 8000
_OUTPUT_MAX: Final = 4000
_STEPS: Final = 40


def edits(diff: str, root: Path) -> list[Content]:
    """Return a unified diff as changes that an editor shows, one for each hunk."""
    return [
        acp.tool_diff_content(
            str(real(hunk.name, root)),
            "\n".join(hunk.new),
            None if hunk.created else "\n".join(hunk.old),
        )
        for hunk in hunks(diff)
    ]


def text_content(text: str, *, verbatim: bool = False) -> Content:
    """Return a text of a call; one that is no Markdown is fenced."""
    if verbatim:
        fence = "`" * max([2, *map(len, re.findall("`+", text))]) + "`"
        text = f"{fence}\n{text}\n{fence}"
    return acp.tool_content(acp.text_block(text))


def real(name: str, root: Path) -> Path:
    """Return the file that a call names."""
    try:
        return root / Path(name).expanduser()
    except RuntimeError:  # "~nobody"
        return root / name


def notice(lines: Iterable[str]) -> Update:
    """Return a message of the program, set off from the model's text."""
    quoted = "\n".join(f"> {line}" for text in lines if text for line in text.split("\n"))
    chunk = acp.update_agent_message_text(f"\n\n{quoted}\n\n")
    chunk.message_id, chunk.field_meta = token_hex(8), {"holdfast": {"notice": True}}
    return chunk


def plan_of(todos: Iterable[Mapping[str, object]]) -> Update:
    return acp.update_plan(
        acp.plan_entry(
            str(todo.get("text", "")), status=_STATUSES.get(str(todo.get("status")), "pending")
        )
        for todo in todos
    )


def info(named: str) -> Update:
    return schema.SessionInfoUpdate(session_update="session_info_update", title=named)


@dataclass(slots=True)
class SessionUpdates:
    """The updates of one session. `asking` is the call of the session whose plan is reviewed."""

    root: Path
    asking: str = ""
    _message: str = ""
    _texts: dict[str, str] = field(default_factory=dict[str, str])
    _steps: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def of(self, event: Fact) -> Iterator[tuple[Update, str]]:
        """Yield the updates of a fact, each with a key. An update with a key replaces one with that
        key right before it."""
        match event:
            case facts.RequestSent():
                self._message = token_hex(8)
            case TextDelta(text=text) | ThinkingDelta(text=text) if text:
                is_text = isinstance(event, TextDelta)
                make = acp.update_agent_message_text if is_text else acp.update_agent_thought_text
                chunk = make(text)
                chunk.message_id = self._message or None
                yield chunk, ""
            case facts.TodosChanged(todos):
                yield plan_of(todos), "plan"
            case facts.ContextMeasured():
                cost = event.cost_usd
                yield (
                    schema.UsageUpdate(
                        session_update="usage_update",
                        used=event.tokens,
                        size=event.window,
                        cost=None if cost is None else schema.Cost(amount=cost, currency="USD"),
                    ),
                    "usage",
                )
            case facts.TitleChanged(title=named):
                yield info(named), ""
            case facts.ErrorRaised() | facts.PermissionAnswered() | facts.QuestionAnswered():
                yield from self._of_a_call(event)
            case facts.SubAgentStarted() | facts.SubAgentEvent() | facts.SubAgentFinished():
                steps = self._steps.setdefault(event.id, [])
                steps += _step(event)
                text = "\n".join(f"- {step}" for step in steps[-_STEPS:])
                yield _progress(event.id, text_content(text)), f"out {event.id}"
            case _:
                lines = fact_lines(event)
                yield from [(notice(lines), "")] if lines else self._of_a_call(event)

    def _of_a_call(self, event: Fact) -> Iterator[tuple[Update, str]]:
        match event:
            case facts.ToolStarted():
                if words_of(event.name).asks:
                    self.asking = event.id
                yield self.started(event.id, event.name, event.input, event.label), ""
            case facts.PermissionAnswered(answer="once" | "session" | "always"):
                yield acp.update_tool_call(event.id, status="in_progress"), ""
            case facts.ToolOutputChunk(id=id_, text=text):
                output_text = self._texts.get(id_, "") + without_colours(text)
                self._texts[id_] = output_text = output_text[-_OUTPUT_MAX:]
                shown = text_content(current_lines(output_text), verbatim=True)
                yield _progress(id_, shown), f"out {id_}"
            case facts.ToolFinished():
                self._texts.pop(event.id, None)
                self._steps.pop(event.id, None)
                yield self._finished(event), f"out {event.id}"  # it has what was printed, too
            case _:
                pass

    def started(self, call: str, name: str, given: Mapping[str, Any], label: str) -> Update:
        plan = f"# {given.get('title', '')}\n\n{given.get('plan', '')}"
        path, line = string_of(given.get("path")), given.get("offset")
        at = line if isinstance(line, int) and line > 0 else None
        place = schema.ToolCallLocation(path=str(real(path, self.root)), line=at)
        return acp.start_tool_call(
            call,
            one_line(title(name, label)),
            kind=words_of(name).kind,
            status="in_progress",
            content=[text_content(plan)] if name == "present_plan" else None,
            locations=[place] if path else None,
            raw_input=dict(given),
        )

    def _finished(self, event: facts.ToolFinished) -> Update:
        kind = words_of(event.name).kind
        text, more = event.text[:_TEXT_MAX], len(event.text) - _TEXT_MAX
        if more > 0:
            text = f"{text}\n[… and {more:,} more characters]"
        content = [text_content(text, verbatim=kind not in _MARKDOWN)] if text else None
        changed = hunks(event.display) if kind == "edit" else []
        places = [
            schema.ToolCallLocation(path=str(real(one.name, self.root)), line=one.line)
            for one in changed
        ]
        # The text goes out once: where changes are shown in its place, beside them.
        output = {"text": event.text if changed else "", "is_error": event.is_error}
        output |= {"summary": event.summary, "receipt": event.receipt}
        return acp.update_tool_call(
            event.id,
            status="failed" if event.is_error else "completed",
            content=edits(event.display, self.root) if changed else content,
            locations=places or None,
            raw_output={key: value for key, value in output.items() if value},
        )

    def replayed(self, records: Sequence[Record]) -> Iterator[Update]:
        """Yield the history of a session."""
        again = [*_parts(records)]
        labels = {one.call_id: one.label for one in again if isinstance(one, facts.CallBegan)}
        ended = {one.id for one in again if isinstance(one, facts.ToolFinished)}
        for told in again:
            match told:
                case facts.UserMessage():
                    yield from _prompt(told)
                case facts.ToolStarted(id_, name, given):
                    about = next((string_of(given[key]) for key in _ABOUT if key in given), "")
                    label = labels.get(id_) or one_line(about)[:80]
                    yield self.started(id_, name, given, label)
                    if id_ not in ended:
                        yield acp.update_tool_call(id_, status="failed")
                    elif name == "todo_write":
                        yield plan_of(map(object_of, list_of(given.get("todos"))))
                case TextDelta() | ThinkingDelta() | facts.ToolFinished():
                    yield from (made for made, _ in self.of(told))
                case facts.TurnInterrupted(text=text):
                    if text:
                        yield acp.update_agent_message_text(text)
                    yield notice(["Interrupted."])
                case (
                    facts.PermissionAnswered() | facts.SubAgentStarted() | facts.SubAgentFinished()
                ):
                    pass  # its call tells how it ended
                case _:
                    if lines := retold_lines(told):
                        yield notice(lines)


def _parts(records: Sequence[Record]) -> Iterator[Told]:
    """Yield the facts of a session's records, each answer by its parts."""
    for _, told in retold(records):
        if isinstance(told, facts.AssistantMessage):
            yield from answer_facts(told)
        elif told is not None:
            yield told


def _progress(call: str, content: Content) -> Update:
    return acp.update_tool_call(call, content=[content])


def _prompt(told: facts.UserMessage) -> Iterator[Update]:
    """A prompt as it was typed, with its images; none of what nobody typed."""
    if not told.typed:
        return
    yield acp.update_user_message_text(told.typed)
    for block in told.content:
        source = object_of(block.get("source"))
        data, kind = string_of(source.get("data")), string_of(source.get("media_type"))
        if block.get("type") == "image" and data:
            yield acp.update_user_message(acp.image_block(data, kind))


def _step(
    event: facts.SubAgentStarted | facts.SubAgentEvent | facts.SubAgentFinished,
) -> Sequence[str]:
    """Return the steps of a sub-agent, each in a line."""
    match event:
        case facts.SubAgentEvent(event=facts.ToolStarted() as call):
            return [one_line(title(call.name, call.label))]
        case facts.SubAgentEvent(event=facts.AssistantMessage(text=text)) if text:
            return [one_line(text)[:200]]
        case facts.SubAgentEvent(event=facts.ToolFinished(is_error=True) as call):
            return [f"{call.name} failed: {one_line(call.summary)}"]
        case _:
            return [one_line(line) for line in fact_lines(event)]
