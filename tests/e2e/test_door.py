"""The door of a session in the background: another process watches it, answers, steers, stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.e2e.test_background import gone, until
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.program import Program
from tui.app import background
from tui.app.door.sockets import folder_of
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders

pytestmark = [needs_proc]

WRITE = {"text": "I write.", "tools": [{"name": "write_file", "input": {
    "path": "new.txt", "content": "hello\n"}}]}  # fmt: skip


@pytest.fixture
def env(env: dict[str, str]) -> dict[str, str]:
    return {**env, "ANTHROPIC_API_KEY": "sk-ant-secret"}


@pytest.fixture
def kept(home: Path) -> Generator[Folders]:
    made = folders({"HOLDFAST_HOME": str(home)})
    yield made
    for one in background.sessions(made, SystemClock().now()):
        background.send(one, signal.SIGKILL)


class Client:
    """Speaks the lines with a session's owner, as any program could."""

    def __init__(self, home: Folders, session: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        place = os.open(folder_of(home), os.O_RDONLY)
        self.socket.connect(f"/proc/self/fd/{place}/{session}.sock")
        os.close(place)
        self.lines = self.socket.makefile("rb")
        self.seen: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def until(self, type_: str, **fields: Any) -> dict[str, Any]:
        while line := self.read():
            message: dict[str, Any] = json.loads(line)
            self.seen.append(message)
            about = message["fact"] if message["type"] == "fact" else message
            if about["type"] == type_ and fields.items() <= about.items():
                return about
        raise AssertionError(f"no {type_} came: {self.seen}")

    def read(self) -> bytes:
        """The next line; b"" at the end."""
        try:
            return self.lines.readline()
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


def test_a_background_session_is_watched_answered_and_steered(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, {"text": "All is written."}).url
    id_ = holdfast("--bg", "do it", env=env).stdout.split()[4]
    one = until(kept, id_, "waiting")
    assert one.detail == "write_file(new.txt)"
    assert one.cost_usd, "the cost of the first request is known while it waits"
    client = Client(kept, id_)
    hello = client.until("hello")
    assert (hello["kind"], hello["pid"], hello["path"]) == ("background", one.pid, one.path)
    status = client.until("status")
    assert (status["state"], status["detail"]) == ("waiting", "write_file(new.txt)")
    assert status["cost_usd"] == one.cost_usd
    question = client.until("asked")
    assert question["asked"]["call"]["subject"] == "new.txt"
    client.send(type="watch")
    last = client.until("record_end")["last"]
    records = [json.loads(line) for line in Path(one.path).read_text().splitlines()]
    assert last in {record.get("id") for record in records}
    client.until("tool_started", name="write_file")
    client.until("permission_asked")
    client.send(type="prompt", number="1", text="and say so")
    assert client.until("outcome", number="1")["outcome"] == "joined"
    client.send(type="answer", number="2", to=question["number"], answer={"answer": "always!"})
    assert client.until("outcome", number="2")["outcome"] == "refused"
    client.send(type="answer", number="3", to=question["number"], answer={"answer": "once"})
    client.until("settled", number=question["number"])
    client.until("tool_finished", is_error=False)
    client.until("user_message", text="and say so")
    client.until("turn_finished", outcome="done")
    ended = client.until("ended")
    assert (ended["state"], ended["detail"]) == ("done", "All is written.")
    client.close()
    gone(one)
    assert (holdfast.work / "new.txt").read_text() == "hello\n"
    assert until(kept, id_, "done").detail == "All is written."
    assert not list(folder_of(kept).iterdir())


def test_a_watcher_stops_one_and_no_command_of_its_agent_can(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders, tmp_path: Path
) -> None:
    """The command runs outside the walls, since a person answered so, and cleans itself."""
    into = tmp_path / "heard"
    attack = tmp_path / "attack.py"
    attack.write_text(
        "import os, socket, sys\n"
        "name = [one for one in os.listdir(sys.argv[1]) if one.endswith('.sock')][0]\n"
        "door = socket.socket(socket.AF_UNIX)\n"
        "door.connect(os.path.join(sys.argv[1], name))\n"
        "text = door.makefile().read()\n"
        "open(sys.argv[2], 'w').write(text)\n"
    )
    words = f"env -i {sys.executable} {attack} {folder_of(kept)} {into}"
    run = {"tools": [{"name": "run_command", "input": {"command": words}}]}
    env["ANTHROPIC_BASE_URL"] = serve(run, WRITE, {"text": "never"}).url
    id_ = holdfast("--bg", "do it", "--no-sandbox", env=env).stdout.split()[4]
    one = until(kept, id_, "waiting")
    client = Client(kept, id_)
    question = client.until("asked")
    client.send(type="answer", number="1", to=question["number"], answer={"answer": "once"})
    client.until("asked")
    said = into.read_text()
    assert "an agent started it" in said
    assert id_ not in said
    client.send(type="stop", number="2")
    assert client.until("outcome", number="2")["outcome"] == "done"
    assert client.until("ended")["state"] == "stopped"
    client.close()
    gone(one)
    assert not (holdfast.work / "new.txt").exists()


def test_one_that_is_killed_leaves_a_socket_that_the_next_owner_replaces(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve(WRITE, WRITE, {"text": "Done."}).url
    id_ = holdfast("--bg", "do it", env=env).stdout.split()[4]
    one = until(kept, id_, "waiting")
    client = Client(kept, id_)
    background.send(one, signal.SIGKILL)
    gone(one)
    with pytest.raises(AssertionError, match="no ended came"):
        client.until("ended")
    client.close()
    with pytest.raises(ConnectionRefusedError):
        Client(kept, id_)
    holdfast("--bg", "again", "-r", id_, env=env)
    other = until(kept, id_, "waiting")
    client = Client(kept, id_)
    assert client.until("hello")["pid"] == other.pid
    client.close()
    subprocess.run(["kill", "-9", str(other.pid)], check=True)
    gone(other)
