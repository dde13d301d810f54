"""`holdfast replay SUITE`: recorded prompts run again where they began, and judged.

The results of a suite lie beside it, in `NAME.replays/`: a folder for each replay.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from tui.agent.launch import Launch
from tui.agent.model_access import refreshed_models
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.batch.command import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    print_line,
    print_notice,
)
from tui.batch.events import BatchEvent
from tui.batch.plan import limits_of
from tui.batch.replay import report
from tui.batch.replay.checks import require_walls
from tui.batch.replay.recorded import added, oldest_needed, why_lost
from tui.batch.replay.run import ReplayPlan, ReplayRun
from tui.batch.replay.state import CaseState, ReplayState, Variation, folder_for, replays_in, save
from tui.batch.replay.suite import Case, Suite, parse, rendered
from tui.batch.report import lines_of
from tui.batch.run_policy import ModelPair
from tui.core.clock import SystemClock, timestamp
from tui.core.dataclass import replace
from tui.core.errors import StorageError, UsageError, os_error_as
from tui.core.files import read_small, replace_file
from tui.core.formatting import money, plural
from tui.core.git.door import GitError, git
from tui.core.paths import expanded, folders, shorten
from tui.core.redaction import mask
from tui.core.signals import heeded_signals
from tui.core.standard_output import STDOUT, hanging, print_data, terminal_width

_MAX: Final = 10_000_000


def run(options: Options) -> int:
    """Carry out `holdfast replay`. Returns the exit code; raises HoldfastError."""
    assert options.batch.suite is not None
    suite = options.batch.suite.absolute()
    suite = Path(os.path.realpath(suite.parent), suite.name)  # the cases are worked on beside it
    if options.batch.add:
        return _add(suite, options)
    home = suite.with_name(f"{suite.stem}.replays")
    if options.batch.status:
        return _status(suite, home, options)
    return asyncio.run(_work(_plan(suite, home, options), options))


def _add(path: Path, options: Options) -> int:
    """Put the prompts of sessions into a suite. What a person wrote in it stays as it is."""
    days = launch_config.prepare(options.having(headless=True)).config.checkpoints.keep_days
    data = _read(path) if path.exists() else b""
    known = [*parse(data, path.name).case]
    lines: list[str] = []
    new = len(known)
    for one in options.batch.add:
        cases, problems = added(one, folders(), known)
        known += cases
        lines += problems
    cases = known[new:]
    for line in lines:
        print_notice(line)
    for case in cases:
        print_line(f"{case.name}: {'; '.join(case.checks) or 'no check was green: name some'}")
        if secrets := mask(case.text)[1]:
            kept = f"{plural(secrets, 'secret')} in its prompt, which is now in {shorten(path)}"
            print_notice(f"  {kept}.")
        for name in case.missing:
            print_notice(f"  Not in its checkpoint: {name}. To read it as it is today: linked.")
    if cases:
        gap = b"\n" if data and not data.endswith(b"\n") else b""
        with os_error_as(StorageError, f"Can't write {shorten(path)}"):
            replace_file(path, data + gap + rendered(cases).encode())
    print_notice(f"{plural(len(cases), 'case')} added to {shorten(path)}.")
    _say_life(cases, days)
    return EXIT_DONE if cases else EXIT_FAILED


def _say_life(cases: Sequence[Case], days: int) -> None:
    """Say how long the checkpoints are kept that cases need."""
    begins = [when for case in cases if (when := oldest_needed(case, folders())) is not None]
    if not begins:
        return
    until = (min(begins) + timedelta(days=days)).astimezone().date()
    print_notice(
        f"Checkpoints are kept for {plural(days, 'day')} ([checkpoints] keep_days): what these"
        f" cases need is there until {until}, less if their space is full. --status says what is"
        " gone."
    )


def _read(path: Path) -> bytes:
    hint = "Make one from a session: holdfast replay SUITE --add ID"
    with os_error_as(UsageError, f"Can't read the suite {shorten(path)}", hint=hint):
        return read_small(path, limit=_MAX)[0]


def _status(suite: Path, home: Path, options: Options) -> int:
    """Show the replays so far, and which cases can't be run any more."""
    states = replays_in(home)
    cases = parse(_read(suite), suite.name).case if suite.exists() else ()
    lost = {case.name: why for case in cases if (why := why_lost(case, folders()))}
    if options.json:
        shown = [report.as_json(state) for _, state in states]
        print_line(json.dumps(shown, ensure_ascii=True))
    else:
        for folder, state in states:
            told = f"{state.variation.words}: {report.totals(state)}"
            for line in hanging(f"{folder.name}  ", told, terminal_width(sys.stdout)):
                print_line(line)
        if not states:
            print_notice(f"No replays in {shorten(home)}.")
    for name, why in lost.items():
        print_notice(f"{name} can't be run any more: {why}")
    return EXIT_DONE


def _plan(path: Path, home: Path, options: Options) -> ReplayPlan:
    """Read everything that decides how to replay. Raises UsageError, CredentialsError."""
    data = _read(path)
    suite = parse(data, path.name)
    if not suite.case:
        raise UsageError(
            f"No cases in {shorten(path)}.", hint="Add some: holdfast replay SUITE --add ID"
        )
    plain = options.having(fallback_models=(), max_cost=None, headless=True)
    launch = launch_config.prepare(plain)
    config = launch.config
    none = msgspec.structs.replace(config.checkpoints, mode="off")  # the folder has its own commit
    config = msgspec.structs.replace(config, fallback_models=(), checkpoints=none)
    # the folder is a copy, and nobody is there to be asked about it
    launch = replace(launch, config=config, max_wait_s=None, mode="accept_edits")
    stops = limits_of(options, launch, ModelPair(launch.model))
    require_walls(launch)
    variation = _variation(launch, options)
    launch = launch_config.with_key(launch)
    runs = options.limits.runs
    folder, state = folder_for(home, _hash(suite), variation, runs)
    if state is None:
        state = ReplayState(
            suite=path.name,
            sha256=_hash(suite),
            started_at=timestamp(SystemClock().now()),
            variation=variation,
            cases=tuple(
                CaseState(name=case.name, session=case.session, prompt=case.prompt, run=run)
                for run in range(1, runs + 1)
                for case in suite.case
            ),
            runs=runs,
        )
        save(folder, state)
    cases, at_once = suite.case * runs, options.batch.parallel
    return ReplayPlan(launch, path, folder, cases, state, stops, at_once)


def _hash(suite: Suite) -> str:
    return sha256(msgspec.json.encode(suite)).hexdigest()


def _variation(launch: Launch, options: Options) -> Variation:
    models = options.models
    return Variation(
        model=launch.model,
        effort=models.effort or "",
        system_prompt=models.system_prompt or "",
        append_system_prompt=models.append_system_prompt or "",
        agents_md=_instructions(options),
    )


def _instructions(options: Options) -> str | None:
    """The AGENTS.md that is tried: that of a file, or of a revision of the folder's repository."""
    named = options.batch.agents_md
    if named is None:
        return None
    path = expanded(named)
    if path.is_file():
        with os_error_as(UsageError, f"Can't read {shorten(path)}"):
            return read_small(path, limit=_MAX)[0].decode("utf-8-sig", "replace")
    try:
        return git(workspace_of(options), "show", "--end-of-options", f"{named}:./AGENTS.md")
    except GitError as error:
        raise UsageError(
            f"--agents-md: {named} is no file, and no revision with an AGENTS.md: {error.message}"
        ) from error


async def _work(planned: ReplayPlan, options: Options) -> int:
    clock, total = SystemClock(), len(planned.cases)

    def show(event: BatchEvent) -> None:
        if not options.json:
            for line in lines_of(event, total=total, numbered=planned.at_once > 1):
                print_line(line)

    running = ReplayRun(planned, show, clock)
    with heeded_signals(running.stop, running.stop):
        async with refreshed_models(planned.launch, clock):
            state = await running.run()
    _show(planned, state, running, options)
    if running.stopping:
        return EXIT_INTERRUPTED
    if running.fatal_class == "auth":
        return EXIT_REFUSED
    solved = all(case.verdict == "solved" for case in state.cases)
    return EXIT_DONE if solved else EXIT_FAILED


def _show(planned: ReplayPlan, state: ReplayState, running: ReplayRun, options: Options) -> None:
    reason = running.reason
    if options.batch.junit is not None:
        path, results = options.batch.junit, report.junit(state)
        if path == STDOUT:
            print_data(results, end="")
            return
        try:
            replace_file(path, results.encode())
        except OSError as error:
            print_notice(f"Can't write the results to {path}: {error.strerror or error}.")
    if options.json:
        shown: dict[str, Any] = {"folder": str(planned.folder), **report.as_json(state, reason)}
        print_line(json.dumps(shown, ensure_ascii=True))
        return
    print_line(f"\n{state.suite}, {state.variation.words}: as recorded → now\n")
    spent = running.over_cost
    if spent is not None:  # by attempts that are in no row as well
        reason = f"{reason} ({money(spent)} spent)"
    print_line(report.text(state, reason, terminal_width(sys.stdout)).rstrip("\n"))
    print_line(f"Folders and state: {shorten(planned.folder)}")
    if not state.is_over:
        more = "The same command" if spent is None else "With a higher --max-cost, the same command"
        print_line(f"{more} continues with the rest.")
