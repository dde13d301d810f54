"""`python -m tests.benchmarks [NAME …]`: every claim about speed, as a ratio measured in one run.

Each `bench_*.py` here has a `run()` that returns rows of (what, ratio measured, ratio allowed).
Exits 1 when a ratio is over what is allowed.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import tests.benchmarks as here


def main(names: list[str]) -> int:
    missed = 0
    modules = sorted(m.name for m in pkgutil.iter_modules(here.__path__) if m.name[:6] == "bench_")
    for module in modules:
        if names and module.removeprefix("bench_") not in names:
            continue
        for what, measured, allowed in importlib.import_module(f"{here.__name__}.{module}").run():
            over = measured > allowed
            missed += over
            print(
                f"{'OVER' if over else 'ok':>4}  {measured:8.2f} ≤ {allowed:<6g} {what}", flush=True
            )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
