"""A worker that is told to end does end, by a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.clock import PATIENCE_S

PROGRAM = """
import asyncio, sys, time
from tui.batch.cluster.hard_end import end_by_force, signals_for_sure

async def main():
    stopped = asyncio.Event()
    with signals_for_sure(stopped.set, after_s={after_s}):
        print("ready", flush=True)
        {work}

asyncio.run(main())
print("ended by itself", flush=True)
"""


def told_to_end(work: str, after_s: float, number: int | None = signal.SIGTERM) -> tuple[int, str]:
    """Run a worker's loop, send it a signal once it works, and return its exit and output."""
    program = PROGRAM.format(work=work, after_s=after_s)
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as one:
        try:
            assert one.stdout
            assert one.stdout.readline() == "ready\n"
            if number is not None:
                one.send_signal(number)
            said = one.communicate(timeout=PATIENCE_S)[0]
        finally:
            one.kill()
    return one.returncode, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_loop_that_hangs_ends_with_the_process(number: int) -> None:
    assert told_to_end("time.sleep(1000)", 0.1, number) == (-signal.SIGKILL, "")


def test_a_lost_lease_ends_a_loop_that_hangs() -> None:
    hangs = "end_by_force(0.1); time.sleep(1000)"
    assert told_to_end(hangs, 1000, None) == (-signal.SIGKILL, "")


def test_a_loop_that_heeds_the_signal_ends_by_itself() -> None:
    assert told_to_end("await stopped.wait()", 1000) == (0, "ended by itself\n")
