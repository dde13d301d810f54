"""The steps that one session made which may have changed files, as its record tells them. Pure.

They are read once for each session file and kept (see `tui.context.blame.index`), so they hold
names and hashes, and no content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from tui.context.call_origin import subject_of
from tui.context.file_changes import details_of
from tui.core.late_pattern import late_pattern
from tui.core.messages import Usage, blocks_of, list_of, object_of, string_of, tool_calls
from tui.core.workspace import worktree_of
from tui.session.reader import LoadedSession
from tui.session.records import BATCH, Record, is_prompt, title_of

Kind: TypeAlias = Literal[
    "edit", "command", "formatter", "git", "job", "rewind", "person", "commit", "before", "lost"
]
"""The kind of a step: a call of a file tool; a command, and of these a formatter or git; background
commands; files put back by a rewind; the person, or a program of theirs; a commit that was made
elsewhere; from before the first state that is known; a step of a session that is gone."""

SUB_AGENT_TOOL: Final = "task"
_LABEL_CHARS: Final = 200
_NAMED_MAX: Final = 20
"""Files elsewhere that one command is noted to name."""
LATE_S: Final = 5.0
"""A write or a checkpoint is recorded within this time after it."""
_ABSOLUTE: Final = late_pattern(r"(?<![^\s\"'=<>|;&(])/[^\s\"'<>|;&()]+")
_COMMANDS: Final = frozenset({"command", "cmd"})
"""Arguments of calls that run something."""
_SPEAKING: Final = frozenset({"user", "assistant"})
_FORMATTERS: Final = late_pattern(
    r"(?:^|[\s;&|(/])(?:ruff\s+(?:format|check\s.*--fix)|black|isort|yapf|autopep8|prettier|"
    r"dprint|biome\s+(?:format|check)|eslint\s.*--fix|standard\s+--fix|gofmt|goimports|gofumpt|"
    r"go\s+fmt|rustfmt|cargo\s+fmt|clang-format|shfmt|stylua|scalafmt|ktlint|swiftformat|"
    r"terraform\s+fmt|zig\s+fmt|mix\s+format|dart\s+format|dotnet\s+format|google-java-format|"
    r"php-cs-fixer|rubocop\s.*-[aA]|buf\s+format|taplo\s+fmt|nixfmt|ormolu|fourmolu|"
    r"pre-commit\s+run|(?:npm|pnpm|yarn|bun)(?:\s+run)?\s+(?:format|fmt|prettier|lint:fix)|"
    r"(?:make|just|task)\s+(?:format|fmt))(?:$|[\s;&|):])"
)
_GIT: Final = late_pattern(r"(?:^|[\s;&|(/])(?:git|jj|gh\s+pr|hub)\s")


class RecordedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody's doing that changed files. `time` is ISO 8601; "" is not known.

    `prompt` is the record of the prompt under which it was made, `said` its first words, `before`
    the last message before it (a fork up to there is without the prompt). `label` is the command,
    or the path of an edit; `answer`, `by` and `reason` are how the call was allowed. `agent` is the
    sub-agent's name, `parent` the session that it worked for, `payer` the profile. `commit` and
    `author` are git's.
    """

    kind: Kind
    time: str = ""
    session: str = ""
    prompt: str = ""
    said: str = ""
    before: str = ""
    call: str = ""
    tool: str = ""
    label: str = ""
    model: str = ""
    usage: Usage | None = None
    batch: bool = False
    payer: str = ""
    answer: str = ""
    by: str = ""
    reason: str = ""
    parent: str = ""
    commit: str = ""
    author: str = ""
    app: str = ""
    """Another agent's name, where its session was imported."""


class RecordedWrite(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file tool's write, by the numbers of its steps in the session: of the call, and of the
    formatter that a hook ran after it (-1: none).

    `copy` is the path of the file from before; hashes are hexadecimal, "" for no file. `moved_from`
    is the path that the same call took away. `place` orders it among the session's records.
    """

    path: str
    step: int
    place: int
    time: float
    before: str = ""
    after: str = ""
    copy: str = ""
    hook: int = -1
    moved_from: str = ""


class TakenCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint that a session took: who changed the files since `last`, its checkpoint before
    ("": its first). `step` is that of a call, -1 for none. `late`: the call had ended long before,
    while the session was not running."""

    id: str
    last: str
    by: str
    step: int
    place: int
    time: float
    late: bool = False


class CommandElsewhere(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command that names a file which the session's checkpoints don't hold, and when it ended;
    None where that was never recorded."""

    path: str
    step: int
    ended: float | None = None


class ForeignEdit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of another agent that changed a file, of which only the words are known: the whole
    text (`content`), or passages of it, each with what took its place."""

    path: str
    step: int
    time: float
    content: str | None = None
    passages: tuple[tuple[str, str], ...] = ()


class SessionSteps(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that one session may have changed. `root` is its folder, `since` its begin. `lost`: its
    file is damaged, so steps may be missing. `unended` are steps of commands without an end."""

    id: str
    root: str
    since: float
    parent: str = ""
    origin: str = ""
    lost: bool = False
    steps: tuple[RecordedStep, ...] = ()
    writes: tuple[RecordedWrite, ...] = ()
    checkpoints: tuple[TakenCheckpoint, ...] = ()
    foreign: tuple[ForeignEdit, ...] = ()
    named: tuple[tuple[int, str], ...] = ()
    """Paths below the root that a command's result names as changed, each with its step."""
    unended: tuple[int, ...] = ()
    elsewhere: tuple[CommandElsewhere, ...] = ()
    unwatched: tuple[tuple[int, float | None], ...] = ()
    """Steps of commands around which no checkpoint was taken, and of another agent's edits without
    a result, each with its end; None where that was never recorded."""
    at_most: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Steps of commands that were cut off or not watched, each with all paths that it may have
    written to, where its words tell."""


def steps_of(loaded: LoadedSession) -> SessionSteps:
    """List what a session, as read, may have changed; all branches of it, in the order of the
    file."""
    reading = _Reading(loaded)
    for place, record in enumerate(loaded.records):
        reading.read(place, record)
    return reading.result()


def seconds_of(time: str) -> float:
    """An ISO 8601 time in seconds since the epoch; 0 where it is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0


class _Reading:
    """One pass over the records of a session."""

    def __init__(self, loaded: LoadedSession) -> None:
        self._header = loaded.header
        self._lost = bool(loaded.findings)
        origin = loaded.header.origin or ""
        self._app = origin.partition(":")[0] if ":" in origin else ""
        self._calls: dict[str, RecordedStep] = {}
        self._inputs: dict[str, Mapping[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._steps: list[RecordedStep] = []
        self._hooks: dict[str, str] = {}
        self._running: dict[str, None] = {}
        self._open: dict[str, None] = {}
        self._begun_elsewhere: dict[str, str] = {}
        self._writes: list[RecordedWrite] = []
        self._checkpoints: list[TakenCheckpoint] = []
        self._foreign: list[ForeignEdit] = []
        self._named: list[tuple[int, str]] = []
        self._elsewhere: list[CommandElsewhere] = []
        self._at_most: list[tuple[int, tuple[str, ...]]] = []
        self._unwatched: list[tuple[str, float | None]] = []
        """Calls of commands before the first checkpoint, and their ends."""
        self._prompt = RecordedStep("person")
        self._heard: dict[str, str] = {}
        """The last message up to each record, on its own branch."""
        self._last_checkpoint = ""

    def result(self) -> SessionSteps:
        unended = tuple(self._number(call) for call in self._running)
        for call in self._running:
            self._names_elsewhere(call, None)
            self._was_cut_off(call)
        if self._app and not self._checkpoints:
            self._unwatched += [(call, None) for call in self._open]
        unwatched = list(filter(None, (self._unseen(*one) for one in self._unwatched)))
        return SessionSteps(
            self._header.id,
            self._header.cwd,
            seconds_of(self._header.created),
            self._header.parent_session,
            self._header.origin or "",
            self._lost,
            tuple(self._steps),
            tuple(self._writes),
            tuple(self._checkpoints),
            tuple(self._foreign),
            tuple(self._named),
            unended,
            tuple(self._elsewhere),
            tuple(unwatched),
            tuple(self._at_most),
        )

    def read(self, place: int, record: Record) -> None:
        before = self._heard.get(record.parent or "", "")
        self._heard[record.id] = record.id if record.type in _SPEAKING else before
        match record.type:
            case "user":
                if is_prompt(record):
                    self._prompt = RecordedStep(
                        "person", prompt=record.id, said=title_of(record.data), before=before
                    )
            case "assistant":
                self._answered(record)
            case "permission":
                self._allowed(record)
            case "intent":
                self._begun(record)
            case "hook":
                if record.data.get("event") == "PostToolUse":
                    call = string_of(record.data.get("call_id"))
                    self._hooks[call] = string_of(record.data.get("command"))
            case "tool_result":
                self._ended(place, record)
            case "checkpoint":
                self._taken(place, record)
            case "file_change":
                self._by_sub_agent(place, record)
            case "rewind":
                self._last_checkpoint = (
                    string_of(record.data.get("checkpoint")) or self._last_checkpoint
                )
            case _:
                pass

    def _answered(self, record: Record) -> None:
        usage = Usage.from_json(record.data.get("usage"))
        for block in tool_calls(blocks_of(record.data.get("content"))):
            given = object_of(block.get("input"))
            call = string_of(block.get("id"))
            for kind in ("", "edit", "formatter"):  # an id that comes again is another call
                self._numbers.pop(f"{call}:{kind}", None)
            self._open[call] = None
            tool = string_of(block.get("name"))
            self._inputs[call] = given
            self._calls[call] = msgspec.structs.replace(
                self._prompt,
                kind="command",
                time=record.time,
                session=self._header.id,
                parent=self._header.parent_session,
                call=call,
                tool=tool,
                label=subject_of(given)[:_LABEL_CHARS],
                model=string_of(record.data.get("model")),
                usage=usage if usage.total else None,
                batch=bool(record.data.get(BATCH)),
                payer=record.payer,
                app=self._app,
            )

    def _allowed(self, record: Record) -> None:
        data = record.data
        call = string_of(data.get("call_id"))
        self._calls[call] = msgspec.structs.replace(
            self._step(call),
            answer=string_of(data.get("answer")),
            by=string_of(data.get("by")),
            reason=string_of(data.get("reason")),
        )

    def _begun(self, record: Record) -> None:
        call = string_of(record.data.get("call_id"))
        if record.data.get("effect") == "run":
            self._running[call] = None
            self._calls[call] = msgspec.structs.replace(self._step(call), time=record.time)
        if call not in self._calls:
            label = string_of(record.data.get("label"))[:_LABEL_CHARS]
            tool = string_of(record.data.get("tool"))
            step = msgspec.structs.replace(self._step(call), tool=tool, label=label)
            self._calls[call] = msgspec.structs.replace(step, time=record.time)

    def _step(self, call: str) -> RecordedStep:
        known = self._calls.get(call)
        return known or msgspec.structs.replace(
            self._prompt, kind="command", session=self._header.id, call=call, app=self._app
        )

    def _number(self, call: str, **changes: Any) -> int:
        """The number of a call's step, which is noted with the first need."""
        key = f"{call}:{changes.get('kind', '')}"
        if key not in self._numbers:
            step = self._step(call)
            if "kind" not in changes:
                changes["kind"] = kind_of(step.label)
            self._numbers[key] = len(self._steps)
            self._steps.append(msgspec.structs.replace(step, **changes))
        return self._numbers[key]

    def _noted(self, **changes: Any) -> int:
        """The number of a step that is no call of this session."""
        self._steps.append(msgspec.structs.replace(self._prompt, **changes))
        return len(self._steps) - 1

    def _ended(self, place: int, record: Record) -> None:
        call = string_of(record.data.get("call_id"))
        if call in self._running:
            self._running.pop(call)
            self._names_elsewhere(call, seconds_of(record.time))
        self._open.pop(call, None)
        if not self._checkpoints and (self._app or not self._header.parent_session):
            self._unwatched.append((call, seconds_of(record.time)))
        details = object_of(record.data.get("details"))
        self._date(call, details.get("seconds"))
        if record.data.get("is_error"):
            return
        written = [each for each in details_of(record) if _is_write(each)]
        if written:
            self._wrote(place, record, call, written)
        elif self._app and (given := self._inputs.get(call)):
            self._foreign += _foreign(
                given, self._calls[call].tool, self._number(call, kind="edit"), record.time
            )
        for path in list_of(details.get("changed_files")):
            self._named.append((self._number(call), string_of(path)))

    def _names_elsewhere(self, call: str, ended: float | None) -> None:
        """Note the files outside of the workspace that a command names."""
        words = "\n".join(filter(None, map(string_of, self._inputs.get(call, {}).values())))
        root = Path(self._header.cwd)
        for name in list(dict.fromkeys(_ABSOLUTE.findall(words)))[:_NAMED_MAX]:
            path = Path(os.path.normpath(name))
            if not path.is_relative_to(root) or worktree_of(path) != worktree_of(root):
                self._elsewhere.append(CommandElsewhere(str(path), self._number(call), ended))

    def _date(self, call: str, seconds: object) -> None:
        """Mark the checkpoint after a call that ended long before it: the session was resumed."""
        taken = self._checkpoints[-1] if self._checkpoints else None
        if taken is None or taken.by != "call" or not isinstance(seconds, int | float):
            return
        step = self._steps[taken.step]
        if step.call == call and taken.time > seconds_of(step.time) + seconds + LATE_S:
            self._checkpoints[-1] = msgspec.structs.replace(taken, late=True)
            self._was_cut_off(call)

    def _unseen(self, call: str, ended: float | None) -> tuple[int, float | None] | None:
        """The step of a command that no checkpoint shows, or of an edit without a result; None for
        another call."""
        given = self._inputs.get(call, {})
        if _COMMANDS & given.keys():
            self._was_cut_off(call)
            return self._number(call), ended
        edits = _foreign(given, self._calls[call].tool, 0, "") if given and ended is None else []
        if not edits:
            return None
        number = self._number(call, kind="edit")
        self._at_most.append((number, (edits[0].path,)))
        return number, ended

    def _was_cut_off(self, call: str) -> None:
        """Note what a command that was cut off may have written to at most."""
        from tui.permissions.written_paths import written_paths  # noqa: PLC0415 - seldom needed

        command = string_of(self._inputs.get(call, {}).get("command"))
        paths = written_paths(command, Path(self._header.cwd)) if command else None
        if paths is not None:
            self._at_most.append((self._number(call), tuple(sorted(map(str, paths)))))

    def _wrote(self, place: int, record: Record, call: str, written: list[Any]) -> None:
        step = self._number(call, kind="edit", time=record.time)
        hook = -1
        if command := self._hooks.get(call):
            hook = self._number(
                f"{call}", kind="formatter", time=record.time, label=command[:_LABEL_CHARS]
            )
        gone = [
            string_of(each.get("path"))
            for each in written
            if not isinstance(each.get("after_sha256"), str)
        ]
        for each in written:
            before = string_of(each.get("before_sha256"))
            moved = gone[0] if len(gone) == 1 and not before else ""
            self._writes.append(
                RecordedWrite(
                    string_of(each.get("path")),
                    step,
                    place,
                    seconds_of(record.time),
                    before,
                    string_of(each.get("after_sha256")),
                    string_of(each.get("before")),
                    hook,
                    moved if moved != each.get("path") else "",
                )
            )

    def _taken(self, place: int, record: Record) -> None:
        data = record.data
        taken, call = string_of(data.get("checkpoint")), string_of(data.get("call_id"))
        by = string_of(data.get("by"))
        step = -1
        own = call in self._open and self._step(call).tool != SUB_AGENT_TOOL
        if by == "call" and own:
            step = self._number(call)
        elif by == "call" and call:
            began = self._begun_elsewhere.pop(call, record.time)
            step = self._noted(kind="command", time=began, session=self._header.id, call=call)
        elif by == "rewind":
            step = self._noted(kind="rewind", time=record.time, session=self._header.id)
        elif call and own:  # right before it begins
            self._calls[call] = msgspec.structs.replace(self._step(call), time=record.time)
        elif call:
            self._begun_elsewhere[call] = record.time
        time = seconds_of(record.time)
        self._checkpoints.append(
            TakenCheckpoint(taken, self._last_checkpoint, by, step, place, time)
        )
        self._last_checkpoint = taken

    def _by_sub_agent(self, place: int, record: Record) -> None:
        """A sub-agent's write, which its own session has too, unless that is gone."""
        data = record.data
        session, call = string_of(data.get("session")), string_of(data.get("session_call"))
        key = f"{session}/{call}"
        if key not in self._numbers:
            self._numbers[key] = len(self._steps)
            step = msgspec.structs.replace(
                self._step(string_of(data.get("call_id"))),
                kind="edit",
                time=record.time,
                session=session,
                parent=self._header.id,
                call=call,
                label=string_of(data.get("path")),
            )
            self._steps.append(step)
        self._writes.append(
            RecordedWrite(
                string_of(data.get("path")),
                self._numbers[key],
                place,
                seconds_of(record.time),
                string_of(data.get("before_sha256")),
                string_of(data.get("after_sha256")),
                string_of(data.get("before")),
            )
        )


def kind_of(command: str) -> Kind:
    """The kind of a command, by its words."""
    if _FORMATTERS.search(command):
        return "formatter"
    return "git" if _GIT.search(f"{command} ") else "command"


def _is_write(details: Mapping[str, Any]) -> bool:
    path = details.get("path")
    return isinstance(path, str) and path.startswith("/") and "after_sha256" in details


def _foreign(given: Mapping[str, Any], tool: str, step: int, time: str) -> list[ForeignEdit]:
    """The edits of another agent's call, as far as its words tell them."""
    path = string_of(given.get("file_path")) or string_of(given.get("path"))
    path = path or string_of(given.get("filePath"))
    if not path:
        return []
    content = given.get("content")
    if isinstance(content, str) and tool.lower() in {"write", "write_file", "create_file"}:
        return [ForeignEdit(path, step, seconds_of(time), content)]
    edits = [object_of(one) for one in list_of(given.get("edits"))] or [given]
    passages = tuple(
        (old, new)
        for each in edits
        for old in [each.get("old_string", each.get("oldString"))]
        for new in [each.get("new_string", each.get("newString"))]
        if isinstance(old, str) and isinstance(new, str)
    )
    return [ForeignEdit(path, step, seconds_of(time), None, passages)] if passages else []


def encoded(steps: SessionSteps) -> bytes:
    """The form in which they are kept, without halves of characters."""
    try:
        return msgspec.json.encode(steps)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(steps), ensure_ascii=False)
        return text.encode("utf-8", "replace")


def decoded(data: bytes) -> SessionSteps:
    """Raises ValueError for anything that `encoded` didn't give."""
    try:
        return msgspec.json.decode(data, type=SessionSteps)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError("no steps") from error
