"""Attacks on a session's door: who is at the other end, with real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.app.door.owned import OwnedSession, Patient, owned
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.provider import call, say
from tui.app.door.peer import RefusedPeerError, admit
from tui.app.door.sockets import folder_of
from tui.core import facts
from tui.core.config import SandboxSettings
from tui.core.workspace import Workspace
from tui.keeper.mark import is_marked
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.types import Answer

pytestmark = [needs_proc]

ATTACK = """
import json, os, socket, sys, time

path, into = sys.argv[1:3]
if "daemon" in sys.argv:
    # twice a fork, a session of its own: nobody's child any more
    if os.fork():
        os._exit(0)
    os.setsid()
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    for file in (0, 1, 2):
        os.close(file)
    while os.getppid() == parent:
        time.sleep(0.01)
    time.sleep(0.1)
heard = ""
try:
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(10)
        door.connect(path)
        lines = door.makefile("r")
        heard = lines.readline() + lines.readline()
        number = json.loads(lines.readline() or "{}").get("number", "")
        answer = {"type": "answer", "number": "1", "to": number, "answer": {"answer": "once"}}
        door.sendall(json.dumps(answer).encode() + b"\\n")
        heard += lines.readline()
except OSError as error:
    heard += f"OSError: {error}"
with open(into + ".new", "w") as file:
    file.write(heard)
os.rename(into + ".new", into)
"""


@pytest.fixture
def attack(tmp_path: Path) -> Path:
    path = tmp_path / "attack.py"
    path.write_text(ATTACK)
    return path


def command_of(session: OwnedSession, attack: Path, into: Path, how: str) -> str:
    path = folder_of(session.home) / f"{session.id}.sock"
    words = [sys.executable, "-I", "-S", str(attack), str(path), str(into)]
    match how:
        case "clean":
            words = ["env", "-i", *words]
        case "daemon":
            words = ["env", "-i", "setsid", *words, "daemon"]
        case _:
            pass
    return shlex.join(words)


async def heard(into: Path) -> str:
    async with asyncio.timeout(PATIENCE_S):
        while not into.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    return into.read_text()


@pytest.mark.parametrize("how", ["plain", "clean", "daemon"])
async def test_a_command_of_the_agent_is_refused(tmp_path: Path, attack: Path, how: str) -> None:
    """It runs without walls, with the rights of the person."""
    approver, into = Patient(), tmp_path / "heard"
    approver.answer.set_result(Answer("once"))
    made: list[str] = []

    def run(_: Any) -> list[Any]:
        return [call("run_command", command=made[0])]

    async with owned(tmp_path, run, say("ok"), approver=approver) as session:
        made.append(command_of(session, attack, into, how))
        ended = [fact async for fact in session.conversation.send("go")]
        assert isinstance(ended[-1], facts.TurnFinished)
        said = await heard(into)
        assert json.loads(said.splitlines()[1])["outcome"] == "refused"
        assert "an agent started it" in said
        assert session.id not in said
        assert "answer" not in said


@pytest.mark.skipif(not shutil.which("script"), reason="needs a program that makes terminals")
@pytest.mark.parametrize("daemon", [False, True])
async def test_the_programs_own_desk_shows_a_command_nothing(tmp_path: Path, daemon: bool) -> None:
    """Neither with its parents nor without them, and with a terminal that it makes itself."""
    approver, into = Patient(), tmp_path / "heard"
    approver.answer.set_result(Answer("once"))
    made: list[str] = []

    def run(_: Any) -> list[Any]:
        return [call("run_command", command=made[0])]

    async with owned(tmp_path, run, say("ok"), approver=approver) as session:
        home = session.home
        places = [str(one) for one in (home.data, home.config, home.cache, home.log)]
        code = (
            "import asyncio, sys; from pathlib import Path; from tui.core.paths import Folders; "
            "from tui.cli.desk import print_desk; from tui.desk.local_host import LocalHost; "
            "from tui.core.clock import SystemClock; "
            "from tui.app.options.arguments import Options; "
            f"host = LocalHost(Folders(*map(Path, {places!r}))); "
            "asyncio.run(print_desk(Options(json=True), [host], SystemClock()))"
        )
        desk = shlex.join([sys.executable, "-c", code])
        line = f"{desk} >{into}.new 2>&1; mv {into}.new {into}"
        line = shlex.join(["script", "-qc", line, "/dev/null"])
        made.append(f"setsid -f {line} </dev/null >/dev/null 2>&1" if daemon else line)
        ended = [fact async for fact in session.conversation.send("go")]
        assert isinstance(ended[-1], facts.TurnFinished)
        (row,) = json.loads(await heard(into))["sessions"]
        assert row["id"] == session.id
        assert "an agent started it" in row["problem"]
        assert not row["question"]


async def test_the_persons_own_command_is_refused_too(tmp_path: Path, attack: Path) -> None:
    into = tmp_path / "heard"
    async with owned(tmp_path) as session:
        session.conversation.run_shell(command_of(session, attack, into, "plain"))
        assert "an agent started it" in await heard(into)
        await session.conversation.at_rest()


@pytest.mark.parametrize("engine", ["bubblewrap", "launcher"])
async def test_a_command_behind_walls_finds_no_door(tmp_path: Path, engine: Any) -> None:
    root = tmp_path / "work"
    root.mkdir()
    confinement = Confinement(
        SandboxSettings(engine=engine),
        Workspace.at(root, ceiling="/"),
        tmp_path / "state" / "session",
        tmp_path / "state" / "cache",
    )
    made: list[str] = []

    def run(_: Any) -> list[Any]:
        return [call("run_command", command=made[0])]

    async with owned(root, run, say("ok"), confinement=confinement) as session:
        if not await confinement.levels():
            pytest.skip(confinement.reason)
        path = folder_of(session.home) / f"{session.id}.sock"
        made.append(
            "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); "
            f's.connect("{path}"); print("said", s.recv(10000))\''
        )
        ended = [fact async for fact in session.conversation.send("go")]
        (result,) = [fact for fact in ended if isinstance(fact, facts.ToolFinished)]
        assert "said" not in result.text.replace("print(", "")
        assert "FileNotFoundError" in result.text
    await confinement.close()


async def test_what_the_session_itself_started_is_refused(tmp_path: Path, attack: Path) -> None:
    """A hook that bears no mark yet, for example."""
    into = tmp_path / "heard"
    async with owned(tmp_path) as session:
        words = shlex.split(command_of(session, attack, into, "plain"))
        child = await asyncio.create_subprocess_exec(*words)
        assert "the session itself started it" in await heard(into)
        await child.wait()


async def test_a_process_of_the_persons_is_let_in(tmp_path: Path, attack: Path) -> None:
    into = tmp_path / "heard"
    async with owned(tmp_path, say("ok"), approver=Patient()) as session:
        words = [*shlex.split(command_of(session, attack, into, "plain")), "daemon"]
        child = await asyncio.create_subprocess_exec(*words)
        await child.wait()
        greeting = json.loads((await heard(into)).splitlines()[0])
        assert (greeting["type"], greeting["session"]) == ("hello", session.id)


def talk(program: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A connection from a process that runs a program first."""
    name = f"\0holdfast-test-{os.getpid()}-{id(program)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        client = textwrap.dedent(program) + textwrap.dedent(
            f"""
            import socket
            s = socket.socket(socket.AF_UNIX)
            s.connect({name!r})
            s.recv(1)
            """
        )
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", client], cwd="/", stderr=subprocess.PIPE
        )
        listener.settimeout(PATIENCE_S)
        return listener.accept()[0], child


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_user_is_refused() -> None:
    connection, child = talk("import os, socket; os.setgid(65534); os.setuid(65534)")
    with connection, pytest.raises(RefusedPeerError, match="another user"):
        admit(connection)
    child.communicate()


def test_other_rights_are_refused() -> None:
    connection, child = talk(
        "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)"  # no new privileges
    )
    with connection, pytest.raises(RefusedPeerError, match="with other rights"):
        admit(connection)
    child.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_who_has_no_rights_can_not_take_off_the_mark() -> None:
    program = """
    import ctypes, os, resource, sys
    sys.path.insert(0, sys.argv[1])
    from tui.keeper.mark import is_marked, mark
    mark()
    assert is_marked("self")
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    for most in (resource.RLIM_INFINITY, 1 << 40):
        try:
            resource.setrlimit(10, (most, most))
        except (OSError, ValueError):
            pass
    ctypes.CDLL(None).unshare(0x10000000)  # a user namespace, where it is root
    try:
        resource.setrlimit(10, (resource.RLIM_INFINITY,) * 2)
    except (OSError, ValueError):
        pass
    os.setsid()
    if not os.fork():
        resource.setrlimit(10, (5, 5))
        print(is_marked(os.getpid()), is_marked("self"), flush=True)
        os._exit(0)
    os.wait()
    """
    root = str(Path(__file__).parents[3])
    words = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program), root]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_this_process_bears_no_mark() -> None:
    """Else the tests above would prove nothing."""
    assert not is_marked("self")
