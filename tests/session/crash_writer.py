"""A program that writes a session until it is killed, and says on stdout what is on the disk."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tui.clock import SystemClock
from tui.paths import folders
from tui.session.session import Session


async def main(home: str, resume: str) -> None:
    clock = SystemClock()
    if resume:
        session = Session.open(Path(resume), clock=clock)
    else:
        session = Session.create(Path("/w"), folders=folders({"HOLDFAST_HOME": home}), clock=clock)
    number = 0
    while True:
        session.append("tool_result", call_id=str(number), content="x" * (number * 37 % 9000))
        record = await session.commit("user", content=f"prompt {number}")
        os.write(1, f"{session.path}\t{record.id}\n".encode())
        number += 1


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
