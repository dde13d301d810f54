"""From records to messages: the conversation in the shape of the Messages API. Pure.

    user          a user message, or more of the one before it
    assistant     an assistant message
    tool_result   at the front of the user message after its call, in the order of the calls
    interrupt     what the model had said by then, as an assistant message; omitted if nothing
    notice        last in the user message that is not answered yet

Records of other types are not sent. Damage stays as it is, for the repair to fix. If a record is
not sent as recorded, its stand-in (`overrides.Stand`) is sent instead.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable

from tui.context.notices import PLAIN, Form, NoticeBlock, block_of
from tui.context.overrides import Stand, content_of
from tui.context.rules.blocks import FIELDS, THINKING, RawBlock
from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, Message, tool_calls
from tui.session.records import Record

_VERSION = late_pattern(r"-(\d{8}|latest)$")
_NEVER_SENT = ("caller",)
_NOTHING_IF_NULL = ("citations", "cache_control", "toolset_name", "title", "context", "is_error")


@dataclass(frozen=True, slots=True)
class Rendering:
    """The receiver of messages, besides the model: the server and what it supports, and what in the
    record is not to be trusted (ids of notices).

    `shared_thinking`: the server accepts thinking of its other models, and drops what a model
    cannot read. `frame` is the id of the frame's record.
    """

    server: str = ""
    form: Form = PLAIN
    shared_thinking: bool = False
    untrusted: Collection[str] = ()
    frame: str = ""


@dataclass(slots=True)
class History:
    """Builds messages. `sources` has the id of its record for every block.

    `model` is the one that gets the request: thinking that it could not read, or that another
    server made, is left out. So is that of the answers in `thoughtless`, which are ids of records.
    Blocks of unknown types are returned unchanged to the server that made them.
    """

    model: str = ""
    thoughtless: Collection[str] = ()
    rendering: Rendering = field(default_factory=Rendering)
    messages: list[Message] = field(default_factory=list[Message])
    sources: list[list[str]] = field(default_factory=list[list[str]])
    _calls: dict[str, int] = field(default_factory=dict[str, int])
    _front: list[int] = field(default_factory=list[int])
    _prompt: list[Block] | None = None
    _notices: int = 0
    """Number of blocks at the end of the last user message that are notices."""

    def open(self, id_: str, block: Block) -> None:
        """Begin with a user's block that stands for everything before."""
        self._extend("user", id_, [block])

    def go_on_from(self, messages: Iterable[Message]) -> None:
        """Begin with messages that are not recorded in this form."""
        for message in messages:
            self._extend(message["role"], "", message["content"])

    def go_back(self, count: int) -> None:
        """Keep the first messages only; the last of them is a finished answer."""
        del self.messages[count:], self.sources[count:]
        self._calls, self._front, self._prompt, self._notices = {}, [], None, 0

    def add(self, record: Record, stand: Stand | None = None) -> None:
        """Add the content of a record, or its stand-in. Records come in the order of their
        branch."""
        match record.type:
            case "user":
                self._add_prompt(record, stand)
            case "assistant":
                self._add_answer(record.id, self._answer(record, stand))
            case "tool_result":
                self._add_result(record, stand)
            case "interrupt":
                self._add_answer(record.id, stand.blocks if stand else content_of(record))
            case "notice":
                self._add_notice(record)
            case _:
                pass

    def _add_prompt(self, record: Record, stand: Stand | None) -> None:
        blocks = content_of(record)
        if blocks and blocks == self._prompt:
            return  # the same prompt, sent again after a failure without an answer
        self._prompt = blocks
        self._extend("user", record.id, stand.blocks if stand else blocks)

    def _add_notice(self, record: Record) -> None:
        block = block_of(record, self.rendering.form, self.rendering.frame)
        if block is None or record.id in self.rendering.untrusted:
            return
        if not isinstance(block, NoticeBlock):
            self._extend("user", record.id, [block])
            return
        before, self._notices = self._notices, 0
        self._extend("user", record.id, [block])
        self._notices = before + 1

    def _answer(self, record: Record, stand: Stand | None) -> list[Block]:
        blocks = [_as_sent(block) for block in (stand.blocks if stand else content_of(record))]
        server = self.rendering.server
        if server and record.data.get("server") == server:
            blocks = [b if str(b.get("type")) in FIELDS else RawBlock(b) for b in blocks]
        if self._foreign(record) or record.id in self.thoughtless:
            return [block for block in blocks if str(block.get("type")) not in THINKING]
        return blocks

    def _foreign(self, record: Record) -> bool:
        """True if the receiving server cannot use the thinking of an answer."""
        by, server = record.data.get("model"), self.rendering.server
        if server and record.data.get("server") != server:
            return True
        shared = self.rendering.shared_thinking
        return not shared and isinstance(by, str) and not same_model(by, self.model)

    def _add_answer(self, id_: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        if self._calls and self._last_role() == "assistant":
            self._begin("assistant")  # its calls are unanswered: start another message
        self._extend("assistant", id_, blocks)
        calls = tool_calls(blocks)
        self._calls = {str(call.get("id")): place for place, call in enumerate(calls)}
        self._front = []
        self._prompt = None

    def _add_result(self, record: Record, stand: Stand | None) -> None:
        data = record.data
        id_ = str(data.get("call_id", ""))
        content: object = stand.blocks if stand else data.get("content")
        block: Block = {"type": "tool_result", "tool_use_id": id_, "content": content}
        if data.get("is_error"):
            block["is_error"] = True
        place = self._calls.get(id_)
        if place is None:
            self._extend("user", record.id, [block])
            return
        if self._last_role() != "user":
            self._begin("user")
        at = bisect(self._front, place)
        self._front.insert(at, place)
        self.messages[-1]["content"].insert(at, block)
        self.sources[-1].insert(at, record.id)

    def _extend(self, role: str, id_: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        if self._last_role() != role:
            self._begin(role)
        content, sources = self.messages[-1]["content"], self.sources[-1]
        at = len(content) - self._notices
        content[at:at] = blocks
        sources[at:at] = [id_] * len(blocks)

    def _begin(self, role: str) -> None:
        self.messages.append({"role": "user" if role == "user" else "assistant", "content": []})
        self.sources.append([])
        self._notices = 0

    def _last_role(self) -> str:
        return self.messages[-1]["role"] if self.messages else ""


def history(records: Iterable[Record], *, model: str = "") -> History:
    """Build the messages of a branch."""
    made = History(model)
    for record in records:
        made.add(record)
    return made


def same_model(one: str, other: str) -> bool:
    """True if two names mean the same model: a date or `latest` at the end makes no difference."""
    if not one or not other or one == other:
        return True
    return _VERSION.sub("", one) == _VERSION.sub("", other)


def _as_sent(block: Block) -> Block:
    """Return an answer's block as a request accepts it, without the fields that only answers
    have."""
    if str(block.get("type")) in THINKING or not _has_extras(block):
        return block
    return {
        name: value
        for name, value in block.items()
        if name not in _NEVER_SENT and not (value is None and name in _NOTHING_IF_NULL)
    }


def _has_extras(block: Block) -> bool:
    return any(name in block for name in _NEVER_SENT) or None in block.values()
