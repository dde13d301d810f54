"""A run before it begins: everything that shapes it, read and checked.

Also which boot file it has, and how its tasks are isolated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tui.agent.confined_programs import confinement_of
from tui.agent.launch import Launch
from tui.app import launch_config as launching
from tui.app.options.arguments import Options
from tui.batch.commit_hooks import CommitHooks
from tui.batch.events import RunStarted
from tui.batch.git import GitIsolation
from tui.batch.isolation import Isolation, NothingToIsolate
from tui.batch.jj import JjIsolation
from tui.batch.run_policy import ModelPair, RunLimits
from tui.batch.run_store import read_tasks
from tui.batch.state import RunState
from tui.batch.task_worktrees import TaskWorktrees
from tui.batch.taskfile import TaskFile
from tui.core.config import model_of, profile_of, through
from tui.core.dataclass import dataclass, replace
from tui.core.errors import UsageError, os_error_as
from tui.core.files import read_small
from tui.core.git.door import GitError
from tui.core.paths import Folders, shorten
from tui.core.workspace import BOOT_FILES, BOOT_READ_MAX
from tui.provider.prices import price_of
from tui.settings.trust import Trust, items, undecided


@dataclass(frozen=True, slots=True)
class Boot:
    """`named` is the file of a directive, None for the usual places; `shown` is as the banner
    has it, "" without a boot file."""

    named: Path | None = None
    shown: str = ""


def find_boot(directive: str, task_file: Path, target: Path, trust: Trust) -> Boot:
    """The boot file of a task file with this directive ("" for none) that is run in `target`.

    Raises UsageError for a directive whose file is missing, unreadable, or outside both folders.
    """
    if directive:
        return _named(directive, task_file.parent, target)
    for name in BOOT_FILES:
        path = target / name
        if os.path.lexists(path) and target in Path(os.path.realpath(path)).parents:
            trusted = trust.allows_file(name, path)
            return Boot(shown=name if trusted else f"{name} (left out: not trusted, see --trust)")
    return Boot()


def usual_boot(target: Path, trust: Trust) -> Path | None:
    """The boot file of the usual places in a folder that counts there; None for none. Blocks."""
    places = ((name, target / name) for name in BOOT_FILES)
    return next((path for name, path in places if trust.allows_file(name, path)), None)


def _named(directive: str, beside: Path, target: Path) -> Boot:
    folders = (beside, target)
    outside = False
    for folder in folders:
        try:
            real = Path(os.path.realpath(folder / directive))
        except ValueError:  # a NUL byte
            continue
        if not any(allowed in real.parents for allowed in folders):
            outside = True
            continue
        if real.exists():
            hint = "Fix the boot directive in the task file, or remove the line."
            with os_error_as(UsageError, f"Can't read the boot file {directive}", hint=hint):
                read_small(real, limit=BOOT_READ_MAX, whole=False)
            inside = target in real.parents
            return Boot(real, os.path.relpath(real, target) if inside else shorten(real))
    if outside:
        raise UsageError(
            f"The boot file {directive} is outside the project.",
            hint=f"Put it in {shorten(target)} or next to the task file.",
        )
    raise UsageError(
        f"The boot file {directive}, named in the task file, doesn't exist.",
        hint=f"Holdfast looked in {shorten(beside)} and {shorten(target)}.",
    )


FALLBACK_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run before it begins. `task_file` and `target` are real paths."""

    launch: Launch
    task_file: Path
    target: Path
    file: TaskFile
    boot: Boot
    isolation: Isolation
    worktrees: TaskWorktrees
    models: ModelPair
    stops: RunLimits
    summary: Path | None = None
    at_once: int = 1

    def started(self, state: RunState, at_once: int) -> RunStarted:
        """The event that the run begins, or goes on, with so many tasks at a time."""
        return RunStarted(
            str(self.task_file),
            len(state.tasks),
            state.counts().get("completed", 0),
            self.boot.shown,
            self.isolation.name,
            at_once,
            self.launch.config.batch.hooks,
            self.launch.config.batch.sign,
        )


def plan(
    options: Options,
    *,
    home: Folders | None = None,
    settled: Mapping[str, Any] | None = None,
    trusted: Trust | None = None,
    foreign: bool = False,
) -> RunPlan:
    """Read everything that decides how to run; `home`, `settled`, `trusted` and `foreign` are as
    in `launch_config.prepare`. Blocks; raises UsageError, CredentialsError."""
    assert options.batch.tasks is not None
    # Models are swapped between attempts only, and the limit of cost applies to the whole run.
    plain = options.having(fallback_models=(), max_cost=None, headless=True)
    launch = launching.prepare(plain, trusted=trusted, home=home, settled=settled, foreign=foreign)
    if given := options.models.fallback_models:
        launch = launching.with_other_profiles(launch, options, given)
    config = launch.config
    fallbacks = [_fallback(launch, name) for name in config.fallback_models]
    changed = msgspec.structs.replace(config, fallback_models=())
    target = launch.workspace.root
    task_file = real_task_file(options.batch.tasks)
    file = read_tasks(task_file)
    directive = find_boot(file.boot, task_file, target, launch.trust)
    models = ModelPair(launch.model, next((name for name in fallbacks if name != launch.model), ""))
    batch, stops = config.batch, limits_of(options, launch, models)
    wanted = batch.hooks and not options.batch.batch_api
    # whoever says what is trusted has asked the person, about the folder where the run began
    hooks = _commit_hooks(launch, decided=trusted is not None) if wanted else None
    worktrees = TaskWorktrees(target, options.batch.tasks.absolute(), hooks, batch.sign)
    if options.batch.parallel > 1:
        worktrees.check()
    if not options.dry_run:
        launch = launching.with_key(launch)
        if launch.at(models.fallback) is launch and profile_of(models.fallback):
            models = ModelPair(models.first)  # it has no key, as a notice says
    # A server's long limits are waited for, unless another model can be asked meanwhile.
    patience = FALLBACK_AFTER_S if models.fallback else None
    return RunPlan(
        launch=replace(launch, config=changed, boot=directive.named, max_wait_s=patience),
        task_file=task_file,
        target=target,
        file=file,
        boot=directive,
        isolation=NothingToIsolate()
        if options.batch.batch_api
        else find_isolation(target, options.batch.tasks.absolute(), hooks, sign=batch.sign),
        worktrees=worktrees,
        models=models,
        stops=stops,
        summary=options.batch.summary,
        at_once=options.batch.parallel,
    )


def _fallback(launch: Launch, name: str) -> str:
    """The model that a name stands for; a profile alone is that of the run, through it."""
    whole = launch.whole_name(name)
    return whole if model_of(whole) else through(profile_of(whole), launch.model)


def limits_of(options: Options, launch: Launch, models: ModelPair) -> RunLimits:
    """The person's limits of a run. Raises UsageError for one of cost where a price is missing."""
    batch = launch.config.batch
    stops = RunLimits(
        cost_usd=options.limits.max_cost or batch.max_cost or None,
        failures_in_a_row=options.limits.max_failures or batch.max_failures or None,
        seconds=options.limits.max_time or batch.max_time_s or None,
    )
    if stops.cost_usd is not None:
        _check_prices(launch, models)
    return stops


def real_task_file(path: Path) -> Path:
    """The task file itself, whatever link or working directory it was named by."""
    return Path(os.path.realpath(path))


def _check_prices(launch: Launch, models: ModelPair) -> None:
    for name in filter(None, (models.first, models.fallback)):
        if price_of(name, launch.config.prices) is None:
            raise UsageError(
                f"A cost limit needs a price for {name}, and none is set.",
                hint=f'Add one under [prices."{name}"] in {shorten(launch.folders.config_file)}.',
            )


def _commit_hooks(launch: Launch, *, decided: bool) -> CommitHooks:
    """The project's git hooks. Raises UsageError where the folder isn't trusted, which may be
    `decided` already, or no sandbox holds them: they are code, and the task may have changed
    them."""
    root = launch.workspace.root
    if not (decided or launch.trust.everything or _is_trusted(launch, root)):
        raise UsageError(
            f"The git hooks of {shorten(root)} run only once you trust the folder.",
            hint="See /trust there, or give --trust; or leave them out: [batch] hooks = false",
        )
    hooks = CommitHooks(confinement_of(launch, "commit"))
    hooks.check(root)
    return hooks


def _is_trusted(launch: Launch, root: Path) -> bool:
    """True if the person has decided about all that a folder's files would do, and not against each
    of it."""
    granted = launch.trust.granted
    asking = [granted.get(item.name) == item.sha256 for item in items(root)]
    return not undecided(launch.folders, root) and (any(asking) or not asking)


def find_isolation(
    target: Path, task_file: Path, hooks: CommitHooks | None = None, *, sign: bool = False
) -> Isolation:
    """The isolation of the tasks run in `target`. Blocks; raises UsageError where git can't be
    relied on to keep them apart."""
    try:
        return (
            JjIsolation.find(target, task_file)
            or GitIsolation.find(target, task_file, hooks, sign=sign)
            or Isolation()
        )
    except GitError as error:
        raise UsageError(error.message, hint=error.hint) from error
