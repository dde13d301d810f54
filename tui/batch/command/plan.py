"""A run before it begins: everything that decides how it goes, read and checked."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tui.agent.composition import Launch
from tui.app import launch_config as launching
from tui.app.options.arguments import Options
from tui.batch import boot
from tui.batch.backoff import Models
from tui.batch.isolation import Isolation
from tui.batch.isolation_detection import find_isolation
from tui.batch.run_limits import Stops
from tui.batch.run_store import read_tasks
from tui.batch.taskfile import TaskFile
from tui.core.errors import CredentialsError, UsageError
from tui.core.paths import shorten

FALLBACK_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it begins. `task_file` and `target` are real paths."""

    launch: Launch
    task_file: Path
    target: Path
    file: TaskFile
    boot: boot.Boot
    isolation: Isolation
    models: Models
    stops: Stops
    summary: Path | None = None


def plan(options: Options) -> Plan:
    """Read everything that decides how to run. Blocks; raises UsageError, CredentialsError."""
    assert options.tasks is not None
    # Models are swapped between attempts only (A25 to A30), and the limit of cost is the run's.
    plain = replace(options, fallback_models=(), max_cost=None, headless=True)
    launch = launching.prepare(plain)
    config = launch.config
    fallbacks = options.fallback_models or config.fallback_models
    changed = msgspec.structs.replace(config, fallback_models=())
    target = launch.workspace.root
    task_file = real_task_file(options.tasks)
    file = read_tasks(task_file)
    found = boot.find(file.boot, task_file, target)
    models = Models(launch.model, next((name for name in fallbacks if name != launch.model), ""))
    batch = config.batch
    stops = Stops(
        cost_usd=options.max_cost or batch.max_cost or None,
        failures_in_a_row=options.max_failures or batch.max_failures or None,
        seconds=options.max_time or batch.max_time_s or None,
    )
    if stops.cost_usd is not None:
        _check_prices(launch, models)
    if not options.dry_run:
        launch = _with_key(launch)
    # A server's long limits are waited for, unless another model can be asked meanwhile.
    patience = FALLBACK_AFTER_S if models.fallback else None
    return Plan(
        launch=replace(launch, config=changed, boot=found.named, max_wait_s=patience),
        task_file=task_file,
        target=target,
        file=file,
        boot=found,
        isolation=find_isolation(target, task_file),
        models=models,
        stops=stops,
        summary=options.summary,
    )


def real_task_file(path: Path) -> Path:
    """The task file itself, whatever link or working directory it was named by."""
    return Path(os.path.realpath(path))


def _with_key(launch: Launch) -> Launch:
    key = launching.find_key(launch)
    if launching.needs_key(launch, key):
        raise CredentialsError(
            "There is no API key.",
            hint="Set ANTHROPIC_API_KEY, run `holdfast` to store one, or try --practice.",
        )
    return launch.with_key(key)


def _check_prices(launch: Launch, models: Models) -> None:
    for name in filter(None, (models.first, models.fallback)):
        if name not in launch.config.prices:
            raise UsageError(
                f"A limit of cost needs a price for {name}, and none is configured.",
                hint=f'Put one under [prices."{name}"] in {shorten(launch.folders.config_file)}.',
            )
