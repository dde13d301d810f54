"""kill -9 behind every step of `run --batch-api`, each in a process of its own; then the next run.

Whatever the moment, the next run ends with the same states and answers, and nothing is sent twice.
`python -m tests.batch.test_batch_api_kills N …` runs the program with these words, and kills it
behind its N-th step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.preloaded import RUN, start
from tests.support.serving import serving
from tui.batch import batch_api, run_store, state
from tui.batch.questions import Questions
from tui.cli.main import main
from tui.core.paths import Folders, folders
from tui.provider.anthropic.batches import AnthropicBatches
from tui.session import catalog
from tui.session.reader import read

PRELOAD = (*RUN, "pytest", "tests.batch", "tests.support.serving")
TASKS = "- [ ] why is it blue?\n- [ ] how high is it?\n"
TURNS = [
    {"text": "Because of the air."},
    {"text": "", "faults": [{"status": 400, "type": "invalid_request_error"}]},
]
STEPS = [
    *("save", "asked", "save", "asked", "save"),  # the run, and a session for each question
    *("save", "sent", "save", "polled"),  # the batch: noted, sent, its id, that it has ended
    *("answered", "log", "save", "mark") * 2,  # the results
    "save",  # the batch is forgotten
]


def watch(done: Callable[[str], None]) -> None:
    """Tell of every step once it is done."""

    def told(owner: Any, name: str, step: str) -> None:
        real = getattr(owner, name)

        def doing(*args: Any) -> Any:
            result = real(*args)
            done(step)
            return result

        async def doing_later(*args: Any) -> Any:
            result = await real(*args)
            done(step)
            return result

        later = owner in {Questions, AnthropicBatches}
        setattr(owner, name, doing_later if later else doing)

    told(state, "replace_file", "save")
    told(run_store, "replace_file", "mark")
    told(batch_api, "replace_file", "log")
    told(Questions, "session_of", "asked")
    told(Questions, "answered", "answered")
    told(AnthropicBatches, "create", "sent")
    told(AnthropicBatches, "describe", "polled")


def run(work: Path, env: dict[str, str], last: int) -> tuple[int, list[str]]:
    """Run it until that step, 99 for to the end: its exit code, and the steps that it told."""
    words = [sys.executable, "-m", __name__, str(last), "run", "TASKS.md", "--batch-api"]
    pipe = subprocess.PIPE
    with start(words, cwd=work, env=env, stdout=pipe, stderr=pipe, preload=PRELOAD) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert b"Traceback" not in err, err
    told = [line[5:] for line in err.decode().splitlines() if line[:5] == "step "]
    return process.wait(), told


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "TASKS.md").write_text(TASKS)
    return work


def folders_of(work: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(work.parent / "home")})


def environment(work: Path, url: str) -> dict[str, str]:
    return {
        **os.environ,
        "HOLDFAST_HOME": str(work.parent / "home"),
        "HOME": str(work.parent),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-test",
    }


def test_these_are_all_the_steps(work: Path) -> None:
    with serving({"turns": TURNS}) as server:
        code, steps = run(work, environment(work, server.url), 99)
    assert (code, steps) == (1, STEPS)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(last, marks=() if last in {4, 8, 11} else pytest.mark.slow)
        for last in range(len(STEPS))
    ],
)
def test_a_run_killed_behind_any_step_is_gone_on_with(work: Path, last: int) -> None:
    with serving({"turns": TURNS}) as server:
        env = environment(work, server.url)
        code, steps = run(work, env, last)
        assert code == -signal.SIGKILL
        assert steps == STEPS[:last]
        assert run(work, env, 99)[0] == 1
        posts = [seen.body for seen in server.requests if seen.method == "POST"]
        assert [len(body["requests"]) for body in posts] == [2]
        check(work)
        assert run(work, env, 99)[0] == 1
        assert sum(seen.method == "POST" for seen in server.requests) == 1
    answerless = STEPS[last] == "asked"  # nobody knows the session that was just made
    kinds = sorted(read(path).records[-1].type for path in catalog.files(folders_of(work)))
    assert kinds == ["assistant", "error", *["request"] * answerless]


def check(work: Path) -> None:
    saved = json.loads((work / ".holdfast" / "run" / "state.json").read_bytes())
    assert saved["batch"] is None
    first, second = saved["tasks"]
    assert (first["status"], second["status"]) == ("completed", "failed")
    assert (work / first["log"]).read_text() == "Because of the air."
    marked = TASKS.replace("[ ] why", "[x] why").replace("[ ] how", "[!] how")
    assert (work / "TASKS.md").read_text() == marked
    for task, last in ((first, "assistant"), (second, "error")):
        records = read(catalog.resolve(task["session_id"], folders_of(work))).records
        assert [r.type for r in records] == ["task", "user", "frame", "request", last]


if __name__ == "__main__":
    left = int(sys.argv[1])

    def step(name: str) -> None:
        global left  # noqa: PLW0603
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        sys.stderr.write(f"step {name}\n")
        sys.stderr.flush()

    watch(step)
    sys.exit(main(sys.argv[2:]))
