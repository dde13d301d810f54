"""The decisions when to compact, and when another compaction would be useless. Pure.

A context is compacted above a share of the window. If there was no progress between two
compactions, the work is a loop and is stopped. Progress is something new: a prompt of the person, a
file or folder read for the first time, or a call that did not fail, does more than read, and was
not made with these arguments before. Repeating forgotten work is no progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from tui.context.overrides import content_of
from tui.core.dataclass import dataclass, field
from tui.core.formatting import shortened
from tui.core.messages import Block, list_of, object_of, string_of, text_of, tool_calls
from tui.session.records import Record, is_prompt
from tui.tools.patch_format import named_paths

TRIES: Final = 2
"""Number of compactions in a row without progress that stop the work."""

_CHANGING: Final = frozenset({"write_file", "edit_file", "apply_patch", "run_command"})
_LISTED: Final = 12
_LINE: Final = 300


@dataclass(frozen=True, slots=True)
class Stuck:
    """The hand-over of work that goes in circles: what was asked, what was done, and what is
    left."""

    asked: str
    done: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    intents: dict[str, Record] = field(default_factory=dict[str, Record])
    done: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    files: set[str] = field(default_factory=set[str])


def progress(records: Iterable[Record]) -> list[bool]:
    """Return for each stretch between compactions whether it made progress: before the first one,
    between them, and after the last."""
    seen, progressed = _Seen(), [False]
    for record in records:
        if record.type == "compaction":
            progressed.append(False)
        elif _is_new(record, seen):
            progressed[-1] = True
    return progressed


def stuck(records: Sequence[Record]) -> Stuck | None:
    """Return the hand-over if the next compaction would be in vain; None while the work
    advances."""
    if sum(record.type == "compaction" for record in records) < TRIES:
        return None
    if any(progress(records)[-TRIES:]):
        return None
    return hand_over(records)


def hand_over(records: Sequence[Record]) -> Stuck:
    """Summarize what was asked last, what was done since, and the open points of the task list."""
    asked, done, todos = "", dict[str, None](), list[dict[str, Any]]()
    calls: dict[str, Block] = {}
    for record in records:
        if is_prompt(record):
            asked, done = _line(text_of(content_of(record))), {}
        elif record.type == "assistant":
            calls |= {str(call.get("id")): call for call in tool_calls(content_of(record))}
        elif record.type == "tool_result" and record.data.get("is_error") is not True:
            call = calls.get(str(record.data.get("call_id")), {})
            given = object_of(call.get("input"))
            # Only the newest task list counts; each change counts once.
            if record.data.get("name") == "todo_write":
                todos = list(map(object_of, list_of(given.get("todos"))))
            elif record.data.get("name") in _CHANGING:
                paths = ", ".join(named_paths(str(given.get("patch") or "")))
                what = given.get("path") or given.get("command") or paths
                done[_line(f"{record.data.get('name')} {what}")] = None
    left = [_line(str(t.get("text"))) for t in todos if t.get("status") != "completed"]
    finished = [_line(str(t.get("text"))) for t in todos if t.get("status") == "completed"]
    return Stuck(asked, tuple([*finished, *done][-_LISTED:]), tuple(left[:_LISTED]))


def _is_new(record: Record, seen: _Seen) -> bool:
    """True if a record is progress. Notes in `seen` what the record shows."""
    data = record.data
    if record.type == "intent":
        seen.intents[str(data.get("call_id"))] = record
    if record.type != "tool_result" or data.get("is_error") is True:
        return record.type == "user"
    intent = seen.intents.get(str(data.get("call_id")))
    if intent is None:
        return False
    tool, effect, arguments = (
        str(intent.data.get(key)) for key in ("tool", "effect", "args_sha256")
    )
    # A file or folder counts the first time that any call names it.
    details = object_of(data.get("details")) if effect in {"read", "write"} else {}
    named = (details, *map(object_of, list_of(details.get("files"))))
    paths = {string_of(one.get("path")) for one in named} - {""}
    new_file = not paths <= seen.files
    seen.files |= paths
    did_more = effect in {"fetch", "write", "run"} or tool == "todo_write"
    new_call = did_more and (tool, arguments) not in seen.done
    if new_call:
        seen.done.add((tool, arguments))
    return new_file or new_call


def _line(text: str) -> str:
    return shortened(" ".join(text.split()), _LINE)


SOON: Final = 3
"""Number of turns before a compaction at which the person is warned."""


def over(tokens: int, window: int, threshold: float) -> bool:
    """True if a context is strictly over the threshold: 80.0 % is not over 80 %."""
    return tokens > Decimal(str(threshold)) * window


def percent(tokens: int, window: int) -> str:
    """The fill level as a percentage with one decimal: `80.1`."""
    return f"{100 * tokens / max(1, window):.1f}"


def soon(forecast: int | None) -> bool:
    """True if a compaction is near, by the ledger's forecast in turns."""
    return forecast is not None and 0 < forecast <= SOON
