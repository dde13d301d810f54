"""`holdfast bisect ID -- COMMAND`: the call of a session, or of a run, after which a command fails.

Each state is made in a scratch folder, where the command runs behind the usual walls; nothing of
the person's folder or of the session changes. What was judged is kept until the search is over.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from tui.agent.launch import Launch
from tui.app import launch_config
from tui.app.confined_program import ProgramEnd
from tui.app.damage_report import damage_findings
from tui.app.options.arguments import Options
from tui.app.scratch_commands import ScratchCommands, scratch_commands
from tui.app.session_path import workspace_of
from tui.batch.state import RunFolder, named
from tui.cli.bisect_record import JudgedStates
from tui.cli.bisect_report import BisectReport, BisectState, Judgement, print_report
from tui.cli.session_io import load, path_of
from tui.context import bisection
from tui.context.bisection import FirstFailure, Judge, next_step
from tui.context.session_states import SessionFiles, states_of
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, SessionError, UsageError
from tui.core.formatting import duration, plural
from tui.core.paths import expanded, folders, shorten
from tui.core.redaction import mask
from tui.core.standard_output import note, note_wrapped
from tui.core.workspace import Workspace
from tui.session import catalog
from tui.session.branches import on_branch
from tui.session.checkpoints.entries import CheckpointError
from tui.session.checkpoints.not_stored import ENVIRONMENT, is_remade, lent_by
from tui.session.checkpoints.scratch import ScratchTree, State, differing
from tui.session.checkpoints.store import store_of
from tui.session.reader import LoadedSession, read
from tui.session.request_numbers import REQUEST
from tui.tools.process import shell

_SAID: Final = 1000
_NO_FILES: Final = (
    "This session has no checkpoints to search: it changed no file, comes from an older version or "
    "another program, or they were off."
)


@dataclass(slots=True)
class _Judging:
    """Judges states in a scratch folder. `lent` and `missing` are the paths that were, `changed`
    those that the command changed while it was judged."""

    kept: SessionFiles
    commands: ScratchCommands
    argv: Sequence[str]
    build: str | None
    runs: int
    timeout_s: float | None
    lent: set[str] = field(default_factory=set[str])
    missing: set[str] = field(default_factory=set[str])
    changed: set[str] = field(default_factory=set[str])
    _scratch: ScratchTree = field(init=False)
    _trees: list[tuple[State, Judgement]] = field(default_factory=list[tuple[State, Judgement]])

    def __post_init__(self) -> None:
        self._scratch = ScratchTree(self.commands.folder, _Lender(self.kept))

    def judge(self, one: BisectState) -> Judgement:
        """Judge a state by what the command says there. Raises HoldfastError, OSError."""
        try:
            state = self.kept.state(one.files)
        except CheckpointError as error:
            return Judgement("skipped", why=f"its files aren't kept any more: {error.message}")
        for known, judgement in self._trees:  # an edit that was taken back
            if not differing(known, state):
                return judgement
        judgement = self._tried(state)
        self._trees.append((state, judgement))
        return judgement

    def _tried(self, state: State) -> Judgement:
        codes: list[int] = []
        shown: ProgramEnd | None = None
        while not codes or not bisection.is_decided(codes, self.runs):
            end = self._once(state)
            if isinstance(end, Judgement):
                return end
            codes.append(end.code)
            if shown is None or not shown.code:
                shown = end
        self._become(state)  # so that it is known what the last run changed
        assert shown is not None
        verdict = bisection.verdict_of(codes)
        why = f"exit code {bisection.SKIP}" if verdict == "skipped" else ""
        return Judgement(verdict, tuple(codes), why, shown.text, shown.seconds, shown.timed_out)

    def confirm(self, one: BisectState, known: Judgement) -> Judgement:
        """Return a judgement with all the runs that a named state needs. Raises HoldfastError,
        OSError."""
        state = self.kept.state(one.files)
        codes = list(known.codes)
        while len(codes) < bisection.runs_of_a_named_state(self.runs):
            end = self._once(state)
            codes.append(bisection.SKIP if isinstance(end, Judgement) else end.code)
            if isinstance(end, ProgramEnd) and end.code and not any(known.codes):
                known = replace(known, output=end.text, seconds=end.seconds)
        self._become(state)
        return replace(known, codes=tuple(codes))

    def _once(self, state: State) -> ProgramEnd | Judgement:
        """Build a state and run the command there once; the judgement where it doesn't build."""
        self._become(state)
        if self.build is not None:
            built = self.commands.run([*shell(), self.build], self.timeout_s)
            if built.code:
                return Judgement("skipped", why="it doesn't build", output=built.text)
        end = self.commands.run(self.argv, self.timeout_s)
        if end.code >= bisection.CODES:
            said = mask(end.text)[0][-_SAID:].strip()
            raise HoldfastError(
                f"The command ended with exit code {end.code}, which says that something is"
                f" wrong with itself, not with the state. {said}".rstrip(),
                hint="To count that as a failure, let it exit with a code from 1 to 124.",
            )
        return end

    def _become(self, state: State) -> None:
        """Make the exact state, whatever the last command left."""
        changed = self._scratch.become(state)
        missing = map(os.fsdecode, self._scratch.missing)
        self.changed.update(name for name in map(os.fsdecode, changed) if not is_remade(name))
        self.missing.update(name for name in missing if not is_remade(name))
        lent = set(map(os.fsdecode, self._scratch.lent))
        self.lent |= lent
        # a copy of an environment still names the place that it was made in
        names = map(os.fsdecode, state)
        copied = {str(Path(name).parent) for name in names if name.endswith(f"/{ENVIRONMENT}")}
        self.commands.lend(self.kept.root / name for name in sorted(lent | copied))


@dataclass(frozen=True, slots=True)
class _Lender:
    """The source of the files of a scratch folder, with what the workspace lends."""

    files: SessionFiles

    def content(self, digest: bytes) -> bytes:
        return self.files.content(digest)

    def lent(self, path: bytes) -> Path | None:
        return lent_by(self.files.root, path)


def run(options: Options) -> int:
    """Exit 0 where the change was found, 1 where it was not."""
    if not options.mcp.words:
        raise UsageError(
            "Which command? Put it after --.", hint="holdfast bisect ID -- COMMAND ARGS…"
        )
    states, root = _states(options)
    launch = _launch(options, root)
    with closing(store_of(folders(), root)) as store:
        kept = SessionFiles(store, root, Workspace.at(root).tool_results)
        for session in {one.session.header.id: one.session for one in states}.values():
            kept.learn(session.records)
        stored = store.holds({one.files.checkpoint for one in states})
        gone = [one.files.checkpoint not in stored for one in states]
        if all(gone):
            raise HoldfastError("Its checkpoints aren't stored any more.")
        pruned = gone.index(False)  # those in between are skipped, and may be where the change is
        if pruned and not options.json:
            first = "the first state" if pruned == 1 else f"the first {pruned:,} states"
            note_wrapped(f"Left out: {first}, no longer stored in checkpoints.")
        states = states[pruned:]
        report = _search(options, launch, kept, states)
        report.pruned = pruned
        return print_report(report, options, launch.config.prices)


def _search(
    options: Options, launch: Launch, kept: SessionFiles, states: Sequence[BisectState]
) -> BisectReport:
    limits, build = options.limits, options.sessions.build
    argv = list(options.mcp.words) if len(options.mcp.words) > 1 else [*shell(), *options.mcp.words]
    record = JudgedStates.of(
        folders(), [one.name for one in states], [*argv, str((limits.runs, limits.timeout, build))]
    )
    judged = record.load() if options.opening.newest else {}
    if judged:
        note_wrapped(f"{plural(len(judged), 'state')} judged before.")
    with scratch_commands(launch, kept.root, "bisect") as commands:
        judging = _Judging(kept, commands, argv, build, limits.runs, limits.timeout or None)
        if not commands.confined:
            note_wrapped("Without the sandbox: the command can change whatever you can.")
        try:
            while isinstance(
                step := next_step(len(states), {n: one.verdict for n, one in judged.items()}), Judge
            ):
                judgement = judged[step.state] = judging.judge(states[step.state])
                record.save(judged)
                _say(step, len(states), judgement)
            if isinstance(step, FirstFailure):  # what is named is no chance
                for n in (step.passes, step.fails):
                    judged[n] = judging.confirm(states[n], judged[n])
                    record.save(judged)
        except KeyboardInterrupt:
            what = plural(len(judged), "state")
            note_wrapped(f"Interrupted, with {what} of {len(states):,} judged. Continue with:")
            note(f"  {_continuing(options)}")
            raise
        except OSError as error:
            what = f"Can't make a state: {error.strerror or error}."
            raise HoldfastError(what, hint="TMPDIR names the folder for it.") from error
        record.forget()
        return BisectReport(
            states,
            judged,
            step,
            kept,
            _shown(options),
            lent=sorted(judging.lent),
            missing=sorted(judging.missing),
            changed=sorted(judging.changed),
        )


def _shown(options: Options) -> str:
    """The command as a person types it."""
    return options.mcp.words[0] if len(options.mcp.words) == 1 else shlex.join(options.mcp.words)


def _continuing(options: Options) -> str:
    """The command line that continues an interrupted search."""
    limits, asked = options.limits, options.sessions
    words = ["holdfast", "bisect", options.target or "", "--continue"]
    for name, value, default in (
        ("--runs", limits.runs, 1),
        ("--timeout", limits.timeout, None),
        ("--build", asked.build, None),
        ("--at", asked.request, None),
        ("--branch", asked.branch, None),
    ):
        words += [] if value == default else [name, str(value)]
    words += ["--no-sandbox"] if options.permissions.no_sandbox else []
    return shlex.join([*words, "--", *options.mcp.words])


def _say(step: Judge, count: int, judgement: Judgement) -> None:
    """Say on a terminal how far the search is."""
    if sys.stderr.isatty():
        why = f" ({judgement.why})" if judgement.why else ""
        flaky = ", flaky" if judgement.flaky else ""
        took = f" after {duration(judgement.seconds)}" if judgement.seconds >= 1 else ""
        left = max(0, step.left - 1)
        note_wrapped(
            f"State {step.state + 1:,} of {count:,}: {judgement.verdict}{flaky}{why}{took}."
            + (f" About {left} more." if left else "")
        )


def _launch(options: Options, root: Path) -> Launch:
    """The configuration of the session's folder, as far as there still is one."""
    return launch_config.prepare(options.having(cwd=root) if root.is_dir() else options)


# The states


def _states(options: Options) -> tuple[list[BisectState], Path]:
    """The states of a session, or of all sessions of a run, in their order; and their folder."""
    if (tasks := _run_sessions(options)) is not None:
        return _of_run(options, tasks)
    loaded = load(path_of(options))
    if options.sessions.branch is not None:
        loaded = on_branch(loaded, options.sessions.branch)
    _say_damage(loaded)
    root = Path(loaded.header.cwd)
    states = [BisectState(loaded, one) for one in states_of(loaded.branch, root)]
    if not states:
        raise HoldfastError(_NO_FILES)
    if (wanted := options.sessions.request) is not None:
        at = [
            n
            for n, record in enumerate(loaded.branch)
            if record.type == REQUEST and record.data.get("n") == wanted
        ]
        if not at:
            raise UsageError(
                f"There is no request {wanted} on this branch of the session.",
                hint=f"holdfast sessions view {options.target} --at N shows them.",
            )
        # the last state before it is the one that it was sent in
        begin = max((n for n, one in enumerate(states) if one.files.place < at[0]), default=0)
        states = states[begin:]
    return states, root


def _say_damage(loaded: LoadedSession) -> None:
    """Say that calls may be missing from a session."""
    if damage_findings(loaded.findings):
        id_ = loaded.header.id
        note_wrapped(
            f"The session {id_} is damaged, and calls may be lost: holdfast sessions check {id_}"
        )


def _run_sessions(options: Options) -> list[tuple[int, str]] | None:
    """The sessions of the run of a task file, with the number of the first task of each; None where
    the target is none. Raises UsageError."""
    target = expanded(options.target or "").absolute()
    if not target.is_file() or target.suffix == ".jsonl":
        return None
    folder = workspace_of(options)
    state = RunFolder(folder).load()
    if state is None or state.task_file != named(target):
        return None
    if options.sessions.branch is not None or options.sessions.request is not None:
        raise UsageError("--branch and --at are for a session, not for a run.")
    found: dict[str, int] = {}
    for task in state.tasks:
        if task.session_id:
            found.setdefault(task.session_id, task.index + 1)
    return [(number, id_) for id_, number in found.items()]


def _of_run(options: Options, tasks: Sequence[tuple[int, str]]) -> tuple[list[BisectState], Path]:
    root = workspace_of(options)
    sessions: list[tuple[LoadedSession, int]] = []
    for number, id_ in tasks:
        try:
            loaded = read(catalog.resolve(id_, folders()))
        except SessionError as error:
            note_wrapped(f"Task {number} is left out: {error.message}")
            continue
        if Path(loaded.header.cwd) != root:
            where = shorten(Path(loaded.header.cwd))
            note_wrapped(
                f"Task {number} is left out: it was worked on in {where}, with states of its own."
            )
            continue
        _say_damage(loaded)
        sessions.append((loaded, number))
    states: list[BisectState] = []
    for loaded, number in sorted(sessions, key=lambda one: one[0].header.created):
        for files in states_of(loaded.branch, root):
            last = states[-1].files if states else None
            if last is None or files.writes or last.writes or last.checkpoint != files.checkpoint:
                states.append(BisectState(loaded, files, number))
    if not states:
        raise HoldfastError(
            "No task of this run has checkpoints in this folder.",
            hint=f"The commits of its tasks: git bisect run. Its state: holdfast run --status"
            f" {options.target}",
        )
    return states, root
