"""Who is at the other end of a socket, although numbers of processes are used again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tui.keeper.peer import handle_of, peer

pytestmark = needs_proc

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
CLIENT = "import socket; s = socket.socket(1); s.connect({!r}); s.recv(1)"


@contextmanager
def connected(folder: Path) -> Generator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """A connection from another process."""
    path = str(folder / "door")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(PATIENCE_S)
        words = [sys.executable, "-I", "-S", "-c", CLIENT.format(path)]
        with subprocess.Popen(words) as client, listener.accept()[0] as connection:
            yield connection, client
            client.kill()


def test_a_process_runs_until_it_ends(tmp_path: Path) -> None:
    with connected(tmp_path) as (connection, client):
        assert peer(connection) == (client.pid, os.geteuid())
        with handle_of(connection) as runs:
            assert runs()
            client.kill()
            client.wait()
            assert not runs()


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason="numbers can't be chosen here")
def test_a_process_that_got_the_number_of_one_that_has_ended_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    with connected(tmp_path) as (connection, client):
        client.kill()
        client.wait()
        for _ in range(100):  # another process of the machine may be faster
            LAST_PID.write_text(str(client.pid - 1))
            other = subprocess.Popen(["sleep", "60"])
            try:
                if other.pid == client.pid:
                    assert peer(connection)[0] == other.pid
                    assert not _runs(connection)
                    return
            finally:
                other.kill()
                other.wait()
        pytest.skip("the number was taken")


def _runs(connection: socket.socket) -> bool:
    try:
        with handle_of(connection) as runs:
            return runs()
    except OSError:  # what the system says of one that has ended, before Linux 6.16
        return False
