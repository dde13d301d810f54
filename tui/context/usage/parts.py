"""The parts of a session's requests, in their order, each with whose it is. Pure.

A part is a tool's definition, a layer of the system prompt or a block of a message. The parts of
the next request are those of the last one and what was recorded since; where a record changes what
was already sent (a mask, a break, a compaction, a repair, another model), the view of all of it is
built, and what it has in common with the last request stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tui.context.branch_index import BranchIndex
from tui.context.breaks import BREAK
from tui.context.frame import FRAME, Frame, frame_in
from tui.context.history import History, Rendering
from tui.context.level_view import LevelViewer
from tui.context.overrides import (
    MEDIA,
    SPEAKING,
    SUMMARY,
    content_of,
    overlay_in,
    stand,
)
from tui.context.prune import rule_of_json
from tui.context.record_index import RecordIndex, continues
from tui.context.repair import CONTINUE
from tui.context.request_replay import SentFields
from tui.context.rules.blocks import SERVER_RESULTS, THINKING
from tui.context.usage.bills import agent_label
from tui.core.config import Prune
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Message, as_meant, object_of, string_of
from tui.session.records import Record, is_prompt, title_of
from tui.tokens import estimate
from tui.tools.limits.clamp import Room

Kind: TypeAlias = Literal[
    "system prompt",
    "tool definitions",
    "instruction files",
    "memory files",
    "summary",
    "prompts",
    "images, documents",
    "notices",
    "answers",
    "thinking",
    "calls",
    "results",
    "sub-agents",
    "writing summaries",
    "writing memory notes",
    "writing titles",
    "checking goals",
    "side questions",
    "keeping the cache",
    "searches",
    "not recorded",
]
"""The kinds of what is paid for."""

_LAYERS: Final[Mapping[str, Kind]] = {
    "project": "instruction files",
    "memory": "memory files",
    "recalled": "memory files",
}
_PATHS: Final = ("path", "file_path", "notebook_path")
_CHANGING: Final = frozenset({"compaction", "uncompaction", "repair", "pin", BREAK, FRAME})
_SERVER_CALL: Final = "server_tool_use"
_TEXT_FIELDS: Final = 2
"""The fields of a text that is sent as it was recorded: its type and its text."""


class Thing(NamedTuple):
    """A thing that is paid for: its kind, and what it belongs to, "" for nothing."""

    kind: Kind
    tool: str = ""
    file: str = ""
    server: str = ""
    skill: str = ""
    agent: str = ""


class Owner(NamedTuple):
    """The owner of a part of a request: the thing, and the number of the prompt with which it came,
    0 for what is there from the start."""

    thing: Thing
    prompt: int = 0


UNRECORDED: Final = Owner(Thing("not recorded"))
_PROMPTS: Final = Thing("prompts")
_NOTICES: Final = Thing("notices")
_ANSWERS: Final = Thing("answers")
_THINKING: Final = Thing("thinking")
_MEDIA: Final = Thing("images, documents")
_SUMMARY: Final = Owner(Thing("summary"))
_LOST_CALL: Final = Owner(Thing("calls"))
_LOST_RESULT: Final = Owner(Thing("results"))


class RequestPart(NamedTuple):
    """A part of a request with its weight (see `tui.tokens.estimate`)."""

    owner: Owner
    weight: float


def server_of(tool: str) -> str:
    """The MCP server of a tool, "" for one of our own."""
    return tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else ""


@dataclass(slots=True)
class Owners:
    """Tells whose a block is, by all records so far. `cwd` is the folder that files are named
    from."""

    cwd: str = ""
    titles: list[str] = field(default_factory=list[str])
    """The prompts' first words; the first prompt has number 1."""
    thinks: bool = False
    """True once an answer had thinking, or anything else that not every model gets."""
    thoughts: dict[str, float] = field(default_factory=dict[str, float])
    """The weight of thinking by its signature, where the server has counted it."""
    _calls: dict[str, Owner] = field(default_factory=dict[str, Owner])
    _texts: dict[str, Owner] = field(default_factory=dict[str, Owner])
    _numbers: dict[int, tuple[object, int]] = field(default_factory=dict[int, tuple[object, int]])
    """The numbers of the prompts that blocks came with, which no name identifies."""
    _said: dict[str, int] = field(default_factory=dict[str, int])
    """The same by text, for those of which a request has a copy."""
    _weights: dict[int, tuple[object, float]] = field(
        default_factory=dict[int, tuple[object, float]]
    )

    def learn(self, record: Record) -> None:
        """Take in a record that says something."""
        if record.type == "assistant":
            self.learn_calls(content_of(record))
        elif record.type == "interrupt":
            for block in content_of(record):
                self._said.setdefault(string_of(block.get("text")), len(self.titles))
        elif record.type in ("user", "notice"):
            self.learn_title(record)
            thing = _NOTICES if record.type == "notice" else _PROMPTS
            for block in content_of(record):
                text = block.get("text")
                if isinstance(text, str):
                    self._texts.setdefault(text, Owner(thing, len(self.titles)))
                else:
                    self._numbers[id(block)] = block, len(self.titles)

    def learn_title(self, record: Record) -> None:
        """Take in the title of a record, if it is a prompt."""
        if is_prompt(record) and (title := title_of(record.data)) and title != CONTINUE:
            self.titles.append(title)

    def learn_calls(self, content: Iterable[Block]) -> None:
        """Take in the calls in an answer's content."""
        for block in content:
            kind = str(block.get("type"))
            if kind == "tool_use":
                call = self._of_call(as_meant(block))
                self._calls[str(block.get("id"))] = Owner(call, len(self.titles))
                continue
            self._numbers[id(block)] = block, len(self.titles)
            if kind != "text":
                self.thinks = True
            elif len(block) > _TEXT_FIELDS:
                self._said.setdefault(string_of(block.get("text")), len(self.titles))

    def _of_call(self, call: Mapping[str, Any]) -> Thing:
        name, given = string_of(call.get("name")), object_of(call.get("input"))
        named = (given.get(one) for one in _PATHS)
        path = next((one for one in named if isinstance(one, str) and one), "")
        return Thing(
            "calls",
            name,
            self._named(path),
            server_of(name),
            string_of(given.get("name")) if name == "skill" else "",
            agent_label(given) if name == "task" else "",
        )

    def _named(self, path: str) -> str:
        """A path as it is shown: relative to the folder, if it is below it."""
        inside = self.cwd and path.startswith(self.cwd.rstrip("/") + "/")
        short = path[len(self.cwd.rstrip("/")) + 1 :] if inside else path
        return os.path.normpath(short) if short else ""

    def fixed(self, frame: Frame) -> Iterator[RequestPart]:
        """The parts that every request begins with."""
        for tool in frame.tools:
            name = string_of(tool.get("name"))
            thing = Thing("tool definitions", name, server=server_of(name))
            yield RequestPart(Owner(thing), estimate.json_weight(tool))
        for name, text in frame.layers:
            layer, _, file = name.partition(" ")
            thing = Thing(_LAYERS.get(layer, "system prompt"), file=self._named(file))
            yield RequestPart(Owner(thing), estimate.weight(text))

    def parts(self, messages: Iterable[Message]) -> list[RequestPart]:
        """The parts of messages. The frame of each counts with its first block."""
        made: list[RequestPart] = []
        for message in messages:
            frame, role = estimate.MESSAGE_TOKENS, message["role"]
            for block in message["content"]:
                made.append(RequestPart(self.of(block, role), self.weight(block) + frame))
                frame = 0
        return made

    def of(self, block: Block, role: str) -> Owner:
        """The owner of a block."""
        kind = str(block.get("type"))
        if kind == "tool_use":
            return self._calls.get(str(block.get("id")), _LOST_CALL)
        if kind == "tool_result":
            call = self._calls.get(str(block.get("tool_use_id")))
            return Owner(Thing("results", *call.thing[1:]), call.prompt) if call else _LOST_RESULT
        if kind != "text":
            if kind in THINKING:
                return Owner(_THINKING, self._number(block))
            if kind == _SERVER_CALL or kind in SERVER_RESULTS:
                own: Kind = "calls" if kind == _SERVER_CALL else "results"
                name = string_of(block.get("name")) or kind.removesuffix("_tool_result")
                return Owner(Thing(own, name), self._number(block))
            if kind in MEDIA:
                return Owner(_MEDIA, self._number(block))
        text = string_of(block.get("text"))
        if kind == "compaction" or text.startswith(SUMMARY):
            return _SUMMARY
        if role == "assistant":
            return Owner(_ANSWERS, self._number(block))
        return self._texts.get(text) or Owner(_NOTICES)

    def _number(self, block: Block) -> int:
        """The number of the prompt that a block came with. One that was made for a request came
        with the prompt before it."""
        known, number = self._numbers.get(id(block), (None, 0))
        if known is block:
            return number
        text = string_of(block.get("text"))
        return self._said.setdefault(text, len(self.titles)) if text else len(self.titles)

    def weight(self, block: Block) -> float:
        """The weight of a block; each is weighed once."""
        kind, thing = block.get("type"), block
        if kind == "tool_result":
            thing = block.get("content") or block
        elif kind != "text" and (counted := self.thoughts.get(signature_of(block))) is not None:
            return counted
        known = self._weights.get(id(thing))
        if known is None or known[0] is not thing:
            known = self._weights[id(thing)] = thing, estimate.block_weight(block)
        return known[1]


def signature_of(block: Block) -> str:
    """The signature that identifies a block of thinking; "" for any other."""
    if str(block.get("type")) not in THINKING:
        return ""
    return string_of(block.get("signature")) or string_of(block.get("data"))


class _Receiver(NamedTuple):
    """The receiver of a request: it decides the form of the messages."""

    model: str
    rendering: Rendering
    room: Room
    rule: Prune | None


class RowChange(NamedTuple):
    """The row of a request's parts, by that of the last one: of which the first `kept` stay, then
    come these. `grown` is True if it goes on where the last one ended."""

    kept: int
    parts: list[RequestPart]
    grown: bool


class RequestParts:
    """Follows the requests of a session along its branches."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._to: _Receiver | None = None
        self._frames = RecordIndex({FRAME})
        self._frame: Frame | None = None
        self._frame_record: Record | None = None
        self._count = 0
        self._last: Record | None = None
        self._whole = False
        self._length = 0
        self._index = BranchIndex()
        self._viewer: LevelViewer | None = None
        self._viewed: list[Message] = []
        self._starts: list[int] = []
        """Where the parts of each viewed message begin in the row."""

    @property
    def framed(self) -> bool:
        """True if the record has the tools and the system prompt of the last request."""
        return self._frame is not None

    def follow(self, path: Sequence[Record], model: str, fields: SentFields | None) -> RowChange:
        """Return the parts of a request, those that it has in common with the last one left out."""
        frames = self._frames.of(path)
        frame = frames[-1] if frames else None
        if frame is not self._frame_record:
            self._frame_record, self._frame = frame, frame_in(frame) if frame else None
            self._viewer = None
        to = _receiver(model, fields, frame, self._frame)
        grown = continues(path, self._count, self._last)
        fresh = path[self._count :] if grown else path
        same = grown and self._count > 0 and to.rule is None and self._receives(to)
        whole, changing = self._whole or not same, False
        for record in fresh:
            kind = record.type
            if kind in _CHANGING or (kind == "overlay" and overlay_in(record)):
                whole = True
                changing = changing or kind == "repair"
        # What a level says of all before it is said again for each request.
        self._whole = (self._whole and same) or changing
        if self._to is None or to[1:] != self._to[1:]:
            self._viewer = None
        self._to, self._count = to, len(path)
        self._last = path[-1] if path else None
        if whole:
            change = self._view(path, to)
        else:
            added = History(model, rendering=to.rendering)
            for record in fresh:
                if record.type in SPEAKING:
                    added.add(record, stand(record, None, to.room))
            change = RowChange(self._length, self._owners.parts(added.messages), grown=True)
        self._length = change.kept + len(change.parts)
        return change

    def _view(self, path: Sequence[Record], to: _Receiver) -> RowChange:
        """View the path; messages that are the same objects as before have the same parts."""
        if self._viewer is None:
            self._viewer = LevelViewer(to.room, to.rule, to.rendering, self._index)
            self._viewed, self._starts = [], []
        messages = self._viewer.messages(path, model=to.model)
        last = max(0, len(self._viewed) - 1)  # it may have grown, and is a copy
        same = [*map(is_, self._viewed[:last], messages), False].index(False)
        kept = self._starts[same] if self._viewed else 0
        parts: list[RequestPart] = []
        if not kept and self._frame:
            parts += self._owners.fixed(self._frame)
        del self._starts[same:]
        for message in messages[same:]:
            self._starts.append(kept + len(parts))
            parts += self._owners.parts((message,))
        self._viewed = messages
        return RowChange(kept, parts, grown=False)

    def _receives(self, to: _Receiver) -> bool:
        """True if a request has the form that one of the last receiver had. Only thinking, and what
        is like it, depends on the model."""
        if self._to is None or self._owners.thinks:
            return to == self._to
        return to[1:] == self._to[1:]


_ROOM: Final = Room()
_RENDERING: Final = Rendering()


def _receiver(
    model: str, fields: SentFields | None, record: Record | None, frame: Frame | None
) -> _Receiver:
    room = frame.room if frame else _ROOM
    if fields is None or record is None:
        return _Receiver(model, _RENDERING, room, None)
    return _Receiver(model, fields.rendering(record), room, rule_of_json(fields.prune))
