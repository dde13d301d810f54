"""`holdfast cluster up FILE`: one of Dask's own deployments, started in this process until Ctrl+C.

deployment = "local"        or "ssh", "kubernetes"
[options]                   the keyword arguments of Dask's class for it
n_workers = 4
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from tui.app.options.arguments import Options
from tui.batch.cluster.engines.dask_address import check_address
from tui.batch.cluster.engines.port import EngineError
from tui.core.dataclass import dataclass
from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.signals import heeded_signals
from tui.core.standard_output import note, print_text
from tui.core.toml_files import parse_toml

_PATIENCE: Final = {"distributed.comm.timeouts.tcp": "300s"}
"""A machine that stands still for less keeps its tasks: Dask's own 30 s are soon over."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class of Dask, the package that has it, and what it gets if the file doesn't say."""

    module: str
    name: str
    package: str
    usual: Mapping[str, Any]


_ONE_THREAD: Final = {"threads_per_worker": 1}
_KINDS: Final = {
    "local": _Kind("distributed", "LocalCluster", "holdfast[cluster]", _ONE_THREAD),
    "ssh": _Kind("distributed", "SSHCluster", "asyncssh", {"worker_options": {"nthreads": 1}}),
    "kubernetes": _Kind(
        "dask_kubernetes.operator",
        "KubeCluster",
        "dask-kubernetes",
        {"env": {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s"}},
    ),
}


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that describes a cluster."""

    deployment: str
    options: dict[str, Any] = {}


def run(options: Options) -> int:
    """Carry out `holdfast cluster up`. Returns the exit code; raises ConfigError, EngineError."""
    described = read(Path(options.target or ""))
    kind = _KINDS[described.deployment]
    try:
        from tui.batch.cluster.engines.dask import quieten  # noqa: PLC0415 - an extra

        make = getattr(import_module(kind.module), kind.name)
        import_module("dask.config").set(_PATIENCE)
    except ModuleNotFoundError as error:
        raise EngineError(
            f"A deployment of this kind isn't installed: {error}.",
            hint=f"Install it beside Holdfast: {kind.package}",
        ) from error
    try:
        cluster = make(**{**kind.usual, **described.options})
    except Exception as error:
        raise EngineError(f"Dask can't start the cluster: {_cause(error)}") from error
    try:
        address = str(cluster.scheduler_address)
        check_address(address, insecure=options.batch.insecure_cluster)
        print_text(address)
        note("The cluster runs until Ctrl+C. Give tasks to it with: holdfast run TASKS.md --on …")
        asyncio.run(_stopped())
    finally:
        quieten()  # its machines got Ctrl+C, too, and Dask is upset
        cluster.close()
    return 0


def _cause(error: BaseException) -> BaseException:
    """The error that others only pass on: that says what is wrong."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


async def _stopped() -> None:
    """Return once somebody wants it to end."""
    stop = asyncio.Event()
    with heeded_signals(stop.set):
        await stop.wait()


def read(file: Path) -> Deployment:
    """Read the description of a cluster. Raises ConfigError."""
    try:
        described = msgspec.convert(parse_toml(read_small(file)[0].decode()), type=Deployment)
    except OSError as error:
        raise ConfigError(file, "", error.strerror or str(error)) from error
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(file, "", str(error)) from error
    if described.deployment not in _KINDS:
        raise ConfigError(file, "deployment", f"There are: {', '.join(_KINDS)}.")
    return described
