"""Writers of sessions that are there to be killed; they say on stdout what is on the disk.

The program itself only starts them: for every line on stdin, `HOME` and the session to go on
with (or nothing), it forks a writer, names its process in the writer's first line, and says
`over` when it has ended. Forked, not started: so hundreds of kills take seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.drafts import UnsentWork
from tui.session.session import Session


async def write(home: str, resume: str) -> None:
    clock = SystemClock()
    if resume:
        session = Session.open(Path(resume), clock=clock)
    else:
        session = Session.create(Path("/w"), folders=folders({"HOLDFAST_HOME": home}), clock=clock)
    say(f"writer\t{os.getpid()}\t{session.path}")
    number = 0
    while True:
        session.draft(UnsentWork(f"typing {number}", ("queued",), "partial " * number))
        session.append("tool_result", call_id=str(number), content="x" * (number * 37 % 9000))
        record = await session.commit("user", content=f"prompt {number}")
        say(f"saved\t{record.id}")
        number += 1


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main() -> None:
    for line in sys.stdin:
        home, _, resume = line.rstrip("\n").partition("\t")
        writer = os.fork()
        if not writer:
            try:
                asyncio.run(write(home, resume))
            finally:
                os._exit(1)
        os.waitpid(writer, 0)
        say("over")


if __name__ == "__main__":
    main()
