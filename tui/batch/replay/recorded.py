"""The prompts of recorded sessions as cases of a suite, with the commands that were green then.

Everything here blocks, and only reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import filterfalse
from pathlib import Path
from typing import Final

from tui.agent.limits import session_cost
from tui.agent.prompts import HOOKS_SAY
from tui.batch.replay.state import Figures
from tui.batch.replay.suite import Case, name_of
from tui.context.timeline import without_texts
from tui.context.workspace_changes import checkpoint_at
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError, UsageError
from tui.core.late_pattern import late_pattern
from tui.core.messages import blocks_of, object_of, string_of, text_of, tool_calls
from tui.core.paths import Folders
from tui.core.redaction import mask
from tui.core.text_cleaning import one_line
from tui.session import catalog, naming
from tui.session.checkpoints.entries import CheckpointError
from tui.session.checkpoints.not_stored import is_dependency, is_remade
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.checkpoints.transfer import StoredState
from tui.session.reader import LoadedSession, path_to, read
from tui.session.records import CHECKPOINT, Record, is_answer, is_prompt

_CHECK: Final = late_pattern(
    r"(?<![a-z])(?:py\.?test|unittest|doctest|nose2?|tox|nox|mypy|pyright|basedpyright|ruff|flake8|pylint"
    r"|jest|vitest|mocha|eslint|tsc|biome|phpunit|rspec|rubocop|ctest|gotestsum|golangci-lint"
    r"|shellcheck|clippy|checks?|tests?|lint|typecheck|verify|spec)(?![a-z])"
    r"|\b(?:go|cargo|dune|stack|cabal) (?:vet|build)\b",
    re.IGNORECASE,
)
"""Words of commands that judge the work."""
_PARTS: Final = late_pattern(r"&&|\|\||[;|\n]")
_SHOWN: Final = late_pattern(r"(?:\s*2>&1)?\s*\|\s*(?:tail|head|cat|tee|less|grep)\b[^|&;\n]*\Z")
"""The end of a command line that only shows its output, and whose exit code stands for it."""
_LOOKS: Final = late_pattern(
    r"\s*(?:cat|ls|grep|rg|find|head|tail|sed|wc|echo|mkdir|rm|cp|mv|touch|git|pip|npm i)(?:\s|$)"
)
"""Commands that name a test and only look, or prepare something."""


_JOINTS: Final = late_pattern(r"(&&|\|\||[;|\n]|(?<![&<>])&(?![&>]))")
_STOPS: Final = late_pattern(r"(?:^|[;&\n])\s*set\s+-\w*e")
_WHOLE_PIPES: Final = late_pattern(r"(?:^|[;&\n])\s*set\s+-\w*o\s+pipefail\b")
_FAILS: Final = late_pattern(r"[\s({]*(?:(?:exit|return)\s+[1-9]|false\b)")
"""What fails after `||`."""


class NotReplayableError(HoldfastError):
    """A prompt cannot be replayed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """The session that a case is of: its branch up to the end of the prompt's turn. `start` is the
    prompt's place in it."""

    loaded: LoadedSession
    branch: Sequence[Record]
    start: int

    @property
    def root(self) -> Path:
        """The folder that the session worked in."""
        return Path(self.loaded.header.cwd)

    @property
    def turn(self) -> Sequence[Record]:
        """The records of the prompt's turn, the prompt first."""
        later = range(self.start + 1, len(self.branch))
        end = next((n for n in later if is_prompt(self.branch[n])), len(self.branch))
        return self.branch[self.start : end]


def added(named: str, folders: Folders, known: Sequence[Case]) -> tuple[list[Case], list[str]]:
    """The cases of a session, named by `ID`, or of its prompt number N, `ID:N`; and, in lines, the
    prompts that give none, each with its reason. What is in `known` already is left out.

    Raises SessionError for a session that isn't there, UsageError for a prompt that isn't.
    """
    loaded, number = _named(named, folders)
    branch = loaded.branch
    places = [place for place, record in enumerate(branch) if is_prompt(record)]
    if number is not None and not 1 <= number <= len(places):
        raise UsageError(
            f"The session {loaded.header.id} has no prompt {number}.",
            hint=f"It has {len(places)}: holdfast sessions show {loaded.header.id}",
        )
    taken = {case.name for case in known}
    there = {(case.session, case.prompt) for case in known}
    cases, lines = list[Case](), list[str]()
    for count, place in enumerate(places, 1):
        if number not in {None, count}:
            continue
        try:
            source = RecordedPrompt(loaded, branch, place)
            case = _case(source, taken, folders, later=number is not None)
        except NotReplayableError as error:
            lines.append(f"Prompt {count}: left out. {error.message}")
            continue
        if (case.session, case.prompt) in there:
            lines.append(f"Prompt {count}: it is in the suite already.")
            continue
        for line in filterfalse(ends_as_its_check, _green_in(source.turn)):
            shown = _here(one_line(mask(line)[0]), str(source.root))
            why = "no check, since it may end with 0 where that fails"
            lines.append(f"Prompt {count}: {why}: {shown}")
        if case.checks or number is not None:
            cases.append(case)
            taken.add(case.name)
        else:
            lines.append(f"Prompt {count}: left out. No check ended with 0 in its turn.")
    return cases, lines


def _named(named: str, folders: Folders) -> tuple[LoadedSession, int | None]:
    id_, colon, number = named.rpartition(":")
    if colon and number.isdecimal() and not Path(named).exists():
        return read(naming.find(id_, folders)), int(number)
    return read(naming.find(named, folders)), None


def _case(source: RecordedPrompt, taken: set[str], folders: Folders, *, later: bool) -> Case:
    """Make the case of a prompt; its checks may be those of a `later` turn. Raises
    NotReplayableError."""
    prompt, id_ = source.branch[source.start], source.loaded.header.id
    content = blocks_of(prompt.data.get("content"))
    if any(block.get("type") != "text" for block in content):
        raise NotReplayableError("It has images or files attached, which a suite can't hold.")
    text = text_of(content).partition(f"\n\n{HOOKS_SAY}")[0]  # hooks speak again
    if not text.strip():
        raise NotReplayableError("It has no text.")
    before = checkpoint_at(source.branch, source.start)
    if not before:
        raise NotReplayableError(
            "There is no checkpoint of its files: it changed none, the session comes from an older"
            " version or another program, or checkpoints were off."
        )
    checks, after = _green(source, later=later)
    if why := _why_gone(source.root, before, after or before, folders):
        raise NotReplayableError(why)
    absent = _not_stored(source.root, before, folders)
    linked = tuple(path for path in absent if is_dependency(source.root / path))
    return Case(
        name=name_of(mask(text)[0], taken),
        session=id_,
        prompt=prompt.id,
        text=text,
        before=before,
        after=after or before,
        checks=checks,
        linked=linked,
        missing=tuple(path for path in absent if path not in linked),
    )


def _green(source: RecordedPrompt, *, later: bool) -> tuple[tuple[str, ...], str]:
    """The checks that were green first: in the turn of the prompt, else in a `later` one; and the
    last checkpoint that was taken before the last of them had ended."""
    ends = [n for n in range(source.start + 1, len(source.branch)) if is_prompt(source.branch[n])]
    begin = source.start
    for end in [*ends, len(source.branch)]:
        green = _green_in(source.branch[begin:end])
        found = {line: place for line, place in green.items() if ends_as_its_check(line)}
        if found:
            last = max(found.values())
            until = source.branch[: begin + last + 1]
            taken = [one for one in until if one.type == CHECKPOINT]
            root = str(source.root)
            checks = tuple(dict.fromkeys(_SHOWN.sub("", _here(line, root)) for line in found))
            return checks, string_of(taken[-1].data.get("checkpoint")) if taken else ""
        if not later:
            break
        begin = end
    return (), ""


def _green_in(records: Sequence[Record]) -> dict[str, int]:
    """The checks that ended with 0 when they ran last, with the place of their result."""
    commands: dict[str, str] = {}
    green: dict[str, int] = {}
    for place, record in enumerate(records):
        if is_answer(record):
            for call in tool_calls(blocks_of(record.data.get("content"))):
                given = object_of(call.get("input"))
                line = string_of(given.get("command")).strip()
                if call.get("name") == "run_command" and line and not given.get("background"):
                    where = string_of(given.get("cwd"))
                    commands[str(call.get("id"))] = f"cd {where} && {line}" if where else line
        elif record.type == "tool_result":
            line = commands.get(str(record.data.get("call_id")), "")
            if not line:
                continue
            green.pop(line, None)
            if not record.data.get("is_error") and is_check(line):
                green[line] = place
    return green


def is_check(line: str) -> bool:
    """True if a command looks like one that judges the work: tests, types, lint."""
    return any(map(_is_check, _PARTS.split(line)))


def _is_check(part: str) -> bool:
    return _CHECK.search(part) is not None and not _LOOKS.match(part)


def ends_as_its_check(line: str) -> bool:
    """True if a command fails where a check in it does; with `pytest; true` or `pytest || echo no`
    it doesn't."""
    words = without_texts(_SHOWN.sub("", line.strip()))
    stops = ["&&", *";\n" * bool(_STOPS.search(words)), *"|" * bool(_WHOLE_PIPES.search(words))]
    parts = _JOINTS.split(words)
    for part, joint in zip(parts[::-2], [*parts[-2::-2], ""], strict=True):
        if _is_check(part):
            return True
        fails = joint == "||" and _FAILS.match(part)
        empty = joint in {";", "\n"} and not part.strip(" )}'\"")
        if not (fails or empty or joint in stops):
            return False
    return False


def _here(line: str, root: str) -> str:
    """A command with paths from its own folder in the place of those that name it."""
    return relocated(line, root, ".")


def relocated(text: str, old: str, new: str) -> str:
    """A text that names paths in one folder, with those in another."""
    if old in {"", "/"} or old not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(old)}(?![\w-]|\.\w)", lambda _: new, text)


def _not_stored(root: Path, checkpoint: str, folders: Folders) -> list[str]:
    """List what a checkpoint has no copy of, without what programs make again."""
    store = store_of(folders, root)
    try:
        state = state_of(store, checkpoint)
    except CheckpointError as error:
        raise NotReplayableError(error.message) from error
    finally:
        store.close()
    paths = (path for path, entry in sorted(state.entries.items()) if entry and not entry.stored)
    return [name for path in paths if not is_remade(name := os.fsdecode(path))]


def why_lost(case: Case, folders: Folders) -> str:
    """Say what a case needs and is gone by now; "" where all is there."""
    try:
        root = source_of(case, folders).root
    except NotReplayableError as error:
        return error.message
    return _why_gone(root, case.before, case.after or case.before, folders)


def _why_gone(root: Path, before: str, after: str, folders: Folders) -> str:
    """Say which of two checkpoints isn't stored any more; "" where both are."""
    with closing(store_of(folders, root)) as store:
        try:
            held = store.holds({before, after})
        except CheckpointError as error:
            return error.message
    if before not in held:
        return "The checkpoint of its files isn't stored any more."
    if after not in held:
        return "The checkpoint with which its checks were green isn't stored any more."
    return ""


def oldest_needed(case: Case, folders: Folders) -> datetime | None:
    """The time of the oldest checkpoint that a case needs, from which on it is kept."""
    found = [
        datetime.fromisoformat(one.time)
        for one in source_of(case, folders).loaded.records
        if one.type == CHECKPOINT and one.data.get("checkpoint") in {case.before, case.after}
    ]
    return min(found, default=None)


def state_of(store: CheckpointStore, checkpoint: str) -> StoredState:
    """The whole state of a checkpoint. Raises CheckpointError where it isn't stored any more."""
    state = next(iter(store.states([checkpoint])), None)
    if state is None:
        raise CheckpointError("The checkpoint of its files isn't stored any more.")
    return state


def source_of(case: Case, folders: Folders) -> RecordedPrompt:
    """The recorded prompt of a case. Raises NotReplayableError where it is gone."""
    try:
        loaded = read(catalog.resolve(case.session, folders))
    except HoldfastError as error:
        raise NotReplayableError(f"Its session can't be read: {error.message}") from error
    branch = loaded.branch
    start = next((n for n, one in enumerate(branch) if one.id == case.prompt), None)
    if start is None:  # it was rewound
        branch = _other_branch(loaded, case.prompt)
        start = next((n for n, one in enumerate(branch) if one.id == case.prompt), None)
    if start is None:
        raise NotReplayableError("Its prompt isn't in the session any more.")
    return RecordedPrompt(loaded, branch, start)


def _other_branch(loaded: LoadedSession, prompt: str) -> Sequence[Record]:
    """The records of the last branch that has a prompt; none where there is no such."""
    above = {record.parent for record in loaded.records}
    leaves = (one.id for one in reversed(loaded.records) if one.id not in above)
    paths = (path_to(loaded.records, leaf) for leaf in leaves)
    return next((path for path in paths if any(one.id == prompt for one in path)), ())


def figures(records: Sequence[Record], prices: Mapping[str, Price]) -> Figures:
    """Count the calls, tokens, dollars and seconds of the records of a turn."""
    spent = session_cost(records, prices).session
    answers = (blocks_of(one.data.get("content")) for one in records if is_answer(one))
    return Figures(
        calls=sum(len(tool_calls(content)) for content in answers),
        requests=spent.requests,
        tokens=spent.usage.total,
        cost_usd=spent.usd,
        seconds=_seconds(records),
    )


def _seconds(records: Sequence[Record]) -> float | None:
    """Return the seconds from the first record to the last answer or result."""
    ends = [one.time for one in records if one.type in {"assistant", "tool_result"}]
    if not ends:
        return None
    try:
        begun, ended = (datetime.fromisoformat(one) for one in (records[0].time, ends[-1]))
        return max(0.0, (ended - begun).total_seconds())
    except (ValueError, TypeError):
        return None
