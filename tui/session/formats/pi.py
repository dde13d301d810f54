"""pi and OpenClaw: `~/.pi/agent/sessions/…`, `~/.openclaw/agents/…/sessions/…`, v1 to v3.

v1 is a plain list; from v2 on records name their parents and the last of them is the leaf. Of
turns that ended in an error or were aborted, the texts stay, and the calls are left out with
their results. Thinking stays if an Anthropic server signed it.

pi skips lines that are no JSON, reads nothing unless the first record is a `session` with an id,
reads a role from every `message`, and follows `parentId` from the last record without a guard
against circles (badlogic/pi-mono, `packages/coding-agent/src/core/session-manager.ts`:
`loadEntriesFromFile`, `buildSessionContext`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from tui.core.dataclass import dataclass
from tui.core.messages import Block, image_block, object_of, text_block, text_of
from tui.core.text_cleaning import one_line
from tui.session.formats.conversion import (
    OTHER_BRANCH,
    Conversion,
    Node,
    ParsedLine,
    active_branch,
    content_blocks,
    is_anthropic,
    string,
)
from tui.session.formats.lines import MendedLine, Repairs
from tui.session.formats.links import distinct, linked, session_id, texts_in, with_first
from tui.session.jsonl import JsonObject

_CALLS = frozenset({"toolCall", "toolUse", "functionCall", "tool_use"})
_KINDS = frozenset(
    {
        "message", "thinking_level_change", "model_change", "compaction", "branch_summary",
        "custom", "custom_message", "label", "session_info",
    }
)  # fmt: skip
_BROKEN_OFF = frozenset({"error", "aborted"})
_USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_creation_input_tokens": "cacheWrite",
    "cache_read_input_tokens": "cacheRead",
}
_SKILL = re.compile(
    r'<skill name="([^"]+)" location="[^"]+">\n.*?\n</skill>(?:\n\n(.+))?', re.DOTALL
)
_SETTINGS = {
    "model_change": ("modelId", "The model was changed to {}."),
    "thinking_level_change": ("thinkingLevel", "Thinking was set to {}."),
}
"""The records of the settings that restart the cache: the field of each, and the words for it."""
_SUMMED_UP = "[Summary of a branch that was left]"


@dataclass(slots=True)
class _Entry:
    key: str
    where: str
    value: JsonObject
    number: int
    """Counted from 1 over the lines of the file, the header included."""

    @property
    def time(self) -> object:
        return self.value.get("timestamp")

    def say(self, telling: Conversion, code: str, action: str) -> None:
        telling.findings.add(code, self.where, action)


def matches(value: JsonObject) -> bool:
    """True if an object is a record of this format."""
    kind = string(value, "type")
    if kind == "session":
        return "timestamp" in value and "created" not in value
    return kind in _KINDS and "timestamp" in value and "sessionId" not in value


def convert(places: Iterable[ParsedLine], telling: Conversion) -> None:
    """Add the records of the active branch."""
    settings: dict[str, str] = {}  # the model and the thinking of the next answer
    entries = _entries(places, telling, settings)
    nodes = [_node(entry, before) for before, entry in zip([None, *entries], entries, strict=False)]
    branch = active_branch(nodes, telling.findings)
    by_key = {entry.key: entry for entry in entries}
    on_branch = set(branch)
    for entry in entries:
        if entry.key not in on_branch and entry.value.get("type") == "message":
            telling.leave_out(OTHER_BRANCH, entry.where)
    ours: dict[str | int, str] = {}  # the ids of our records, by id and by line in the original
    changed: dict[str, _Entry] = {}
    met: list[_Entry] = []  # since the last record of ours
    for key in branch:
        entry = by_key[key]
        met.append(entry)
        if entry.value.get("type") in _SETTINGS:
            changed[string(entry.value, "type")] = entry
            continue
        _note_changes(changed, settings, telling)
        before = len(telling.records)
        _convert_entry(entry, telling, ours)
        if len(telling.records) > before:
            # what a compaction left may begin with settings
            names = [name for one in met for name in (one.key, one.number)]
            ours |= dict.fromkeys(names, telling.records[before].id)
            met.clear()
    _note_changes(changed, settings, telling)


def _note_changes(
    changed: dict[str, _Entry], settings: dict[str, str], telling: Conversion
) -> None:
    """Note what was set anew since the last message. The first settings of a session, and those
    that were changed back, change nothing."""
    for kind, entry in changed.items():
        name, words = _SETTINGS[kind]
        value = string(entry.value, name)
        if telling.records and value and value != settings.get(name):
            telling.add("note", entry.key, entry.time, text=words.format(one_line(value)))
        settings[name] = value
    changed.clear()


def _entries(
    places: Iterable[ParsedLine], telling: Conversion, settings: dict[str, str]
) -> list[_Entry]:
    entries: list[_Entry] = []
    seen: dict[str, JsonObject] = {}
    for line, value in places:
        kind, id_ = value.get("type"), value.get("id")
        if kind == "session":
            if not telling.session_id:  # else of a second file, fused to this one
                _note_session(telling, value)
                settings |= {name: string(value, name) for name, _ in _SETTINGS.values()}
            continue
        if not isinstance(kind, str):
            telling.findings.add("B56", line.where, "skipped: a record without a type")
            continue
        key = id_ if isinstance(id_, str) and id_ else f"line-{line.number}-{len(entries)}"
        if key in seen:
            if seen[key] == value:
                telling.findings.add("B44", line.where, "left out: a copy of an earlier record")
                continue
            telling.findings.add("B44", line.where, "kept: another record with a taken id")
            key = f"{key}-{line.number}-{len(entries)}"
        seen[key] = value
        entries.append(_Entry(key, line.where, value, line.number))
    return entries


def _note_session(telling: Conversion, header: JsonObject) -> None:
    version = header.get("version", 1)
    telling.session_id = string(header, "id")
    telling.version = f"v{version}" if isinstance(version, int) else ""
    telling.created = string(header, "timestamp")
    telling.cwd = string(header, "cwd")


def _node(entry: _Entry, before: _Entry | None) -> Node:
    """The entry's place in the tree; without an id, as in v1, below the one before it."""
    value = entry.value
    if "parentId" in value or "id" in value:
        parent = value.get("parentId")
        lost = "" if "parentId" not in value else None
        above = parent if isinstance(parent, str) else lost
    else:
        above = before.key if before else None
    return Node(entry.key, above, entry.where)


def _convert_entry(entry: _Entry, telling: Conversion, ours: Mapping[str | int, str]) -> None:
    value = entry.value
    match value.get("type"):
        case "message":
            _convert_message(entry, telling)
        case "custom_message":
            blocks = content_blocks(value.get("content"), entry.where, telling.findings)
            telling.user(entry.key, entry.time, list(map(_block, blocks or [])), typed=None)
        case "branch_summary":
            _sum_up(entry, telling, string(value, "summary"))
        case "compaction":
            first_kept = ours.get(string(value, "firstKeptEntryId")) or ours.get(
                _line_of(value.get("firstKeptEntryIndex"))
            )
            telling.tokens_before = value.get("tokensBefore")
            telling.compaction(entry.key, entry.time, string(value, "summary"), first_kept or "")
        case "session_info":
            telling.title = " ".join(string(value, "name").split())[:80] or telling.title
        case _:
            # labels and data of extensions: no part of the conversation
            telling.leave_out(string(value, "type"), entry.where)


def _line_of(index: object) -> int:
    """v1 counts lines from 0, the header included."""
    return index + 1 if isinstance(index, int) else 0


def _convert_message(entry: _Entry, telling: Conversion) -> None:
    given = entry.value.get("message")
    if not isinstance(given, dict):
        entry.say(telling, "B56", "skipped: the message is not an object")
        return
    message = cast("JsonObject", given)
    role = message.get("role")
    if role == "bashExecution":
        _convert_command(entry, message, telling)
        return
    if role in ("branchSummary", "compactionSummary"):
        _sum_up(entry, telling, string(message, "summary"))
        return
    blocks = content_blocks(message.get("content"), entry.where, telling.findings)
    if not isinstance(role, str) or blocks is None:
        entry.say(telling, "B56", "skipped: a message without content or role")
    elif role == "assistant":
        _convert_answer(entry, message, blocks, telling)
    elif role == "toolResult":
        _convert_result(entry, message, blocks, telling)
    else:
        content = list(map(_block, blocks))
        typed = _typed(text_of(content)) if role == "user" else None
        telling.user(entry.key, entry.time, content, typed=typed)


def _typed(text: str) -> str:
    """The prompt as it was typed: the program puts a skill's text in the place of its command."""
    match = _SKILL.fullmatch(text)
    return f"/skill:{match[1]} {match[2] or ''}".strip() if match else text


def _convert_answer(
    entry: _Entry, message: JsonObject, given: list[Block], telling: Conversion
) -> None:
    signed = is_anthropic(string(message, "provider"), string(message, "model"))
    stop = string(message, "stopReason")
    if stop in _BROKEN_OFF:
        _convert_broken_off(entry, message, given, telling)
        return
    blocks: list[Block] = []
    for block in given:
        begun = "partialJson" in block and not block.get("arguments")  # no more than that
        if begun and string(block, "type") in _CALLS:
            telling.gone.add(str(block.get("id")))
            entry.say(telling, "B23", "a call cut off in the middle left out")
        elif block.get("type") != "thinking":
            blocks.append(_block(block))
        elif signed:
            blocks.append(_thinking_block(block))
        else:
            telling.leave_out("thinking that no server here signed", entry.where)
    if not blocks:
        if not given:
            entry.say(telling, "B55", "an empty answer left out")
        return
    usage = object_of(message.get("usage"))
    counts = {ours: usage.get(theirs) for ours, theirs in _USAGE.items()}
    telling.answer(
        entry.key,
        entry.time,
        blocks,
        model=string(message, "model"),
        usage={name: n for name, n in counts.items() if isinstance(n, int)},
        stop_reason={"toolUse": "tool_use", "length": "max_tokens"}.get(stop, "end_turn"),
    )


def _convert_broken_off(
    entry: _Entry, message: JsonObject, given: list[Block], telling: Conversion
) -> None:
    """An answer that broke off: its text stays as an interrupted answer, its calls are left out."""
    calls = [block for block in given if string(block, "type") in _CALLS]
    telling.gone.update(str(block.get("id")) for block in calls)
    if calls:
        what = "a call" if len(calls) == 1 else f"{len(calls)} calls"
        entry.say(telling, "B23", f"{what} of an answer that broke off left out")
    answer = text_of(given).strip()
    why = string(message, "errorMessage") or string(message, "stopReason")
    if string(message, "stopReason") == "error":
        telling.add("error", entry.key, entry.time, error_class="unknown", message=why)
    if not answer and not calls:
        entry.say(telling, "B55", "an empty answer left out")
    telling.add("interrupt", entry.key, entry.time, reason=why, text=answer, thinking="")


def _convert_result(
    entry: _Entry, message: JsonObject, blocks: list[Block], telling: Conversion
) -> None:
    call_id = message.get("toolCallId")
    if str(call_id) in telling.gone:
        entry.say(telling, "B23", "the result of a call that was left out is left out too")
        return
    telling.calls.setdefault(str(call_id), string(message, "toolName"))
    content = list(map(_block, blocks))
    failed = message.get("isError") is True
    telling.result(entry.key, entry.time, call_id, content, is_error=failed)


def _convert_command(entry: _Entry, message: JsonObject, telling: Conversion) -> None:
    """A command that the person ran: the model gets it as text."""
    if message.get("excludeFromContext") is True:
        telling.leave_out("a command that the model wasn't to see", entry.where)
        return
    output = string(message, "output").strip("\n")
    lines = [f"Ran `{string(message, 'command')}`"]
    lines += ["```", output, "```"] if output.strip() else ["(no output)"]
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        lines.append("The command was cancelled.")
    elif isinstance(code, int) and code:
        lines.append(f"The command exited with code {code}.")
    if message.get("truncated") is True and (path := string(message, "fullOutputPath")):
        lines.append(f"The full output is in {path}.")
    block = text_block("\n".join(lines))
    telling.user(entry.key, entry.time, [block], typed=None)


def _sum_up(entry: _Entry, telling: Conversion, summary: str) -> None:
    if summary.strip():
        block = text_block(f"{_SUMMED_UP}\n{summary}")
        telling.user(entry.key, entry.time, [block], typed=None)


def _block(block: Block) -> Block:
    """A block in the API's own shape."""
    kind = string(block, "type")
    if kind == "text":
        return {"type": "text", "text": block.get("text")}
    if kind == "image" and "source" not in block:
        return image_block(block.get("mimeType"), block.get("data"))
    if kind in _CALLS:
        arguments = block.get("arguments", block.get("input"))
        name = block.get("name")
        return {"type": "tool_use", "id": block.get("id"), "name": name, "input": arguments}
    return block


def _thinking_block(block: Block) -> Block:
    if block.get("redacted") is True:
        return {"type": "redacted_thinking", "data": block.get("thinkingSignature")}
    thinking, signature = block.get("thinking"), block.get("thinkingSignature")
    return {"type": "thinking", "thinking": thinking, "signature": signature}


def repair_lines(given: list[MendedLine], repairs: Repairs, name: str) -> list[MendedLine]:
    """The lines, so that pi opens the session. `name` is that of the file."""
    lines = list(_speaking(given, repairs))

    def made(broken: JsonObject) -> JsonObject:
        tree = any("parentId" in line.value for line in lines)
        return {
            **(broken or ({"version": 3} if tree else {})),
            "type": "session",
            "id": session_id(name, given),
            "timestamp": next(texts_in(lines, "timestamp"), "1970-01-01T00:00:00.000Z"),
            "cwd": next(texts_in(lines, "cwd"), "/"),
        }

    lines = with_first(lines, repairs, _is_header, "session", made)
    lines = distinct(lines, "id", repairs)
    return linked(lines, ("id", "parentId"), repairs, _is_entry)


def _is_header(value: JsonObject) -> bool:
    return value.get("type") == "session" and isinstance(value.get("id"), str)


def _is_entry(value: JsonObject) -> bool:
    return value.get("type") != "session"


def _speaking(lines: list[MendedLine], repairs: Repairs) -> Iterator[MendedLine]:
    """The lines without messages that nobody says: pi fails on one without a role."""
    for line in lines:
        role = object_of(line.value.get("message")).get("role")
        if line.value.get("type") == "message" and not isinstance(role, str):
            repairs.add(line.number, "a message without a role: set aside", line.raw)
        else:
            yield line
