"""Commands that pass for a look and are none, really sent by the model in `-p`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.program import Program

WRITES = [
    "ls # x \\\ntouch made",
    "bash ./x.sh -c ls",
    "${SHELL:-ls} -c 'touch made'",
    "x=touch; false && x=ls; $x made",
    'export "PATH=./bin:$PATH"; ls',
    "test -v 'a[$(touch made)]'",
    "jobs -x touch made",
    "env --split='touch made' ls",
    "/usr/bin/time -f line -a -o made true",
    "git -C bare status",
    "sort -o made README.md",
    "pytest > made",
    "pytest; touch made",
    "PATH=./bin pytest",
    "./bin/pytest",
]
READS = ["cat link/../key", "cat *.txt", "cat key.txt", "printenv", "ps -p $PPID e", "env"]
LOOKS = ["ls -la | head -3", "cat README.md && git status", "rg -n Demo ; echo done", "ls"]


def test_nothing_is_written_or_shown_that_was_not_allowed(
    holdfast: Program, work: Path, script: Callable[[str], str]
) -> None:
    outside = work.parent / "outside"
    (outside / "below").mkdir(parents=True)
    (outside / "key").write_text("s3cret")
    (work / "link").symlink_to(outside / "below")
    (work / "key.txt").symlink_to(outside / "key")
    (work / "bin").mkdir()
    for name in ("x.sh", "bin/ls", "bin/pytest"):
        (work / name).write_text("#!/bin/sh\ntouch made\n")
        (work / name).chmod(0o755)
    subprocess.run(["git", "init", "-q", "--bare", "bare"], cwd=work, check=True)
    settings = {"core.fsmonitor": f"{work}/x.sh", "core.bare": "false", "core.worktree": str(work)}
    for key, value in settings.items():
        subprocess.run(["git", "config", key, value], cwd=work / "bare", check=True)
    commands = [*WRITES, *READS, *LOOKS]
    turns = [
        f'[[turn]]\ntools = [{{name = "run_command", input = {{command = {json.dumps(text)}}}}}]\n'
        for text in commands
    ]
    path = script("".join(turns) + '[[turn]]\ntext = "All done."\n')
    before = sorted(work.iterdir())
    events = holdfast.lines(
        *("--practice-script", path, "-p", "go", "--allow", "run_command(pytest*)")
    )
    answers = [e for e in events if e["type"] == "permission_answered"]
    assert len(answers) == len(commands)
    for text, answer in zip(commands, answers, strict=True):
        wanted = "allow" if text in LOOKS else "refused"
        assert (answer["answer"] == "allow") is (wanted == "allow"), (text, answer)
    assert not set(work.iterdir()) - {*before, work / ".holdfast"}
    assert not list(work.rglob("made"))
    shown = "".join(str(event) for event in events if event["type"] == "tool_output_chunk")
    assert "s3cret" not in shown
