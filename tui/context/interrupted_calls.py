"""The state of calls without a result, and how each is recovered: one call has one owner.

    call of             between intent and result                      who recovers it
    anything            no intent                                      nobody: it never started
    a command           its folder was made, its state was not         nobody: it never started
                        its keeper has it, running or ended            the keeper's folder, by the
                                                                       call (`Tool.resume`)
                        its keeper is gone, or the folder is           nobody knows: unknown
    ... in background,  the same, with a job noted in the folder       the job, which the session
    or moved there                                                     takes over when it is opened;
                                                                       unknown if that is lost
                        its end is recorded (`job_ended`)              that record
    task                its session, and the calls in it likewise      the call, made again: it
                                                                       continues in that session
    a write             the intent has the hash of what was there      the file may show it
    MCP, web, others    the intent                                     nobody knows: unknown

`Interrupted.recovery` is the one rule, the same for each front end: a call whose result is kept or
still comes gets it; one that never started may run; any other is reported as unknown, and only a
person lets it run again. That nothing starts twice does not depend on the rule: the state of a
command is made by its keeper, or by whoever wants to start it again, and only once (`tui.keeper`).

Not covered: hooks, which are asked again about a call that runs or gets its result later; and the
person's own commands, which end with the program unless they were moved to the background.

An intent is on the disk before its tool runs, and calls that write or run do so alone and in order.
So a call without an intent never started, and one followed by something that can only come after it
has finished. Otherwise its state is unknown; for a write, the file itself may show it
(`with_file`). Pure. This is for the person: the model always gets the same text.

The fields read from `intent` records: call_id, tool, effect, time, and if present `label` (the few
words on the call's card), `path` (the real path of a write) and `before_sha256` (of the file's
content before it; null for a new file), or `files`, a list of these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tui.context.untrusted import wrap
from tui.core.dataclass import dataclass, replace
from tui.core.messages import Block, blocks_of, list_of, object_of, string_of, tool_calls
from tui.core.workspace import text_of_path
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.keeper.command import Kept

Outcome: TypeAlias = Literal["never_started", "finished_result_lost", "unknown"]
Recovery: TypeAlias = Literal["result", "start", "continue", "unknown"]
"""The recovery of a call: it gets its result, which is kept or still comes; it may run; it
continues where it was when it runs again; or its effect is not known."""
FileState: TypeAlias = Literal["unchanged", "written", "changed", "unknown"]
"""A file compared with its content before a write and with the content to be written; of several
files, whether any has changed."""

_CONTINUES = "task"
"""The tool whose calls continue where they were, in a session of their own."""

_ALONE = frozenset({"write", "run"})
_SUBJECTS = ("command", "path", "file_path", "pattern", "url", "query")
_LABEL_CHARS = 200


@dataclass(frozen=True, slots=True)
class FileBefore:
    """One of several files before a write; `before_sha256` is None for no file, "" if unknown."""

    path: str
    before_sha256: str | None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A call that has no result.

    `record` is the id of the answer that made it; `started` the time of its intent, "" if it has
    none; `effect` is "" if not known. `path`, `before_sha256` and `after_sha256` belong to a write
    and are "" if not known; `new_file` is set where the record says that there was no file.
    `settled`: the conversation has continued since, so it needs no card.
    """

    call_id: str
    record: str
    tool: str
    label: str
    effect: str
    outcome: Outcome
    started: str = ""
    path: str = ""
    before_sha256: str = ""
    after_sha256: str = ""
    new_file: bool = False
    settled: bool = False
    file: FileState = "unknown"
    kept: Kept = ""
    """The state of its command."""
    files: tuple[FileBefore, ...] = ()
    """The files of a call that writes several."""

    @property
    def recovery(self) -> Recovery:
        """The way it is recovered."""
        if self.kept in {"running", "finished"}:
            return "result"
        if self.outcome == "never_started":
            return "start"
        return "continue" if self.tool == _CONTINUES and self.outcome == "unknown" else "unknown"


def interrupted_calls(records: Iterable[Record]) -> list[Interrupted]:
    """Return the calls of a branch that have no result, in order."""
    branch = list(records)
    knows = _has_intents(branch)
    interrupted: list[Interrupted] = []
    waiting: list[_Call] = []
    for record in branch:
        match record.type:
            case "assistant":
                interrupted += _ended(waiting, knows=knows, settled=True, went_on=True)
                calls = tool_calls(blocks_of(record.data.get("content")))
                waiting = [_Call(record.id, call) for call in calls]
            case "intent" | "tool_result":
                _note(waiting, record)
            case "user" if "text" in record.data:  # a prompt never comes before a result
                interrupted += _ended(waiting, knows=knows, settled=True, went_on=False)
                waiting = []
            case _:
                pass
    return interrupted + _ended(waiting, knows=knows, settled=False, went_on=False)


def unsettled_calls(records: Sequence[Record]) -> list[Interrupted]:
    """Return the calls without a result that are not settled. They can only be of the last answer,
    so in a long session with none of them little is read."""
    answers = (at for at in range(len(records) - 1, -1, -1) if records[at].type == "assistant")
    last = next(answers, len(records))
    if all(call.settled for call in interrupted_calls(records[last:])):
        return []
    return [call for call in interrupted_calls(records) if not call.settled]


def open_calls(records: Sequence[Record]) -> list[Block]:
    """Return the calls of the last answer that have no result, and an id that one can name: any
    other is given its result where the record is repaired to be sent."""
    answered: set[str] = set()
    for record in reversed(records):
        if record.type == "tool_result":
            answered.add(str(record.data.get("call_id")))
        elif record.type == "assistant":
            calls = tool_calls(blocks_of(record.data.get("content")))
            named = ((string_of(call.get("id")), call) for call in calls)
            return [call for id_, call in named if id_ and id_ not in answered]
    return []


def printed_before(records: Sequence[Record]) -> str:
    """Return the end of the output of the calls interrupted since the last prompt, and where the
    full output is; "" if there was none. The model gets it with the next prompt, since their
    results do not contain it."""
    outputs: list[str] = []
    for record in reversed(records):
        if record.type == "user" and "text" in record.data:
            break
        details = object_of(record.data.get("details"))
        partial = string_of(details.get("partial"))
        if record.type == "tool_result" and details.get("interrupted") and partial.strip():
            outputs.append(_printed(record, partial))
    return "\n\n".join(reversed(outputs))


def _printed(record: Record, partial: str) -> str:
    receipt = object_of(record.data.get("receipt"))
    path, total = string_of(receipt.get("path")), receipt.get("bytes_total")
    which = "all it printed"
    if isinstance(total, int) and total > len(partial.encode("utf-8", "surrogatepass")):
        copy = (
            f"full output saved to: {text_of_path(Path(path))}" if path else "the rest was not kept"
        )
        which = f"the last {len(partial):,} characters it printed; {copy}"
    name = string_of(record.data.get("name")) or "tool"
    output = wrap(partial.rstrip(), f"{name}: interrupted")
    return f"I interrupted `{name}`. Its output until then ({which}):\n{output}"


def with_command(call: Interrupted, kept: Kept) -> Interrupted:
    """Return the call with its keeper's account of the command, which is more reliable than the
    record: its last lines may be lost, or a command may not have started after its intent."""
    if kept == "unstarted":
        return replace(call, kept=kept, outcome="never_started")
    begun = kept and call.outcome == "never_started"
    return replace(call, kept=kept, outcome="unknown" if begun else call.outcome)


def with_file(call: Interrupted, current_sha256: str | None) -> Interrupted:
    """Return the call with the current state of its file; `current_sha256` is None for no file.

    If the file has the content that was to be written, the call finished.
    """
    if call.effect != "write" or call.outcome == "never_started":
        return call
    if current_sha256 and current_sha256 == call.after_sha256:
        return replace(call, file="written", outcome="finished_result_lost")
    before = None if call.new_file else call.before_sha256
    if before == "":
        return call
    return replace(call, file="unchanged" if current_sha256 == before else "changed")


def with_files(call: Interrupted, current: Mapping[str, str | None]) -> Interrupted:
    """Do the same for a call that writes several files: `current` are the hashes of those that
    could be read, by path."""
    if call.outcome == "never_started" or not call.files:
        return call
    if any(file.before_sha256 == "" or file.path not in current for file in call.files):
        return call
    same = all(current[file.path] == file.before_sha256 for file in call.files)
    return replace(call, file="unchanged" if same else "changed")


@dataclass(slots=True)
class _Call:
    """A call that may still get its result."""

    answer: str
    block: Block
    intent: Record | None = None
    answered: bool = False

    @property
    def id(self) -> str:
        return str(self.block.get("id"))


def _note(waiting: Sequence[_Call], record: Record) -> None:
    """Give an intent or a result to its call: the first with that id that lacks it."""
    id_ = record.data.get("call_id")
    for call in waiting:
        if call.id != id_ or call.answered:
            continue
        if record.type == "tool_result":
            call.answered = True
            return
        if call.intent is None:
            call.intent = record
            return


def _ended(
    calls: Sequence[_Call], *, knows: bool, settled: bool, went_on: bool
) -> list[Interrupted]:
    """Return the calls without a result. `went_on`: the model answered, so it must have had
    results."""
    last_alone = max(
        (n for n, call in enumerate(calls) if _effect(call) in _ALONE and call.intent), default=-1
    )
    interrupted: list[Interrupted] = []
    for place, call in enumerate(calls):
        if call.answered:
            continue
        outcome: Outcome = "unknown"
        if call.intent is None:
            outcome = "never_started" if knows and not went_on else "unknown"
        elif went_on or place < last_alone:
            outcome = "finished_result_lost"
        interrupted.append(_described(call, outcome, settled=settled))
    return interrupted


def _has_intents(branch: Sequence[Record]) -> bool:
    """True if these records have intents at all: another agent's sessions have only results."""
    kinds = {record.type for record in branch}
    return "intent" in kinds or "tool_result" not in kinds


def _effect(call: _Call) -> str:
    return _text(call.intent.data, "effect") if call.intent else ""


def _described(call: _Call, outcome: Outcome, *, settled: bool) -> Interrupted:
    arguments = object_of(call.block.get("input"))
    intent = call.intent.data if call.intent else {}
    effect = _effect(call)
    writes = effect == "write"
    return Interrupted(
        call_id=call.id,
        record=call.answer,
        tool=_text(intent, "tool") or str(call.block.get("name")),
        label=_text(intent, "label") or _label(arguments),
        effect=effect,
        outcome=outcome,
        started=call.intent.time if call.intent else "",
        path=_text(intent, "path") or (_text(arguments, "path") if writes else ""),
        before_sha256=_text(intent, "before_sha256"),
        after_sha256=_after(arguments) if writes else "",
        new_file="before_sha256" in intent and intent["before_sha256"] is None,
        settled=settled,
        files=tuple(map(_file_before, list_of(intent.get("files")))),
    )


def _file_before(value: object) -> FileBefore:
    fields = object_of(value)
    absent = "before_sha256" in fields and fields["before_sha256"] is None
    return FileBefore(_text(fields, "path"), None if absent else _text(fields, "before_sha256"))


def _label(arguments: dict[str, Any]) -> str:
    subject = next((_text(arguments, name) for name in _SUBJECTS if _text(arguments, name)), "")
    return " ".join(subject.split())[:_LABEL_CHARS]


def _after(arguments: dict[str, Any]) -> str:
    """The hash of a file that is written as a whole, taken from the call itself."""
    content = arguments.get("content")
    if not isinstance(content, str):
        return ""
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: dict[str, Any], name: str) -> str:
    return string_of(value.get(name))
