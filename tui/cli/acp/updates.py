"""A session as the protocol's updates: facts while it works, records when it is loaded. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Literal, TypeAlias

import acp
from acp import helpers, schema

from tui.core import facts
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact, TextDelta, ThinkingDelta
from tui.core.messages import blocks_of, list_of, object_of, string_of, text_of
from tui.core.retold import retold, retold_lines
from tui.core.text_cleaning import one_line, without_colours
from tui.core.tool_titles import title
from tui.session.records import Record
from tui.tools.diff import hunks

Update: TypeAlias = (
    helpers.SessionUpdate
    | schema.UsageUpdate
    | schema.SessionInfoUpdate
    | schema.ConfigOptionUpdate
)
Content: TypeAlias = helpers.ToolCallContentVariant
ToolKind: TypeAlias = Literal[
    "read", "edit", "search", "execute", "think", "fetch", "switch_mode", "other"
]

KINDS: Final[Mapping[str, ToolKind]] = {
    "read_file": "read", "list_dir": "read", "read_mcp_resource": "read", "recall": "read",
    "skill": "read", "grep_search": "search", "find_by_name": "search", "web_search": "fetch",
    "web_fetch": "fetch", "edit_file": "edit", "write_file": "edit", "apply_patch": "edit",
    "run_command": "execute", "command_status": "execute", "todo_write": "think",
    "task": "think", "present_plan": "switch_mode",
}  # fmt: skip
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
    """The updates of one session. `asking` is the call whose questions are open."""

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
                if event.name in {"ask_user", "present_plan"}:
                    self.asking = event.id
                yield self.started(event.id, event.name, event.input, event.label), ""
            case facts.PermissionAnswered(answer="once" | "session" | "always"):
                yield acp.update_tool_call(event.id, status="in_progress"), ""
            case facts.ToolOutputChunk(id=id_, text=text):
                output_text = self._texts.get(id_, "") + without_colours(text)
                self._texts[id_] = output_text = output_text[-_OUTPUT_MAX:]
                yield _progress(id_, text_content(output_text, verbatim=True)), f"out {id_}"
            case facts.ToolFinished():
                self._texts.pop(event.id, None)
                self._steps.pop(event.id, None)
                output = {"text": event.text, "is_error": event.is_error}
                output |= {"summary": event.summary, "receipt": event.receipt}
                yield self.finished(event.id, event.name, output, event.display), ""
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
            kind=KINDS.get(name, "other"),
            status="in_progress",
            content=[text_content(plan)] if name == "present_plan" else None,
            locations=[place] if path else None,
            raw_input=dict(given),
        )

    def finished(self, call: str, name: str, output: Mapping[str, Any], display: str) -> Update:
        """Return the update of a call that has ended. `output` has text, is_error, summary and
        receipt."""
        kind = KINDS.get(name, "other")
        text = string_of(output.get("text"))[:_TEXT_MAX]
        content = [text_content(text, verbatim=kind not in _MARKDOWN)] if text else None
        changed = hunks(display) if kind == "edit" else []
        places = [
            schema.ToolCallLocation(path=str(real(one.name, self.root)), line=one.line)
            for one in changed
        ]
        return acp.update_tool_call(
            call,
            status="failed" if output.get("is_error") else "completed",
            content=edits(display, self.root) if changed else content,
            locations=places or None,
            raw_output={key: value for key, value in output.items() if value},
        )

    def replayed(self, records: Sequence[Record]) -> Iterator[Update]:
        """Yield the history of a session."""
        # Calls without a result are shown as failed.
        labels = {r.data.get("call_id"): r.data.get("label") for r in records if r.type == "intent"}
        done = {r.data.get("call_id") for r in records if r.type == "tool_result"}
        for record, fact in retold(records):
            data = record.data
            match record.type:
                case "user":
                    yield from _prompt(data)
                case "assistant":
                    for block in blocks_of(data.get("content")):
                        yield from self._answer(block, labels, done)
                case "tool_result":
                    name, id_ = string_of(data.get("name")), string_of(data.get("call_id"))
                    output = {key: data.get(key) for key in ("is_error", "summary", "receipt")}
                    output["text"] = text_of(blocks_of(data.get("content")))
                    yield self.finished(id_, name, output, string_of(data.get("display")))
                case "interrupt":
                    if text := string_of(data.get("text")):
                        yield acp.update_agent_message_text(text)
                    yield notice(["Interrupted."])
                case "sub_agent":
                    pass  # the call that started it
                case _ if fact and (lines := retold_lines(fact)):
                    yield notice(lines)
                case _:
                    pass

    def _answer(
        self, block: Mapping[str, Any], labels: Mapping[Any, object], done: Container[object]
    ) -> Iterator[Update]:
        match block.get("type"):
            case "text" if text := string_of(block.get("text")):
                yield acp.update_agent_message_text(text)
            case "thinking" if text := string_of(block.get("thinking")):
                yield acp.update_agent_thought_text(text)
            case "tool_use":
                id_, name = string_of(block.get("id")), string_of(block.get("name"))
                given = object_of(block.get("input"))
                about = next((string_of(given[key]) for key in _ABOUT if key in given), "")
                label = string_of(labels.get(id_)) or one_line(about)[:80]
                yield self.started(id_, name, given, label)
                if id_ not in done:
                    yield acp.update_tool_call(id_, status="failed")
                elif name == "todo_write":
                    yield plan_of(map(object_of, list_of(given.get("todos"))))
            case _:
                pass


def _progress(call: str, content: Content) -> Update:
    return acp.update_tool_call(call, content=[content])


def _prompt(data: Mapping[str, Any]) -> Iterator[Update]:
    """Yield a prompt as it was typed, with its images; nothing for a message that nobody typed."""
    text = string_of(data.get("text"))
    if text:
        yield acp.update_user_message_text(text)
    for block in blocks_of(data.get("content")) if text else ():
        source = object_of(block.get("source"))
        data_, kind = string_of(source.get("data")), string_of(source.get("media_type"))
        if block.get("type") == "image" and data_:
            yield acp.update_user_message(acp.image_block(data_, kind))


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
