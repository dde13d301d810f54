"""`python -m tests.benchmarks.loop FILE ARGUMENT …`: the program, with its loop's long stretches.

A stretch is one callback of the loop: no key is heard in it. FILE gets a line for each that takes
long: when it ended (`time.monotonic`), its milliseconds of processor, and what it was. Time that
others had the processor for isn't counted.
"""

from __future__ import annotations

import asyncio
import runpy
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

LEAST_MS: Final = 1.0


class Stretch(NamedTuple):
    """A callback that took long."""

    ended: float
    ms: float
    what: str


def stretches(file: Path, since: float = 0.0) -> list[Stretch]:
    """The stretches so far that ended after a moment, the longest first."""
    lines = (line.split(" ", 2) for line in file.read_text().splitlines())
    every = (Stretch(float(ended), float(ms), what) for ended, ms, what in lines)
    return sorted((one for one in every if one.ended > since), key=lambda one: -one.ms)


def main() -> None:
    """Run the program, and note its stretches."""
    _, file, *argv = sys.argv
    out = Path(file).open("a", buffering=1)  # noqa: SIM115 - as long as the program runs
    run = asyncio.Handle._run

    def timed(self: asyncio.Handle) -> None:
        began = time.thread_time()
        run(self)
        took = 1e3 * (time.thread_time() - began)
        if took >= LEAST_MS:
            what = f"{self!r:.200}".replace("\n", " ")
            out.write(f"{time.monotonic():.4f} {took:.2f} {what}\n")

    asyncio.Handle._run = timed  # pyright: ignore[reportAttributeAccessIssue] - as above
    sys.argv = ["holdfast", *argv]
    runpy.run_module("tui", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
