"""What each feature costs by itself that sits in the way of a prompt, a token, a key or a command:
the program with that one on, over the same with all of them off, in a pty.

What can't be switched off (the record, stale files, the search index) is in both, and in the rows
of its own benchmark. Figures are medians; processor time is that of the program without children.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.process_cost import cpu_s
from tests.benchmarks.streamed import essay, playing
from tests.support.terminal import HOLDFAST, Terminal

RUNS: Final = 3
PER_SECOND, SECONDS = 100, 3
KEYS: Final = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""
FILES, SKILLS = 200, 40
LITTLE_S: Final = 0.05
"""What a feature may cost in any case: figures are so small that chance is in a ratio of them."""

Settings = Mapping[str, Mapping[str, Any]]
"""Keys and values by table; "" has those in none."""

OFF: Final[Settings] = {
    "": {"titles": "prompt", "notify": "off"},
    "checkpoints": {"mode": "off"},
    "diagnostics": {"mode": "off"},
    "sandbox": {"engine": "off"},
    "terminal": {"title": "off", "progress": "off"},
}


@dataclass(frozen=True, slots=True)
class Feature:
    """Settings, files and options that switch it on, what is typed for it, and what a command may
    take of the time of one without it."""

    on: Settings = field(default_factory=dict[str, Mapping[str, Any]])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Sequence[str] = ()
    typed: str = ""
    command: float = 1.4


def _hooks(*events: str) -> str:
    each = [{"hooks": [{"type": "command", "command": "true"}]}]
    return json.dumps({"hooks": dict.fromkeys(events, each)})


def _skill(number: int) -> str:
    return f"---\nname: skill{number}\ndescription: What to do in case {number}.\n---\nDo it.\n"


FEATURES: Final[Mapping[str, Feature]] = {
    "checkpoints": Feature({"checkpoints": {"mode": "on"}}, command=3),
    "the sandbox": Feature({"sandbox": {"engine": "auto"}}, command=2),
    "checks of edits": Feature({"diagnostics": {"mode": "auto"}}),
    "MCP servers": Feature(
        {f"mcp.{name}": {"command": [sys.executable, "-m", f"mcp_server_{name}"]}
         for name in ("time", "git")}
    ),
    "hooks": Feature(
        files={"config/hooks.json": _hooks("UserPromptSubmit", "PreToolUse", "PostToolUse")},
        command=4,
    ),
    "titles": Feature({"": {"titles": "model"}}),
    "redaction": Feature({"": {"redact": "record"}}),
    "notifications": Feature(
        {"": {"notify": "auto"}, "terminal": {"title": "on", "progress": "on"}}
    ),
    "a status line": Feature({"status": {"command": "echo mine", "interval_s": 1}}),
    "vim mode": Feature({"": {"vim": True}}),
    "skills": Feature(
        files={f"config/skills/skill{n}/SKILL.md": _skill(n) for n in range(SKILLS)}
    ),
    "a worktree": Feature(options=("--worktree",)),
    "the verbose view": Feature(typed="/verbose on\r"),
    "the output open": Feature(typed="\x1bOS"),
}  # fmt: skip


class _Cost(NamedTuple):
    """Seconds of a first key, a prompt, a command and a key meanwhile; processor seconds of the
    streaming."""

    first_key: float
    prompt: float
    command: float
    key: float
    stream: float


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each feature and way."""
    plain = _median([_cost(Feature()) for _ in range(RUNS)])
    rows = list[tuple[str, float, float]]()
    for name, feature in FEATURES.items():
        taken = _median([_cost(feature) for _ in range(RUNS)])
        allowed = _Cost(1.3, 1.3, feature.command, 1.4, 1.3)
        for what, on, off, most in zip(_Cost._fields, taken, plain, allowed, strict=True):
            shown = f"{name}, {what.replace('_', ' ')}: {1e3 * on:.1f} ÷ {1e3 * off:.1f} ms"
            rows.append((shown, on / (off + (0 if what == "key" else LITTLE_S)), most))
    return rows


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(*map(statistics.median, zip(*costs, strict=True)))


def _cost(feature: Feature) -> _Cost:
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder,
        _started(Path(folder), feature) as screen,
    ):
        began = time.perf_counter()
        screen.type("x")  # the terminal itself echoes it, too: it counts behind the prompt's sign
        while "› x" not in screen.text:
            screen.read(0.001)
        first_key = time.perf_counter() - began
        screen.type("\x15")
        screen.listen(0.5)
        _answered(screen, "ready")
        if feature.typed:
            screen.type(feature.typed)
            screen.listen(0.5)
        prompt = _answered(screen, "first answer")
        _answered(screen, "second answer")
        command = min(_answered(screen, f"{name} answer") for name in ("third", "fourth"))
        before = cpu_s(screen.process.pid)
        screen.type("go\r")
        screen.wait_for("answering")
        keys = list[float]()
        for key in KEYS:
            keys.append(screen.echo(key))
            screen.listen(SECONDS / len(KEYS))
        return _Cost(
            first_key, prompt, command, statistics.median(keys), cpu_s(screen.process.pid) - before
        )


@contextmanager
def _started(home: Path, feature: Feature) -> Generator[Terminal]:
    work = home / "work"
    for number in range(FILES):
        (work / f"p{number % 10}").mkdir(parents=True, exist_ok=True)
        (work / f"p{number % 10}" / f"{number}.py").write_text(f"# {number}\n" * 100)
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    settings = {table: {**OFF.get(table, {}), **feature.on.get(table, {})}
                for table in dict.fromkeys([*OFF, *feature.on])}  # fmt: skip
    files = {"config/config.toml": "".join(map(_table, settings.items())), **feature.files}
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    call = {"tools": [{"name": "run_command", "input": {"command": "touch made"}}]}
    commands = (
        turn
        for name in ("second", "third", "fourth")
        for turn in (call, {"text": f"{name} answer"})
    )
    text = essay(8 * PER_SECOND * SECONDS)
    turns = [{"text": "ready"}, {"text": "first answer"}, *commands,
             {"text": text, "piece": 4, "every_s": 1 / PER_SECOND}]  # fmt: skip
    with playing(home, turns) as url:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "HOLDFAST"))}
        env |= {"HOLDFAST_HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
        with Terminal(
            [*HOLDFAST, "--yolo", *feature.options], cwd=work, env=env, columns=120, rows=40
        ) as screen:
            yield screen


def _table(table: tuple[str, Mapping[str, Any]]) -> str:
    name, values = table
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
    return "".join([*([f"[{name}]\n"] if name else []), *lines])


def _answered(screen: Terminal, answer: str) -> float:
    """Seconds from Enter to an answer that is on the screen."""
    screen.forget()
    began = time.perf_counter()
    screen.type("go\r")
    screen.wait_for(answer)
    took = time.perf_counter() - began
    screen.listen(0.3)
    return took
