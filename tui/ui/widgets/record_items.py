"""The items of a conversation, from its records and from facts, which both share; and the state of
the screen for a session that is continued."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UnsetType
from rich.style import Style

from tui.agent.prompts import HOOKS_SAY
from tui.context.interrupted_calls import interrupted_calls
from tui.core import facts
from tui.core.characters import clusters
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import words
from tui.core.facts import Fact, Told, ToolFinished
from tui.core.formatting import moment_of, plural
from tui.core.messages import blocks_of, list_of, text_of
from tui.core.retold import answer_facts, retold
from tui.core.text_cleaning import one_line, printed_text
from tui.session.reader import read_end
from tui.session.records import Record
from tui.tools.patch_format import label_of, named_paths
from tui.tools.registry import title
from tui.ui.widgets.conversation.items import (
    SHOWS_ALL,
    STOPPED,
    SUB_AGENT,
    TERMINAL,
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)

_LABELLED_CHARS = 100_000

INTERRUPTED = "interrupted"
"""The summary of a call that was closed without an end of its own."""
BEGUN, NEVER = "may have run, end unknown", "never started"
_OUTCOMES = {
    "never_started": NEVER,
    "finished_result_lost": "finished, result lost",
    "unknown": "end unknown",
}
SEEN_ELSEWHERE: Mapping[type[object], str] = {
    facts.CheckpointTaken: "in /diff and /rewind",
    facts.ContextChanged: "marks on the cards, and what the key that did it says",
    facts.JobStarted: "the command's card",
    facts.PermissionAnswered: "the call's card",
    facts.QuestionAnswered: "the call's card",
    facts.SubAgentEvent: "the card of its call",
    facts.SubAgentFinished: "the card of its call",
    facts.SubAgentStarted: "the card of its call",
    facts.CompactionStarted: "the line above the prompt, while it lasts",
    facts.ExamStarted: "the line above the prompt, while it lasts",
    facts.OverflowCompactionStarted: "the line above the prompt, while it lasts",
    facts.ToolsAwaited: "the line above the prompt, while it lasts",
    facts.StorageChanged: "the light in the status line",
}
"""Facts that have words but no line of their own in the conversation, and where they are seen."""
SHORT_DIFF = 16
"""Most lines of a diff that is shown open once the change is made."""
PREVIEW_LINES = 12
SHOWN_CHARS = 8000
_END_BYTES = (32 * 1024, 512 * 1024)
"""Bytes of a session's file that are read for its end: more, if the first part has too few
items."""
_END_ITEMS = 40


def items_of(records: Iterable[Record]) -> list[Item]:
    """Return the items of a conversation from its records, in their order."""
    calls: dict[str, ToolItem] = {}
    branch = list(records)
    items = [item for record, told in retold(branch) for item in _items_again(told, record, calls)]
    if any(item.state == "interrupted" for item in calls.values()):
        for call in interrupted_calls(branch):
            item = calls.get(call.call_id)
            if item and item.state == "interrupted":  # not one that was denied
                begun = call.outcome == "unknown" and call.started
                item.summary = BEGUN if begun else _OUTCOMES[call.outcome]
    return items


@dataclass(slots=True)
class ItemFollower:
    """Makes the items of a growing branch, each record once. `calls` are its tool calls by id."""

    calls: dict[str, ToolItem] = field(default_factory=dict[str, ToolItem])
    _seen: int = 0

    def advance(self, records: Sequence[Record]) -> tuple[list[Item], list[Item]]:
        """Return the items that came, and those that changed, since the last call. A tool call runs
        until its result is there, or until `end`."""
        came: list[Item] = []
        changed: dict[str, Item] = {}
        for record, told in retold(records[self._seen :]):
            made = _items_again(told, record, self.calls)
            for item in made:
                if isinstance(item, ToolItem) and item.state == "interrupted":
                    item.state = "running"
            came += made
            id_ = _call_of(told)
            if item := self.calls.get(id_):
                item.summary = "" if item.state == "running" else item.summary
                changed[id_] = item
        self._seen = len(records)
        return came, [item for item in changed.values() if item not in came]

    def end(self) -> list[Item]:
        """Mark calls without a result as interrupted, since no more records come, and return
        them."""
        open_ = [item for item in self.calls.values() if item.state == "running"]
        for item in open_:
            item.state = "interrupted"
        return list(open_)


def entry_of(records: Sequence[Record], id_: str, items: Sequence[Item]) -> Item | None:
    """Return the item that shows a record; `items` are `items_of` the same records."""
    calls: dict[str, ToolItem] = {}
    cards = {item.id: item for item in items if isinstance(item, ToolItem)}
    place = 0
    for record, told in retold(records):
        if record.id == id_ and (call := _call_of(told)):
            return cards.get(call)
        new = _items_again(told, record, calls)
        if record.id == id_:
            return items[min(place, len(items) - 1)] if items else None
        place += len(new)
    return None


def _items_again(told: Told | None, record: Record, calls: dict[str, ToolItem]) -> list[Item]:
    """The items of what a record tells."""
    match told:
        case None:
            return []
        case facts.UserMessage(by="goal"):
            return []  # the line of its round says it
        case facts.UserMessage(typed=UnsetType()):
            return [NoticeItem(told.text)]
        case facts.UserMessage(attached=attached):
            along = [sent_along_item(told)] if attached.strip() else []
            return [UserItem(told.prompt), *along]
        case facts.AssistantMessage():
            return [item for part in answer_facts(told) for item in _answer_item(part, calls)]
        case facts.PermissionAnswered() | facts.CallBegan() | facts.ToolFinished():
            if item := calls.get(_call_of(told)):
                _add_fact(item, told)
            return []
        case facts.TurnInterrupted(text=partial):
            stopped = NoticeItem("Stopped here.", "warning")
            return [AssistantItem(partial), stopped] if partial.strip() else [stopped]
        case _:
            item = fact_item(told, moment_of(record.time))
            return [item] if item else []


def _call_of(told: Told | None) -> str:
    """The call whose card shows a fact; "" for other facts."""
    match told:
        case facts.PermissionAnswered(id_) | facts.ToolFinished(id_) | facts.CallBegan(id_):
            return id_
        case _:
            return ""


def fact_item(fact: Told, now: datetime | None, void: str = "") -> Item | None:
    """Return the item for what happened, live or replayed; None if it is seen in another way (see
    `SEEN_ELSEWHERE`). `void` is the text of an answer that is made again."""
    void = void or getattr(fact, "streamed", "")
    if type(fact) in SEEN_ELSEWHERE:
        return None
    match fact:
        case facts.RetryScheduled():
            return _attempt_item(fact, void)
        case facts.CompactionFinished(reason="overflow" | "digest", problem=""):
            return None  # the recovery step has its own line
        case facts.Debug(text):
            first, _, others = text.strip("\n").partition("\n")
            return NoticeItem(first, detail=others, folded=False)
        case _:
            sentence = words(fact, now)
    if sentence is None:
        return None
    detail = "\n".join(part for part in (sentence.detail, void) if part.strip())
    hint, moved = sentence.hint, isinstance(fact, facts.Rewound)
    folded = not sentence.open or isinstance(fact, facts.SideQuestion)
    return NoticeItem(sentence.text, sentence.level, detail, folded, hint, moved)


def sent_along_item(message: facts.UserMessage) -> NoticeItem:
    """Return one line for what went along with a prompt, with the text folded below."""
    text = message.attached
    lines = plural(text.count("\n") + 1, "line")
    what = "what your hooks say" if text.startswith(HOOKS_SAY) else "your shell output"
    what = "the command's text" if message.command else what
    return NoticeItem(f"Included {what} ({lines})", detail=text)


def _add_fact(
    item: ToolItem, told: facts.PermissionAnswered | facts.CallBegan | ToolFinished
) -> None:
    """Put on its card what is told of a call."""
    match told:
        case facts.PermissionAnswered():
            show_decision(item, told)
        case facts.CallBegan():
            item.summary = BEGUN
            item.label = item.label or told.label
        case ToolFinished():
            fill(item, told)


def show_decision(item: ToolItem, decided: facts.PermissionAnswered) -> None:
    """Put on its card if a call may run, and the command as it runs, which a hook may have changed
    after the model wrote it."""
    subject, written = decided.subject, item.input.get("command")
    if item.name == "run_command" and subject and written not in {None, subject}:
        item.label = one_line(subject)
    item.label = item.label or subject
    if decided.answer in {"no", "deny"}:
        item.state, item.summary = "denied", decided.reason
    else:
        item.elevated, item.level = decided.by == "elevated", decided.level


def _answer_item(part: Fact, calls: dict[str, ToolItem]) -> list[Item]:
    """The item of a part of an answer, if it has one."""
    match part:
        case facts.TextDelta(text):
            return [AssistantItem(text)] if text.strip() else []
        case facts.ThinkingDelta(text):
            return [ThinkingItem(text)] if text.strip() else []
        case facts.ToolStarted(id_, name, input_):
            item = ToolItem(id_, name, _label(name, input_), "interrupted", input=input_)
            calls[id_] = item
            return [item]
        case ToolFinished(id_):
            if item := calls.get(id_):
                fill(item, part)
            return []
        case _:
            item = fact_item(part, None)
            return [item] if item else []


def _label(name: str, input_: dict[str, Any]) -> str:
    if name == SUB_AGENT and "description" in input_:
        return f"{input_.get('agent') or 'general'}: {input_['description']}"
    if name == TERMINAL:
        return terminal_label(input_)
    names = ("command", "path", "pattern", "query", "url", "name", "id")
    label = next((str(input_[name]) for name in names if input_.get(name)), "")
    return label or label_of(named_paths(str(input_.get("patch") or "")))


def terminal_label(input_: dict[str, Any]) -> str:
    """Return the label of a step in a terminal: what is started, or what is typed where."""
    action, terminal = input_.get("action"), str(input_.get("terminal") or "")
    if action == "start":
        return (str(input_.get("command") or "").strip().splitlines() or [""])[0]
    if action != "send":
        return f"{action or ''} {terminal}".strip()
    keys = input_.get("keys")
    named = ["⏎" if key == "enter" else f"<{key}>" for key in list_of(keys)]
    return f"{terminal} ← {' '.join((str(input_.get('text') or '') + ''.join(named)).split())}"


def screen_in(text: str) -> str:
    """Return the screen of a terminal in the result of a step; "" where there is none."""
    head, _, rest = text.rpartition("\n[screen ")
    if not head and text.startswith("[screen "):
        rest = text
    _, _, screen = rest.partition("]\n")
    rows = screen.split("\n")
    while rows and rows[-1].startswith("["):
        del rows[-1]
    return "\n".join(rows)


def label_of_written(name: str, json_text: str) -> str:
    """Return the label of a call whose input is complete but not looked at yet, "" if it is no
    JSON object or so long that reading it would be felt."""
    if len(json_text) > _LABELLED_CHARS:
        return ""
    with suppress(msgspec.MsgspecError):
        return _label(name, msgspec.json.decode(json_text, type=dict[str, Any]))
    return ""


def fill(item: ToolItem, end: ToolFinished) -> None:
    """Put a finished call's result on its card. A short change is shown without unfolding it."""
    interrupted = end.summary == INTERRUPTED
    begun, item.seconds = item.summary, end.seconds
    if item.state != "denied":
        cut_off = interrupted or end.summary == STOPPED
        item.state = "interrupted" if cut_off else "error" if end.is_error else "ok"
        item.summary = ""
    item.summary = item.summary or end.summary  # of a no, the reason stays
    if interrupted:
        item.summary = _progress_text(end.text, end.seconds, begun)
        item.seconds = end.seconds or None
    item.receipt, item.diff = end.receipt, end.display
    if item.state == "ok" and 0 < item.diff.count("\n") <= SHORT_DIFF:
        item.folded = False
    item.tail = printed_text(end.text)[-SHOWN_CHARS:] if item.state == "error" else ""
    if item.name == TERMINAL and (screen := screen_in(end.text)):
        item.tail = screen
    item.picture, item.preview = "", _preview(end)


def _preview(end: ToolFinished) -> str:
    """Return the first and the last lines of a result, and the number of lines between them."""
    text, half = end.text, PREVIEW_LINES // 2
    hint = "" if end.receipt else f" · {SHOWS_ALL}"  # a receipt names the full copy itself
    first, last = text[:SHOWN_CHARS].splitlines(), text[-SHOWN_CHARS:].splitlines()
    if len(text) == SHOWN_CHARS and end.name != "shell":  # the beginning of a longer text
        return "\n".join([*first[:PREVIEW_LINES], "… more"])
    count = len(first) if len(text) <= SHOWN_CHARS else len(text.splitlines())
    if count <= PREVIEW_LINES + 1:
        return "\n".join(first)
    more = f"… +{count - 2 * half:,} lines{hint}"
    return "\n".join([*first[:half], more, *last[-half:]])


def close(item: ToolItem, printed: str) -> None:
    """Close a call without a reported end: the turn ended before it could begin, or with it."""
    seconds = item.seconds if printed and item.seconds else 0.0
    item.summary = ""
    fill(item, ToolFinished(item.id, item.name, True, seconds, None, INTERRUPTED, printed))


def _progress_text(printed: str, seconds: float, begun: str) -> str:
    """Say how far an interrupted call came, as far as that is known; its seconds say more."""
    if printed.strip():
        return f"{plural(len(printed.splitlines()), 'line')} printed"
    return "" if seconds else begun or NEVER


def title_of(item: ToolItem) -> str:
    """Return a tool call's title in the output pane."""
    return title(item.name, item.label)


def _attempt_item(fact: facts.RetryScheduled, void: str) -> AttemptItem:
    return AttemptItem(
        fact.attempt,
        fact.error_class,
        fact.delay_s,
        fact.reason,
        fact.status,
        fact.request_id or "",
        fact.received,
        void,
    )


@dataclass(slots=True)
class RestoredItems:
    """The items of a conversation; `tools` and `outputs` (their texts) by the id of the call."""

    items: list[Item] = field(default_factory=list[Item])
    tools: dict[str, ToolItem] = field(default_factory=dict[str, ToolItem])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    last_answer: str = ""
    turns: int = 0


def restored(records: Sequence[Record]) -> RestoredItems:
    """Restore the items of a branch from its records. Takes a second for 100,000 of them, so call
    it in a thread."""
    from tui.context.overrides import overlays_of, pins_of  # noqa: PLC0415 - not for `end_of`
    from tui.context.seen_files import outdated_calls  # noqa: PLC0415

    items = items_of(records)
    tools = {item.id: item for item in items if isinstance(item, ToolItem)}
    outputs = outputs_of(records)
    masks, pins, outdated = overlays_of(records), pins_of(records), outdated_calls(records)
    for record in records:
        if record.type != "tool_result":
            continue
        id_ = str(record.data.get("call_id"))
        if item := tools.get(id_):
            item.masked = record.id in masks and masks[record.id].view == "masked"
            item.pinned = record.id in pins
            item.outdated = id_ in outdated
    answers = (item.text for item in reversed(items) if isinstance(item, AssistantItem))
    turns = sum(isinstance(item, UserItem) for item in items)
    return RestoredItems(items, tools, outputs, next(answers, ""), turns)


def outputs_of(records: Iterable[Record]) -> dict[str, str]:
    """Return the beginning of each call's result, by the id of the call."""
    return {
        str(record.data.get("call_id")): text_of(blocks_of(record.data.get("content")))[
            :SHOWN_CHARS
        ]
        for record in records
        if record.type == "tool_result"
    }


def unfinished_items(answer: str) -> list[Item]:
    """Return the items for an answer that the end of its process cut off."""
    text = "Holdfast closed here before the answer was complete. The model hasn't seen this part."
    return [AssistantItem(answer), NoticeItem(text, "warning")]


def result_text(records: Sequence[Record], id_: str) -> str:
    """Return the whole result of a call, as the model first got it; "" if there is none."""
    for record in reversed(records):
        if record.type == "tool_result" and record.data.get("call_id") == id_:
            return text_of(blocks_of(record.data.get("content")))
    return ""


def end_of(path: Path) -> list[Item]:
    """Return the last items of a session's file. Blocks; raises SessionError if it cannot be
    read."""
    items: list[Item] = []
    for size in _END_BYTES:
        items = items_of(read_end(path, size))
        if len(items) >= _END_ITEMS:
            break
    return items


def warm(items: Sequence[Item] = ()) -> None:
    """Load what Markdown is drawn with, what colors the code in the last of `items`, and what tells
    characters of any script apart; for a thread, since all of it is done in the loop."""
    from tui.ui.widgets.markdown import code  # noqa: PLC0415 - not for the first frame

    clusters("e\u0301")
    code.color(on=True)
    load_markdown()
    shown = (item.text for item in items[-_END_ITEMS:] if isinstance(item, AssistantItem))
    for language in {name for text in shown for name in code.languages(text)}:
        _draw(f"```{language}\nb = 1\n```\n")


def load_markdown() -> None:
    """Load what Markdown without code is drawn with."""
    _draw("- a\n")


def warm_turn() -> None:
    """Load what the first code is colored with, and its first command judged; for a thread, too."""
    import_module("tui.permissions.risk")
    _draw("```python\nb = 1\n```\n")


def _draw(text: str) -> None:
    from tui.ui.widgets.markdown.document import render  # noqa: PLC0415 - not for the first frame

    list(render(text, defaultdict(Style), 80))  # drawn as it is read
