"""Kills the real program, its keepers or all of it at random moments around its commands, starts it
again until it is done, and counts how often each command ran.

    python -m tests.support.killed_programs KIND COUNT FOLDER [SEED]

KIND is a way in which commands run: `run` (task files), `print`, `background` (--bg),
`sub-agent`, `jobs` (in the background); on the screen `moved` (to the background, with Ctrl+B) and
`own` (the person's, with `!`, moved too). The model is asked for nothing twice: each call that it
makes has a command of its own, which leaves its name in a file when it begins and when it ends.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Condition
from typing import Final

from tests.support.preloaded import SCREEN, Process, start
from tests.support.server_script import Json, Script
from tests.support.serving import serving
from tests.support.terminal import HOLDFAST, Terminal
from tui.app import background
from tui.context.repair import INTERRUPTED
from tui.core.clock import SystemClock
from tui.core.facts.work import END_UNKNOWN
from tui.core.messages import blocks_of, object_of, string_of, tool_calls
from tui.core.paths import folders
from tui.core.process_birth import born
from tui.keeper.command import command_folders, lives, note
from tui.keeper.folder import STATE

KINDS: Final = ("run", "print", "background", "sub-agent", "jobs", "moved", "own")
_ON_SCREEN: Final = frozenset({"moved", "own"})
WHO: Final = ("driver", "keeper", "command", "all")
"""Who is killed."""
_TASKS: Final = 3
_CALLS: Final = 2
"""Of commands, in each conversation."""
_PATIENCE_S: Final = 120.0
_STARTS: Final = 6


@dataclass(slots=True)
class Model(Script):
    """Answers by what is in the request: so many commands, then a text."""

    place: Path = Path()
    kind: str = "run"
    commands: list[str] = field(default_factory=list[str])
    """The names of those that were asked for."""
    asked: Condition = field(default_factory=Condition)

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        messages: list[Json] = (body or {}).get("messages", [])
        tools: set[str] = {str(tool.get("name")) for tool in (body or {}).get("tools", [])}
        called = [name for message in messages for name in _called(message)]
        turn: Json = {"text": "All is done."}
        with self.asked:
            number = self._turn = self._turn + 1
            if "run_command" not in tools:
                pass
            elif self.kind == "sub-agent" and "task" in tools:
                if "task" not in called:
                    asked = {"agent": "general", "description": "look", "prompt": "do it"}
                    turn = {"tools": [{"name": "task", "input": asked}]}
            elif self.kind != "own" and called.count("run_command") < _CALLS:
                turn = {"tools": [{"name": "run_command", "input": self.command()}]}
            self.asked.notify_all()
        return turn, None, number

    def command(self) -> Json:
        """One that nobody has asked for before."""
        name = f"c{len(self.commands)}"
        self.commands.append(name)
        marks = marks_in(self.place, self.kind)
        line = f"echo {name} >> {marks}/began; sleep 0.5; echo {name} >> {marks}/ended"
        return {"command": line} | ({"background": True} if self.kind == "jobs" else {})

    def wait_for(self, count: int, seconds: float) -> bool:
        """Until so many commands were asked for."""
        with self.asked:
            return self.asked.wait_for(lambda: len(self.commands) >= count, seconds)


def marks_in(place: Path, kind: str) -> Path:
    """Where commands leave their names: in the workspace, where walls are around them."""
    return place if kind == "run" else place / "work"


def _called(message: Json) -> list[str]:
    return [str(block["name"]) for block in tool_calls(blocks_of(message.get("content")))]


@dataclass(slots=True)
class Play:
    """One program that is killed, and those after it."""

    place: Path
    kind: str
    make: random.Random
    model: Model
    url: str
    killed: list[str] = field(default_factory=list[str])
    starts: int = 0

    @property
    def work(self) -> Path:
        return self.place / "work"

    @property
    def marks(self) -> Path:
        return marks_in(self.place, self.kind)

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def env(self) -> dict[str, str]:
        own = {"HOLDFAST_HOME": str(self.home), "HOME": str(self.place)}
        who = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": self.url}
        return {**os.environ, **own, **who}

    def prepare(self) -> None:
        self.work.mkdir(parents=True)
        config = self.home / "config" / "config.toml"
        config.parent.mkdir(parents=True)
        walls = '[sandbox]\nengine = "off"\n' if self.kind == "run" else ""
        config.write_text(f'titles = "prompt"\n{walls}')
        (self.work / "README.md").write_text("# Demo\n")
        tasks = "".join(f"- [ ] make {number}\n" for number in range(_TASKS))
        (self.work / "TASKS.md").write_text(tasks)
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
            subprocess.run(["git", *who, *words], cwd=self.work, check=True, env=self.env)

    def words(self) -> list[str]:
        """The command line of the next start."""
        if self.kind == "run":
            return ["run", "TASKS.md", "--headless", "--yolo", "--json"]
        if self.starts:
            return ["-c", "-y", "-p", "Continue."]
        if self.kind in _ON_SCREEN:
            return ["-y"]
        return ["-y", "--bg", "do it"] if self.kind == "background" else ["-y", "-p", "do it"]

    def start(self) -> Process:
        words = self.words()
        self.starts += 1
        if words == ["-y"]:
            return self._on_screen(words)
        with (self.place / f"out{self.starts}").open("wb") as out:
            return start(
                [*HOLDFAST, *words], cwd=self.work, env=self.env,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def _on_screen(self, words: list[str]) -> Process:
        """Start a command, move it to the background, and kill around the move."""
        with Terminal([*HOLDFAST, *words], cwd=self.work, env=self.env, preload=SCREEN) as screen:
            screen.wait_for("Explain this project")
            line = string_of(self.model.command()["command"]) if self.kind == "own" else ""
            screen.type(f"!{line}\r" if line else "do it\r")
            self._read(screen, lambda: bool(self._keepers()), 20.0)
            for _ in range(self.make.randint(1, 2)):
                self._read(screen, lambda: False, self.make.random() * 0.3)
                screen.type("\x02")
            self._read(screen, lambda: False, self.make.choice((0.0, 0.05, 0.4)))
            self.kill(screen.process, self.make.choice(("driver", "driver", "all", "keeper")))
            self._read(screen, lambda: False, 0.5)
            if screen.process.poll() is None:
                screen.kill()
            return screen.process

    def _read(self, screen: Terminal, done: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            screen.read(0.02)

    def _folders(self) -> list[Path]:
        running = self.home / "data" / "running"
        places = list(running.iterdir()) if running.is_dir() else []
        return [folder for place in places for folder in command_folders(place)]

    def kill(self, process: Process, who: str) -> None:
        """At this moment; a keeper or a command once there is one."""
        if who in {"keeper", "command"}:
            self._until(lambda: bool(self._keepers()), 3.0)
        keepers = self._keepers()
        victims = [number for one in keepers if isinstance(number := one.get("keeper"), int)]
        commands = [number for one in keepers if isinstance(number := one.get("pid"), int)]
        drivers = self._drivers(process)
        chosen = {
            "driver": drivers,
            "keeper": self.make.sample(victims, min(1, len(victims))),
            "command": self.make.sample(commands, min(1, len(commands))),
            "all": [*drivers, *victims, *commands],
        }[who]
        for number in filter(None, chosen):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.killed.append(f"{who}:{len(chosen)}")

    def _keepers(self) -> list[Json]:
        return [note(folder, STATE) for folder in self._folders() if lives(folder)]

    def _drivers(self, process: Process) -> list[int]:
        if self.kind != "background" or self.starts > 1:
            return [process.pid]
        kept = background.sessions(folders(self.env), SystemClock().now())
        return [one.pid for one in kept]

    def run(self) -> None:
        self.prepare()
        kills = self.make.randint(1, 3)
        while self.starts < _STARTS:
            process = self.start()
            if len(self.killed) < kills and process.poll() is None:
                wanted = len(self.model.commands) + self.make.randint(1, 2)
                self.model.wait_for(wanted, 20.0)
                time.sleep(self.make.choice((0.05, 0.3, 1.0, 1.5)) * self.make.random())
                self.kill(process, self.make.choice(WHO))
            process.wait(_PATIENCE_S)
            self._until(partial(self._gone, process))
            if len(self.killed) >= kills and process.returncode == 0 and self.starts > 1:
                break
        self._until(lambda: not any(map(lives, self._folders())))

    def _gone(self, process: Process) -> bool:
        return not any(map(born, self._drivers(process)))

    def _until(self, done: Callable[[], bool], seconds: float = _PATIENCE_S) -> None:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(0.02)

    def results(self) -> dict[str, list[str]]:
        """The recorded results of each command, by its name."""
        found: dict[str, list[str]] = {name: [] for name in self.model.commands}
        for path in (self.home / "data" / "sessions").rglob("*.jsonl"):
            names: dict[str, str] = {}
            for line in path.read_bytes().splitlines():
                with suppress(ValueError):
                    self._take(json.loads(line), names, found)
        return found

    def _take(self, record: Json, names: dict[str, str], found: dict[str, list[str]]) -> None:
        if record.get("type") == "assistant":
            for block in tool_calls(blocks_of(record.get("content"))):
                line = string_of(object_of(block.get("input")).get("command"))
                if said := re.match(r"echo (c\d+) ", line):
                    names[block["id"]] = said[1]
        elif record.get("type") == "tool_result" and record.get("call_id") in names:
            found[names[record["call_id"]]].append(json.dumps(record.get("content")))
        elif record.get("type") == "job_ended" and record.get("call_id") in names:
            found.setdefault(f"job {names[record['call_id']]}", []).append(str(record.get("state")))

    def faults(self) -> list[str]:
        """What may not be."""
        began, ended = (Counter(_lines(self.marks / name)) for name in ("began", "ended"))
        said = [f"{name} ran {count} times" for name, count in began.items() if count > 1]
        for name, results in self.results().items():
            if name.startswith("job ") or not results:
                continue
            text = results[0]
            succeeded = "exit code 0" in text
            said += [f"{name} has {len(results)} results"] if len(set(results)) > 1 else []
            if succeeded and not ended[name]:
                said.append(f"{name} is said to have succeeded")
            if "exit code" not in text and not _is_honest(text):
                said.append(f"{name}: {text[:200]}")
        for path in self.place.glob("out*"):
            said += [f"{path.name}: a traceback"] if b"Traceback" in path.read_bytes() else []
        return said


def _is_honest(text: str) -> bool:
    said = (INTERRUPTED[:40], END_UNKNOWN, "killed by", "as job-", "may or may not", "stopped")
    return any(words in text for words in said)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def play(place: Path, kind: str, seed: int) -> tuple[Play, list[str]]:
    """One program and its kills. Returns it with its faults."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    model = Model(place=place, kind=kind, any_calls=True)
    with serving(model) as server:
        made = Play(place, kind, random.Random(seed), model, server.url)
        made.run()
        return made, made.faults()


def main() -> int:
    """So many of one kind, and a table of what became of their commands."""
    kind, count, place = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    outcomes, kills, bad = Counter[str](), Counter[str](), 0
    for seed in range(first, first + count):
        made, faults = play(place, kind, seed)
        began = Counter(_lines(made.marks / "began"))
        kills.update(made.killed)
        for name, results in made.results().items():
            text = re.sub(r"\d+(?:\.\d+)?", "N", results[-1][-90:] if results else "no result")
            outcomes[f"ran {began[name.removeprefix('job ')]}x: {name.split()[0][:3]} {text}"] += 1
        bad += bool(faults)
        if faults:
            shutil.copytree(place, place.with_name(f"{place.name}-{kind}-{seed}"), symlinks=True)
            print(f"FAULT seed {seed} {made.killed}: {faults}", flush=True)
    for words, times in outcomes.most_common(30):
        print(f"{times:5} {words}")
    print(f"{kind}: {count} programs, {sum(kills.values())} kills {dict(kills)}, {bad} faults")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
