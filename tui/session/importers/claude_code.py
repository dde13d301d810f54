"""Claude Code: `~/.claude/projects/{folder}/{session}.jsonl`.

`claude_code_tree` puts its records together to whole answers; here these are told as ours.

Kept in the request but not shown as typed: what the program itself said for the user (`isMeta`,
local commands, notices of an interrupt). Left out: side chains, error texts stored as answers
(B57), and whatever a request does not know (`caller`, `toolUseResult`, …).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tui.core.messages import Block, Usage, text_of
from tui.session.importers.claude_code_tree import SPOKEN, Entry, entries_of, grouped
from tui.session.importers.conversion import Place, Telling, mapping, string
from tui.session.importers.tree import active_branch
from tui.session.jsonl import Findings, JsonObject

PROGRAM = "claude_code"

_MARKS = frozenset({"parentUuid", "sessionId", "isSidechain", "leafUuid", "isSnapshotUpdate"})
_BY_PROGRAM = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|system-reminder|task-notification)"
    r"|\[Request interrupted|Caveat: The messages below)"
)


def matches(value: JsonObject) -> bool:
    """Whether an object is a record of this format."""
    kind = value.get("type")
    if not isinstance(kind, str) or "payload" in value:
        return False
    if kind == "queue-operation":
        return True
    if not _MARKS.isdisjoint(value):
        return True
    return kind in SPOKEN and "uuid" in value and "message" in value


def tell(places: Iterable[Place], findings: Findings) -> Telling:
    """The records of the active branch."""
    telling = Telling(PROGRAM, findings)
    summaries: list[str] = []
    entries = entries_of(places, telling, summaries)
    groups, nodes = grouped(entries)
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


def _tell_group(entries: Sequence[Entry], telling: Telling, *, earlier: bool) -> bool:
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


def _tell_answer(pieces: Sequence[Entry], telling: Telling) -> bool:
    """One answer, put together from its pieces in the order of the file."""
    kept: list[Entry] = []
    for piece in pieces:
        model = mapping(piece.value.get("message")).get("model")
        if piece.value.get("isApiErrorMessage") or model == "<synthetic>":
            telling.findings.add("B57", piece.where, "left out: an error text stored as an answer")
            words = text_of(piece.blocks or ())
            telling.add("error", piece.key, _time(piece), error_class="unknown", message=words)
        else:
            kept.append(piece)
    blocks = _put_together(kept, telling.findings)
    if not blocks:
        return False
    first, last = kept[0], mapping(kept[-1].value.get("message"))
    usage = Usage.from_json(last.get("usage")).to_json()
    reasons = [mapping(piece.value.get("message")).get("stop_reason") for piece in kept]
    telling.answer(
        first.key,
        _time(first),
        blocks,
        model=string(last, "model"),
        usage=usage,
        stop_reason=next((r for r in reversed(reasons) if r), None),
    )
    return True


def _put_together(pieces: Sequence[Entry], findings: Findings) -> list[Block]:
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


def _tell_user(entry: Entry, telling: Telling, *, earlier: bool) -> bool:
    """Results, and what else the user's side said in one record."""
    value, blocks = entry.value, entry.blocks or []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for number, block in enumerate(results):
        telling.result(
            f"{entry.key}-{number}",
            _time(entry),
            block.get("tool_use_id"),
            block.get("content"),
            is_error=block.get("is_error") is True,
        )
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    if value.get("isCompactSummary"):
        words = text_of(rest)
        if earlier:  # all that it sums up is here: it is an event, not something said
            telling.compaction(entry.key, _time(entry), words)
            return bool(results)
        telling.add("user", entry.key, _time(entry), content=rest)
        return bool(rest or results)
    typed = not value.get("isMeta") and not _BY_PROGRAM.match(text_of(rest))
    telling.user(entry.key, _time(entry), rest, typed=typed)
    return bool(rest or results)


def _tell_system(entry: Entry, telling: Telling) -> None:
    words = entry.value.get("content")
    if entry.value.get("subtype") == "compact_boundary":
        telling.tokens_before = mapping(entry.value.get("compactMetadata")).get("preTokens")
    if entry.value.get("subtype") == "local_command" and isinstance(words, str):
        telling.add("note", entry.key, _time(entry), text=words)


def _sent(block: Block) -> Block:
    """A block of an answer as a request knows it: without `caller`."""
    return {name: value for name, value in block.items() if name != "caller"}


def _time(entry: Entry) -> Any:
    return entry.value.get("timestamp")
