"""What a kill costs: `-p` is killed at a random moment of a command, and `-p -c` goes on.

Some programs work side by side, so that the machine is busy. Every command that had begun has to
come back with all of its output, byte for byte, and its exit code, and may not run twice. Half of
them print more than fits into a result. `KILLS=20` makes it shorter.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.terminal import HOLDFAST

KILLS = int(os.environ.get("KILLS", "200"))
AT_ONCE = 4
STEPS = 20
"""Of a command, with a short sleep after each: it takes about a second."""
PATIENCE_S = 300.0


def run() -> list[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        rounds = [Path(folder) / str(number) for number in range(KILLS)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = Counter(pool.map(_round, rounds, range(KILLS)))
    begun = KILLS - found["not begun"]
    whole = found["whole"] + found["whole, ended before the kill"]
    print(f"      {KILLS} kills: {dict(sorted(found.items()))}", flush=True)
    return [
        (f"commands not recovered, of {begun} that had begun", begun - whole, 0),
        ("of them, commands that ran twice", found["ran twice"], 0),
    ]


def _round(folder: Path, number: int) -> str:
    """Kill one run, continue it, and say what became of its command."""
    rng, (home, work) = random.Random(number), (folder / "home", folder / "work")
    for place in (home, work):
        place.mkdir(parents=True)
    lines, code = (1000 if number % 2 else 10), 1 + number % 100
    command = (
        f"echo x >> begun; for i in $(seq {STEPS}); do seq -f $i.%g {lines}; sleep 0.05; done;"
        f" exit {code}"
    )
    expected = "".join(f"{i}.{n}\n" for i in range(1, STEPS + 1) for n in range(1, lines + 1))
    script = folder / "script.toml"
    script.write_text(
        '[[turn]]\ntext = "Running."\n'
        f'tools = [{{name = "run_command", input = {{command = {json.dumps(command)}}}}}]\n'
        '[[turn]]\ntext = "Done."\n'
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
    env |= {"HOLDFAST_HOME": str(home), "HOME": str(home)}
    first = subprocess.Popen(
        [*HOLDFAST, "--practice-script", str(script), "-y", "-p", "go"],
        cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if number % 5:  # else while it starts
        until = time.monotonic() + PATIENCE_S
        while not (work / "begun").exists() and time.monotonic() < until:
            time.sleep(0.005)
    time.sleep(rng.uniform(0, 1.5 if number % 5 else 5.0))
    ended = first.poll() is not None
    first.kill()
    first.wait()
    begun = (work / "begun").exists()
    subprocess.run(
        [*HOLDFAST, "--practice", "-p", "-c", "list the files"],
        cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    if not begun and not (work / "begun").exists():
        return "not begun"
    if len((work / "begun").read_text().split()) > 1:
        return "ran twice"
    results = [r for r in _records(home) if r["type"] == "tool_result" and _is_ours(r)]
    whole = len(results) == 1 and _printed(results[0]) == expected
    if whole and results[0]["details"].get("exit_code") == code:
        return "whole, ended before the kill" if ended else "whole"
    said = [(r.get("summary"), r["details"].get("exit_code")) for r in results]
    sys.stderr.write(f"round {number}: {said}\n")
    return "lost"


def _records(home: Path) -> list[dict[str, Any]]:
    files = sorted((home / "data" / "sessions").glob("*/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def _is_ours(record: dict[str, Any]) -> bool:
    return record.get("name") == "run_command"


def _printed(record: dict[str, Any]) -> str:
    """All that the command printed: of a long output, what is in its full copy."""
    receipt: dict[str, Any] = record.get("receipt") or {}
    if path := receipt.get("path"):
        return Path(path).read_text()
    text = "".join(str(block.get("text", "")) for block in record["content"])
    return text.rpartition("[exit code")[0]
