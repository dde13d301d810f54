"""Claude Code: `~/.claude/projects/{folder}/{session}.jsonl`.

A record is one content block, as a rule: those with one `message.id` are pieces of one answer,
and its results hang on different pieces. So the branch is walked over whole answers, and results
belong to the answer that made the call, wherever they are linked.

Kept in the request but not shown as typed: what the program itself said for the user (`isMeta`,
local commands, notices of an interrupt). Left out: side chains, error texts stored as answers
(B57), and whatever a request does not know (`caller`, `toolUseResult`, …).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tui.messages import Block, Usage, text_of
from tui.session.importers.telling import Place, Telling, content_blocks, mapping, string
from tui.session.importers.tree import Node, active_branch
from tui.session.lines import Findings, JsonObject

PROGRAM = "claude_code"

_MARKS = frozenset({"parentUuid", "sessionId", "isSidechain", "leafUuid", "isSnapshotUpdate"})
_SPOKEN = frozenset({"user", "assistant"})
_BY_PROGRAM = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|system-reminder|task-notification)"
    r"|\[Request interrupted|Caveat: The messages below)"
)


@dataclass(slots=True)
class _Entry:
    """A record of the file. `blocks` is its content; None for one that is no message."""

    where: str
    value: JsonObject
    blocks: list[Block] | None
    group: str = ""


def matches(value: JsonObject) -> bool:
    """Whether an object is a record of this format."""
    kind = value.get("type")
    if not isinstance(kind, str) or "payload" in value:
        return False
    if kind == "queue-operation":
        return True
    if not _MARKS.isdisjoint(value):
        return True
    return kind in _SPOKEN and "uuid" in value and "message" in value


def tell(places: Iterable[Place], findings: Findings) -> Telling:
    """The records of the active branch."""
    telling = Telling(PROGRAM, findings)
    summaries: list[str] = []
    entries = _entries(places, telling, summaries)
    groups, nodes = _grouped(entries)
    branch = active_branch(nodes, findings)
    on_branch = set(branch)
    for key, group in groups.items():
        if key not in on_branch:
            telling.left_out += sum(entry.blocks is not None for entry in group)
    earlier = False  # whether anything was said before
    for key in branch:
        earlier |= _tell_group(groups[key], telling, earlier=earlier)
    if summaries:
        telling.title = summaries[-1]
    telling.finish()
    return telling


def _entries(places: Iterable[Place], telling: Telling, summaries: list[str]) -> list[_Entry]:
    """The records that have a place in the tree, each once."""
    entries: list[_Entry] = []
    seen: set[str] = set()
    copies = 0
    first_copy = ""
    for line, value in places:
        kind, uuid = value.get("type"), value.get("uuid")
        if not isinstance(kind, str):
            telling.findings.add("B56", line.where, "skipped: a record without a type")
            continue
        if kind == "summary":
            if words := " ".join(string(value, "summary").split())[:80]:
                summaries.append(words)
            continue
        if value.get("isSidechain") is True:
            continue
        if not isinstance(uuid, str) or not uuid:
            if kind not in _SPOKEN:
                continue  # snapshots, the queue: they say nothing
            telling.findings.add("B53", line.where, "linked to the record before it: no id")
            uuid = f"line-{line.number}-{len(entries)}"
            value = {**value, "uuid": uuid, "parentUuid": ""}  # noqa: PLW2901 - the mended one
        blocks = _blocks(value, line.where, telling.findings) if kind in _SPOKEN else None
        if kind in _SPOKEN and blocks is None:
            continue
        if uuid in seen:
            copies += 1
            first_copy = first_copy or line.where
            continue
        seen.add(uuid)
        _note_session(telling, value)
        entries.append(_Entry(line.where, value, blocks))
    if copies:
        what = "a copy of an earlier record" if copies == 1 else f"{copies:,} copies of records"
        telling.findings.add("B44", first_copy, f"left out: {what}")
    return entries


def _note_session(telling: Telling, value: JsonObject) -> None:
    """What records say of the whole: the last session id and version, the first folder."""
    telling.session_id = string(value, "sessionId") or telling.session_id
    telling.version = string(value, "version") or telling.version
    telling.cwd = telling.cwd or string(value, "cwd")
    telling.created = telling.created or string(value, "timestamp")


def _blocks(value: JsonObject, where: str, findings: Findings) -> list[Block] | None:
    """The content of a message; None, with a finding, where there is none (B56)."""
    if not isinstance(value.get("message"), dict):
        findings.add("B56", where, "skipped: the message is not an object")
        return None
    blocks = content_blocks(mapping(value["message"]).get("content"), where, findings)
    if blocks is None:
        findings.add("B56", where, "skipped: a message without content")
    return blocks


def _grouped(entries: Sequence[_Entry]) -> tuple[dict[str, list[_Entry]], list[Node]]:
    """Answers as wholes, and the tree of them."""
    by_call: dict[str, str] = {}
    for entry in entries:
        entry.group = _key(entry)
        if entry.value.get("type") == "assistant":
            id_ = mapping(entry.value.get("message")).get("id")
            entry.group = f"message {id_}" if isinstance(id_, str) and id_ else entry.group
            for block in entry.blocks or ():
                if block.get("type") == "tool_use":
                    by_call.setdefault(str(block.get("id")), entry.group)
    for entry in entries:
        entry.group = _answered(entry, by_call) or entry.group
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        if _has_place(entry):
            groups.setdefault(entry.group, []).append(entry)
    above = _Parents(entries)
    return groups, [_node(key, members, above) for key, members in groups.items()]


def _has_place(entry: _Entry) -> bool:
    """Whether a record says something. The others are links of the chain, no more."""
    subtype = string(entry.value, "subtype")
    return entry.blocks is not None or subtype in {"compact_boundary", "local_command"}


def _node(key: str, members: Sequence[_Entry], above: _Parents) -> Node:
    """A group in the tree, below what its first piece hangs on."""
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
    """The group that a record hangs on, through whatever says nothing."""

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self._by_id = {_key(entry): entry for entry in entries}
        self._known: dict[str, tuple[str | None, bool]] = {}

    def of(self, entry: _Entry) -> tuple[str | None, bool]:
        """The parent, and whether it is known: None is the root, an unknown one is lost."""
        way: list[str] = []
        found: tuple[str | None, bool] | None = None
        while found is None:
            key = _key(entry)
            if key in self._known:
                found = self._known[key]
                break
            if key in way:
                found = key, False
                break
            way.append(key)
            parent = entry.value.get("parentUuid") or entry.value.get("logicalParentUuid")
            if not isinstance(parent, str):
                found = None, parent is None
            elif parent not in self._by_id:
                found = parent, False
            else:
                entry = self._by_id[parent]
                if _has_place(entry):
                    found = entry.group, True
        for key in way:
            self._known[key] = found
        return found


def _answered(entry: _Entry, by_call: dict[str, str]) -> str | None:
    """The answer whose calls a user record answers."""
    if entry.value.get("type") != "user":
        return None
    for block in entry.blocks or ():
        if block.get("type") == "tool_result":
            return by_call.get(str(block.get("tool_use_id")))
    return None


def _tell_group(entries: Sequence[_Entry], telling: Telling, *, earlier: bool) -> bool:
    """The records of one group. Returns whether they say anything."""
    answers = [entry for entry in entries if entry.value.get("type") == "assistant"]
    said = _tell_answer(answers, telling)
    for entry in entries:
        kind = entry.value.get("type")
        if kind == "user":
            said |= _tell_user(entry, telling, earlier=earlier)
        elif kind == "system":
            _tell_system(entry, telling)
    return said


def _tell_answer(pieces: Sequence[_Entry], telling: Telling) -> bool:
    """One answer, put together from its pieces in the order of the file."""
    kept: list[_Entry] = []
    for piece in pieces:
        model = mapping(piece.value.get("message")).get("model")
        if piece.value.get("isApiErrorMessage") or model == "<synthetic>":
            telling.findings.add("B57", piece.where, "left out: an error text stored as an answer")
            words = text_of(piece.blocks or ())
            telling.add("error", _key(piece), _time(piece), error_class="unknown", message=words)
        else:
            kept.append(piece)
    blocks = _put_together(kept, telling.findings)
    if not blocks:
        return False
    first, last = kept[0], mapping(kept[-1].value.get("message"))
    usage = Usage.from_json(last.get("usage")).to_json()
    reasons = [mapping(piece.value.get("message")).get("stop_reason") for piece in kept]
    telling.answer(
        _key(first),
        _time(first),
        blocks,
        model=string(last, "model"),
        usage=usage,
        stop_reason=next((r for r in reversed(reasons) if r), None),
    )
    return True


def _put_together(pieces: Sequence[_Entry], findings: Findings) -> list[Block]:
    """The blocks of an answer's pieces. Pieces of blank text stand between them and say nothing."""
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


def _tell_user(entry: _Entry, telling: Telling, *, earlier: bool) -> bool:
    """Results, and what else the user's side said in one record."""
    value, blocks = entry.value, entry.blocks or []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for number, block in enumerate(results):
        telling.result(
            f"{_key(entry)}-{number}",
            _time(entry),
            block.get("tool_use_id"),
            block.get("content"),
            is_error=block.get("is_error") is True,
        )
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    if value.get("isCompactSummary"):
        words = text_of(rest)
        if earlier:  # all that it sums up is here: it is an event, not something said
            telling.compaction(_key(entry), _time(entry), words)
            return bool(results)
        telling.add("user", _key(entry), _time(entry), content=rest)
        return bool(rest or results)
    typed = not value.get("isMeta") and not _BY_PROGRAM.match(text_of(rest))
    telling.user(_key(entry), _time(entry), rest, typed=typed)
    return bool(rest or results)


def _tell_system(entry: _Entry, telling: Telling) -> None:
    words = entry.value.get("content")
    if entry.value.get("subtype") == "compact_boundary":
        telling.tokens_before = mapping(entry.value.get("compactMetadata")).get("preTokens")
    if entry.value.get("subtype") == "local_command" and isinstance(words, str):
        telling.add("note", _key(entry), _time(entry), text=words)


def _sent(block: Block) -> Block:
    """A block of an answer as a request knows it: without `caller`."""
    return {name: value for name, value in block.items() if name != "caller"}


def _key(entry: _Entry) -> str:
    return str(entry.value["uuid"])


def _time(entry: _Entry) -> Any:
    return entry.value.get("timestamp")
