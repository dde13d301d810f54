"""The sessions of the corpus: dealt out of the material, imported, and played by real agents.

The same in every run and on every machine: seeds, a fake clock, and `steady` in the place of ids
that are drawn and of folders.
"""

from __future__ import annotations

import asyncio
import copy
import fcntl
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args
from unittest.mock import patch

import msgspec
from msgspec import structs

from tests.support import opencode_database
from tests.support.foreign import claude_code, codex, compacted_claude_code, lines, pi
from tests.support.foreign_damage import damaged
from tests.support.generated_session import GeneratedSession
from tests.support.odd_records import VALUES, places
from tui import __version__
from tui.core import facts
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.provider.base import Request
from tui.session import importers, reader
from tui.session.reader import LoadedSession

Json = dict[str, Any]

HERE: Final = Path(__file__).parent
DEALT: Final = 175
DEALT_FROM: Final = {"records.jsonl": 90, "events.jsonl": 131}
"""The lines that these sessions are dealt from. Each line below has sessions of its own, so that
one that is added changes no other session."""
_OWN_SESSIONS: Final = 3
PLAYED: Final = 4
_TURNS_PLAYED: Final = 3
PLAYED_ON: Final = "linux"
"""Where sessions are played: the requests name folder and system, and the tokens of both count."""
_HOME: Final = Path("/tmp/holdfast-golden")
_CHANGED: Final = 1_770_000_000
"""When an imported file was changed."""
_HEX: Final = re.compile(
    r'(?<="messageId":")[0-9a-f]+|\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,64}\b'
)
_NOTICE_ID: Final = re.compile(r'"messageId":"[0-9a-f]+",(?="_meta")')
"""Of a line of its own, which nothing else has."""
_CHANGED_AT: Final = re.compile(r'("mtime_ns":)\d+')

EVENTS: Final[dict[str, type[Fact]]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Fact)
}
"""The classes of events by the type that a line of stream-json has."""


@dataclass
class GoldenSession:
    """A session with what happened in it while it was live. `bodies` are the requests that a real
    agent sent."""

    name: str
    loaded: LoadedSession
    events: list[Fact] = field(default_factory=list[Fact])
    bodies: list[bytes] = field(default_factory=list[bytes])
    folder: str = ""


def event_of(line: Json) -> Fact:
    """The event that a line of stream-json tells."""
    fields = dict(line)
    kind = EVENTS[fields.pop("type")]
    inner = fields.pop("event", None) if kind is facts.SubAgentEvent else None
    if "usage" in fields:
        fields["usage"] = Usage.from_json(fields["usage"])
    if inner is not None:
        return facts.SubAgentEvent(fields["id"], fields["name"], event_of(inner))
    # Usage is made above: it reads the API's names, which its own decoder does not.
    return msgspec.convert(fields, kind, from_attributes=True, dec_hook=lambda _, made: made)


def material(name: str) -> list[Json]:
    """The lines of records.jsonl or events.jsonl."""
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


@dataclass
class Deck:
    """Deals cards in an order of chance; each once before any comes again."""

    cards: Sequence[Json]
    chance: random.Random
    least: int = 0
    _left: list[Json] = field(default_factory=list[Json])

    def deal(self, most: int) -> Iterator[Json]:
        for _ in range(self.chance.randint(self.least, most) if self.cards else 0):
            if not self._left:
                self._left = [*self.cards]
                self.chance.shuffle(self._left)
            yield copy.deepcopy(self._left.pop())


def steady(session: GoldenSession, text: str) -> str:
    """A text without what differs from run to run: folders, times of files, the version; and ids
    and hashes, which are numbered as they come."""
    if session.folder:
        text = text.replace(session.folder, "/g").replace(f"holdfast {__version__}", "holdfast 1")
        text = _CHANGED_AT.sub(r"\1 0", text)
    text = _NOTICE_ID.sub("", text)
    seen: dict[str, str] = {}
    return _HEX.sub(lambda one: seen.setdefault(one[0], f"#{len(seen) + 1}"), text)


def _said(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _image() -> Json:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    return {"type": "image", "source": source}


_PROMPTS: Final[tuple[Json, ...]] = (
    {"content": _said("look at a.txt"), "text": "look at a.txt"},
    {"content": _said("fix it\n\nwhat my shell printed"), "text": "fix it"},
    {"content": _said("(continue)")},
    {"content": _said("coverage fell"), "by": "hook"},
    {
        "content": [*_said("see [image 1: a.png 1×1 8 B]"), _image()],
        "text": "see [image 1: a.png 1×1 8 B]",
        "images": ["[image 1: a.png 1×1 8 B]"],
    },
    {"content": _said("one\n" * 25), "text": "one\n" * 25},
)
_THOUGHTS: Final[tuple[Json, ...]] = (
    {"type": "thinking", "thinking": "The file first.", "signature": "c2ln"},
    {"type": "thinking", "thinking": "", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "cmVk"},
)
_PAGE: Final[Json] = {"url": "https://example.org/a", "title": "An article"}
_SEARCH: Final[tuple[Json, ...]] = (
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "alpha"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "encrypted_content": "x", **_PAGE}],
    },
    {
        "type": "text",
        "text": "It is so.",
        "citations": [{"type": "web_search_result_location", "cited_text": "so", **_PAGE}],
    },
)
_CALLS: Final[tuple[tuple[str, Json], ...]] = (
    ("run_command", {"command": "make all"}),
    ("read_file", {"path": "a.txt"}),
    ("edit_file", {"path": "a.py", "old": "a", "new": "b"}),
    ("task", {"agent": "explore", "description": "look for tests", "prompt": "Look."}),
    ("todo_write", {"todos": [{"text": "read", "status": "completed"}]}),
    ("present_plan", {"title": "Plan", "plan": "1. Do it."}),
    ("mcp__docs__find", {"query": "alpha"}),
)
_DIFF: Final = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"
_RESULTS: Final[tuple[Json, ...]] = (
    {"content": _said("alpha\nbeta"), "summary": "2 lines"},
    {"content": _said("line\n" * 30), "summary": "30 lines", "seconds": 2.5},
    {"content": _said("no rule"), "is_error": True, "seconds": 1.0, "summary": "exit 2"},
    {"content": _said("Edited."), "summary": "+1 −1", "display": _DIFF},
    {"content": [*_said("a picture"), _image()], "summary": "image"},
    {
        "content": [{"type": "document", "title": "b.pdf", "source": {"type": "text"}}],
        "summary": "1 page",
    },
    {"content": _said("for the model"), "is_error": True, "summary": "interrupted",
     "details": {"interrupted": True, "partial": "so far"}},
    {
        "content": _said("…"),
        "receipt": {"bytes_total": 70000, "bytes_shown": 50000, "stages": ["clamp"]},
        "details": {"changed_files": ["b.txt"], "exit_code": 0},
    },
    {},
)  # fmt: skip


class _Story:
    """The records of one session as they are told."""

    def __init__(self, number: int, deck: Deck) -> None:
        self.chance = random.Random(f"records {number}")
        self.deck = deck
        head = {"type": "session", "version": 1, "id": f"{number:012d}", "app": "holdfast 1"}
        self.lines: list[Json] = [head | {"created": _at(0), "cwd": "/w"}]
        self.last: str | None = None
        self.named = {"$call": "nowhere", "$result": "gone", "$prompt": "gone"}
        self.named["$compaction"] = "gone"
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            self._turn()

    def _turn(self) -> None:
        draw = self.chance
        self._others(1)
        self.named["$prompt"] = self.tell("user", draw.choice(_PROMPTS))
        self._others(1)
        for _ in range(draw.choice((0, 1, 1))):
            calls = [self._call() for _ in range(draw.choice((1, 1, 2)))]
            thought = draw.sample(_THOUGHTS, draw.randint(0, 1))
            words = _said("I look.") if draw.random() < 0.5 else []
            self._answer([*thought, *words, *(block for _, block in calls)], "tool_use")
            for id_, block in calls:
                self.named["$call"] = id_
                self._others(2)
                if draw.random() < 0.85:
                    fields = {"call_id": id_, "name": block["name"], "is_error": False}
                    made = self.tell("tool_result", fields | draw.choice(_RESULTS))
                    self.named["$result"] = made
        self._others(2)
        if draw.random() < 0.85:
            said = _SEARCH if draw.random() < 0.15 else _said("Done: **alpha**.\n\n- one\n- two")
            self._answer([*said], "end_turn")
        self._others(2)

    def _call(self) -> tuple[str, Json]:
        name, given = self.chance.choice(_CALLS)
        id_ = f"t{len(self.lines)}{self.chance.randint(0, 99)}"
        return id_, {"type": "tool_use", "id": id_, "name": name, "input": given}

    def _answer(self, content: list[Json], stop: str) -> None:
        usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 10}
        of = {"model": "claude-sonnet-5-5", "server": "practice", "usage": usage}
        by = {"by": "mention"} if stop == "tool_use" and self.chance.random() < 0.1 else {}
        self.tell("assistant", {"content": content, **of, "stop_reason": stop, **by})

    def _others(self, most: int) -> None:
        for card in self.deck.deal(most):
            fields = {
                name: self.named.get(value, value) if isinstance(value, str) else value
                for name, value in card.items()
            }
            kind = fields.pop("type")
            id_ = self.tell(kind, fields)
            if kind == "compaction":
                self.named["$compaction"] = id_

    def tell(self, kind: str, fields: Json) -> str:
        number = len(self.lines)
        parent = self.last
        if kind == "rewind":
            place = {line.get("id"): line.get("parent") for line in self.lines[1:]}
            parent = place.get(fields["target"], parent)
        line = {"type": kind, "id": f"r{number}", "parent": parent, "time": _at(number)}
        self.lines.append(line | copy.deepcopy(fields))
        if kind != "draft":
            self.last = f"r{number}"
        return f"r{number}"

    def spoil(self) -> None:
        """Take a field away, or give it a value of another type."""
        draw = self.chance
        line = draw.choice(self.lines[1:])
        *path, last = draw.choice(places(line)[4:] or [("time",)])
        where: Any = line
        for key in path:
            where = where[key]
        if isinstance(where, dict) and draw.random() < 0.4:
            del where[last]
        else:
            where[last] = copy.deepcopy(draw.choice(VALUES))


def _at(number: int) -> str:
    return f"2026-01-02T03:04:{number:02}.000Z"


def _happened(number: int, deck: Deck) -> list[Fact]:
    """The events of one session."""
    draw = random.Random(f"events {number}")
    by_kind: dict[str, list[Json]] = {}
    for card in _first("events.jsonl"):
        by_kind.setdefault(card["type"], []).append(card)

    def one(*kinds: str) -> list[Json]:
        return [draw.choice(by_kind[kind]) for kind in kinds]

    told = [*one("session_started"), *deck.deal(2)]
    for _ in range(draw.choice((1, 1, 1, 2))):
        told += [*one("user_message", "request_sent"), *deck.deal(2)]
        told += one(
            *(["thinking_delta"] if draw.random() < 0.3 else []), "text_delta", "text_delta"
        )
        told += [*deck.deal(1), *one("assistant_message"), *deck.deal(1)]
        for id_ in draw.sample(("t1", "t2", "t4"), draw.randint(0, 2)):
            of = [card for card in by_kind["tool_started"] if card["id"] == id_]
            ends = [card for card in by_kind["tool_finished"] if card["id"] == id_]
            told += [draw.choice(of), *deck.deal(3)]
            told += [draw.choice(ends)] if draw.random() < 0.85 else []
        told += [*deck.deal(2), *one("turn_finished")]
    return [event_of(line) for line in told]


def _first(name: str) -> list[Json]:
    """The lines that the sessions of chance are dealt from."""
    return material(name)[: DEALT_FROM[name]]


def dealt(folder: Path) -> Iterator[GoldenSession]:
    """Sessions that are dealt out of the material."""
    records = Deck(_first("records.jsonl"), random.Random("records"))
    happened = Deck(_first("events.jsonl"), random.Random("events"))
    for number in range(DEALT):
        yield _dealt(f"dealt {number}", number, records, happened, folder, spoilt=number % 3 == 2)
    for name, first in DEALT_FROM.items():
        for line, card in enumerate(material(name)[first:], first + 1):
            for number in range(_OWN_SESSIONS):
                label = f"{name} {line}, {number}"
                own = Deck([card], random.Random(label), least=1)
                none = Deck([], random.Random(label))
                decks = (own, none) if name == "records.jsonl" else (none, own)
                yield _dealt(label, number, *decks, folder)


def _dealt(
    name: str, number: int, records: Deck, happened: Deck, folder: Path, *, spoilt: bool = False
) -> GoldenSession:
    path = folder / "dealt.jsonl"
    story = _Story(number, records)
    if spoilt:
        story.spoil()
    path.write_bytes(lines(story.lines))
    os.utime(path, (_CHANGED, _CHANGED))
    return GoldenSession(name, reader.read(path), _happened(number, happened), folder=str(folder))


def imported(folder: Path) -> Iterator[GoldenSession]:
    """Sessions of other agents, sound and damaged."""
    made: dict[str, Callable[[], list[Any]]] = {
        "claude code": lambda: claude_code(2).records,
        "claude code, compacted": lambda: compacted_claude_code(3).records,
        "claude code, tail kept": lambda: compacted_claude_code(3, "segment").records,
        "pi 1": lambda: pi(2, 1).records,
        "pi 2": lambda: pi(2, 2).records,
        "pi 3": lambda: pi(2, 3).records,
        "codex": lambda: codex(2).records,
    }
    path = folder / "foreign.jsonl"
    for name, records in made.items():
        for seed in range(3):
            rolled = random.Random(f"{name} {seed}")
            path.write_bytes(damaged(records(), rolled) if seed else lines(records()))
            os.utime(path, (_CHANGED, _CHANGED))
            if importers.recognise(path) is not None:
                title = f"{name}, damaged {seed}" if seed else name
                yield GoldenSession(title, importers.load(path), folder=str(folder))
    opencode_database.make(folder / "opencode.db", 2)
    loaded = importers.load(folder / "opencode.db")
    yield GoldenSession("opencode", loaded, folder=str(folder))


class _Played(GeneratedSession):
    """A session of a real agent; `seen` are all its events."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.seen: list[Fact] = []
        # They are taken beside the conversation: where their records come is chance.
        off = structs.replace(self._config.checkpoints, mode="off")
        self._config = structs.replace(self._config, checkpoints=off)

    @property
    def file(self) -> Path:
        assert self._path
        return self._path

    def _planned(self, request: Request, asked: bool) -> Json:
        turn = super()._planned(request, asked)
        if "tools" in turn:  # which of several ends first is chance
            turn["tools"] = turn["tools"][:1]
        return turn

    def _take(self, seen: Any) -> None:
        self.seen += seen
        super()._take(seen)


def played(folder: Path) -> Iterator[GoldenSession]:
    """Sessions that real agents play with the enforcing server's rules."""
    for seed in range(PLAYED):
        root = folder / f"w{seed}"
        root.mkdir()
        session = _Played(root, seed)
        asyncio.run(session.play(_TURNS_PLAYED))
        loaded = reader.read(session.file)
        yield GoldenSession(f"played {seed}", loaded, session.seen, session.bodies, str(folder))


@contextmanager
def utc() -> Generator[None]:
    """The time zone in which the corpus is made."""
    with patch.dict(os.environ, {"TZ": "UTC"}):
        time.tzset()
        try:
            yield
        finally:
            os.environ.pop("TZ")
            time.tzset()


@contextmanager
def _alone() -> Generator[Path]:
    """A folder of the same name in every run, which is nobody else's meanwhile, as the home of all
    that is played; with ids and keys that are the same, too."""
    drawn = random.Random("ids")

    def token_hex(size: int) -> str:
        return drawn.randbytes(size).hex()

    with tempfile.TemporaryDirectory() as unused, ExitStack() as stack:
        folder = _HOME if sys.platform == PLAYED_ON else Path(unused)
        lock = os.open(f"{folder}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        home = {"HOLDFAST_HOME": str(folder), "HOME": str(folder)}
        stack.enter_context(patch.dict(os.environ, home))
        stack.enter_context(patch("platform.machine", lambda: "x86_64"))
        stack.enter_context(patch("secrets.token_hex", token_hex))
        stack.enter_context(patch("secrets.token_bytes", drawn.randbytes))
        stack.enter_context(utc())
        yield folder


@cache
def sessions() -> list[GoldenSession]:
    """All sessions of the corpus."""
    with _alone() as folder:
        made = [*dealt(folder), *imported(folder)]
        return [*made, *played(folder)] if sys.platform == PLAYED_ON else made
