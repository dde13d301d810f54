"""opencode: sessions of its database, and files of `opencode export`.

A message of the model has all its parts in one list; each `step-start` begins what was one answer.
The results of calls are in the calls, and come after the answer. Of messages that were reverted
none is taken over. Thinking stays if an Anthropic server signed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tui.core.clock import timestamp
from tui.core.messages import Block, image_block, object_of, string_of, text_block, text_of
from tui.session.formats.conversion import (
    OTHER_BRANCH,
    Conversion,
    is_anthropic,
    moment,
    string,
)
from tui.session.formats.opencode.store import StoredMessage, StoredSession, objects_of
from tui.session.jsonl import JsonObject

_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_IN_TEXT = frozenset({"text/plain", "application/x-directory"})
"""Attachments whose content the program gives as a text of its own."""
_INTERRUPTED = "[Tool execution was interrupted]"
_BY_PERSON = "The following tool was executed by the user"
_SAID = frozenset({"text", "step-start", "step-finish"})
"""Parts of an answer that are blank, or told with it."""
_STOPS = {"tool-calls": "tool_use", "length": "max_tokens"}


def convert(session: StoredSession, telling: Conversion) -> None:
    """Add the records of a session."""
    info = session.info
    telling.session_id, telling.cwd = string(info, "id"), string(info, "directory")
    telling.version = string(info, "version")
    created = moment(object_of(info.get("time")).get("created"))
    telling.created = timestamp(created) if created else ""
    ours: dict[str, str] = {}  # the id of our first record for each message
    compactions: dict[str, JsonObject] = {}  # by the prompt that asks for a summary
    for message in _not_reverted(session, telling):
        before = len(telling.records)
        if message.info.get("role") == "assistant":
            request = compactions.get(string(message.info, "parentID"))
            if request is not None and message.info.get("summary"):
                _sum_up(message, request, telling, ours)
            else:
                _convert_answer(message, telling)
        else:
            asks = [part for part in message.parts if part.get("type") == "compaction"]
            compactions |= {message.id: asks[0]} if asks else {}
            _convert_user(message, telling)
        if len(telling.records) > before:
            ours[message.id] = telling.records[before].id
    telling.title = string(info, "title") or telling.title


def _not_reverted(session: StoredSession, telling: Conversion) -> Iterator[StoredMessage]:
    """The messages that were not reverted."""
    revert = object_of(session.info.get("revert"))
    last, part = string(revert, "messageID"), string(revert, "partID")
    for number, message in enumerate(session.messages):
        if message.id == last:
            before = [one.get("id") for one in message.parts]
            if part in before:
                yield message._replace(parts=message.parts[: before.index(part)])
                number += 1  # noqa: PLW2901 - the rest is left out
            for one in session.messages[number:]:
                telling.leave_out(OTHER_BRANCH, f"message {one.id}")
            return
        yield message


def _time(message: StoredMessage) -> object:
    return object_of(message.info.get("time")).get("created")


def _convert_user(message: StoredMessage, telling: Conversion) -> None:
    typed: list[Block] = []
    added: list[Block] = []  # by the program: the content of files that the prompt names
    for part in message.parts:
        match part.get("type"):
            case "text" if string(part, "text").strip() and not part.get("ignored"):
                (added if part.get("synthetic") else typed).append(text_block(part["text"]))
            case "file" if part.get("mime") not in _IN_TEXT:
                typed.append(_attachment(part))
            case "subtask":
                added.append(text_block(_BY_PERSON))
            case "text" | "file" | "compaction":
                pass  # blank, told as a text, or told where its summary is
            case kind:
                telling.leave_out(f"part {string_of(kind)}".rstrip(), f"message {message.id}")
    telling.user(message.id, _time(message), typed, typed=text_of(typed))
    telling.user(f"{message.id}-added", _time(message), added, typed=None)


def _attachment(part: JsonObject) -> Block:
    match = _DATA_URL.fullmatch(string(part, "url"))
    if match and match[1] in _IMAGES:
        return image_block(match[1], match[2])
    name = string(part, "filename") or "file"
    return text_block(f"[Attached {string(part, 'mime')}: {name}]")


def _sum_up(
    message: StoredMessage, asked: JsonObject, telling: Conversion, ours: Mapping[str, str]
) -> None:
    texts = [string(part, "text") for part in message.parts if part.get("type") == "text"]
    summary = "\n\n".join(filter(None, (text.strip() for text in texts)))
    if summary and not message.info.get("error"):
        first_kept = ours.get(string(asked, "tail_start_id"), "")
        telling.compaction(message.id, _time(message), summary, first_kept)


def _convert_answer(message: StoredMessage, telling: Conversion) -> None:
    info, time = message.info, _time(message)
    model, provider = string(info, "modelID"), string(info, "providerID")
    signed = is_anthropic(provider, model)
    for number, step in enumerate(_steps(message.parts)):
        blocks: list[Block] = []
        for part in step:
            if (block := _block(part, signed=signed)) is not None:
                blocks.append(block)
            elif string(part, "type") not in _SAID:
                telling.leave_out(f"part {string(part, 'type')}".rstrip(), f"message {message.id}")
        # each step of an answer was a request of its own
        done = next((part for part in step if part.get("type") == "step-finish"), JsonObject())
        reason = string(done, "reason") or string(info, "finish")
        if blocks:
            telling.answer(
                f"{message.id}-{number}",
                time,
                blocks,
                model=model,
                usage=_usage(object_of(done.get("tokens") or info.get("tokens"))),
                stop_reason=_STOPS.get(reason, "end_turn") if reason else None,
            )
        for part in step:
            if part.get("type") == "tool":
                _convert_result(part, time, telling)
    if error := object_of(info.get("error")):
        why = string(object_of(error.get("data")), "message") or string(error, "name")
        if error.get("name") == "MessageAbortedError":
            telling.add("interrupt", f"{message.id}-end", time, reason=why, text="", thinking="")
        else:
            key = f"{message.id}-end"
            telling.add("error", key, time, error_class="unknown", message=why)


def _steps(parts: list[JsonObject]) -> Iterator[list[JsonObject]]:
    step: list[JsonObject] = []
    for part in parts:
        if part.get("type") == "step-start" and step:
            yield step
            step = []
        step.append(part)
    if step:
        yield step


def _block(part: JsonObject, *, signed: bool) -> Block | None:
    """Convert a part of an answer to a block, None where it is not part of the answer."""
    match part.get("type"):
        case "text" if string(part, "text").strip():
            return text_block(part["text"])
        case "tool":
            arguments = object_of(object_of(part.get("state")).get("input"))
            return {
                "type": "tool_use",
                "id": part.get("callID"),
                "name": part.get("tool"),
                "input": arguments,
            }
        case "reasoning" if signed:
            metadata = object_of(object_of(part.get("metadata")).get("anthropic"))
            if data := string(metadata, "redactedData"):
                return {"type": "redacted_thinking", "data": data}
            if signature := string(metadata, "signature"):
                thinking = string(part, "text")
                return {"type": "thinking", "thinking": thinking, "signature": signature}
        case _:
            pass
    return None


def _usage(tokens: JsonObject) -> dict[str, int]:
    cache = object_of(tokens.get("cache"))
    counts: dict[str, Any] = {
        "input_tokens": tokens.get("input"),
        "output_tokens": tokens.get("output"),
        "cache_creation_input_tokens": cache.get("write"),
        "cache_read_input_tokens": cache.get("read"),
    }
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def _convert_result(part: JsonObject, time: object, telling: Conversion) -> None:
    state = object_of(part.get("state"))
    status = state.get("status")
    partial = object_of(state.get("metadata")).get("output")  # of a call that was interrupted
    failed = status != "completed"
    if not failed:
        output: object = state.get("output")
    elif status == "error":
        output = partial if isinstance(partial, str) and partial else string(state, "error")
    else:
        output = _INTERRUPTED
    blocks = [text_block(output)] if isinstance(output, str) and output.strip() else []
    blocks += map(_attachment, objects_of(state.get("attachments")))
    call = part.get("callID")
    ended = object_of(state.get("time")).get("end")
    telling.result(string(part, "id") or str(call), ended or time, call, blocks, is_error=failed)
