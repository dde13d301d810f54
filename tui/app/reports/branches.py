"""/tree and `sessions tree`: the branches of a session, with what each has of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from tui.agent.limits import session_cost
from tui.app.dialog_data import BranchRow
from tui.context.file_changes import changes
from tui.core.config import Price
from tui.core.formatting import age, moment_of, money, plural
from tui.core.messages import list_of, object_of
from tui.core.text_cleaning import one_line
from tui.session.branches import branches
from tui.session.records import Record, is_prompt, title_of

NOTHING_SAID: Final = "(nothing asked yet)"
INDENTED: Final = 6
"""Levels of a tree that are indented; what is deeper says how deep."""


def branch_rows(records: Sequence[Record], prices: Mapping[str, Price]) -> list[BranchRow]:
    """A row for each branch, followed by those that left it, from all records of a session."""
    before = _prompts_before(records)
    rows: list[BranchRow] = []
    for branch in branches(records):
        count, words = before.get(branch.fork or "", (0, ""))
        rows.append(
            BranchRow(
                branch.leaf,
                one_line(branch.first),
                branch.prompts,
                count + branch.prompts,
                branch.updated,
                session_cost(branch.own, prices).session.usd,
                _files(branch.own),
                branch.parent,
                branch.fork,
                one_line(words),
                branch.depth,
                branch.current,
            )
        )
    return rows


def branch_facts(row: BranchRow, now: datetime, room: int | None = None) -> str:
    """Describe a branch in one line: its age, and as many other figures as have room."""
    facts = {
        "prompts": plural(row.prompts, "prompt"),
        "age": branch_age(row, now),
        "cost": money(row.cost_usd) if row.cost_usd else "",
        "files": plural(row.files, "file") if row.files else "",
    }
    for left_out in ("", "cost", "files", "prompts"):
        facts.pop(left_out, None)
        line = " · ".join(filter(None, facts.values()))
        if room is None or len(line) <= room:
            break
    return line


def branch_age(row: BranchRow, now: datetime) -> str:
    """The time since something was said on a branch; "" if unknown. A time in the future, from a
    clock that was wrong, counts as now."""
    then = moment_of(row.updated)
    since = age(then, now) if then else ""
    return since if since in {"", "now"} or "-" in since else f"{since} ago"


def branch_about(row: BranchRow) -> tuple[str, ...]:
    """The lines about a branch: the prompt after which it branches off, and its id."""
    if row.parent is None:
        left = "Starts with the session"
    else:
        words = f"after “{row.fork_words}”" if row.fork_words else "before the first prompt"
        left = f"Branches off {words}"
    here = " · you are here" if row.current else ""
    return (f"{left} · {plural(row.all_prompts, 'prompt')} in all{here}", f"branch {row.leaf}")


def indent(row: BranchRow) -> str:
    """The marks before a branch that show which one it left."""
    if not row.depth:
        return ""
    deeper = f"{row.depth}: " if row.depth > INDENTED else ""
    return f"{'  ' * (min(row.depth, INDENTED) - 1)}└ {deeper}"


def _files(records: Sequence[Record]) -> int:
    """Count the files that a part of a record changed, by tools and by commands."""
    results = (one.data.get("details") for one in records if one.type == "tool_result")
    by_commands = (list_of(object_of(details).get("changed_files")) for details in results)
    names = {str(name) for found in by_commands for name in found}
    written = {change.path.parts for change in changes(records)}
    same = {"/".join(parts[start:]) for parts in written for start in range(len(parts))}
    return len(written) + len(names - same)


def _prompts_before(records: Sequence[Record]) -> dict[str, tuple[int, str]]:
    """For each record the number of prompts up to it, and the first words of the last of them."""
    known: dict[str, tuple[int, str]] = {}
    waiting: dict[str, list[Record]] = {}
    ids = {record.id for record in records}
    for record in records:
        if record.parent in ids and record.parent not in known:
            waiting.setdefault(record.parent or "", []).append(record)
            continue
        ready = [record]
        while ready:  # a damaged file may have a record before its parent
            one = ready.pop()
            count, words = known.get(one.parent or "", (0, ""))
            if is_prompt(one):
                count, words = count + 1, title_of(one.data)
            known[one.id] = count, words
            ready += waiting.pop(one.id, ())
    return known
