"""What was asked in a session, what was done, who allowed it, what the model saw, and what it cost:
for somebody who was not there. From the record alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

from tui.agent.limits import SessionCost
from tui.context.file_changes import FileChange, changes
from tui.context.notices import NOTICE
from tui.core.config import Price
from tui.core.fact_words import fact_lines
from tui.core.formatting import money, plural, size, tokens
from tui.core.messages import Usage, blocks_of, list_of, object_of, string_of, text_of
from tui.core.paths import shorten
from tui.core.retold import retold, retold_lines
from tui.core.text_cleaning import one_line
from tui.session.export import DocumentPart, Exported, document
from tui.session.reader import LoadedSession
from tui.session.records import Record, is_answer, is_prompt
from tui.session.request_numbers import REQUEST

_CHARS: Final = 160
_ANSWERS: Final = {
    "allow": "Allowed",
    "once": "Allowed once",
    "session": "Allowed for the session",
    "always": "Allowed for ever",
    "no": "Refused",
    "deny": "Refused",
}
_BY: Final = {
    "person": "the person",
    "default": "the default rules",
    "elevated": "elevated mode",
    "hook": "a hook",
    "": "nobody who is recorded",
}
_TROUBLE: Final = frozenset({"error", "retry", "failover", "parked", "recovery", "repair"})
_SEEN: Final = frozenset(
    {
        *("break", "compaction", "directive", "exam", "feature", "hook", "mcp", "memory", "note"),
        *("notice", "overlay", "pin", "reload", "rewind", "uncompaction"),
    }
)


def session_report(
    loaded: LoadedSession,
    format_: Literal["md", "html"],
    prices: Mapping[str, Price],
    *,
    title: str = "",
    state: str = "",
) -> Exported:
    """A report as a document. `prices` are the configured ones; `state` says whether the file is
    what was written."""
    branch = loaded.branch
    models = dict.fromkeys(string_of(r.data.get("model")) for r in branch if is_answer(r))
    whole = _cost(branch, prices)
    usd = whole.session.usd
    cost = "cost not known" if usd is None else f"{money(usd)} in all"
    facts = [", ".join(filter(None, models)), cost, state]
    parts = [part for turn in _turns(branch) for part in _parts(turn, prices)]
    return document(loaded, format_, parts, title=title, more=[fact for fact in facts if fact])


def _turns(branch: Sequence[Record]) -> Iterator[list[Record]]:
    """The records of each prompt, and what came before the first."""
    number = 0

    def place(record: Record) -> int:
        nonlocal number
        number += is_prompt(record)
        return number

    for _, records in groupby(branch, key=place):
        yield list(records)


def _parts(turn: Sequence[Record], prices: Mapping[str, Price]) -> Iterator[DocumentPart]:
    first = turn[0]
    if is_prompt(first):
        when = first.time[:19].replace("T", " ")
        yield DocumentPart(f"Asked at {when} UTC", text_of(blocks_of(first.data.get("content"))))
    for name, lines in (
        ("Done", _calls(turn)),
        ("Files changed", _files(turn)),
        ("Went wrong", _trouble(turn)),
        ("Seen by the model", _seen(turn)),
        ("Cost", _costs(turn, prices)),
    ):
        if text := "\n".join(f"- {line}" for line in lines):
            yield DocumentPart(name, text)
    answers = [text_of(blocks_of(r.data.get("content"))) for r in turn if is_answer(r)]
    if answers and answers[-1].strip():
        yield DocumentPart("Answer", answers[-1])


def _calls(turn: Sequence[Record]) -> Iterator[str]:
    """Each call: what it was, how it ended, and who allowed it."""
    allowed = _by_call(turn, "permission")
    labels = _by_call(turn, "intent")
    for record in turn:
        if record.type != "tool_result":
            continue
        data, call = record.data, string_of(record.data.get("call_id"))
        label = string_of(labels.get(call, {}).get("label"))
        said = _cut(f"{data.get('name')} {label}")
        yield f"{said}: {_ended(data)}. {_who(allowed.get(call))}"


def _by_call(turn: Iterable[Record], type_: str) -> dict[str, dict[str, Any]]:
    return {string_of(r.data.get("call_id")): r.data for r in turn if r.type == type_}


def _ended(data: Mapping[str, Any]) -> str:
    """How a call ended."""
    details = object_of(data.get("details"))
    code, seconds = details.get("exit_code"), data.get("seconds")
    words = ["failed" if data.get("is_error") else "done"]
    if isinstance(seconds, int | float) and seconds >= 1:
        words.append(f"{seconds:.0f} s")
    if isinstance(code, int):
        words.append(f"exit code {code}")
    if count := len(list_of(details.get("changed_files"))):
        words.append(f"{plural(count, 'file')} changed")
    if isinstance(whole := object_of(data.get("receipt")).get("bytes_total"), int):
        words.append(f"{size(whole)}, cut for the model")
    return ", ".join(words)


def _who(permission: Mapping[str, Any] | None) -> str:
    """Who allowed a call."""
    if permission is None:
        return "Needs no permission."
    answer, by = string_of(permission.get("answer")), string_of(permission.get("by"))
    reason, level = string_of(permission.get("reason")), string_of(permission.get("level"))
    words = f"{_ANSWERS.get(answer, answer)} by {_BY.get(by, by)}"
    words += f" ({_cut(reason)})" if reason else ""
    return f"{words}, in the sandbox: {level}." if level else f"{words}."


def _files(turn: Sequence[Record]) -> Iterator[str]:
    for change in changes(turn):
        yield f"{shorten(change.path)} ({_how(change)})"
    details = (object_of(record.data.get("details")) for record in turn)
    by_commands = (str(name) for one in details for name in list_of(one.get("changed_files")))
    for name in dict.fromkeys(by_commands):
        yield f"{shorten(Path(name))} (by a command)"


def _how(change: FileChange) -> str:
    if change.after_sha256 is None:
        return "deleted"
    return "created" if change.created else "changed"


def _trouble(turn: Sequence[Record]) -> Iterator[str]:
    for record, fact in retold(turn):
        if record.type == "interrupt":
            why = _cut(string_of(record.data.get("reason")))
            yield f"interrupted: {why or 'no reason recorded'}"
        elif fact and record.type in _TROUBLE:
            yield from map(_cut, fact_lines(fact))


def _seen(turn: Sequence[Record]) -> Iterator[str]:
    """The requests, and what was done to what they hold."""
    numbers = [n for r in turn if r.type == REQUEST and isinstance(n := r.data.get("n"), int)]
    if numbers:
        first, last = numbers[0], numbers[-1]
        yield f"request {first}" if first == last else f"requests {first} to {last}"
    for record, fact in retold(turn):
        if fact and record.type in _SEEN:
            yield from map(_cut, retold_lines(fact))
        elif record.type == NOTICE:
            kind, text = record.data.get("kind"), string_of(record.data.get("text"))
            yield f"notice ({kind}): {_cut(text)}"


def _costs(turn: Sequence[Record], prices: Mapping[str, Price]) -> Iterator[str]:
    spent = _cost(turn, prices).session
    if not spent.requests:
        return
    use: Usage = spent.usage
    yield (
        f"{plural(spent.requests, 'answer')}, {money(spent.usd)}: {tokens(use.input_tokens)} tokens"
        f" in, {tokens(use.cache_read_input_tokens)} from the cache,"
        f" {tokens(use.cache_creation_input_tokens)} written to it, {tokens(use.output_tokens)} out"
    )


def _cost(records: Iterable[Record], prices: Mapping[str, Price]) -> SessionCost:
    cost = SessionCost()
    for record in records:
        cost = cost.after(record, prices)
    return cost


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _CHARS else f"{line[: _CHARS - 1]}…"
