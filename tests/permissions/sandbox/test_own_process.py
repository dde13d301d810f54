"""What others can see of the program's own process, tried on a real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os
from pathlib import Path
from tui.permissions.sandbox.own_process import hide_secrets
hide_secrets()
print(Path("/proc/self/environ").read_bytes().count(b"the-mark"))
print(os.environ["MY_API_KEY"], os.environ["PLAIN"])
print(end="", flush=True); os.system("echo $MY_API_KEY $PLAIN")
import ctypes
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_environment_that_others_see_holds_no_secret() -> None:
    env = {"MY_API_KEY": "the-mark", "OTHER_TOKEN": "the-mark", "PLAIN": "seen", "PATH": "/usr/bin"}
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=root,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["0", "the-mark seen", "the-mark seen", "0"]
