"""Claude Code: `~/.claude/projects/{folder}/{session}.jsonl`.

A record is usually one content block: those with one `message.id` are pieces of one answer, and
the results of its calls may be linked to any of the pieces. So the records are first grouped into
whole answers, each result goes to the answer that made its call, and the branch is followed from
group to group.

Kept in the request but no prompt: what the program itself said for the user (`isMeta`, a skill's
text, commands of its own and a shell's, notices of an interrupt or of a task). Its own mark is
`origin`, which 2.1.123 writes and 2.1.42 didn't. What was sent while a turn ran is an attachment,
`queued_command`. Left out: error texts stored as answers, and fields that a request may not have
(`caller` and others). What sub-agents said, in the file or in files beside it, become sessions of
their own (`side_chains`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from tui.core.messages import Block, Usage, object_of, text_of
from tui.session.formats.claude_code.records import ROLES, answer_id
from tui.session.formats.claude_code.side_chains import PlacedRecord, name_sub_agent, sub_agents
from tui.session.formats.conversion import (
    OTHER_BRANCH,
    Conversion,
    Node,
    ParsedLine,
    active_branch,
    content_blocks,
    string,
    typed_text,
)
from tui.session.jsonl import Findings, JsonObject

_BY_PROGRAM = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|system-reminder|task-notification|teammate-message"
    r"|ide_)|\[Request interrupted|Caveat: The messages below|Operation stopped by hook:"
    r"|Another Claude session sent a message:)"
)
_COMMAND = re.compile(
    r"\s*<command-message>.*?</command-message>\s*<command-name>(/.*?)</command-name>"
    r"(?:\s*<command-args>(.*?)</command-args>)?\s*",
    re.DOTALL,
)
"""Pattern of a command that is a prompt, `/review`, whose text follows. The program's own ones, as
`/login`, begin with the name and ask nothing of the model."""
_NOT_TYPED = ("isMeta", "isVisibleInTranscriptOnly", "turnCompanion", "sourceToolUseID")
"""The marks of what nobody typed; `sourceToolUseID` names the call that a skill's text is for."""


def convert(places: Iterable[ParsedLine], telling: Conversion) -> None:
    """Add the records of the active branch, and what the sub-agents said."""
    summaries: list[str] = []
    entries, side = entries_of(places, telling, summaries)
    telling.children = sub_agents(entries, side, telling, _convert_sub_agent)
    _tell(entries, telling)
    for child in telling.children:  # those whose call has no result, or isn't known
        name_sub_agent(child, telling)
    if summaries:
        telling.title = summaries[-1]


def _convert_sub_agent(places: Sequence[ParsedLine], telling: Conversion) -> list[PlacedRecord]:
    """Add what one sub-agent said. Returns its records."""
    entries = _entries_of(places, telling, [])
    _tell(entries, telling)
    telling.finish()
    return entries


def _tell(entries: Sequence[PlacedRecord], telling: Conversion) -> None:
    groups, nodes = grouped(entries)
    branch = active_branch(nodes, telling.findings)
    on_branch = set(branch)
    for key, group in groups.items():
        if key not in on_branch:
            for entry in (one for one in group if one.blocks is not None):
                telling.leave_out(OTHER_BRANCH, entry.where)
    earlier = False  # whether anything was said before
    for key in branch:
        earlier |= _convert_group(groups[key], telling, earlier=earlier)


def _convert_group(entries: Sequence[PlacedRecord], telling: Conversion, *, earlier: bool) -> bool:
    """Add the records of one group. Returns whether they have content."""
    answers = [entry for entry in entries if entry.value.get("type") == "assistant"]
    spoke = _convert_answer(answers, telling)
    for entry in entries:
        kind = entry.value.get("type")
        if kind == "user":
            spoke |= _convert_user(entry, telling, earlier=earlier)
        elif kind == "system":
            _convert_system(entry, telling)
    return spoke


def _convert_answer(pieces: Sequence[PlacedRecord], telling: Conversion) -> bool:
    """One answer, put together from its pieces in the order of the file."""
    kept: list[PlacedRecord] = []
    for piece in pieces:
        model = object_of(piece.value.get("message")).get("model")
        if piece.value.get("isApiErrorMessage") or model == "<synthetic>":
            telling.findings.add("B57", piece.where, "left out: an error text stored as an answer")
            words = text_of(piece.blocks or ())
            telling.add("error", piece.key, _time(piece), error_class="unknown", message=words)
        else:
            kept.append(piece)
    blocks = _put_together(kept, telling.findings)
    if not blocks:
        return False
    first, last = kept[0], object_of(kept[-1].value.get("message"))
    usage = Usage.from_json(last.get("usage")).to_json()
    reasons = [object_of(piece.value.get("message")).get("stop_reason") for piece in kept]
    telling.answer(
        first.key,
        _time(first),
        blocks,
        model=string(last, "model"),
        usage=usage,
        stop_reason=next((r for r in reversed(reasons) if r), None),
    )
    return True


def _put_together(pieces: Sequence[PlacedRecord], findings: Findings) -> list[Block]:
    """The blocks of an answer's pieces, without copies and without blank texts between them."""
    if len(pieces) == 1:
        return [_sent(block) for block in pieces[0].blocks or ()]
    blocks: list[Block] = []
    for piece in pieces:
        for block in map(_sent, piece.blocks or ()):
            if block in blocks:
                findings.add("B44", piece.where, "left out: a copy of an earlier piece")
            elif block.get("type") != "text" or str(block.get("text")).strip():
                blocks.append(block)
    return blocks


def _convert_user(entry: PlacedRecord, telling: Conversion, *, earlier: bool) -> bool:
    """Results, and other content of the user's side in one record."""
    value, blocks = entry.value, entry.blocks or []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for number, block in enumerate(results):
        for child in telling.children:
            if child.call and child.call == block.get("tool_use_id"):
                name_sub_agent(child, telling)
        telling.result(
            f"{entry.key}-{number}",
            _time(entry),
            block.get("tool_use_id"),
            block.get("content"),
            is_error=block.get("is_error") is True,
        )
    others = [block for block in blocks if block.get("type") != "tool_result"]
    if value.get("isCompactSummary"):
        words = text_of(others)
        if earlier:  # all that it sums up is in the file: it is an event, not a message
            telling.compaction(entry.key, _time(entry), words)
            return bool(results)
        telling.user(entry.key, _time(entry), others, typed=None)
        return bool(others or results)
    telling.user(entry.key, _time(entry), others, typed=_typed(value, others))
    return bool(others or results)


def _typed(value: JsonObject, blocks: Sequence[Block]) -> str | None:
    """The part of a message that the person typed; None where nobody did."""
    origin = string(object_of(value.get("origin")), "kind")
    if origin not in ("", "human") or value.get("promptSource") == "system":
        return None
    if any(map(value.get, _NOT_TYPED)):
        return None
    if command := _COMMAND.fullmatch(text_of(blocks)):
        return f"{command[1]} {command[2] or ''}".strip()
    return typed_text(blocks, _BY_PROGRAM)


def _convert_system(entry: PlacedRecord, telling: Conversion) -> None:
    words = entry.value.get("content")
    if entry.value.get("subtype") == "compact_boundary":
        telling.tokens_before = object_of(entry.value.get("compactMetadata")).get("preTokens")
    if entry.value.get("subtype") == "local_command" and isinstance(words, str):
        telling.add("note", entry.key, _time(entry), text=words)


def _sent(block: Block) -> Block:
    """A block of an answer as a request knows it: without `caller`."""
    return {name: value for name, value in block.items() if name != "caller"}


def _time(entry: PlacedRecord) -> Any:
    return entry.value.get("timestamp")


def entries_of(
    places: Iterable[ParsedLine], telling: Conversion, summaries: list[str]
) -> tuple[list[PlacedRecord], list[ParsedLine]]:
    """The records that have a place in the tree, each once, and those of side chains.

    The file of a sub-agent has side chains only: they are then the conversation.
    """
    side: list[ParsedLine] = []
    entries = _entries_of(_without_side_chains(places, side), telling, summaries)
    if side and not any(entry.blocks is not None for entry in entries):
        return _entries_of(side, telling, summaries), []
    return entries, side


def _without_side_chains(
    places: Iterable[ParsedLine], side: list[ParsedLine]
) -> Iterator[ParsedLine]:
    """The records but those of side chains, which go to `side`."""
    for line, value in places:
        if value.get("isSidechain") is True:
            side.append((line, value))
        else:
            yield line, value


def _entries_of(
    places: Iterable[ParsedLine], telling: Conversion, summaries: list[str]
) -> list[PlacedRecord]:
    entries: list[PlacedRecord] = []
    seen: set[str] = set()
    copies = 0
    first_copy = ""
    for line, read in places:
        value = _with_queued_prompt(read)
        kind, uuid = value.get("type"), value.get("uuid")
        if not isinstance(kind, str):
            telling.findings.add("B56", line.where, "skipped: a record without a type")
            continue
        if kind == "summary":
            if words := " ".join(string(value, "summary").split())[:80]:
                summaries.append(words)
            continue
        if not isinstance(uuid, str) or not uuid:
            if kind not in ROLES:
                telling.leave_out(kind, line.where)  # snapshots, the queue
                continue
            telling.findings.add("B53", line.where, "linked to the record before it: no id")
            uuid = f"line-{line.number}-{len(entries)}"
            value = {**value, "uuid": uuid, "parentUuid": ""}
        blocks = _blocks(value, line.where, telling.findings) if kind in ROLES else None
        if kind in ROLES and blocks is None:
            continue
        if uuid in seen:
            copies += 1
            first_copy = first_copy or line.where
            continue
        seen.add(uuid)
        _note_session(telling, value)
        entries.append(PlacedRecord(line.where, value, blocks))
        if not has_place(entries[-1]):
            subtype = string(value, "subtype") or string(object_of(value.get("attachment")), "type")
            telling.leave_out(f"{kind} {subtype}".rstrip(), line.where)
    if copies:
        what = "a copy of an earlier record" if copies == 1 else f"{copies:,} copies of records"
        telling.findings.add("B44", first_copy, f"left out: {what}")
    return entries


def _with_queued_prompt(value: JsonObject) -> JsonObject:
    """The message that an attachment stands for, else the record: what was sent while a turn ran,
    and reached the model before its end, is nowhere else in the file."""
    queued = object_of(value.get("attachment"))
    prompt = queued.get("prompt")
    linked = value.get("type") == "attachment" and isinstance(value.get("uuid"), str)
    if not linked or queued.get("type") != "queued_command" or not isinstance(prompt, str | list):
        return value
    marks = {name: queued[name] for name in ("origin", "isMeta") if name in queued}
    message: JsonObject = {"role": "user", "content": prompt}
    return {**value, "type": "user", "message": message, **marks}


def _note_session(telling: Conversion, value: JsonObject) -> None:
    """Note the facts about the session: its last id and version, its first folder and time."""
    telling.session_id = string(value, "sessionId") or telling.session_id
    telling.version = string(value, "version") or telling.version
    telling.cwd = telling.cwd or string(value, "cwd")
    telling.created = telling.created or string(value, "timestamp")


def _blocks(value: JsonObject, where: str, findings: Findings) -> list[Block] | None:
    """The content of a message; None, with a finding, if it has none."""
    if not isinstance(value.get("message"), dict):
        findings.add("B56", where, "skipped: the message is not an object")
        return None
    blocks = content_blocks(object_of(value["message"]).get("content"), where, findings)
    if blocks is None:
        findings.add("B56", where, "skipped: a message without content")
    return blocks


def grouped(entries: Sequence[PlacedRecord]) -> tuple[dict[str, list[PlacedRecord]], list[Node]]:
    """Answers as wholes, and the tree of them."""
    by_call: dict[str, str] = {}
    for entry in entries:
        entry.group = entry.key
        if entry.value.get("type") == "assistant":
            id_ = answer_id(entry.value)
            entry.group = f"message {id_}" if id_ else entry.group
            for block in entry.blocks or ():
                if block.get("type") == "tool_use":
                    by_call.setdefault(str(block.get("id")), entry.group)
    keys = {entry.key for entry in entries}
    before = ""
    for entry in entries:
        lost = before if _is_result_of_lost_call(entry, keys) else ""
        entry.group = _answered(entry, by_call) or lost or entry.group
        before = entry.group if has_place(entry) else before
    groups: dict[str, list[PlacedRecord]] = {}
    for entry in entries:
        if has_place(entry):
            groups.setdefault(entry.group, []).append(entry)
    above = _Parents(entries)
    return groups, [_node(key, members, above) for key, members in groups.items()]


def _is_result_of_lost_call(entry: PlacedRecord, keys: Collection[str]) -> bool:
    """True if a record holds nothing but results, and the record with their call is not there. It
    stays with the record before it: alone, it would be the end of a branch of its own."""
    if entry.value.get("type") != "user" or string(entry.value, "parentUuid") in keys:
        return False
    blocks = entry.blocks or []
    return bool(blocks) and all(block.get("type") == "tool_result" for block in blocks)


def has_place(entry: PlacedRecord) -> bool:
    """True if a record has content. The others only link records to each other."""
    subtype = string(entry.value, "subtype")
    return entry.blocks is not None or subtype in {"compact_boundary", "local_command"}


def _node(key: str, members: Sequence[PlacedRecord], above: _Parents) -> Node:
    """A group as a node, below the parent of its first piece that has one outside the group."""
    lost: str | None = key  # linked to itself: as good as lost
    speaks = any(entry.blocks is not None for entry in members)
    for entry in members:
        parent, known = above.of(entry)
        if known and parent != key:
            return Node(key, parent, entry.where, speaks)
        if not known:
            lost = parent
    return Node(key, lost, members[0].where, speaks)


class _Parents:
    """Finds the group above a record, skipping records without content."""

    def __init__(self, entries: Iterable[PlacedRecord]) -> None:
        self._by_id = {entry.key: entry for entry in entries}
        self._known: dict[str, tuple[str | None, bool]] = {}

    def of(self, entry: PlacedRecord) -> tuple[str | None, bool]:
        """The key of the parent, None at the root, and whether that parent is in the file."""
        path: list[str] = []
        place: tuple[str | None, bool] | None = None
        while place is None:
            key = entry.key
            if key in self._known:
                place = self._known[key]
                break
            if key in path:
                place = key, False
                break
            path.append(key)
            parent = entry.value.get("parentUuid") or entry.value.get("logicalParentUuid")
            if not isinstance(parent, str):
                place = None, parent is None
            elif parent not in self._by_id:
                place = parent, False
            else:
                entry = self._by_id[parent]
                if has_place(entry):
                    place = entry.group, True
        for key in path:
            self._known[key] = place
        return place


def _answered(entry: PlacedRecord, by_call: dict[str, str]) -> str | None:
    """The group of the answer to whose calls a user record holds the results."""
    if entry.value.get("type") != "user":
        return None
    for block in entry.blocks or ():
        if block.get("type") == "tool_result":
            return by_call.get(str(block.get("tool_use_id")))
    return None
