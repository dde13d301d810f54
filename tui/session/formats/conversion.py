"""Records of ours made from another agent's file: what the three formats have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, TypeAlias, cast

from tui.core.clock import timestamp
from tui.core.dataclass import dataclass, field
from tui.core.formatting import plural
from tui.core.messages import Block, string_of, text_block, text_of
from tui.core.text_cleaning import one_line
from tui.session.field_types import leave_out_odd
from tui.session.jsonl import Findings, JsonLine, JsonObject
from tui.session.records import LEFT_OUT, PROGRAM, Header, Record

ParsedLine: TypeAlias = tuple[JsonLine, JsonObject]
"""An object of the file, and the line that it was on."""

OTHER_BRANCH: Final = "of another branch"
"""The kind of the records that another branch of the conversation holds."""

_KIND_CHARS = 60
_COMMAND = re.compile(r"/\S*")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Conversion:
    """Collects the records of a session: one chain, with ids that are the same on every reading.

    `program` is the name of the agent that wrote the file. `session_id`, `cwd`, `created` and
    `version` are what the file says about itself, "" if it does not. `calls` has the tools' names
    and `gone` the calls left out, by the calls' ids. `beside` are the files of sub-agents that lie
    beside this one, `children` what the sub-agents said.
    """

    program: str
    findings: Findings
    session_id: str = ""
    cwd: str = ""
    created: str = ""
    version: str = ""
    title: str = ""
    tokens_before: object = None
    records: list[Record] = field(default_factory=list[Record])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    gone: set[str] = field(default_factory=set[str])
    beside: Sequence[SubAgentFile] = ()
    children: list[SubAgentSession] = field(default_factory=list["SubAgentSession"])
    _left_out: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _stamp: int = 0
    _now: datetime = _EARLIEST

    def header(self, path_stem: str, fallback: str) -> Header:
        """The header that this session would have. Its id follows from the original's."""
        origin = self.session_id or path_stem
        created = moment(self.created) or moment(self.records[0].time if self.records else "")
        app = f"{self.program} {self.version}".strip()
        digest = sha256(f"{self.program}:{origin}".encode("utf-8", "replace")).hexdigest()
        when = timestamp(created) if created else fallback
        return Header(digest[:12], when, self.cwd, app, origin=f"{self.program}:{origin}")

    def add(self, type_: str, key: str, time: object, **data: Any) -> Record:
        """Add a record. `key` is what the original calls it, `time` its time, if it is one.

        Its fields have their types, as those of a record that is read from a file of ours.
        """
        if odd := leave_out_odd(type_, data):
            where = f"{type_} record {len(self.records) + 1}"
            self.findings.add("B56", where, f"odd fields left out or repaired: {', '.join(odd)}")
        self._now = max(moment(time) or self._now, _EARLIEST)
        self._stamp = max(self._stamp + 1, int(self._now.timestamp() * 1000) << 12)
        tail = sha256(f"{key}:{len(self.records)}".encode("utf-8", "replace")).hexdigest()[:6]
        parent = self.records[-1].id if self.records else None
        record = Record(type_, f"{self._stamp:014x}{tail}", parent, timestamp(self._now), data)
        self.records.append(record)
        return record

    def user(self, key: str, time: object, blocks: list[Block], *, typed: str | None) -> None:
        """Add content of the user's side. `typed` becomes the prompt that is shown; None where the
        program said it all, which is no prompt."""
        if not blocks:
            return
        if typed is None:
            self.add("user", key, time, content=blocks, by=PROGRAM)
        elif typed.strip():
            self.add("user", key, time, content=blocks, text=typed)
            line = " ".join(typed.split())
            if not self.title and not _COMMAND.fullmatch(line):
                self.title = line[:80]
        else:  # images
            self.add("user", key, time, content=blocks)

    def answer(
        self,
        key: str,
        time: object,
        blocks: list[Block],
        *,
        model: str = "",
        usage: Mapping[str, int] | None = None,
        stop_reason: object = None,
    ) -> Record:
        """One answer of the model, all of it."""
        for block in blocks:
            if block.get("type") == "tool_use":
                self.calls[str(block.get("id"))] = str(block.get("name"))
        return self.add(
            "assistant",
            key,
            time,
            content=blocks,
            model=model,
            usage=dict(usage or {}),
            stop_reason=stop_reason if isinstance(stop_reason, str) else None,
        )

    def result(
        self, key: str, time: object, call_id: object, content: object, *, is_error: bool = False
    ) -> None:
        """The result of a call."""
        id_ = string_of(call_id)
        self.add(
            "tool_result",
            key,
            time,
            call_id=id_,
            name=self.calls.get(id_, ""),
            content=content,
            is_error=is_error,
            receipt=None,
            summary="",
            display="",
            details={},
        )

    def compaction(self, key: str, time: object, summary: str, kept: str = "") -> None:
        """A compaction by the other agent, of `tokens_before`.

        `kept` is our id of the first record that it did not sum up, "" if it summed up all.
        """
        before, self.tokens_before = self.tokens_before, None
        tokens = before if isinstance(before, int) else None
        data: dict[str, Any] = {"summary": summary, "tokens_before": tokens, "by": self.program}
        self.add("compaction", key, time, **data, **({"first_kept": kept} if kept else {}))

    def leave_out(self, kind: str, where: str) -> None:
        """Count a record that is no part of the conversation. `where` is its place in the file."""
        kind = one_line(kind)[:_KIND_CHARS]
        first, count = self._left_out.get(kind, (where, 0))
        self._left_out[kind] = first, count + 1

    def finish(self) -> None:
        """Name the session, and say what stayed in the original."""
        last = self.records[-1].time if self.records else ""
        if self.title:
            self.add("title", "title", last, title=self.title)
        for kind, (where, count) in self._left_out.items():
            self.findings.add(LEFT_OUT, where, f"left out: {plural(count, 'record')} ({kind})")
        counts = {kind: count for kind, (_, count) in self._left_out.items()}
        if count := counts.pop(OTHER_BRANCH, 0):
            words = f"{plural(count, 'record')} of other branches stayed in the original file."
            self.add("note", "branches", last, text=words)
        if counts:
            left = plural(sum(counts.values()), "record")
            words = f"{left} stayed in the original file: {', '.join(counts)}."
            self.add("note", "kinds", last, text=words)


@dataclass(frozen=True, slots=True)
class SubAgentFile:
    """A file of a sub-agent beside the session's. `name` is said before each place of its
    `findings`; `facts` are what a file beside it says of it."""

    name: str
    places: Sequence[ParsedLine]
    facts: JsonObject
    findings: Findings


@dataclass(slots=True)
class SubAgentSession:
    """The session of a sub-agent. `call` is the id of the call that it worked for, "" if not known;
    `named` whether a record of the session names it."""

    told: Conversion
    call: str = ""
    agent: str = ""
    description: str = ""
    named: bool = False


def moment(value: object) -> datetime | None:
    """A time of the file: ISO 8601, or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def string(value: Mapping[str, Any], name: str) -> str:
    """A field's text; "" where it has none."""
    return string_of(value.get(name))


def content_blocks(content: object, where: str, findings: Findings) -> list[Block] | None:
    """A message's content as blocks; None if it is no content. Bare strings become text blocks."""
    if isinstance(content, str):
        return [text_block(content)] if content.strip() else []
    if not isinstance(content, list):
        return None
    blocks: list[Block] = []
    for item in cast("list[object]", content):
        if isinstance(item, dict):
            blocks.append(cast("Block", item))
        elif isinstance(item, str) and item.strip():
            findings.add("B27", where, "a bare string made a text block")
            blocks.append(text_block(item))
        else:
            findings.add("B27", where, "left out: not a content block")
    return blocks


def typed_text(blocks: Iterable[Block], by_program: re.Pattern[str]) -> str | None:
    """The text of a message less the blocks that a program adds; None where there is nothing else,
    "" where there are only images."""
    own = [block for block in blocks if not by_program.match(string(block, "text"))]
    return text_of(own) if own else None


def is_anthropic(provider: str, model: str) -> bool:
    """True if thinking was signed by an Anthropic server, which accepts its signatures again."""
    return provider.startswith("anthropic") or (not provider and model.startswith("claude"))


@dataclass(slots=True)
class Node:
    """A record in the tree. `parent` is None if it names none; `where` is its place in the file;
    `speaks` whether it has content."""

    key: str
    parent: str | None
    where: str
    speaks: bool = True


def active_branch(nodes: Sequence[Node], findings: Findings) -> list[str]:
    """The keys from the root to the last leaf that speaks, in the order of the links.

    `nodes` are in the order of the file and have unique keys. If a parent is missing or part of a
    circle, the node before it in the file takes its place: so nothing is left out but what is on
    another branch.
    """
    parents = _sound_parents(nodes, findings)
    has_more: set[str] = set()  # a node below this one speaks
    leaf: str | None = None
    for node in nodes:
        if not node.speaks:
            continue
        above = parents[node.key]
        while above is not None and above not in has_more:
            has_more.add(above)
            above = parents[above]
    for node in nodes:
        if node.speaks and node.key not in has_more:
            leaf = node.key
    branch: list[str] = []
    while leaf is not None:
        branch.append(leaf)
        leaf = parents[leaf]
    branch.reverse()
    return branch


def _sound_parents(nodes: Sequence[Node], findings: Findings) -> dict[str, str | None]:
    """A parent for every node, without circles. The first node that names none is the root."""
    places = {node.key: place for place, node in enumerate(nodes)}
    root = next((node for node in nodes if node.parent is None), None)
    parents: dict[str, str | None] = {}

    def bridge(place: int) -> None:
        parents[nodes[place].key] = nodes[place - 1].key if place else None

    for place, node in enumerate(nodes):
        if node is root or (node.parent in places and node.parent != node.key):
            parents[node.key] = node.parent
        else:
            bridge(place)
            findings.add("B53", node.where, "linked to the record before it: its own is lost")
    rooted: set[str] = set()
    for node in nodes:
        path: dict[str, None] = {}
        key: str | None = node.key
        while key is not None and key not in rooted:
            if key in path:  # a circle: it is cut at the record that comes first in the file
                circle = list(path)[list(path).index(key) :]
                first = min(places[member] for member in circle)
                bridge(first)
                findings.add("B53", nodes[first].where, "linked to the record before it: a circle")
                for member in circle:
                    del path[member]
                continue
            path[key] = None
            key = parents[key]
        rooted.update(path)
    return parents
