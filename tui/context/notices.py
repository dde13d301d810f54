"""Notices at the end of a conversation: what changed after the frame was made. Pure.

A `notice` record is made once, before the request that it is sent with, and stays from then on.
`kind` is

    state      facts of the workspace and of the mode; `facts` has their current values, by name
    think      /think on or off
    effort     the model's effort from its next answer on; `effort` has the level
    tools      tools that were added; `tools` has their schemas
    file       a new version of a file whose text other people can edit; `files` has its hash
    verbatim   what a summary lacks, by its exam; `summary` has the id of its record
    pin        pinned records that a server's summary covers; `pins` has their ids
    changed    files that are not as the model last saw them, see `tui.context.seen_files`
    difference how a file has changed since
    hooks      what hooks say that nobody waited for
    job        background commands that ended; `jobs` has the ids of their records
    continue   "(continue)", where the model is asked again after its own last message

The program's own words are a message of the role "system" where the model supports it, otherwise a
marked text at the end of the user's message. Text that others can write, and "(continue)", is
always the user's. A notice that this installation did not make is not sent: see the seal in
`tui.context.frame`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from tui.context import untrusted as untrusted_text
from tui.context.frame import FRAME, Frame, is_sealed
from tui.context.overrides import content_of
from tui.context.record_index import replaced
from tui.context.repairs.order import CONTINUE
from tui.core.dataclass import dataclass
from tui.core.messages import Block, Message, list_of, object_of, string_of, text_block, text_of
from tui.session.records import Record

NOTICE: Final = "notice"
"""The record's type."""

NAME_CHARS: Final = 200
"""Maximum characters of a name that others can choose, such as a branch's."""

THINK_ON: Final = (
    "Think step-by-step. Show your reasoning process explicitly before taking action. "
    "Consider edge cases, alternative approaches, and potential issues. "
    "When analyzing code, read related files to understand full context."
)
"""The exact text of /think for the model."""
_IN_THOUGHT: Final = "These steps belong in your thinking, not in the answer."
THINK_OFF: Final = "From here on, think only as much as the task needs."

_OF_THE_USER: Final = frozenset({"file", "pin", "verbatim", "job", "problems", "hooks", "continue"})
"""Kinds that are sent as plain text of the user."""

_OPENING, _CLOSING = "<notice>", "</notice>"


@dataclass(frozen=True, slots=True)
class Form:
    """The features of a model and its server that decide how a record is rendered for them.

    `system_messages`: the role "system" in the middle of a conversation; `tool_additions`: tools
    that are added there; `turn_effort`: an effort that such a message sets; `compaction_blocks`: a
    summary that the server itself made and signed.
    """

    system_messages: bool = False
    tool_additions: bool = False
    turn_effort: bool = False
    compaction_blocks: bool = False


PLAIN: Final = Form()
"""Any server that speaks the Messages API."""


class NoticeBlock(dict[str, Any]):
    """A notice as a text block of a user message, which `NoticeLifter` turns into a system message.

    `system` are the messages that then replace it.
    """

    __slots__ = ("system",)
    system: list[dict[str, Any]]


def block_of(record: Record, form: Form, frame: str = "") -> Block | None:
    """Render a notice as a block of a user message; None where this form does not send it.

    `frame` is the id of the frame in force, which includes the tools added before it (ids sort by
    time).
    """
    kind, text = record.data.get("kind"), string_of(record.data.get("text"))
    if not text.strip():
        return None
    if kind == "tools" and (not form.tool_additions or record.id < frame):
        return None
    if kind == "effort" and not form.turn_effort:
        return None
    if kind in _OF_THE_USER:
        return text_block(text)
    marked = text_block(f"{_OPENING}\n{text}\n{_CLOSING}")
    if kind in {"changed", "difference"}:
        return marked  # never a system message: it has names that others chose
    block = NoticeBlock(marked)
    content: list[Block] = [text_block(text)]
    if kind == "tools":
        content += [_addition(tool) for tool in list_of(record.data.get("tools"))]
    block.system = [{"role": "system", "content": content}] if kind != "effort" else []
    effort = record.data.get("effort")
    if form.turn_effort and isinstance(effort, str):
        block.system.append({"role": "system", "content": [], "output_config": {"effort": effort}})
    return block


def _addition(tool: object) -> Block:
    definition = {"type": "tool_definition", "definition": tool}
    return {"type": "tool_addition", "tool": definition}


class NoticeLifter:
    """Turns each notice at the end of a message into a system message after it, for growing
    lists."""

    def __init__(self) -> None:
        self._given: list[Message] = []
        self._ends: list[int] = []
        self._made: list[Message] = []

    def lifted(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with the notices lifted. A message that is the same object as before
        is not converted again, and its results are the same objects, too."""
        limit = min(len(self._given), len(messages))
        same = next(replaced(self._given, messages), limit)
        del self._given[same:], self._ends[same:], self._made[self._ends[-1] if same else 0 :]
        for message in messages[same:]:
            self._made.extend(_parted(message))
            self._ends.append(len(self._made))
        self._given += messages[same:]
        return [*self._made]


def _parted(message: Message) -> list[Message]:
    """Split a message into itself without the notices at its end, and those as system messages."""
    content = message["content"]
    end = len(content)
    while end > 1 and isinstance(content[end - 1], NoticeBlock):
        end -= 1
    if end == len(content):
        return [message]
    made: list[Message] = [{"role": message["role"], "content": content[:end]}]
    for block in content[end:]:
        if isinstance(block, NoticeBlock):
            made.extend(block.system)  # pyright: ignore[reportArgumentType] - a Message
    return made


def untrusted(records: Iterable[Record], key: bytes) -> frozenset[str]:
    """The ids of the notices that this installation did not make."""
    return frozenset(r.id for r in records if r.type == NOTICE and not is_sealed(r, key))


@dataclass(frozen=True, slots=True)
class ModelKnowledge:
    """The facts the model knows: from the frame, and from the notices that it still sees."""

    facts: Mapping[str, str]
    files: Mapping[str, str]
    tools: frozenset[str]
    think: bool


def knowledge(
    frame: Frame, records: Sequence[Record], left_out: Collection[str], form: Form
) -> ModelKnowledge:
    """Collect what a model of this form knows from the frame in force and a branch's notices.

    `records` are the branch's frames and notices; the model does not see those in `left_out`.
    """
    facts, files = dict(frame.facts), dict(frame.files)
    tools, think = {str(tool.get("name")) for tool in frame.tools}, False
    framed = max((n for n, record in enumerate(records) if record.type == FRAME), default=-1)
    for number, record in enumerate(records):
        data = record.data
        if record.type != NOTICE or record.id in left_out:
            continue
        if data.get("kind") == "think":
            think = data.get("on") is True
        if number < framed:
            continue  # the frame has it
        facts |= {name: str(value) for name, value in object_of(data.get("facts")).items()}
        files |= {name: str(value) for name, value in object_of(data.get("files")).items()}
        if form.tool_additions:
            tools |= {str(object_of(tool).get("name")) for tool in list_of(data.get("tools"))}
    return ModelKnowledge(facts, files, frozenset(tools), think)


def state(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Any] | None:
    """Build the fields of a notice about the facts that changed; None if none has."""
    changed = {name: value for name, value in now.items() if before.get(name, "") != value}
    changed |= {name: "" for name in before.keys() - now.keys() if before[name]}
    if not changed:
        return None
    lines = [f"- {name}: {_quoted(value)}" for name, value in changed.items()]
    text = "\n".join(["From here on this is so:", *lines])
    return {"kind": "state", "text": text, "facts": changed}


def think(*, on: bool) -> dict[str, Any]:
    """Build the fields of a notice about /think."""
    text = f"{THINK_ON}\n\n{_IN_THOUGHT}" if on else THINK_OFF
    return {"kind": "think", "text": text, "on": on}


def effort(level: str) -> dict[str, Any]:
    """Build the fields of a notice about the model's effort. The text is for human readers."""
    return {"kind": "effort", "text": f"Effort from here on: {level}.", "effort": level}


def go_on() -> dict[str, Any]:
    """Build the fields of a notice that asks the model to continue after its own last message."""
    return {"kind": "continue", "text": CONTINUE}


def pinned(records: Sequence[Record]) -> dict[str, Any]:
    """Build the fields of a notice that repeats pinned records, word for word."""
    texts = [text_of(content_of(record)) for record in records]
    text = untrusted_text.wrap("\n\n".join(filter(None, texts)), "pinned by the person")
    lead = "The person pinned this of the conversation before the summary. It said verbatim:"
    return {"kind": "pin", "text": f"{lead}\n\n{text}", "pins": [r.id for r in records]}


def verbatim(summary: Record) -> dict[str, Any]:
    """Build the fields of a notice with what a summary lacks, word for word."""
    quotes = "\n\n".join(map(string_of, list_of(summary.data.get("verbatim"))))
    text = untrusted_text.wrap(quotes, "the conversation before the summary")
    lead = "The summary leaves this out. The conversation before it said verbatim:"
    return {"kind": "verbatim", "text": f"{lead}\n\n{text}", "summary": summary.id}


def problems(lines: str, failures: Sequence[str] = ()) -> dict[str, Any]:
    """Build the fields of a notice about problems in edited files that were detected late, and
    about checkers that failed; `lines` are marked as untrusted."""
    late = [f"New problems after your last edits:\n{lines}"] if lines else []
    failed = [f"Edited files may not be checked: {_quoted(one)}" for one in failures]
    return {"kind": "problems", "text": "\n".join([*late, *failed])}


def hooks(text: str) -> dict[str, Any]:
    """Build the fields of a notice about what hooks say that nobody waited for."""
    return {"kind": "hooks", "text": text}


def joined(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Build the fields of a notice about tools that were added."""
    names = ", ".join(str(tool.get("name")) for tool in tools)
    return {"kind": "tools", "text": f"These tools joined: {names}.", "tools": list(tools)}


def _quoted(value: str) -> str:
    """Put a value that others may have chosen on one line, quoted and shortened."""
    if not value:
        return "none"
    return json.dumps(value[:NAME_CHARS], ensure_ascii=False)
