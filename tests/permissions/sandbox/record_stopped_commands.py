"""Record what everyday commands print where they may only read.

`python -m tests.permissions.sandbox.record_stopped_commands` runs each command of
`stopped_commands.txt` in a project of its own, with each engine that runs here, and writes
`stopped_commands.json`; with the word `new` only those that have no record yet. A command whose
program is missing keeps its record.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from tui.permissions.risk_tiers import names
from tui.permissions.sandbox.engine import ENGINES, Engine, Sandbox, probe, run_to_end
from tui.permissions.sandbox.git_walls import git_places, with_git
from tui.permissions.sandbox.walls import Level, Walls

HERE = Path(__file__).parent
TABLE = HERE / "stopped_commands.txt"
RECORDS = HERE / "stopped_commands.json"
PROJECT = HERE / "stopped_commands.sh"
_SHOWN = 1200
"""Characters of an output, from its end."""
_VERSIONS = names(
    "bash git gcc make cmake cargo rustc javac node npm python3 perl ruby vim tar zip patch"
)


Said: TypeAlias = tuple[int, str]
"""Exit code and output."""


class Records(msgspec.Struct):
    """What the programs of these versions printed: of each command by engine, where they differ."""

    versions: list[str]
    commands: dict[str, dict[str, Said]]


def known() -> Records:
    """The records that there are."""
    return msgspec.json.decode(RECORDS.read_bytes(), type=Records)


@dataclass(frozen=True, slots=True)
class Expected:
    """A command, and what a person is asked because of it: `before` it runs, or after."""

    command: str
    level: Level | None
    before: bool


def table() -> list[Expected]:
    """The commands; ` ⏎ ` stands for a newline."""
    found: list[Expected] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            told, command = line[1:].split("] ", 1)
            before = told.startswith("before ")
            named = told.removeprefix("before ")
            level = None if named == "nothing" else Level(named)
            found.append(Expected(command.replace(" ⏎ ", "\n"), level, before))
    return found


@dataclass(frozen=True, slots=True)
class Project:
    """A small project of several languages, with a repository."""

    walls: Walls
    environment: Mapping[str, str]

    def generic(self, text: str) -> str:
        """A text without the paths of this machine, and without hosts that were asked for."""
        for name, place in (("@WS@", self.walls.workspace), ("@HOME@", self.walls.home)):
            text = text.replace(str(place), name)
        text = re.sub(rf"(?:\.\./)*/?{re.escape(sys.prefix.lstrip('/'))}", "@VENV@", text)
        text = re.sub(r"\bregistry\.[a-z.]+\b", "registry.example.org", text)
        return re.sub(r"/(?:root|home/\w+)/\.(?:pyenv|rustup|cargo)\b", "/opt/tools", text)


@contextmanager
def project() -> Generator[Project]:
    """A copy of it in a folder that is removed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        base = Path(made).resolve()
        workspace, home = base / "work", base / "home"
        for folder in (home, base / "state"):
            folder.mkdir()
        named = ("PATH", "USER")
        environment = {
            **{name: os.environ[name] for name in named if name in os.environ},
            "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "RUSTUP_HOME": str(Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")),
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@b",
        }  # fmt: skip
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        shutil.copytree(_template(tuple(environment.items())), workspace, symlinks=True)
        walls = Walls(
            workspace=workspace, session=base / "state/session", cache=base / "state/cache",
            home=home, search_path=environment["PATH"],
        )  # fmt: skip
        walls = with_git(walls, git_places(workspace, environment))
        yield Project(walls, environment)


_made: list[tempfile.TemporaryDirectory[str]] = []


def _template(environment: tuple[tuple[str, str], ...]) -> Path:
    """The project that the others are copies of."""
    if not _made:
        _made.append(tempfile.TemporaryDirectory())
        at = _made[0].name
        subprocess.run(["bash", "-e", PROJECT], cwd=at, env=dict(environment), check=True)
    return Path(_made[0].name)


async def run(
    sandbox: Sandbox, command: str, level: Level = Level.READ_ONLY, **settings: str
) -> tuple[int, str]:
    """Exit code and generic output of a command in a project of its own."""
    with project() as made:
        argv = [shutil.which("bash") or "/bin/sh", "-c", command]
        environment = {**made.environment, **settings}
        async with asyncio.timeout(90):
            code, output = await run_to_end(sandbox, argv, made.walls, level, environment)
        return code, made.generic(output)[-_SHOWN:]


def is_missing(code: int, output: str) -> bool:
    return code == 127 and "not found" in output


def _version(program: str) -> str:
    option = "-version" if program == "javac" else "--version"
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return next(iter((said.stdout or said.stderr).strip().splitlines()), "")


async def _record(*, only_new: bool) -> None:
    with project() as made:
        engines = [engine for engine in ENGINES if (await probe(engine, made.walls)).ok]
    before = known().commands if RECORDS.exists() else {}
    versions = [found for name in _VERSIONS if shutil.which(name) and (found := _version(name))]
    said: dict[str, dict[str, Said]] = {}
    for one in table():
        if one.before:
            continue
        said[one.command] = before.get(one.command, {})
        if not (only_new and said[one.command]):
            said[one.command] = await _said(one.command, engines) or said[one.command]
        kept = {**said, **(before if only_new else {}), **said}
        text = json.dumps({"versions": versions, "commands": kept}, indent=1, ensure_ascii=False)
        RECORDS.write_text(f"{text}\n", encoding="utf-8")


async def _said(command: str, engines: list[Engine]) -> dict[str, Said]:
    """Code and output with each engine, where they differ; nothing where a program is missing."""
    records: dict[str, Said] = {}
    for engine in engines:
        sandbox = Sandbox(engine)
        try:
            code, output = await run(sandbox, command)
        except TimeoutError:
            code, output = 124, "(it did not end)"
        finally:
            await asyncio.to_thread(sandbox.close)
        if is_missing(code, output):
            return {}
        if (code, output) not in records.values():
            records[engine.value] = (code, output)
    return records


if __name__ == "__main__":
    asyncio.run(_record(only_new="new" in sys.argv[1:]))
