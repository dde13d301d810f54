"""Sessions in which one value has another JSON type than the program writes.

A seed gives the same change again. The session it starts from holds a record of every type.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any, Final, cast

from tui.session.field_types import FIELD_TYPES
from tui.session.records import Record

Json = dict[str, Any]

VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    1e308,
    "",
    "a text",
    "\ud800",
    [],
    ["a text"],
    [None],
    [["a"]],
    [{"a": 1}],
    {},
    {"a": 1},
    {"type": "text", "text": "b"},
)
_TIME = "2026-01-02T03:04:05.000Z"
_CALL: Json = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.txt"}}
_RUN: Json = {"type": "tool_use", "id": "c2", "name": "run_command", "input": {"command": "make"}}
_SIZES = ("bytes_total", "bytes_shown", "lines_total", "lines_shown", "tokens_total")
_USAGE: Json = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 10}
_RECEIPT: Json = {
    **dict.fromkeys((*_SIZES, "tokens_shown", "bytes_kept"), 70_000),
    "stages": ["spill", "clamp"],
    "kept": "ends",
    "path": "/nowhere/out.txt",
    "sha256": "ab",
}
_TROUBLE: Json = {
    "reason": "overloaded",
    "error_class": "overloaded",
    "status": 529,
    "request_id": "r1",
    "received": 3,
    "text": "so far",
}


def _said(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _thought(text: str) -> Json:
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def _records() -> list[tuple[str, Json]]:
    """The fields of every type of record, in an order that makes sense."""
    model = {"model": "claude-sonnet-5-5", "server": "practice"}
    image = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    return [
        ("frame", {
            "system": _said("Be brief."), "tools": [], "layers": [["rules", "Be brief."]],
            "facts": {"Mode": "ask"}, "files": {"AGENTS.md": "x"}, "room": ["/w"], "sha256": "ab",
            "reason": "start", "version": "1", "seal": "cd", "cache_life": "5m",
        }),
        ("directive", {"think": "on", "verbose": "off", "elevated": "off", "effort": "high"}),
        ("user", {
            "content": [*_said("look at a.txt"), {"type": "image", "source": image}],
            "text": "look at a.txt", "images": ["[Image 1]"],
        }),
        ("notice", {
            "kind": "facts", "text": "A fact.", "facts": {"Mode": "plan"}, "files": {"a": "b"},
            "tools": [{"name": "late", "description": "d", "input_schema": {"type": "object"}}],
            "on": True, "effort": "low", "seal": "ef", "pins": ["p"], "jobs": ["j"],
        }),
        ("request", {
            "n": 1, **model, "sha256": "ab", "messages": 1, "open": False, "blocks": 1,
            "max_tokens": 1000, "thinking": {"type": "adaptive"}, "effort": "high",
            "marks": [[0, 0]], "form": [True, True], "shared_thinking": True, "prune": ["auto"],
            "untrusted": ["n"], "break": "compaction", "diagnostics": {}, "cache_life": "5m",
            "cache": {"kept": [["ab", 1, 2, 0, 0]], "forecast": {"prompt": 3, "old": 2}},
        }),
        ("assistant", {
            "content": [_thought("hm"), *_said("I look."), _CALL, _RUN], **model, "usage": _USAGE,
            "stop_reason": "tool_use", "request_id": "r1", "message_id": "m1", "bound_to": "ab",
        }),
        ("permission", {
            "call_id": "c2", "tool": "run_command", "subject": "make", "answer": "yes",
            "by": "person", "reason": "asked",
        }),
        ("intent", {
            "call_id": "c2", "tool": "run_command", "effect": "execute", "args_sha256": "ab",
            "label": "make", "path": "b.txt", "before_sha256": None,
        }),
        ("job", {"call_id": "c2", "pid": 999_999_999, "born": "1", "command": "make"}),
        ("job_moved", {"call_id": "c2", "job": "job-1", "pid": 999_999_999, "by": "person"}),
        ("job_ended", {
            "job": "job-1", "call_id": "c2", "command": "make", "exit_code": 2,
            "state": "exit code 2", "stopped_by": "", "seconds": 1.5, "path": "/nowhere/job.txt",
            "bytes": 7, "text": "failed", "hidden": False, "end_read": False,
        }),
        ("tool_result", {
            "call_id": "c1", "name": "read_file", "content": _said("alpha " * 300),
            "is_error": False, "seconds": 0.1, "receipt": _RECEIPT, "summary": "3 lines",
            "display": "+a\n-b", "details": {"path": "/w/a.txt", "sha256": "ab", "partial": "x"},
        }),
        ("tool_result", {
            "call_id": "c2", "name": "run_command", "content": _said("failed"), "is_error": True,
            "seconds": 1.0, "summary": "exit 2", "display": "", "details": {"exit_code": 2},
        }),
        ("hook", {
            "event": "PreToolUse", "command": "check", "outcome": "ok", "exit_code": 0,
            "seconds": 0.1, "text": "", "call_id": "c2",
        }),
        ("sub_agent", {
            "call_id": "c3", "session": "5ab", "path": "/d/5ab.jsonl", "agent": "explore",
            "description": "look", "model": "m", "state": "done", "calls": 2,
            "spent": [{"model": "m", "requests": 1, "usage": _USAGE}],
        }),
        ("file_change", {
            "call_id": "c3", "session": "5ab", "session_call": "c1", "path": "/w/a.txt",
            "before": "/w/b.txt", "before_sha256": "ab", "after_sha256": "cd",
        }),
        ("retry", {**_TROUBLE, "attempt": 1, "max_attempts": 3, "delay_s": 2.0}),
        ("failover", {
            **_TROUBLE, "from": "a", "to": "b", "back_at": _TIME, "again": 5, "usd": 0.1,
        }),
        ("recovery", {
            "step": "prune", "action": "left out", "error_class": "overflow",
            "tokens_before": 10, "tokens_after": 5, "request_id": "r", "text": "t",
        }),
        ("repair", {
            "findings": [{"code": "B01", "where": "line 3", "action": "added"}],
            "rung": "strict", "by": "person",
        }),
        ("feature", {
            "feature": "diagnostics", **model, "message": "no", "request_id": "r",
        }),
        ("assistant", {"content": _said("Done."), **model, "usage": _USAGE}),
        ("overlay", {
            "target": "2", "view": "masked", "by": "person", "reason": "asked", "blocks": [0],
            "age": 3, "tokens": 5, "wait": False,
        }),
        ("break", {
            "reason": "mask", "by": "person", "from": "2", "cause": "c", "message": 3,
            "tokens": 5, "thoughts": 1, "cost_usd": 0.1, "request_id": "r", "back": ["5"],
        }),
        ("unused", {**model, "usage": _USAGE, "reason": "it isn't smaller"}),
        ("cache_warmed", {
            "times": 2, "total_usd": 0.2, "until": _TIME, **model, "usage": _USAGE,
            "cost_usd": 0.1, "server": "api", "seconds": 0.5, "cache": {"kept": []},
        }),
        ("side_question", {
            "question": "why?", "answer": "so", "outcome": "answered", **model, "server": "api",
            "usage": _USAGE, "n": 1, "seconds": 1.5, "problem": "cut", "refused": ["read_file"],
            "estimated": True, "cost_usd": 0.1, "cache": {"kept": [], "life": "5m"},
        }),
        ("break_billed", {
            "reason": "mask", "by": "person", "n": 1, "tokens": 5, "thoughts": 1, "cost_usd": 0.1,
            "billed_usd": 0.2,
        }),
        ("pin", {"target": "10", "pinned": True}),
        ("mcp", {"off": {"a": ["b"]}}),
        ("title", {"title": "A title"}),
        ("profile", {"name": "work", "before": "default"}),
        ("goal", {
            "state": "checked", "goal": "Make it pass.", "command": "pytest -q", "round": 2,
            "rounds": 20, "usd": 5.0, "seconds": 7200.0, "spent_usd": 0.42, "spent_s": 95.5,
            "why": "`pytest -q` ended with exit code 1", "same": 1, "digest": "0123456789abcdef",
        }),
        ("note", {"text": "A note."}),
        ("memory", {"path": "/w/MEMORY.md", "notes": 1, "added": 1, "covers": "9", **model}),
        ("exam", {
            "mode": "small", **model, "facts": [{"question": "q", "held": True}], "verbatim": 1,
            "problem": "it was busy", "usage": _USAGE,
        }),
        ("compaction", {
            "summary": "What was said.", "tokens_before": 100, "tokens_after": 50,
            "messages_removed": 3, "covers": "5", "prefix_sha256": "ab", "reason": "manual",
            "usage": _USAGE, **model, "follows": True, "bound": "ab", "frame": "cd",
            "verbatim": ["never on Fridays"],
            "block": {"type": "compaction", "content": "What.", "signature": "c2ln"},
        }),
        ("uncompaction", {"target": "25"}),
        ("user", {"content": _said("and now?"), "text": "and now?"}),
        ("interrupt", {"reason": "cancelled", "text": "I was", "thinking": "hm"}),
        ("rewind", {"target": "25", "left": "26"}),
        ("error", {**_TROUBLE, "message": "It failed.", "hint": "Try again."}),
        ("checkpoint", {"checkpoint": "0f-1", "files": 2, "by": "", "call_id": "c", "prompt": "3"}),
        ("parked", {**_TROUBLE, "until": "2026-01-02T09:00:00+00:00"}),
    ]  # fmt: skip


def whole_session() -> list[Json]:
    """The lines of a session of every type of record, the header first."""
    head = {"type": "session", "version": 1, "id": "0ddba11", "created": _TIME, "cwd": "/w"}
    lines: list[Json] = [head | {"app": "holdfast 1", "origin": "1e55"}]
    last: str | None = None
    for number, (kind, fields) in enumerate(_records()):
        record = Record(kind, str(number), last, _TIME, fields)
        lines.append(json.loads(record.to_line()))
        last = record.id
    draft = {"prompt": "typed", "queue": ["next"], "commands": ["!ls"], "answer": "a", "after": 0}
    lines.append({"type": "draft", "id": "d", "parent": last, "time": _TIME, **draft})
    assert {line["type"] for line in lines} >= FIELD_TYPES.keys()
    return lines


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a line."""
    children: Any = cast("Json", value).items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, child in children:
        found.append((*path, key))
        if isinstance(child, dict | list):
            found += places(child, (*path, key))
    return found


def odd_session(seed: int) -> tuple[list[Json], str]:
    """The lines of a session with one odd value, and in words what is odd."""
    random = Random(seed)
    lines = whole_session()
    number = random.randrange(len(lines))
    line = lines[number]
    *path, last = random.choice(places(line))
    value = copy.deepcopy(random.choice(VALUES))
    where: Any = line
    for key in path:
        where = where[key]
    said = f"seed {seed}: line {number + 1}, {line['type']} {[*path, last]} = {value!r}"
    where[last] = value
    # Whatever was last decides how a session opens: it may end anywhere behind the odd line.
    if number and random.random() < 0.3:
        del lines[random.randrange(number, len(lines)) + 1 :]
    return lines, said


def write_lines(path: Path, lines: list[Json]) -> Path:
    """Write a session file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
