"""The facts that a worker needs of a run, on whatever machine: the message and the files of its
commit.

The driver decides: the settings, rules and trust of its machine count, not those of the worker's.
No key travels, and no value of an MCP server's environment; a worker has its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

import tui
from tui.app.options.arguments import Options
from tui.batch.cluster.task_store import StoreError, stays_below
from tui.batch.plan import RunPlan, usual_boot
from tui.core.config import Config
from tui.core.facts import DEFAULT_PROFILE
from tui.core.git.checkout import Checkout
from tui.settings.trust import Trust

TASK_FILE: Final = "tasks.md"
BOOT_FILE: Final = "boot.md"
STATE_FILE: Final = "state.json"
_HERE: Final = frozenset({"theme", "notify", "motion", "copy_on_select", "vim", "keys", "plain"})
_OTHERS: Final = frozenset({"status", "terminal", "background", "mcp", "default_profile"})
"""Settings of a machine or a screen."""
_OPTIONS: Final = (
    "effort", "practice", "system_prompt", "append_system_prompt", "yolo", "no_sandbox",
)  # fmt: skip


_NO_CHECKPOINTS: Final[dict[str, Any]] = {"checkpoints": {"mode": "off"}}
"""Git has a task's files at each of its requests: a second copy of ten thousand files would take
longer than all else that a task does."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its workers see it. `base` is the commit that the tasks begin from, on `branch`,
    and `inside` the folder in it in which they work; `task_file` is the path of the task file from
    the top, "" where it is elsewhere. `identity` is the person of the commits. `confined`: commands
    run in a sandbox here, so they do there. `asks`: somebody sits at the run's screen, whom tasks
    may ask. `lease_s` is the time after which a worker without a sign of life counts as lost.
    `fallback` is the model to swap with, "" for none. `origin` is the checkout that the run began
    in, where workers are on its machine, else "". `foreign`: the folder named the server, which
    gets no key of the environment."""

    run: str
    version: str
    python: str
    base: str
    branch: str
    inside: str
    task_file: str
    options: dict[str, Any]
    config: dict[str, Any]
    trusts_all: bool
    granted: dict[str, str]
    identity: dict[str, str]
    confined: bool
    asks: bool = False
    script: str = ""
    boot: bool = False
    lease_s: float = 90.0
    fallback: str = ""
    origin: str = ""
    foreign: bool = False

    @property
    def trust(self) -> Trust:
        """The driver's trust in the repository's own files."""
        return Trust(self.trusts_all, self.granted)

    def to_message(self) -> str:
        return f"holdfast: run {self.run}\n\n{msgspec.json.encode(self).decode()}\n"


def spec_of(message: str) -> RunSpec:
    """The run that a commit's message describes. Raises StoreError, also where its tasks would work
    elsewhere than in their own folders."""
    try:
        spec = msgspec.json.decode(message.partition("\n\n")[2], type=RunSpec)
    except msgspec.DecodeError as error:
        raise StoreError(f"The run in the store can't be read: {error}.") from error
    for path in filter(None, (spec.inside, spec.task_file)):
        if not stays_below(path):
            raise StoreError(f"The run in the store leads out of its folders: {path!r}.")
    return spec


def python_version() -> str:
    """The minor version of the Python that runs this."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def spec_for(
    planned: RunPlan, options: Options, run: str, *, confined: bool, asks: bool, near: bool
) -> RunSpec:
    """Describe a run for its workers; `near`: they are on this machine. Blocks; raises
    GitError."""
    checkout = Checkout.of(planned.target)
    launch = planned.launch
    inside = planned.target.relative_to(checkout.top)
    here = planned.task_file.is_relative_to(checkout.top)
    given = options.by_name()
    chosen = {name: given[name] for name in _OPTIONS if given[name]}
    mode = options.permissions.permission_mode
    return RunSpec(
        run=run,
        version=tui.__version__,
        python=python_version(),
        base=checkout.commit(),
        branch=checkout.branch,
        inside="" if inside == Path() else str(inside),
        task_file=str(planned.task_file.relative_to(checkout.top)) if here else "",
        options={**chosen, **({"permission_mode": mode} if mode else {})},
        config=_changed_settings(launch.config) | {"batch": _batch(planned)} | _NO_CHECKPOINTS,
        trusts_all=launch.trust.everything,
        granted=dict(launch.trust.granted),
        identity=checkout.named_identity(),
        confined=confined,
        asks=asks,
        script=str(launch.access.script.absolute()) if launch.access.script else "",
        boot=boot_of(planned) is not None,
        lease_s=launch.config.batch.lease_s,
        fallback=planned.models.fallback,
        origin=str(checkout.top) if near else "",
        foreign=launch.access.foreign_server,
    )


def boot_of(planned: RunPlan) -> Path | None:
    """The boot file of a run, which git may ignore; None for none. Blocks."""
    return planned.launch.boot or usual_boot(planned.target, planned.launch.trust)


def _batch(planned: RunPlan) -> dict[str, Any]:
    """The settings of the run for one group of it: its cost has another limit, and its time none
    that begins with the worker."""
    batch: dict[str, Any] = msgspec.to_builtins(planned.launch.config.batch)
    failures = planned.stops.failures_in_a_row or 0
    return {**batch, "max_cost": 0.0, "max_time_s": 0, "max_failures": failures}


def _changed_settings(config: Config) -> dict[str, Any]:
    """The settings that differ from the defaults, in the shape of the file. The profile is among
    them whatever it is: a worker takes its key from its own machine, but never another one."""
    usual: Mapping[str, Any] = msgspec.to_builtins(Config())
    now: Mapping[str, Any] = msgspec.to_builtins(config)
    return {"profile": config.profile or DEFAULT_PROFILE} | {
        key: value
        for key, value in now.items()
        if key not in _HERE | _OTHERS and value != usual[key]
    }
