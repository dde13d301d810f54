"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, lines of {timestamp, type, payload}.

An answer is a run of items of the assistant: its texts and calls, up to the next output or
prompt. What it used is counted in an event after its items; the same count may come again, with
news of the rate limits. Arguments are JSON in a string. Left out are reasoning, which is encrypted,
and the instructions, which were the other agent's own.

Codex refuses a file that isn't UTF-8 or doesn't begin with a `session_meta` whose id is a UUID, and
skips other lines that it can't read; that was tried with version 0.171.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, cast

from msgspec.structs import replace

from tui.core.messages import Block, Usage, image_block, object_of, text_block
from tui.session.formats.conversion import (
    Conversion,
    ParsedLine,
    content_blocks,
    string,
    typed_text,
)
from tui.session.formats.lines import MendedLine, Repairs
from tui.session.formats.links import UUID, session_id, texts_in, with_first
from tui.session.jsonl import Findings, JsonObject
from tui.session.records import Record

_BY_PROGRAM = re.compile(
    r"\s*(?:<(skill|[a-z]+_[a-z_]+)(?:\s[^>]*)?>.*</\1>\s*\Z"
    r"|# AGENTS\.md instructions)",
    re.DOTALL | re.IGNORECASE,
)
"""Pattern of what it says for the person: `<environment_context>`, `<user_instructions>`,
`<turn_aborted>`, `<hook_prompt …>` and others (`contextual_user_message.rs` in openai/codex). A
person's own text may begin with a tag, but rarely is one."""
_IN_EDITOR = re.compile(
    r"\A\s*# (?:Context from my IDE setup|Files mentioned by the user):"
    r".*?\n## My request for Codex:\s*",
    re.DOTALL,
)
"""Pattern of what its editor extension and its desktop app put before a prompt."""
_DATA_URL = re.compile(r"data:(image/[a-z.+-]+);base64,(.+)", re.DOTALL)
_MANY: Final = 1 << 40
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_META_TEXTS = ("timestamp", "cwd", "originator", "cli_version")
"""The fields of its `session_meta` that Codex reads in any case."""
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def matches(value: JsonObject) -> bool:
    """True if an object is a record of this format."""
    return (
        isinstance(value.get("type"), str)
        and isinstance(value.get("payload"), dict)
        and "timestamp" in value
    )


def convert(places: Iterable[ParsedLine], telling: Conversion) -> None:
    """Add the records, in the order of the file: there are no branches."""
    findings, answer = telling.findings, _Answer(telling)
    for line, value in places:
        kind, payload = value.get("type"), object_of(value.get("payload"))
        if not isinstance(kind, str):
            findings.add("B56", line.where, "skipped: a record without a type")
            continue
        if kind in {"response_item", "compacted", "event_msg"} and not payload:
            findings.add("B56", line.where, "skipped: a record without content")
            continue
        key, time = f"{line.number}-{line.offset}", value.get("timestamp")
        match kind:
            case "session_meta":
                _note_session(telling, payload)
            case "turn_context":
                answer.model = string(payload, "model") or answer.model
            case "response_item":
                _convert_item(answer, payload, key, time, line.where)
            case "compacted":
                answer.close()
                telling.compaction(key, time, string(payload, "message"))
            case "event_msg" if payload.get("type") == "turn_aborted":
                answer.close()
                why = string(payload, "reason") or "interrupted"
                telling.add("interrupt", key, time, reason=why, text="", thinking="")
            case "event_msg" if payload.get("type") == "token_count":
                answer.count(object_of(payload.get("info")))
            case _:
                # above all events for the other agent's screen: the items have the same content
                telling.leave_out(f"{kind} {string(payload, 'type')}".rstrip(), line.where)
    answer.close()


class _Answer:
    """The answer that is being put together."""

    def __init__(self, telling: Conversion) -> None:
        self.telling = telling
        self.model = ""
        self._blocks: list[Block] = []
        self._key = ""
        self._time: object = None
        self._used = Usage()
        self._counted: object = None
        self._told: Record | None = None

    def add(self, block: Block, key: str, time: object) -> None:
        if not self._blocks:
            self._key, self._time = key, time
        self._blocks.append(block)

    def close(self) -> None:
        if self._blocks:
            blocks, self._blocks = self._blocks, []
            called = any(block.get("type") == "tool_use" for block in blocks)
            stop = "tool_use" if called else "end_turn"
            used, self._used = self._used.to_json() if self._used.total else {}, Usage()
            self._told = self.telling.answer(
                self._key, self._time, blocks, model=self.model, usage=used, stop_reason=stop
            )

    def count(self, info: JsonObject) -> None:
        """Take what a response used: for the answer that it is of, told or not yet."""
        whole = info.get("total_token_usage")
        used = _used(object_of(info.get("last_token_usage")))
        if not used.total or (whole is not None and whole == self._counted):
            return
        self._counted = whole
        if self._told and not self._blocks and not self._told.data.get("usage"):
            self._told.data["usage"] = used.to_json()
            return
        before, both = self._used, self._used + used
        # of several responses in an answer, the last one saw it all
        self._used = replace(both, context_tokens=used.total) if before.total else used


def _used(counts: JsonObject) -> Usage:
    """The counts of a response: the cached tokens are among its input, reasoning in its output."""
    known = {name: n for name, n in counts.items() if isinstance(n, int) and 0 < n < _MANY}
    read, cached = known.get("input_tokens", 0), known.get("cached_input_tokens", 0)
    return Usage(
        input_tokens=max(0, read - cached),
        output_tokens=known.get("output_tokens", 0),
        cache_read_input_tokens=min(read, cached),
        thinking_tokens=known.get("reasoning_output_tokens", 0),
    )


def _note_session(telling: Conversion, meta: JsonObject) -> None:
    if telling.session_id:
        return  # of the session that this one was forked from
    telling.session_id = string(meta, "id")
    telling.version = string(meta, "cli_version")
    telling.created = string(meta, "timestamp")
    telling.cwd = string(meta, "cwd")


def _convert_item(answer: _Answer, item: JsonObject, key: str, time: object, where: str) -> None:
    telling = answer.telling
    kind = string(item, "type")
    if kind in _CALLS:
        answer.add(_call(item), key, time)
    elif kind in _OUTPUTS:
        answer.close()
        content, failed = _output(item.get("output"), where, telling.findings)
        telling.result(key, time, item.get("call_id"), content, is_error=failed)
    elif kind == "message":
        _convert_message(answer, item, key, time, where)
    else:
        telling.leave_out(kind or "an item without a type", where)


def _convert_message(answer: _Answer, item: JsonObject, key: str, time: object, where: str) -> None:
    telling = answer.telling
    blocks = content_blocks(item.get("content"), where, telling.findings)
    role = item.get("role")
    if blocks is None or not isinstance(role, str):
        telling.findings.add("B56", where, "skipped: a message without content or role")
        return
    blocks = list(map(_block, blocks))
    if role == "assistant":
        for block in blocks:
            answer.add(block, key, time)
    elif role == "user":
        answer.close()
        typed = typed_text(blocks, _BY_PROGRAM)
        typed = typed and _IN_EDITOR.sub("", typed, count=1)
        telling.user(key, time, blocks, typed=typed)
    else:
        telling.leave_out(f"instructions of the {role}", where)


def _block(block: Block) -> Block:
    """A block in the API's own shape."""
    kind = block.get("type")
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": block.get("text")}
    if kind == "input_image":
        url: Any = block.get("image_url")
        match = _DATA_URL.match(url) if isinstance(url, str) else None
        if match:
            return image_block(match[1], match[2])
        return {"type": "image", "source": {"type": "url", "url": url}}
    return block


def _call(item: JsonObject) -> Block:
    """A call. Arguments that are no JSON stay a text, for the repair to handle."""
    arguments: Any = item.get("arguments", item.get("input"))
    name: Any = item.get("name")
    if item.get("type") == "local_shell_call":
        name, arguments = "local_shell", item.get("action")
    elif item.get("type") == "custom_tool_call":
        arguments = {"input": arguments}
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    id_ = item.get("call_id") or item.get("id")
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def _output(given: object, where: str, findings: Findings) -> tuple[object, bool]:
    """The content of a call's output, and whether it failed: text, blocks, or an object with
    them."""
    failed = False
    if isinstance(given, dict):
        fields = cast("JsonObject", given)
        failed = fields.get("success") is False
        given = fields.get("content", fields.get("output"))
    if isinstance(given, str):
        return [text_block(given)] if given.strip() else [], failed
    blocks = content_blocks(given, where, findings)
    if blocks is None:
        return given, failed
    return list(map(_block, blocks)), failed


def repair_lines(lines: list[MendedLine], repairs: Repairs, name: str) -> list[MendedLine]:
    """The lines, so that Codex opens the session. `name` is that of the file."""

    def made(broken: JsonObject) -> JsonObject:
        time = next(texts_in(lines, "timestamp"), "1970-01-01T00:00:00.000Z")
        fields = object_of(broken.get("payload")).items()
        known = {key: one for key, one in fields if isinstance(one, str)}
        own = known["id"] if UUID.fullmatch(known.get("id", "")) else session_id(name, lines)
        payload: JsonObject = {
            "originator": "codex_cli_rs", "cli_version": "0.0.0", "instructions": None,
            "id": own, "timestamp": time, "cwd": next(texts_in(lines, "cwd"), "/"),
        }  # fmt: skip
        payload |= known | {"id": own}
        return {"timestamp": time, "type": "session_meta", "payload": payload}

    return with_first(lines, repairs, _is_meta, "session_meta", made)


def _is_meta(value: JsonObject) -> bool:
    """True for a record by which the program opens a session."""
    payload = object_of(value.get("payload"))
    texts = [value.get("timestamp"), *(payload.get(name) for name in _META_TEXTS)]
    named = UUID.fullmatch(string(payload, "id")) and all(isinstance(one, str) for one in texts)
    return value.get("type") == "session_meta" and bool(named)
