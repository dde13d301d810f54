"""Types of the fields of a record, and the removal of fields whose values have other types.

Any program, or a fault, may have written a line that is valid JSON and no record of ours. The
reader drops values of another type here, so that no user of a record has to check. `null` stands
for a field that is absent. Unknown records and fields stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from tui.core.messages import Block, text_block

_Is: TypeAlias = Callable[[object], bool]

_MOST = 1 << 53
"""Beyond it, no number in a record means anything, and a float may not hold it."""


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= _MOST if isinstance(value, int) else math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and _number(value)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _list(value: object) -> bool:
    return isinstance(value, list)


def _list_of(item: _Is) -> _Is:
    return lambda value: isinstance(value, list) and all(map(item, cast("list[object]", value)))


def _values(item: _Is) -> _Is:
    """An object whose values are all of one type, or null."""

    def is_one(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        return all(one is None or item(one) for one in cast("dict[str, object]", value).values())

    return is_one


def _fields(**types: _Is) -> _Is:
    """An object in which these fields, where they are there, have these types."""

    def is_one(value: object) -> bool:
        return isinstance(value, dict) and not _odd(cast("dict[str, Any]", value), types)

    return is_one


def _odd(data: Mapping[str, Any], types: Mapping[str, _Is]) -> list[str]:
    """The fields of another type than these, in the order of the data."""
    return [
        name
        for name, value in data.items()
        if value is not None and name in types and not types[name](value)
    ]


def _each(names: str, is_one: _Is) -> dict[str, _Is]:
    return dict.fromkeys(names.split(), is_one)


_USAGE = _object  # read by `Usage.from_json`, which takes anything
_SIZES = "bytes_total bytes_shown lines_total lines_shown tokens_total tokens_shown"
_RECEIPT = _fields(
    **_each("path sha256 kept", _text),
    **_each(f"{_SIZES} bytes_kept overwritten", _number),
    stages=_list_of(_text),
)
_TROUBLE = _each("reason error_class request_id text", _text) | _each("status received", _number)

FIELD_TYPES: Final[Mapping[str, Mapping[str, _Is]]] = {
    "user": {**_each("text by collector traceparent", _text), "images": _list_of(_text)},
    "assistant": {
        **_each("model server stop_reason request_id message_id bound_to", _text),
        "usage": _USAGE,
    },
    "frame": {
        **_each("sha256 reason seal cache_life", _text),
        **_each("system tools layers room", _list),
        "blocks": _list_of(_whole),
        **_each("facts files", _values(_text)),
    },
    "notice": {
        **_each("kind text effort summary seal", _text),
        **_each("facts files", _values(_text)),
        "tools": _list_of(_object),
        **_each("pins jobs", _list_of(_text)),
        "on": _flag,
    },
    "request": {
        **_each("model server sha256 effort break", _text),
        **_each("n max_tokens", _whole),
        "marks": _list_of(_list_of(_whole)),
        "untrusted": _list_of(_text),
        "cache": _object,
    },
    "intent": {
        **_each("call_id tool effect args_sha256 label path before_sha256", _text),
        "files": _list_of(_object),
    },
    "job": {**_each("call_id command born", _text), "pid": _whole},
    "job_moved": {**_each("call_id job by", _text), "pid": _whole},
    "job_ended": {
        **_each("job call_id command state stopped_by path text", _text),
        **_each("exit_code bytes", _whole),
        **_each("hidden end_read", _flag),
        "seconds": _number,
    },
    "hook": {
        **_each("event command outcome text call_id", _text),
        "exit_code": _whole,
        "seconds": _number,
    },
    "sub_agent": {
        **_each("call_id session path agent description model state", _text),
        "calls": _whole,
        "spent": _list_of(_object),
    },
    "file_change": _each("call_id session session_call path before before_sha256", _text)
    | {"after_sha256": _text, "mode": _whole},
    "tool_result": {
        **_each("call_id name summary display", _text),
        "is_error": _flag,
        "seconds": _number,
        "receipt": _RECEIPT,
        "details": _object,
    },
    "directive": {"effort": _text},
    "profile": _each("name before", _text),
    "interrupt": _each("reason text thinking", _text),
    "error": {**_TROUBLE, **_each("message hint", _text)},
    "retry": {**_TROUBLE, **_each("attempt max_attempts delay_s", _number)},
    "failover": {
        **_TROUBLE,
        **_each("from to back_at", _text),
        **_each("again usd thoughts", _number),
    },
    "parked": {**_TROUBLE, "until": _text},
    "recovery": {
        **_each("action error_class request_id text", _text),
        **_each("tokens_before tokens_after", _number),
    },
    "permission": _each("call_id tool subject answer by reason level", _text),
    "repair": {**_each("rung by", _text), "findings": _list_of(_values(_text))},
    "feature": {**_each("feature server model message request_id", _text), "tokens": _whole},
    "break": {
        **_each("reason by from cause request_id why", _text),
        **_each("tokens thoughts cost_usd", _number),
        "back": _list_of(_text),
    },
    "unused": {**_each("model reason", _text), "usage": _object},
    "break_billed": {
        **_each("reason by", _text),
        **_each("n tokens thoughts cost_usd billed_usd", _number),
    },
    "overlay": {
        **_each("target view by reason", _text),
        "blocks": _list_of(_whole),
        **_each("age tokens", _whole),
        "wait": _flag,
        "images": _values(_object),
    },
    "compaction": {
        **_each("summary covers prefix_sha256 reason model server bound frame", _text),
        **_each("tokens_before tokens_after messages_removed", _number),
        **_each("usage block", _object),
        "follows": _flag,
        "verbatim": _list_of(_text),
    },
    "exam": {
        **_each("mode model problem", _text),
        "facts": _list_of(_object),
        "verbatim": _whole,
        "usage": _USAGE,
    },
    "uncompaction": _each("target", _text),
    "memory": {
        **_each("path covers model", _text),
        "added": _number,
        "usage": _USAGE,
    },
    "goal": {
        **_each("state goal command why digest model", _text),
        **_each("round rounds same", _whole),
        **_each("usd seconds spent_usd spent_s", _number),
        "usage": _USAGE,
    },
    "pin": {"target": _text, "pinned": _flag},
    "mcp": {"off": _values(_list_of(_text))},
    "cache_warmed": {
        **_each("until model server", _text),
        **_each("seconds cost_usd total_usd", _number),
        **_each("usage cache", _object),
        "times": _whole,
    },
    "side_question": {
        **_each("question answer outcome model server problem", _text),
        **_each("seconds cost_usd", _number),
        **_each("usage cache", _object),
        "n": _whole,
        "refused": _list_of(_text),
        "estimated": _flag,
    },
    "title": {**_each("title model", _text), "usage": _USAGE},
    "rewind": {
        **_each("target left checkpoint", _text),
        "prompts": _whole,
        "files_stay": _flag,
    },
    "checkpoint": {**_each("checkpoint by call_id prompt", _text), "files": _whole},
    "note": {},  # for the person only, and shown as a text whatever it is
}
"""The checks of the fields, by the type of the record."""

_SPEAKING = frozenset({"user", "assistant", "tool_result"})


def leave_out_odd(type_: str, data: dict[str, Any]) -> list[str]:
    """Take the fields of another type than theirs out of a record. Returns their names.

    Of `content`, what can be read is kept: a text in the place of a block becomes one.
    """
    odd = _odd(data, FIELD_TYPES.get(type_, {}))
    for name in odd:
        del data[name]
    if type_ in _SPEAKING and not _is_content(data.get("content", [])):
        data["content"] = [*_blocks(data["content"])]
        odd.append("content")
    return odd


def _is_content(value: object) -> bool:
    if not isinstance(value, list):
        return isinstance(value, str)
    return all(map(_is_block, cast("list[object]", value)))


def _is_block(value: object) -> bool:
    """The rest of a block is checked before it is sent (`tui.context.validate`)."""
    if not isinstance(value, dict):
        return False
    type_ = cast("Block", value).get("type")
    return type_ is None or isinstance(type_, str)


def _blocks(value: object) -> Iterable[Block]:
    """Yield the readable blocks of odd content. A block loses a type that is no text."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, dict):
            block = cast("Block", item)
            yield block if _is_block(block) else {k: v for k, v in block.items() if k != "type"}
        elif isinstance(item, str):
            yield text_block(item)
