"""The items of a conversation, made from its records and from facts that both ways share; and what
the screen shows of a session that is continued."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, cast

from rich.style import Style

from tui.agent.prompts import HOOKS_SAY
from tui.context.interrupted_calls import INTERRUPTION, interrupted_calls
from tui.core.errors import words
from tui.core.facts import ExamFinished, JobFinished, ToolFinished
from tui.core.formatting import moment, plural, tokens
from tui.core.images import prompt_of
from tui.core.messages import Block, as_meant, blocks_of, object_of, text_of
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line, printed_text
from tui.core.tool_titles import title
from tui.provider.server_tools import is_result, result_of, sources
from tui.session.reader import read_end
from tui.session.records import Record
from tui.tools.patch_format import label_of, named_paths
from tui.ui.widgets.conversation.items import (
    SHOWS_ALL,
    STOPPED,
    SUB_AGENT,
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)

INTERRUPTED = "interrupted"
"""The summary of a call that was closed without an end of its own."""
BEGUN, NEVER = "may have run, end unknown", "never started"
_OUTCOMES = {
    "never_started": NEVER,
    "finished_result_lost": "finished, result lost",
    "unknown": "end unknown",
}
SHORT_DIFF = 16
"""Lines of a diff that is open in the conversation once the change is made."""
PREVIEW_LINES = 12
SHOWN_CHARS = 8000
_END_BYTES = (32 * 1024, 512 * 1024)
"""How much of a session's file is read for its end: more, where that holds too few items."""
_END_ITEMS = 40


def items_of(records: Iterable[Record]) -> list[Item]:
    """The items of a conversation as its records tell it, in their order."""
    calls: dict[str, ToolItem] = {}
    branch = list(records)
    items = list(chain.from_iterable(_record_items(record, calls) for record in branch))
    if any(item.state == "interrupted" for item in calls.values()):
        for call in interrupted_calls(branch):
            if item := calls.get(call.call_id):
                begun = call.outcome == "unknown" and call.started
                item.summary = BEGUN if begun else _OUTCOMES[call.outcome]
    return items


@dataclass(slots=True)
class ItemFollower:
    """The items of a branch that grows: of each record once."""

    _calls: dict[str, ToolItem] = field(default_factory=dict[str, ToolItem])
    _seen: int = 0

    def advance(self, records: Sequence[Record]) -> tuple[list[Item], list[Item]]:
        """The items that came, and those that changed, since the last time. A call runs until its
        result is there, or until `end`."""
        came: list[Item] = []
        changed: dict[str, Item] = {}
        for place in range(self._seen, len(records)):
            record = records[place]
            made = _record_items(record, self._calls)
            for item in made:
                if isinstance(item, ToolItem) and item.state == "interrupted":
                    item.state = "running"
            came += made
            id_ = str(record.data.get("call_id"))
            if id_ in self._calls and record.type in {"permission", "intent", "tool_result"}:
                item = self._calls[id_]
                item.summary = "" if item.state == "running" else item.summary
                changed[id_] = item
        self._seen = len(records)
        return came, [item for item in changed.values() if item not in came]

    def end(self) -> list[Item]:
        """No more records come: the calls that have no result were interrupted."""
        open_ = [item for item in self._calls.values() if item.state == "running"]
        for item in open_:
            item.state = "interrupted"
        return list(open_)


def entry_of(records: Iterable[Record], id_: str, items: Sequence[Item]) -> Item | None:
    """The item at which a record is told; `items` are `items_of` the same records."""
    calls: dict[str, ToolItem] = {}
    cards = {item.id: item for item in items if isinstance(item, ToolItem)}
    place = 0
    for record in records:
        if record.id == id_ and record.type in {"tool_result", "intent", "permission"}:
            return cards.get(str(record.data.get("call_id")))
        made = _record_items(record, calls)
        if record.id == id_:
            return items[min(place, len(items) - 1)] if items else None
        place += len(made)
    return None


def _record_items(record: Record, calls: dict[str, ToolItem]) -> list[Item]:
    data = record.data
    content = blocks_of(data.get("content"))
    match record.type:
        case "user":
            if data.get("text") is None:
                return [NoticeItem(text_of(content))]
            return [UserItem(prompt_of(data)), *_sent_along(prompt_of(data), text_of(content))]
        case "assistant":
            return _answer_items(content, calls)
        case "permission" | "intent" | "tool_result":
            if item := calls.get(str(data.get("call_id"))):
                _add_fact(item, record.type, data)
        case "interrupt":
            said = str(data.get("text") or "")
            stopped = NoticeItem("Stopped here.", "warning")
            return [AssistantItem(said), stopped] if said.strip() else [stopped]
        case "error":
            text, hint = str(data.get("message") or ""), str(data.get("hint") or "")
            return [NoticeItem(text, "error", hint=hint)]
        case "repair":
            return repair_items(data.get("findings") or [])
        case "note":
            return [NoticeItem(str(data.get("text", "")))]
        case _:
            return _trouble_items(record.type, data, record.time)
    return []


def _sent_along(prompt: str, text: str) -> list[Item]:
    """What the model was sent after a prompt: piped in, or what the person's commands printed."""
    rest = text.removeprefix(prompt).lstrip("\n") if text.startswith(prompt) else ""
    return [sent_along_item(rest)] if rest.strip() else []


def sent_along_item(text: str) -> NoticeItem:
    """One line for what went along with a prompt, the text folded below."""
    lines = plural(text.count("\n") + 1, "line")
    what = "what your hooks say" if text.startswith(HOOKS_SAY) else "your shell output"
    return NoticeItem(f"Included {what} ({lines})", detail=text)


def _add_fact(item: ToolItem, kind: str, data: Mapping[str, Any]) -> None:
    """Put on its card what a record says of a call."""
    match kind:
        case "permission":
            item.label = item.label or str(data.get("subject", ""))
            if data.get("answer") in {"no", "deny"}:
                item.state = "denied"
            else:
                item.elevated = data.get("by") == "elevated"
                item.level = str(data.get("level") or "")
        case "intent":
            item.summary = BEGUN
            item.label = item.label or str(data.get("label") or "")
        case _:
            summary, details = str(data.get("summary") or ""), data.get("details")
            text = text_of(blocks_of(data.get("content")))
            if summary == INTERRUPTED and isinstance(details, dict):
                text = str(cast("dict[str, object]", details).get("partial") or "")
            ended = bool(data.get("is_error")), data.get("seconds") or 0.0, data.get("receipt")
            diff = str(data.get("display") or "")
            fill(item, ToolFinished(item.id, item.name, *ended, summary, text, diff))


def _trouble_items(kind: str, data: Mapping[str, Any], at: str) -> list[Item]:
    """What became of a request that did not go well."""
    match kind:
        case "retry":
            return [attempt_item(data)]
        case "failover":
            return [switch_item(data)]
        case "parked":
            kind, reason = str(data.get("error_class") or "unknown"), str(data.get("reason") or "")
            return [parked_item(kind, _moment(data.get("until")), _moment(at), reason)]
        case "job_ended":
            return [job_item(JobFinished.of_record(data))]
        case "compaction" if data.get("reason") not in {"overflow", "digest"}:
            before, after, count = (
                int(data.get(name) or 0)
                for name in ("tokens_before", "tokens_after", "messages_removed")
            )
            return [compacted_item(before, after, count, str(data.get("summary") or ""))]
        case "exam":
            return [exam_item(ExamFinished.of_record(data))]
        case "recovery":
            before, after = data.get("tokens_before"), data.get("tokens_after")
            return [recovery_item(str(data.get("action") or ""), before, after)]
        case _:
            return []


def _answer_items(content: Sequence[Block], calls: dict[str, ToolItem]) -> list[Item]:
    items: list[Item] = []
    cites = False
    for block in content:
        match block.get("type"):
            case "text" if str(block.get("text", "")).strip():
                cited = bool(block.get("citations"))
                last = items[-1] if items else None
                if isinstance(last, AssistantItem) and (cites or cited):
                    last.text += str(block["text"])
                else:
                    items.append(AssistantItem(str(block["text"])))
                cites = cited
            case "thinking" if str(block.get("thinking", "")).strip():
                items.append(ThinkingItem(str(block["thinking"])))
            case "tool_use" | "server_tool_use":
                made = as_meant(block)
                input_ = object_of(made.get("input"))
                id_ = str(block.get("id", ""))
                name = str(made.get("name", ""))
                item = ToolItem(id_, name, _label(name, input_), "interrupted", input=input_)
                calls[id_] = item
                items.append(item)
            case _ if is_result(block):
                found = result_of(block)
                if item := calls.get(found.id):
                    end = found.is_error, 0.0, None, found.summary, found.text
                    fill(item, ToolFinished(found.id, found.name, *end))
            case _:
                pass
    pages = [source._asdict() for source in sources(content)]
    return [*items, sources_item(pages)] if pages else items


def sources_item(pages: Sequence[Mapping[str, str]]) -> NoticeItem:
    """The pages that an answer cites."""
    rows = [f"{page['title']} · {page['url']}".removeprefix(" · ") for page in pages]
    return NoticeItem(f"Cites {plural(len(rows), 'page')}", detail="\n".join(rows), folded=False)


def _label(name: str, input_: dict[str, Any]) -> str:
    if name == SUB_AGENT and "description" in input_:
        return f"{input_.get('agent') or 'general'}: {input_['description']}"
    names = ("command", "path", "pattern", "query", "url", "name", "id")
    label = next((str(input_[name]) for name in names if input_.get(name)), "")
    return label or label_of(named_paths(str(input_.get("patch") or "")))


def fill(item: ToolItem, end: ToolFinished) -> None:
    """Put a finished call's result on its card. A short change is seen without unfolding it."""
    interrupted = end.summary == INTERRUPTED
    if item.state != "denied":
        cut_off = interrupted or end.summary == STOPPED
        item.state = "interrupted" if cut_off else "error" if end.is_error else "ok"
    begun, item.summary, item.seconds = item.summary, end.summary, end.seconds
    if interrupted:
        item.summary = _progress_text(end.text, end.seconds, begun)
        item.seconds = end.seconds or None
    item.receipt, item.diff = end.receipt, end.display
    if item.state == "ok" and 0 < item.diff.count("\n") <= SHORT_DIFF:
        item.folded = False
    item.tail = printed_text(end.text)[-SHOWN_CHARS:] if item.state == "error" else ""
    item.preview = _preview(end)


def _preview(end: ToolFinished) -> str:
    """The first and the last lines of a result, and how many there are between them."""
    text, half = end.text, PREVIEW_LINES // 2
    hint = "" if end.receipt else f" · {SHOWS_ALL}"  # a receipt says itself where all is
    first, last = text[:SHOWN_CHARS].splitlines(), text[-SHOWN_CHARS:].splitlines()
    if len(text) == SHOWN_CHARS and end.name != "shell":  # of a longer one, which is not at hand
        return "\n".join([*first[:PREVIEW_LINES], "… more"])
    count = len(first) if len(text) <= SHOWN_CHARS else len(text.splitlines())
    if count <= PREVIEW_LINES + 1:
        return "\n".join(first)
    more = f"… +{count - 2 * half:,} lines{hint}"
    return "\n".join([*first[:half], more, *last[-half:]])


def close(item: ToolItem, printed: str) -> None:
    """A call to which no end was told: the turn ended before it could begin, or with it."""
    seconds = item.seconds if printed and item.seconds else 0.0
    item.summary = ""
    fill(item, ToolFinished(item.id, item.name, True, seconds, None, INTERRUPTED, printed))


def _progress_text(printed: str, seconds: float, begun: str) -> str:
    """How far an interrupted call came, as far as that is known; its seconds say more."""
    if printed.strip():
        return f"{plural(len(printed.splitlines()), 'line')} printed"
    return "" if seconds else begun or NEVER


def title_of(item: ToolItem) -> str:
    """What the output pane calls a tool call."""
    return title(item.name, item.label)


def attempt_item(data: Mapping[str, Any]) -> AttemptItem:
    """What a `retry` record or its event tells; a field that it lacks, or holds otherwise, is left
    out."""
    attempt, delay, status, received = (
        value if isinstance(value := data.get(name), int | float) else None
        for name in ("attempt", "delay_s", "status", "received")
    )
    return AttemptItem(
        int(attempt or 1),
        str(data.get("error_class") or "unknown"),
        float(delay or 0),
        str(data.get("reason") or ""),
        int(status) if status else None,
        str(data.get("request_id") or ""),
        int(received or 0),
        str(data.get("text") or ""),
    )


def job_item(event: JobFinished) -> NoticeItem:
    """A background command that has ended, its last lines folded below."""
    level = "success" if event.exit_code == 0 else "warning"
    path = f"all output: {shorten(Path(event.path))}" if event.path else ""
    detail = "\n".join(filter(None, (event.text, path)))
    return NoticeItem(one_line(event.summary), "info" if event.stopped_by else level, detail)


def switch_item(data: Mapping[str, Any], back: str = "") -> NoticeItem:
    """What a `failover` record tells; `back` is the way back."""
    new, reason = str(data.get("to") or ""), str(data.get("reason") or "")
    if data.get("error_class") is None:
        return NoticeItem(f"back to {new}: {reason}")
    text = str(data.get("text") or "")
    id_ = f"request {data['request_id']}" if data.get("request_id") else ""
    detail = "\n".join(part for part in (id_, text) if part.strip())
    said = " · ".join(filter(None, (reason, f"switched to {new}", back)))
    return NoticeItem(said, "warning", detail)


def repair_items(findings: Sequence[dict[str, str]]) -> list[Item]:
    """One line for what was repaired; none for mere interruptions, which their cards show."""
    damage = [finding for finding in findings if finding.get("code") != INTERRUPTION]
    return [repair_item(damage)] if damage else []


def repair_item(findings: Sequence[dict[str, str]]) -> NoticeItem:
    """One line for a repair, its findings folded below."""
    lines = [" · ".join(filter(None, (f.get("where"), f.get("action")))) for f in findings]
    count = "one place" if len(lines) == 1 else f"{len(lines)} places"
    return NoticeItem(f"Repaired this session in {count}.", "warning", "\n".join(lines))


def parked_item(
    error_class: str, until: datetime | None, now: datetime | None, *details: str
) -> NoticeItem:
    """A turn that waits for a server's limit."""
    when = f" until {moment(until, now)}" if until and now else ""
    text = f"{words(error_class)}{when}: parked, continues by itself"
    return NoticeItem(text, "warning", "\n".join(filter(None, details)))


def recovery_item(action: str, before: object, after: object, detail: str = "") -> NoticeItem:
    """A request that was too large, and what made it smaller."""
    sizes = [tokens(size) for size in (before, after) if isinstance(size, int)]
    size = f" · {' → '.join(sizes)} tokens" if sizes else ""
    return NoticeItem(f"context full: {action}{size}", "warning", detail)


def compacted_item(
    before: int, after: int, messages: int, summary: str, problem: str = ""
) -> NoticeItem:
    """A compaction, its summary folded below, or why there was none."""
    if problem:
        stop = "" if problem[-1:] in ".!?…" else "."
        return NoticeItem(f"Not compacted: {problem}{stop}", "warning")
    size = f" {tokens(before)} → {tokens(after)} tokens" if before else ""
    what = f"a summary replaces {plural(messages, 'message') if messages else 'what came before'}"
    back = "/uncompact restores everything."
    return NoticeItem(f"Compacted{size}: {what}. {back}", "success", summary)


def exam_item(end: ExamFinished) -> NoticeItem:
    """What came of the exam of a summary, the facts folded below."""
    level = "success" if len(end.facts) == end.held + end.verbatim and end.facts else "warning"
    return NoticeItem(end.text, level, end.detail)


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def debug_item(text: str) -> NoticeItem:
    """A debug block, opened."""
    first, _, rest = text.strip("\n").partition("\n")
    return NoticeItem(first, detail=rest, folded=False)


@dataclass(slots=True)
class RestoredItems:
    """The items of a conversation; `tools` and `outputs` (their texts) by the id of the call."""

    items: list[Item] = field(default_factory=list[Item])
    tools: dict[str, ToolItem] = field(default_factory=dict[str, ToolItem])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    last_answer: str = ""
    turns: int = 0


def restored(records: Sequence[Record]) -> RestoredItems:
    """What the records of a branch come to. Takes a second for 100,000 of them: call it in a
    thread."""
    from tui.context.overrides import overlays_of, pins_of  # noqa: PLC0415 - not for `end_of`
    from tui.context.seen_files import outdated_calls  # noqa: PLC0415

    items = items_of(records)
    tools = {item.id: item for item in items if isinstance(item, ToolItem)}
    outputs: dict[str, str] = {}
    masks, pins, outdated = overlays_of(records), pins_of(records), outdated_calls(records)
    for record in records:
        if record.type != "tool_result":
            continue
        id_ = str(record.data.get("call_id"))
        outputs[id_] = text_of(blocks_of(record.data.get("content")))[:SHOWN_CHARS]
        if item := tools.get(id_):
            item.masked = record.id in masks and masks[record.id].view == "masked"
            item.pinned = record.id in pins
            item.outdated = id_ in outdated
    answers = (item.text for item in reversed(items) if isinstance(item, AssistantItem))
    turns = sum(isinstance(item, UserItem) for item in items)
    return RestoredItems(items, tools, outputs, next(answers, ""), turns)


def result_text(records: Sequence[Record], id_: str) -> str:
    """The whole result of a call, as the model got it first; "" where there is none."""
    for record in reversed(records):
        if record.type == "tool_result" and record.data.get("call_id") == id_:
            return text_of(blocks_of(record.data.get("content")))
    return ""


def end_of(path: Path) -> list[Item]:
    """The last items of a session's file. Blocks; raises SessionError where it cannot be read."""
    items: list[Item] = []
    for size in _END_BYTES:
        items = items_of(read_end(path, size))
        if len(items) >= _END_ITEMS:
            break
    return items


def warm() -> None:
    """Load, in a thread, what the first answer is drawn with, colors of code included."""
    from tui.ui.widgets.markdown import code  # noqa: PLC0415 - not for the first frame
    from tui.ui.widgets.markdown.document import render  # noqa: PLC0415 - as before

    code.color(on=True)
    list(render("- a\n\n```python\nb = 1\n```\n", defaultdict(Style), 80))  # drawn as it is read
