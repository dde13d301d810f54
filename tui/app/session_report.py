"""The report of a session for somebody who was not there: what was asked and done, who allowed it,
what the model saw, and what it cost. From the record alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

from tui.agent.limits import session_cost
from tui.context.file_changes import FileChange, changes
from tui.context.notices import NOTICE
from tui.core import facts
from tui.core.config import Price
from tui.core.facts import Told
from tui.core.formatting import money, plural, shortened, size, tokens
from tui.core.messages import Usage, list_of, object_of, string_of
from tui.core.paths import shorten
from tui.core.retold import retold, retold_lines
from tui.core.text_cleaning import one_line
from tui.session.export import DocumentPart, Exported, document
from tui.session.reader import LoadedSession
from tui.session.records import Record, is_answer, is_prompt
from tui.session.request_numbers import REQUEST

Turn: TypeAlias = list[tuple[Record, Told | None]]

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
        *("break", "break_billed", "compaction", "directive", "exam", "feature", "hook", "mcp"),
        *("memory", "note", "notice", "overlay", "pin", "profile", "reload", "rewind"),
        "uncompaction",
    }
)


def session_report(
    loaded: LoadedSession, prices: Mapping[str, Price], *, title: str = "", state: str = ""
) -> Exported:
    """A report in Markdown; `tui.app.session_page` makes a page of the same. `prices` are the
    configured ones; `state` says whether the file is what was written."""
    branch = loaded.branch
    all_turns = [*turns(branch)]
    head = [", ".join(models(all_turns)), cost(loaded.records, branch, prices), state]
    parts = [part for turn in all_turns for part in turn_parts(turn, prices)]
    return document(loaded, "md", parts, title=title, more=[line for line in head if line])


def models(all_turns: Iterable[Turn]) -> list[str]:
    """The models that answered, in their order."""
    found = dict.fromkeys(one.model for turn in all_turns for one in answers(turn))
    return [*filter(None, found)]


def cost(records: Sequence[Record], branch: Sequence[Record], prices: Mapping[str, Price]) -> str:
    """Say what a session cost, and what its branch did where there are others."""
    whole = session_cost(records, prices).session
    here = whole if len(records) == len(branch) else session_cost(branch, prices).session
    uncounted = any(
        is_answer(one) and not Usage.from_json(one.data.get("usage")).total for one in records
    )
    if whole.usd is None or (uncounted and not whole.usd):
        words = "cost not known"
    else:
        more = ", and more that isn't known" if uncounted else ""
        words = f"{money(whole.usd)} in all{more}"
    if whole.requests > here.requests:
        words += f", {money(here.usd)} on this branch"
    return words


def turns(branch: Sequence[Record]) -> Iterator[Turn]:
    """Group the records by prompt, those before the first one included."""
    number = 0

    def place(told: tuple[Record, Told | None]) -> int:
        nonlocal number
        number += is_prompt(told[0])
        return number

    for _, turn in groupby(retold(branch), key=place):
        yield list(turn)


def turn_parts(turn: Turn, prices: Mapping[str, Price]) -> Iterator[DocumentPart]:
    """The parts of the report that are about one prompt, in their order."""
    first, prompt = turn[0]
    if isinstance(prompt, facts.UserMessage) and is_prompt(first):
        when = first.time[:19].replace("T", " ")
        yield DocumentPart(f"Asked at {when} UTC", prompt.text)
    for name, lines in (
        ("Done", (line for _, line in calls(turn))),
        ("Files changed", _files(turn)),
        ("Went wrong", _trouble(turn)),
        ("Seen by the model", _seen(turn)),
        ("Cost", _costs(turn, prices)),
    ):
        if text := "\n".join(f"- {line}" for line in lines):
            yield DocumentPart(name, text)
    texts = [one.text for one in answers(turn)]
    if texts and texts[-1].strip():
        yield DocumentPart("Answer", texts[-1])


def answers(turn: Turn) -> Iterator[facts.AssistantMessage]:
    """Yield the answers of the model."""
    for record, fact in turn:
        if isinstance(fact, facts.AssistantMessage) and is_answer(record):
            yield fact


def calls(turn: Turn) -> Iterator[tuple[str, str]]:
    """Yield each call, by the id of its result's record: what it was, how it ended, and who allowed
    it."""
    turn_facts = [one for _, one in turn]
    allowed = {one.id: one for one in turn_facts if isinstance(one, facts.PermissionAnswered)}
    labels = {one.call_id: one.label for one in turn_facts if isinstance(one, facts.CallBegan)}
    for record, one in turn:
        if isinstance(one, facts.ToolFinished):
            label = _cut(f"{one.name or 'a call'} {labels.get(one.id, '')}")
            yield record.id, f"{label}: {_ended(one)}. {allowed_by(allowed.get(one.id))}"


def _ended(call: facts.ToolFinished) -> str:
    """Say how a call ended."""
    code = call.details.get("exit_code")
    words = ["failed" if call.is_error else "done"]
    if call.seconds >= 1:
        words.append(f"{call.seconds:.0f} s")
    if isinstance(code, int):
        words.append(f"exit code {code}")
    if count := len(list_of(call.details.get("changed_files"))):
        words.append(f"{plural(count, 'file')} changed")
    if isinstance(whole := object_of(call.receipt).get("bytes_total"), int):
        words.append(f"{size(whole)}, cut for the model")
    return ", ".join(words)


def allowed_by(permission: facts.PermissionAnswered | None) -> str:
    """Say in a sentence who allowed a call."""
    if permission is None:
        return "Needs no permission."
    answer, by, reason = permission.answer, permission.by, permission.reason
    words = f"{_ANSWERS.get(answer, answer)} by {_BY.get(by, by)}"
    words += f" ({_cut(reason)})" if reason else ""
    level = f", in the sandbox: {permission.level}" if permission.level else ""
    return f"{words}{level}."


def _files(turn: Turn) -> Iterator[str]:
    for change in changes([record for record, _ in turn]):
        yield f"{shorten(change.path)} ({_how(change)})"
    details = (one.details for _, one in turn if isinstance(one, facts.ToolFinished))
    by_commands = (str(name) for one in details for name in list_of(one.get("changed_files")))
    for name in dict.fromkeys(by_commands):
        yield f"{shorten(Path(name))} (by a command)"


def _how(change: FileChange) -> str:
    if change.after_sha256 is None:
        return "deleted"
    return "created" if change.created else "changed"


def _trouble(turn: Turn) -> Iterator[str]:
    for record, fact in turn:
        if isinstance(fact, facts.TurnInterrupted):
            yield f"interrupted: {_cut(fact.reason) or 'no reason recorded'}"
        elif record.type in _TROUBLE:
            yield from map(_cut, retold_lines(fact))


def _seen(turn: Turn) -> Iterator[str]:
    """The requests, and what was done to what they hold."""
    numbers = [n for r, _ in turn if r.type == REQUEST and isinstance(n := r.data.get("n"), int)]
    if numbers:
        first, last = numbers[0], numbers[-1]
        yield f"request {first}" if first == last else f"requests {first} to {last}"
    for record, fact in turn:
        if fact and record.type in _SEEN:
            yield from map(_cut, retold_lines(fact))
        elif record.type == NOTICE:
            kind, text = record.data.get("kind"), string_of(record.data.get("text"))
            yield f"notice ({kind}): {_cut(text)}"


def _costs(turn: Turn, prices: Mapping[str, Price]) -> Iterator[str]:
    spent = session_cost([record for record, _ in turn], prices).session
    if not spent.requests:
        return
    use: Usage = spent.usage
    yield (
        f"{plural(spent.requests, 'answer')}, {money(spent.usd)}: {tokens(use.input_tokens)} tokens"
        f" in, {tokens(use.cache_read_input_tokens)} from the cache,"
        f" {tokens(use.cache_creation_input_tokens)} written to it, {tokens(use.output_tokens)} out"
    )


def _cut(text: str) -> str:
    return shortened(one_line(text), _CHARS)
