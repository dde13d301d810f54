"""`holdfast bisect` as a process that is killed: nothing of it stays, and the search goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.test_run import turn
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.program import Program


@needs_proc
@pytest.mark.slow
def test_what_a_killed_search_left_is_gone_with_the_next(
    env: dict[str, str], work: Path, home: Path, script: Callable[[str], str], tmp_path: Path
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    holdfast = Program(work, {**env, "TMPDIR": str(scratch)})
    tools = (f'{{name = "write_file", input = {{path = "n", content = "{n}"}}}}' for n in range(9))
    turns = "".join(turn(text="Next.", tool=tool) for tool in tools) + turn(text="Done.")
    holdfast("-p", "Count.", "--practice-script", script(turns), "--yolo")
    (listed,) = json.loads(holdfast("sessions", "list", "--json").stdout)

    words = (
        "bisect",
        listed["id"],
        "--continue",
        "--json",
        "--",
        "sleep 0.2; ! grep -qs '[5-8]' n",
    )
    with holdfast.started(*words) as process:
        while not [*(home / "data" / "bisect").glob("*.json")]:
            assert process.poll() is None
        process.kill()
        process.wait(PATIENCE_S)
    (left,) = scratch.iterdir()
    (told,) = (home / "data" / "scratch").iterdir()
    sandbox = Path(json.loads(told.read_bytes())["sandbox"])
    mine = scratch / "holdfast-bisect-mine"
    mine.mkdir()

    done = holdfast(*words)
    assert "judged before." in done.stderr
    found = json.loads(done.stdout)
    assert found["candidates"][0]["subject"] == "n"
    assert "+5\n" in found["diff"]
    assert not left.exists()
    assert not sandbox.exists()
    assert [*scratch.iterdir()] == [mine]
    assert not [*(home / "data" / "scratch").iterdir(), *(home / "data" / "bisect").iterdir()]
