"""`python -m tests.benchmarks [NAME …]`: every claim about speed, as a ratio measured in one run.

Each `bench_*.py` here has a `run()` that returns rows of (what, ratio measured, ratio allowed).
Exits 1 when a ratio is over what is allowed. With `--profile`, a table of where the processor time
of each one goes follows its rows.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from pathlib import Path

import tests.benchmarks as here
from tests.benchmarks.stations import ProfileError, profile


def main() -> int:
    """Run the benchmarks that are named, or all. Returns the exit code."""
    modules = sorted(m.name for m in pkgutil.iter_modules(here.__path__) if m.name[:6] == "bench_")
    names = [module.removeprefix("bench_") for module in modules]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    chosen = [name for name in names if not asked.names or name in asked.names]
    # As installed: compiled once, whatever the environment of the benchmark says.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        compiled = Path(__file__).parents[2] / ".pytest_cache" / "compiled"
        os.environ["PYTHONPYCACHEPREFIX"] = str(compiled)
    return _profiled(chosen) if asked.profile else _measured(chosen)


def _measured(names: list[str]) -> int:
    missed = 0
    for name in names:
        for what, measured, allowed in importlib.import_module(
            f"{here.__name__}.bench_{name}"
        ).run():
            over = measured > allowed
            missed += over
            print(
                f"{'OVER' if over else 'ok':>4}  {measured:8.2f} ≤ {allowed:<6g} {what}", flush=True
            )
    return 1 if missed else 0


def _profiled(names: list[str]) -> int:
    try:
        for name in names:
            print(*profile(name), sep="\n", flush=True)
    except ProfileError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
