"""Records of ours, told from another agent's file. What the three formats have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeAlias, cast

from tui.core.clock import timestamp
from tui.core.messages import Block, text_block, text_of
from tui.session.jsonl import Findings, JsonObject, Line
from tui.session.records import Header, Record

Place: TypeAlias = tuple[Line, JsonObject]
"""An object of the file, and the line that it stood on."""

_COMMAND = re.compile(r"/\S*")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Telling:
    """The records in the making: one chain, with ids that are the same on every reading.

    `session_id`, `cwd`, `created` and `version` are the file's own words about itself, "" where
    it has none; `program` is the name of the agent that wrote it.
    """

    program: str
    findings: Findings
    session_id: str = ""
    cwd: str = ""
    created: str = ""
    version: str = ""
    title: str = ""
    left_out: int = 0
    tokens_before: object = None
    records: list[Record] = field(default_factory=list[Record])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    gone: set[str] = field(default_factory=set[str])
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
        """Add a record. `key` is what the original calls it, `time` its time, if it is one."""
        self._now = max(moment(time) or self._now, _EARLIEST)
        self._stamp = max(self._stamp + 1, int(self._now.timestamp() * 1000) << 12)
        tail = sha256(f"{key}:{len(self.records)}".encode("utf-8", "replace")).hexdigest()[:6]
        parent = self.records[-1].id if self.records else None
        record = Record(type_, f"{self._stamp:014x}{tail}", parent, timestamp(self._now), data)
        self.records.append(record)
        return record

    def user(self, key: str, time: object, blocks: list[Block], *, typed: bool) -> None:
        """What the user's side said. Typed text becomes the prompt that is shown."""
        if not blocks:
            return
        text = text_of(blocks)
        if typed and text.strip():
            self.add("user", key, time, content=blocks, text=text)
            line = " ".join(text.split())
            if not self.title and not _COMMAND.fullmatch(line):
                self.title = line[:80]
        else:
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
    ) -> None:
        """One answer of the model, all of it."""
        for block in blocks:
            if block.get("type") == "tool_use":
                self.calls[str(block.get("id"))] = str(block.get("name"))
        self.add(
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
        id_ = call_id if isinstance(call_id, str) else ""
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

        `kept` is our id of the first record that it did not sum up; "" if it summed up all.
        """
        before, self.tokens_before = self.tokens_before, None
        tokens = before if isinstance(before, int) else None
        data: dict[str, Any] = {"summary": summary, "tokens_before": tokens, "by": self.program}
        self.add("compaction", key, time, **data, **({"first_kept": kept} if kept else {}))

    def finish(self) -> None:
        """Name the session, and say what stayed in the original."""
        last = self.records[-1].time if self.records else ""
        if self.title:
            self.add("title", "title", last, title=self.title)
        if self.left_out:
            what = "1 record" if self.left_out == 1 else f"{self.left_out:,} records"
            words = f"{what} of other branches stayed in the original file."
            self.add("note", "branches", last, text=words)


def moment(value: object) -> datetime | None:
    """A time of the file: ISO 8601, or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def string(value: Mapping[str, Any], name: str) -> str:
    """A field's text; "" where it has none."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def mapping(value: object) -> JsonObject:
    """A JSON object, or an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def content_blocks(content: object, where: str, findings: Findings) -> list[Block] | None:
    """A message's content as blocks; None where it is none. Bare strings are texts (B27)."""
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


def image(data: object, media_type: object) -> Block:
    """A base64 image."""
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def is_anthropic(provider: str, model: str) -> bool:
    """Whether thinking was signed by a server that will know its own signature again."""
    return provider.startswith("anthropic") or (not provider and model.startswith("claude"))
