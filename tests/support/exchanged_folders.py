"""A folder is exchanged with a link to somebody's home all the time, while everything that reads a
workspace walks it: nothing of the home may come out.

By hand, from the root of the repository, as root or another user; ENGINE is `none` or one of the
sandbox's (`bubblewrap`, `launcher`, `landlock`):

    python -m tests.support.exchanged_folders ENGINE SECONDS FOLDER

It prints how often each reader was called, read what is inside, and let something out, and fails if
one did.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import os
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias

from tests.support.agents import events_of, make_agent
from tests.support.folder_picture import picture
from tests.support.provider import ScriptedProvider, call, say
from tests.tools.folder import Folder
from tui.context import project_files
from tui.core.config import SandboxSettings
from tui.core.errors import HoldfastError
from tui.core.git.checkout import Checkout
from tui.core.git.storing import store
from tui.core.git.worktree_state import changed_files
from tui.core.messages import Block
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.engine import Engine
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore
from tui.settings import agent_definitions, rule_files, user_commands
from tui.settings.skills import InstalledSkills
from tui.tools.base import Tool
from tui.tools.edit_file import EditFile
from tui.tools.find_by_name import FindByName
from tui.tools.grep_search import GrepSearch
from tui.tools.list_dir import ListDir
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

Reader: TypeAlias = Callable[[], Awaitable[str]]
"""Returns all that has come out."""

MARK: Final = "the-mark-of-a-secret"
NAME: Final = "only-outside"
FLIP: Final = """
import ctypes, itertools, time
libc = ctypes.CDLL(None)
print("ready", flush=True)
for wait in itertools.cycle((0.0002, 0.0005, 0.001, 0.003)):
    end = time.perf_counter() + wait
    while time.perf_counter() < end:
        pass
    libc.renameat2(-100, b"deep", -100, b"link", 2)
"""
"""Exchanges `deep` and `link` where it is started, until it is killed."""

_EDIT: Final = {"old_text": "in", "new_text": "In"}
_TOOLS: Final[dict[str, tuple[Tool[Any], dict[str, Any]]]] = {
    "grep_search": (GrepSearch(), {"pattern": "inside|mark"}),
    "grep_search of the folder": (GrepSearch(), {"pattern": "inside|mark", "path": "deep"}),
    "find_by_name": (FindByName(), {"pattern": "*on*"}),
    "read_file": (ReadFile(), {"path": "deep/config"}),
    "list_dir": (ListDir(), {"path": "deep"}),
    "write_file": (WriteFile(), {"path": "deep/new", "content": "x"}),
    "edit_file": (
        EditFile(),
        {"path": "deep/config", "edits": [{"old_text": "in", "new_text": "I"}]},
    ),
}
_ROUNDS: Final = 20
"""With one agent, whose history grows."""
_LINES: Final = (
    "cat deep/config", "cat deep/d1/file deep/d2/file", "cat < deep/config", "ls deep",
    "head -n 3 deep/config", "cd deep && cat config", "git diff --no-index file.txt deep/config",
)  # fmt: skip
"""Commands that only read: nobody is asked about them."""


def picture_of(text: str) -> bytes:
    """A PNG of one pixel that holds a text."""

    def part(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    parts = (
        part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        part(b"tEXt", b"Comment\0" + text.encode()),
        part(b"IDAT", zlib.compress(b"\0\0")),
        part(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def fill(work: Path, home: Path) -> None:
    """Make the folder `deep` in a workspace, the link to a home folder that looks alike, and
    files of each kind that is read by itself."""
    for place, text in ((work / "deep", "inside"), (home, MARK)):
        for number in range(20):
            (place / f"d{number}").mkdir(parents=True, exist_ok=True)
            (place / f"d{number}/file").write_text(f"{text}\n")
        (place / "config").write_text(f"{text}\n")
        (place / "note.md").write_text(f"---\ndescription: {text}\n---\n{text}\n")
        for name in ("AGENTS.md", "MEMORY.md"):
            (place / name).write_text(f"{text}\n")
        (place / "picture.png").write_bytes(picture_of(text))
        (place / "SKILL.md").write_text(f"---\nname: one\ndescription: {text}\n---\n{text}\n")
    (home / NAME).write_text(MARK)
    (home / f"d1/{NAME}").write_text(MARK)
    (work / "link").symlink_to(home)


@contextmanager
def exchanging(work: Path) -> Generator[None]:
    """While the block runs, the folder and the link are exchanged all the time."""
    with subprocess.Popen([sys.executable, "-c", FLIP], cwd=work, stdout=subprocess.PIPE) as it:
        assert it.stdout is not None
        it.stdout.readline()
        try:
            yield
        finally:
            it.kill()


class Readers:
    """Everything that reads a workspace, around one folder."""

    def __init__(self, base: Path, confinement: Confinement | None) -> None:
        self.work = base / "work"
        self.provider, self._calls = ScriptedProvider(), 0
        self.agent = make_agent(self.work, self.provider, confinement=confinement)
        self.home = folders({"HOLDFAST_HOME": str(base / "own")})
        self.checkpoints = CheckpointStore(base / "data" / "checkpoints.sqlite3", self.work)
        self.index = base / "index"
        changes: dict[str, Any] = {}
        if confinement is not None:
            changes["start_reader"] = confinement.start_reader
        self.folder = Folder(self.work, changes=changes)
        self.all: dict[str, Reader] = {
            **{name: self._tool(*each) for name, each in _TOOLS.items()},
            "a name after @": self._mentioned,
            "an image after @": lambda: self._said("See @deep/picture.png", say("done")),
            "an image by read_file": self._seen,
            "instructions and memory": lambda: asyncio.to_thread(self._project_files),
            **{f"$ {line}": self._command(line) for line in _LINES},
            "checkpoints": lambda: asyncio.to_thread(self._checkpoint),
            "git status": lambda: asyncio.to_thread(self._git),
            "files for git": lambda: asyncio.to_thread(self._added),
            "skills, agents, commands, rules": lambda: asyncio.to_thread(self._loaded),
        }

    async def close(self) -> None:
        await self.agent.close()
        self.checkpoints.close()

    def _tool(self, tool: Tool[Any], arguments: Mapping[str, Any]) -> Reader:
        async def read() -> str:
            return await self.folder.text(tool, **arguments)

        return read

    async def _said(self, prompt: str, *answers: list[Block]) -> str:
        """The results of tools and the images in a turn of an agent in ask mode, whom nobody
        answers."""
        self.provider.answers += answers
        await events_of(self.agent, prompt)
        blocks: list[Block] = self.provider.requests[-1].messages[-1]["content"]
        results = json.dumps([block for block in blocks if block["type"] == "tool_result"])
        return results + "".join(_images_in(blocks))

    async def _mentioned(self) -> str:
        named = "@deep/config @deep/d1/file @deep/d1 and @deep"
        return await self._said(f"Look at {named}", say("done"))

    def _command(self, line: str) -> Reader:
        return lambda: self._asked("run_command", command=line)

    def _seen(self) -> Awaitable[str]:
        return self._asked("read_file", path="deep/picture.png")

    async def _asked(self, tool: str, **arguments: Any) -> str:
        self._calls += 1
        asked = call(tool, f"toolu_{self._calls}", **arguments)
        return await self._said("go", [asked], say("done"))

    def _checkpoint(self) -> str:
        first, now = self.checkpoints.take(), self.checkpoints.take()
        changes = self.checkpoints.difference(first.id, now.id)
        restore(changes, self.checkpoints)
        kept = [one for change in changes for one in (change.old, change.new) if one is not None]
        stored = [self.checkpoints.content(one.digest) for one in kept if one.digest]
        return "\n".join([*(str(change.path) for change in changes), *map(repr, stored)])

    def _git(self) -> str:
        return "\n".join(changed_files(Checkout.of(self.work), "all"))

    def _added(self) -> str:
        """As runs of tasks and worktrees keep what was changed."""
        checkout, env = Checkout.of(self.work), {"GIT_INDEX_FILE": str(self.index)}
        names = [f"deep/{name}" for name in (NAME, "config", *(f"d{n}/file" for n in range(20)))]
        store(checkout, (*changed_files(checkout, "all"), *names), env)
        listed = checkout.git("ls-files", "--stage", env=env)
        objects = {line.split()[1] for line in listed.splitlines()}
        return listed + "".join(checkout.git("cat-file", "blob", one) for one in objects)

    def _project_files(self) -> str:
        here = Workspace.at(self.work, ceiling=self.work)
        below = project_files.nested(here, [self.work / "deep/config"])
        found = project_files.find(here, self.home, allows=_trusted)
        return repr((found.sources, below))

    def _loaded(self) -> str:
        deep = self.work / "deep"
        commands = user_commands.load([deep], counts=_trusted, workspace=self.work)
        agents = agent_definitions.load([], _trusted, brought=[deep], workspace=self.work)
        rules = rule_files.load(self.work, self.home, _trusted)
        skills = InstalledSkills(self.home, self.work, _trusted)
        skills.load()
        said = [skills.instructions(name) for name in skills.skills]
        return repr((commands, agents, rules, skills, said))


def _trusted(_: object, data: bytes) -> bool:
    """All that lies in the workspace: what was trusted is known by its content."""
    return MARK.encode() not in data


def _images_in(blocks: list[Block]) -> Iterator[str]:
    """What the images hold, those of results as well."""
    for block in blocks:
        if block["type"] == "tool_result" and not isinstance(block["content"], str):
            yield from _images_in(block["content"])
        if block["type"] == "image":
            yield binascii.a2b_base64(block["source"]["data"]).decode("latin-1")


async def confined(base: Path, engine: str) -> Confinement | None:
    """The sandbox around the workspace; None for `none`. Raises HoldfastError where this machine
    cannot have the engine."""
    if engine == "none":
        return None
    made = Confinement(
        SandboxSettings(engine=Engine(engine).value),
        Workspace.at(base / "work"),
        base / "session",
        base / "cache",
        environment={**os.environ, "HOME": str(base / "home")},
    )
    if await made.engine() is None:
        raise HoldfastError(f"{engine}: {made.reason}")
    return made


@dataclass(slots=True)
class Outcome:
    """How often each reader was called, how often it read what is inside, and how often what is
    outside came out."""

    calls: Counter[str] = field(default_factory=Counter[str])
    inside: Counter[str] = field(default_factory=Counter[str])
    leaks: Counter[str] = field(default_factory=Counter[str])
    home_changed: bool = False

    @property
    def faults(self) -> int:
        return self.leaks.total() + self.home_changed


async def attack(base: Path, engine: str, seconds: float) -> Outcome:
    """Call each reader in turn for so long."""
    found, until = Outcome(), monotonic() + seconds
    before = picture(base / "home")
    with exchanging(base / "work"):
        while monotonic() < until or not found.calls:
            readers = Readers(base, await confined(base, engine))
            try:
                await readers.agent.start()
                await _rounds(readers, found, until)
            finally:
                await readers.close()
    found.home_changed = picture(base / "home") != before
    return found


async def _rounds(readers: Readers, found: Outcome, until: float) -> None:
    for _ in range(_ROUNDS):
        for name, read in readers.all.items():
            text = ""
            with suppress(HoldfastError, OSError):
                text = await read()
            found.calls[name] += 1
            found.inside[name] += "inside" in text or "config" in text
            found.leaks[name] += MARK in text or NAME in text
        if monotonic() >= until:
            return


def make(base: Path) -> None:
    """The workspace, a repository, and the home."""
    work = base / "work"
    work.mkdir(parents=True)
    (base / "session").mkdir()
    (work / "file.txt").write_text("text\n")
    fill(work, base / "home")
    (work / "AGENTS.md").write_text("See @deep/note.md\n")
    (work / "MEMORY.md").symlink_to("deep/MEMORY.md")
    for place in ("skills", "rules"):
        (work / ".claude").mkdir(exist_ok=True)
        (work / f".claude/{place}").symlink_to("../deep")
    env = {**os.environ, "HOME": str(base / "home"), "GIT_CONFIG_GLOBAL": os.devnull}
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *who, *words], cwd=work, env=env, check=True)


def main() -> int:
    engine, seconds, base = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    make(base)
    try:
        found = asyncio.run(attack(base, engine, seconds))
    except HoldfastError as error:
        print(f"not on this machine: {error}")
        return 2
    for name, count in found.calls.items():
        print(f"{count:6} {found.inside[name]:6} read {found.leaks[name]:3} leaked  {name}")
    print(f"{found.calls.total()} calls, {engine}: {found.leaks.total()} leaks", end="")
    print(", and the home was changed" if found.home_changed else "")
    return bool(found.faults)


if __name__ == "__main__":
    sys.exit(main())
