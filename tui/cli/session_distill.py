"""`holdfast sessions distill ID`: what counted in a session, as a script, a task file or a skill.

The session is only read. The script is made from its record and its checkpoints; no model has a
part in it. With `--check` it runs in a copy of the first state, behind the usual walls.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from tui.app import launch_config
from tui.app.confined_program import ProgramEnd
from tui.app.options.arguments import Options
from tui.app.scratch_commands import scratch_commands
from tui.cli.session_io import file_of, loaded_branch, print_json
from tui.context.call_origin import origin_of
from tui.context.distillation import (
    NETWORK,
    DistilledStep,
    FileStep,
    GreenCheck,
    corrections,
    distilled,
    green_checks,
    succeeded,
)
from tui.context.distilled_script import DistilledScript, comment, script, source_of
from tui.context.distilled_texts import prompts_that_counted, skill, task_file
from tui.context.session_states import FilesState, SessionFiles, states_of
from tui.core.clock import SystemClock
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.messages import blocks_of, object_of, string_of
from tui.core.paths import folders, shorten
from tui.core.redaction import mask, mask_values
from tui.core.standard_output import note, print_data
from tui.core.workspace import Workspace
from tui.permissions.plain_command import ReadableArea, parse, reasons_to_ask
from tui.session import copies
from tui.session.checkpoints.entries import NEVER, CheckpointError, Kind, PathEntry
from tui.session.checkpoints.not_stored import is_remade
from tui.session.checkpoints.scratch import ScratchTree, State, differing
from tui.session.checkpoints.store import store_of
from tui.session.records import Record
from tui.session.session import Session

_BY: Final = {
    "job": "a command in the background",
    "rewind": "a rewind",
    "others": "changed outside the session",
}
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class _Checked:
    """The outcome of a script that was run: how it ended, and the paths that are different."""

    end: ProgramEnd
    different: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.different

    def to_json(self) -> dict[str, Any]:
        return {
            "same": self.same,
            "exit_code": self.end.code,
            "different": list(self.different),
            "output": self.end.text,
        }


def distill(options: Options) -> int:
    """Exit 1 where a checked script doesn't give the same files."""
    loaded = loaded_branch(options)
    records, root = loaded.branch, Path(loaded.header.cwd)
    title = Session.of(loaded, clock=SystemClock()).title or loaded.header.id
    states = states_of(records, root)
    if not states:
        raise HoldfastError("This session has no checkpoints: what counted in it isn't known.")
    with closing(store_of(folders(), root)) as store:
        files = SessionFiles(store, root, Workspace.at(root).tool_results)
        files.learn(loaded.records)
        steps, first, last, gaps = _steps(records, states, files)
        counted = distilled(steps)
        changing = frozenset(one.call_id for one in steps if one.prepares or one.followed)
        checks = [one for one in green_checks(records, changing) if not _only_reads(one, root)]
        id_ = loaded.header.id
        checked: _Checked | None = None
        made = DistilledScript("")
        match options.sessions.shape:
            case "tasks":
                prompts = prompts_that_counted(records, counted, checks)
                made.text, made.secrets = task_file(prompts, session=id_, title=title)
            case "skill":
                wanted = corrections(records, steps, files.content)
                made.text, made.secrets = skill(counted, checks, wanted, session=id_, title=title)
            case _:
                began = records[states[0].place].time
                made = script(
                    counted,
                    checks,
                    files.content,
                    session=id_,
                    title=title,
                    began=began,
                    root=str(root),
                )
                if options.sessions.check:
                    checked = _check(options, made.text, files, first, last)
    if gaps:
        made.cannot.append(
            f"{plural(gaps, 'state')} not kept any more: what changed there is in the next step"
        )
    _written(options, made, counted, checked)
    return int(checked is not None and not checked.same)


def _steps(
    records: Sequence[Record], states: Sequence[FilesState], files: SessionFiles
) -> tuple[list[FileStep], State, State, int]:
    """The steps of a session, its first and its last state, and how many aren't kept."""
    steps: list[FileStep] = []
    first: State | None = None
    before: State = {}
    gaps = 0
    for state in states:
        try:
            now = files.state(state)
        except CheckpointError:
            gaps += 1
            continue
        if first is None:
            first = now
        elif changes := differing(before, now):
            steps.append(_step(records, state, changes))
        before = now
    if first is None:
        raise HoldfastError("Its checkpoints aren't stored any more.")
    return steps, first, before, gaps


def _step(
    records: Sequence[Record],
    state: FilesState,
    changes: dict[bytes, tuple[PathEntry | None, PathEntry | None]],
) -> FileStep:
    origin = origin_of(records, state.call_id) if state.by == "call" else None
    if origin is None:
        return FileStep(changes, _BY.get(state.by, "a call that isn't in the record"))
    title = f"{origin.tool} {origin.subject}"
    step = FileStep(changes, title, origin=origin, call_id=state.call_id)
    if origin.tool != "run_command":
        return replace(step, whole=origin.tool == "write_file")
    given = _input(origin.answer, state.call_id)
    command, cwd = string_of(given.get("command")), string_of(given.get("cwd"))
    if not succeeded(origin.result) or given.get("background") or not command:
        return replace(step, title=f"what is left of: {title}")
    level = string_of(origin.permission.data.get("level")) if origin.permission else ""
    return replace(step, command=command, cwd=cwd, network=level in NETWORK)


def _input(answer: Record | None, call_id: str) -> dict[str, Any]:
    blocks = blocks_of(answer.data.get("content")) if answer is not None else []
    found = [one for one in blocks if one.get("id") == call_id]
    return object_of(found[0].get("input")) if found else {}


def _only_reads(check: GreenCheck, root: Path) -> bool:
    """True if a command only looked at files."""
    line = parse(check.command)
    reach = ReadableArea(Workspace.at(root))
    return line is not None and not any(reasons_to_ask(line, root / check.cwd, reach))


def _check(options: Options, text: str, files: SessionFiles, first: State, last: State) -> _Checked:
    """Run the script in a copy of the first state, and compare the files with the last."""
    launch = launch_config.prepare(
        options.having(cwd=files.root) if files.root.is_dir() else options
    )
    with scratch_commands(launch, files.root, "distill") as commands:
        ScratchTree(commands.folder, files).become(first)
        place = commands.folder / f".distilled-{token_hex(8)}.sh"
        place.write_text(text, encoding="utf-8", errors="replace")
        end = commands.run(["bash", place.name])
        with suppress(OSError):  # it may have put anything there
            place.unlink()
        different = [
            os.fsdecode(path)
            for path, pair in differing(_state_of(commands.folder, last), last).items()
            if not _is_passed_over(path, pair, last)
        ]
    return _Checked(end, tuple(different))


def _state_of(folder: Path, wanted: State) -> dict[bytes, PathEntry]:
    """Read the files of a folder as entries of a state. Files that can't be those of `wanted` have
    no hash: one may be larger than the memory."""
    found: dict[bytes, PathEntry] = {}
    for place, names, others in os.walk(folder):
        for name in (*names, *others):
            path = Path(place, name)
            state = path.lstat()
            key = os.fsencode(path.relative_to(folder))
            kind, data = Kind.FOLDER, None
            if stat.S_ISLNK(state.st_mode):
                kind, data = Kind.LINK, os.fsencode(path.readlink())
            elif not stat.S_ISDIR(state.st_mode):
                kind = Kind.FILE
                entry = wanted.get(key)
                if entry and stat.S_ISREG(state.st_mode) and entry.size == state.st_size:
                    with suppress(PermissionError):
                        data = path.read_bytes()
            digest = None if data is None else sha256(data).digest()
            mode = stat.S_IMODE(state.st_mode)
            found[key] = PathEntry(kind, mode, state.st_size, NEVER, digest, ignored=False)
    return found


def _is_passed_over(
    path: bytes, pair: tuple[PathEntry | None, PathEntry | None], last: State
) -> bool:
    """True for a difference that says nothing: what git ignores, what checkpoints don't keep, and
    the modes of links and folders."""
    there, wanted = pair
    parts = os.fsdecode(path).split("/")
    if is_remade(os.fsdecode(path)) or (wanted is not None and not wanted.stored):
        return True
    above = (os.fsencode("/".join(parts[:n])) for n in range(1, len(parts) + 1))
    if any((one := last.get(place)) is not None and one.ignored for place in above):
        return True
    if there is None or wanted is None or there.kind is not wanted.kind:
        return False
    return wanted.kind is not Kind.FILE and there.digest == wanted.digest


def _written(
    options: Options,
    made: DistilledScript,
    steps: Sequence[DistilledStep],
    checked: _Checked | None,
) -> None:
    """Print what was made, or write it to a file, and say what it can't do."""
    data = made.text.encode("utf-8", "replace")
    out = file_of(options)
    if out is not None:
        copies.write_new(out.absolute(), data)
    if options.json:
        told, secrets = mask_values(
            {
                "as": options.sessions.shape or "script",
                "written": str(out.absolute()) if out else None,
                **({} if out else {"text": made.text}),
                "steps": [
                    {
                        "source": source_of(one),
                        "command": comment(one.step.command) or None,
                        "paths": [os.fsdecode(path) for path in one.changes],
                    }
                    for one in steps
                ],
                "cannot": made.cannot,
                "check": checked.to_json() if checked else None,
            }
        )
        print_json({**told, "secrets": made.secrets + secrets})
        return
    if out is None:
        print_data(made.text, end="")
    else:
        note(f"Written to {shorten(out)}.")
    for line in made.cannot:
        note(f"It may not work everywhere: {line}.")
    if made.secrets:
        note(f"Removed {plural(made.secrets, 'secret')}.")
    if checked is not None:
        _say(checked)


def _say(checked: _Checked) -> None:
    if checked.end.code:
        said = mask(checked.end.text)[0].strip().splitlines()[-_SHOWN:]
        note(f"The script ended with exit code {checked.end.code}.")
        for line in said:
            note(f"  {line}")
    if checked.same:
        note("Checked: it gives the same files.")
    else:
        note(f"Checked: {plural(len(checked.different), 'path')} not as in the session:")
        for name in checked.different[:_SHOWN]:
            note(f"  {comment(name)}")
