"""Claude Code's records as a tree of whole answers.

A record is one content block, as a rule: those with one `message.id` are pieces of one answer,
and its results hang on different pieces. So the branch is walked over whole answers, and results
belong to the answer that made the call, wherever they are linked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui.core.messages import Block
from tui.session.importers.conversion import Place, Telling, content_blocks, mapping, string
from tui.session.importers.tree import Node
from tui.session.jsonl import Findings, JsonObject

SPOKEN = frozenset({"user", "assistant"})


@dataclass(slots=True)
class Entry:
    """A record of the file. `blocks` is its content; None for one that is no message."""

    where: str
    value: JsonObject
    blocks: list[Block] | None
    group: str = ""

    @property
    def key(self) -> str:
        return str(self.value["uuid"])


def entries_of(places: Iterable[Place], telling: Telling, summaries: list[str]) -> list[Entry]:
    """The records that have a place in the tree, each once."""
    entries: list[Entry] = []
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
            if kind not in SPOKEN:
                continue  # snapshots, the queue: they say nothing
            telling.findings.add("B53", line.where, "linked to the record before it: no id")
            uuid = f"line-{line.number}-{len(entries)}"
            value = {**value, "uuid": uuid, "parentUuid": ""}  # noqa: PLW2901 - the mended one
        blocks = _blocks(value, line.where, telling.findings) if kind in SPOKEN else None
        if kind in SPOKEN and blocks is None:
            continue
        if uuid in seen:
            copies += 1
            first_copy = first_copy or line.where
            continue
        seen.add(uuid)
        _note_session(telling, value)
        entries.append(Entry(line.where, value, blocks))
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


def grouped(entries: Sequence[Entry]) -> tuple[dict[str, list[Entry]], list[Node]]:
    """Answers as wholes, and the tree of them."""
    by_call: dict[str, str] = {}
    for entry in entries:
        entry.group = entry.key
        if entry.value.get("type") == "assistant":
            id_ = mapping(entry.value.get("message")).get("id")
            entry.group = f"message {id_}" if isinstance(id_, str) and id_ else entry.group
            for block in entry.blocks or ():
                if block.get("type") == "tool_use":
                    by_call.setdefault(str(block.get("id")), entry.group)
    for entry in entries:
        entry.group = _answered(entry, by_call) or entry.group
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if _has_place(entry):
            groups.setdefault(entry.group, []).append(entry)
    above = _Parents(entries)
    return groups, [_node(key, members, above) for key, members in groups.items()]


def _has_place(entry: Entry) -> bool:
    """Whether a record says something. The others are links of the chain, no more."""
    subtype = string(entry.value, "subtype")
    return entry.blocks is not None or subtype in {"compact_boundary", "local_command"}


def _node(key: str, members: Sequence[Entry], above: _Parents) -> Node:
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

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_id = {entry.key: entry for entry in entries}
        self._known: dict[str, tuple[str | None, bool]] = {}

    def of(self, entry: Entry) -> tuple[str | None, bool]:
        """The parent, and whether it is known: None is the root, an unknown one is lost."""
        way: list[str] = []
        found: tuple[str | None, bool] | None = None
        while found is None:
            key = entry.key
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


def _answered(entry: Entry, by_call: dict[str, str]) -> str | None:
    """The answer whose calls a user record answers."""
    if entry.value.get("type") != "user":
        return None
    for block in entry.blocks or ():
        if block.get("type") == "tool_result":
            return by_call.get(str(block.get("tool_use_id")))
    return None
