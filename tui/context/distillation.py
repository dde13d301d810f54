"""The steps of a session that counted: those without which its files would be different. Pure.

A step is what led from one state of the files to the next. What was undone or overwritten later is
no part of it, and neither is a command that failed, or that only read. A command whose changes are
still there is run again where it can be; other changes are written as they are. So is a command
that changed only what git ignores, such as installed dependencies: what comes after may need them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from tui.context.call_origin import CallOrigin
from tui.core.dataclass import dataclass, field
from tui.core.messages import blocks_of, object_of, string_of
from tui.session.checkpoints.entries import CheckpointError, Kind, PathEntry
from tui.session.checkpoints.not_stored import is_remade
from tui.session.records import Record, is_prompt, title_of

Entries: TypeAlias = Mapping[bytes, tuple[PathEntry | None, PathEntry | None]]
"""The old and the new entry of each path that a step changed."""
ReadContent: TypeAlias = Callable[[bytes], bytes]
"""Returns the content with a SHA-256. Raises CheckpointError."""
NETWORK: Final = frozenset({"workspace + network", "outside"})
"""The levels at which a command had the network."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """One step. `command` is the command line that made it, "" where it was none that can be run
    again; `whole`: it wrote files without regard to what was in them. `title` says who made it."""

    changes: Entries
    title: str
    command: str = ""
    cwd: str = ""
    whole: bool = False
    network: bool = False
    origin: CallOrigin | None = None
    call_id: str = ""

    @property
    def followed(self) -> Entries:
        """The changes of what git doesn't ignore."""
        return {
            path: pair
            for path, pair in self.changes.items()
            if not all(one.ignored for one in pair if one is not None)
        }

    @property
    def prepares(self) -> bool:
        """True for a command that changed only what git ignores, and more than caches."""
        needed = (path for path in self.changes if not is_remade(os.fsdecode(path)))
        return bool(self.command) and not self.followed and any(needed)


@dataclass(slots=True)
class DistilledStep:
    """A step that counts, with the changes that are left of it: none of what git ignores."""

    step: FileStep
    changes: dict[bytes, tuple[PathEntry | None, PathEntry | None]] = field(
        default_factory=dict[bytes, tuple[PathEntry | None, PathEntry | None]]
    )


def distilled(steps: Sequence[FileStep]) -> list[DistilledStep]:
    """The steps that count, in their order."""
    versions: dict[bytes, list[tuple[int, PathEntry | None]]] = {}
    for number, step in enumerate(steps):
        for path, (old, new) in step.followed.items():
            versions.setdefault(path, [(-1, old)]).append((number, new))
    forced: frozenset[int] = frozenset()
    while True:
        chains = {path: _chain(found, steps, forced) for path, found in versions.items()}
        used = {number for chain in chains.values() for number, _ in chain[1:]}
        more = frozenset(number for number in used if steps[number].command)
        if more <= forced:
            break
        forced |= more
    kept = {n: DistilledStep(step) for n, step in enumerate(steps) if step.prepares}
    for path, chain in chains.items():
        for (_, old), (number, new) in pairwise(chain):
            one = kept.setdefault(number, DistilledStep(steps[number]))
            one.changes[path] = old, new
    for one in kept.values():
        one.changes = dict(sorted(one.changes.items()))
    in_order = [kept[number] for number in sorted(kept)]
    before = (None, *in_order)
    return [one for one, last in zip(in_order, before, strict=False) if not _is_repeated(one, last)]


def _is_repeated(one: DistilledStep, last: DistilledStep | None) -> bool:
    """True for a command that prepares, right after the same."""
    if last is None or not (one.step.prepares and last.step.prepares):
        return False
    return (one.step.command, one.step.cwd) == (last.step.command, last.step.cwd)


def _chain(
    found: Sequence[tuple[int, PathEntry | None]],
    steps: Sequence[FileStep],
    forced: frozenset[int],
) -> list[tuple[int, PathEntry | None]]:
    """Leave out the detours of one path: what came back to the same state, and what was written
    over as a whole. A command that is run again can't be left out of what it changes."""
    at, chain = 0, [found[0]]
    while True:
        end = at + 1
        while end < len(found) and found[end][0] not in forced:
            end += 1
        same = [n for n in range(at + 1, end) if _same(found[n][1], found[at][1])]
        if same:
            at = same[-1]
            continue
        if at + 1 >= len(found):
            return chain
        whole = [n for n in range(at + 2, end) if steps[found[n][0]].whole]
        at = whole[-1] if whole else at + 1
        chain.append(found[at])


def _same(one: PathEntry | None, other: PathEntry | None) -> bool:
    return one.same(other) if one is not None else other is None


@dataclass(frozen=True, slots=True)
class GreenCheck:
    """A command that succeeded, changed no file and read more than files: a test, a build. It is
    the last such run of its line. `place` is that of its result in the record."""

    command: str
    cwd: str
    call_id: str
    place: int


def commands_run(records: Sequence[Record]) -> dict[str, Mapping[str, object]]:
    """The arguments of the calls of `run_command`, by their ids."""
    return {
        string_of(block.get("id")): object_of(block.get("input"))
        for record in records
        if record.type == "assistant"
        for block in blocks_of(record.data.get("content"))
        if block.get("type") == "tool_use" and block.get("name") == "run_command"
    }


def succeeded(result: Record | None) -> bool:
    """True if a command ended with exit code 0, in the foreground."""
    if result is None or result.data.get("is_error"):
        return False
    return object_of(result.data.get("details")).get("exit_code") == 0


def green_checks(records: Sequence[Record], changing: frozenset[str]) -> list[GreenCheck]:
    """The commands that succeeded and are not among those `changing` files, each line once, as it
    was run last; none whose last run failed."""
    calls = commands_run(records)
    last: dict[tuple[str, str], GreenCheck | None] = {}
    for place, record in enumerate(records):
        call_id = string_of(record.data.get("call_id"))
        if record.type != "tool_result" or call_id not in calls or call_id in changing:
            continue
        command, cwd = (string_of(calls[call_id].get(name)) for name in ("command", "cwd"))
        last.pop((command, cwd), None)
        green = succeeded(record)
        last[command, cwd] = GreenCheck(command, cwd, call_id, place) if green else None
    return [one for one in last.values() if one is not None]


@dataclass(frozen=True, slots=True)
class Correction:
    """Words of the person that set the work right: why they are taken as that, and the words."""

    why: Literal["after an interruption", "with a refusal", "after a rewind", "as a revision"]
    text: str
    record: str


def corrections(
    records: Sequence[Record], steps: Sequence[FileStep], content: ReadContent
) -> list[Correction]:
    """Find what the person corrected, by what happened and not by words: prompts after an
    interruption or a rewind, reasons for a refusal, and prompts under which lines were taken away
    that the prompt before had brought. Blocks."""
    revised = _revised(records, steps, content)
    found: list[Correction] = []
    interrupted = rewound = False
    for record in records:
        data = record.data
        if record.type == "permission":
            reason = string_of(data.get("reason")).strip()
            if data.get("answer") == "no" and data.get("by") == "person" and reason:
                found.append(Correction("with a refusal", reason, record.id))
        elif record.type == "interrupt":
            interrupted = True
        elif record.type == "rewind":
            rewound = True
        elif is_prompt(record):
            text = string_of(data.get("text")) or title_of(data)
            if interrupted:
                found.append(Correction("after an interruption", text, record.id))
            elif rewound:
                found.append(Correction("after a rewind", text, record.id))
            elif record.id in revised:
                found.append(Correction("as a revision", text, record.id))
            interrupted = rewound = False
    return found


def _revised(
    records: Sequence[Record], steps: Sequence[FileStep], content: ReadContent
) -> frozenset[str]:
    """The prompts under which lines were taken away that the prompt before had brought."""
    by_prompt: dict[str, dict[bytes, tuple[PathEntry | None, PathEntry | None]]] = {}
    for step in steps:
        if step.origin is not None and step.origin.prompt is not None:
            changes = by_prompt.setdefault(step.origin.prompt.id, {})
            for path, (old, new) in step.followed.items():
                changes[path] = changes.get(path, (old, new))[0], new

    def lines(entry: PathEntry | None) -> Counter[bytes]:
        if entry is None or entry.kind is not Kind.FILE or entry.digest is None:
            return Counter()
        try:
            return Counter(content(entry.digest).split(b"\n"))
        except CheckpointError:
            return Counter()

    found: set[str] = set()
    prompts = [one.id for one in records if is_prompt(one)]
    for before, prompt in pairwise(prompts):
        first, second = by_prompt.get(before, {}), by_prompt.get(prompt, {})
        for path in first.keys() & second.keys():
            brought = lines(first[path][1]) - lines(first[path][0])
            if brought & (lines(second[path][0]) - lines(second[path][1])):
                found.add(prompt)
    return frozenset(found)


def is_text(data: bytes) -> bool:
    """True if a content can stand in a script as it is."""
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def is_plain_file(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind is Kind.FILE and entry.digest is not None
