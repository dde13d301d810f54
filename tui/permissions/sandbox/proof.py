"""Tries every wall with the engine that would be used, so that doctor shows the real behaviour."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import socket
import sys
from collections.abc import Generator
from pathlib import Path

from tui.core.dataclass import dataclass, replace
from tui.permissions.sandbox.engine import Engine, Sandbox, SandboxError, run_to_end
from tui.permissions.sandbox.walls import Level, WallError, Walls


@dataclass(frozen=True, slots=True)
class Proof:
    """One wall that was tried."""

    wall: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Trap:
    """A secret that must not be reached: it contains `mark`, which must not come out."""

    mark: str
    file: Path
    outside: Path
    port: int
    socket: Path


async def prove(engine: Engine, walls: Walls) -> list[Proof]:
    """Try to get through each wall. Every entry must hold; a command that cannot run does not."""
    bash = shutil.which("bash") or "/bin/sh"
    with _traps(walls) as trap:
        connect = f"import os, socket; os.chdir({str(trap.socket.parent)!r})"
        connect += f"; socket.socket(socket.AF_UNIX).connect({trap.socket.name!r})"
        half = len(trap.mark) // 2  # an error shows the failed line: it must not have the mark
        connect += f"; print({trap.mark[:half]!r} + {trap.mark[half:]!r})"
        attempts = (
            ("writing outside", f"echo x > {shlex.quote(str(trap.outside))}"),
            ("a hidden file", f"cat {shlex.quote(str(trap.file))}"),
            ("the network of this machine", f"exec 3<>/dev/tcp/127.0.0.1/{trap.port}; cat <&3"),
            ("a socket", f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(connect)}"),
            (
                "other processes",
                f"tr '\\0' '\\n' < /proc/{os.getpid()}/environ && echo {trap.mark}",
            ),
        )
        readable = (*walls.readable, Path(sys.prefix), Path(sys.base_prefix))
        behind = replace(walls, hidden=(*walls.hidden, trap.file.parent), readable=readable)
        sandbox = Sandbox(engine)
        proofs: list[Proof] = []
        try:
            for wall, script in attempts:
                proofs.append(await _attempt(sandbox, behind, wall, [bash, "-c", script], trap))
        finally:
            sandbox.close()
    return proofs


async def _attempt(
    sandbox: Sandbox, walls: Walls, wall: str, argv: list[str], trap: _Trap
) -> Proof:
    argv = [*argv[:-1], f"echo ran; {argv[-1]}"]
    try:
        _, output = await run_to_end(sandbox, argv, walls, Level.READ_ONLY)
    except (SandboxError, WallError) as error:
        return Proof(wall, holds=False, detail=str(error))
    through = trap.mark in output or trap.outside.exists()
    lines = output.strip().splitlines()
    return Proof(
        wall, holds=lines[:1] == ["ran"] and not through, detail=" ".join(lines[1:])[-200:]
    )


@contextlib.contextmanager
def _traps(walls: Walls) -> Generator[_Trap]:
    """Create real files and sockets for the attempts, and remove them afterwards."""
    mark = secrets.token_hex(8)
    folder = walls.session / f"proof-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "secret").write_text(mark, encoding="ascii")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
    ):
        if sys.platform == "linux":  # the folder's name may be too long for a socket
            place = os.open(folder, os.O_PATH)
            local.bind(f"/proc/self/fd/{place}/socket")
            os.close(place)
        else:
            local.bind(str(folder / "socket"))
        local.listen()
        port = int(server.getsockname()[1])
        trap = _Trap(
            mark,
            folder / "secret",
            walls.session / f"written-{folder.name}",
            port,
            folder / "socket",
        )
        try:
            yield trap
        finally:
            shutil.rmtree(folder)
            trap.outside.unlink(missing_ok=True)
