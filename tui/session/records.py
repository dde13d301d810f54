"""Records: the lines of a session file.

The first line is the header, every other line one record: `type`, `id`, `parent`, `time` and the
fields of its type. Ids sort in the order they were made. Unknown types and fields are kept.

    user         content, text (as typed; absent for text that nobody typed), images (the words for
                 the images in the content, in their order), by ("hook" where a hook speaks, "goal"
                 where the check of a goal does, "every" where a prompt is repeated, "program" where
                 another agent does, in a session of its own), collector (for which the spans of its
                 turn are made, see tui.agent.span_export), traceparent (the span around the turn)
    assistant    content, model, server, usage, stop_reason, request_id, message_id, bound_to (the
                 hash of the request, where there is thinking: see tui.context.request_trail)
    frame        system, tools, layers, facts, files, room, sha256, reason, version, seal
                                                what every request begins with, see
                                                tui.context.frame
    notice       kind, text, facts, files, tools, on, effort, pins, summary, jobs, seal
                                                what is said at the end, see tui.context.notices
    request      n, model, server, sha256, messages, open, blocks, max_tokens, thinking, effort,
                 marks, form, shared_thinking, prune, untrusted, break, cache
                                                before each request of the conversation: all that
                                                it is made of besides the records before it, see
                                                tui.context.request_replay
    intent       call_id, tool, effect, args_sha256, label   synced before a tool with effects runs;
                 for a write also path, before_sha256 (null: there was no file); for one of
                 several files, files: a list of these two
    job          call_id, pid, born, command                 the process group of a command
    job_moved    call_id, job, pid, by          it was moved to the background, by whom
    job_ended    job, call_id, command, exit_code, state, stopped_by, seconds, path, bytes, text
                 (its last lines), hidden (from the model), end_read (command_status returned it)
                                                a background command, see tui.context.job_endings
    hook         event, command, outcome, exit_code, seconds, text, call_id    a hook that ran
    sub_agent    call_id, session, path, agent, description, model, state, calls, spent    twice
                 for each run of a sub-agent: `state` is "started", then how it ended, with how many
                 calls it made and what it cost ({"model", "requests", "usage"} for each model)
    file_change  call_id, session, session_call, path, before, before_sha256, after_sha256, mode
                                                what a sub-agent did to a file
    tool_result  call_id, name, content, is_error, seconds, receipt, summary, display, details
                 (what it did to files: see tui.context.file_changes)
    directive    think, verbose, elevated, effort ("" for the configured one), wait (the effort
                 counts from the next break on that restarts the cache)
    profile      name, before                   the profile of the requests from here on
    reload                                      the frame is made again with the next compaction
    interrupt    reason, text (what was streamed so far), thinking
    error        error_class, message, hint, status, request_id
    retry        attempt, max_attempts, delay_s, reason, status, error_class, request_id,
                 received, text
    failover     from, to, reason, back_at, error_class, status, request_id, received, text,
                 again, usd, thoughts (where another profile is asked)
    parked       until, reason, error_class, status, request_id, received, text
    recovery     step, action, error_class, tokens_before, tokens_after, request_id, text
    permission   call_id, tool, subject, answer, by, reason
    repair       findings, rung, by             the repair level from here on, see
                                                tui.context.repair_levels
    feature      feature, server, model, message, request_id,    what a server does not know, see
                 tokens?                                        tui.agent.server_features
    break        reason, by, from, back, cause, message, tokens, thoughts, cost_usd, request_id
                                                what was already sent is changed, see
                                                tui.context.breaks
    break_billed reason, by, n, tokens, thoughts, cost_usd, billed_usd
                                                the same, by the usage of the answer to request n
    overlay      target, view, blocks, by, reason    how another record is sent, see
                                                tui.context.overrides
    compaction   summary, tokens_before, tokens_after, messages_removed, covers, prefix_sha256,
                 reason, model, usage        `covers` is the last record that it sums up;
                                                verbatim: what is sent with it, by its exam
    unused       model, usage, reason           answers to a question for a summary, of no use
    exam         mode, model, facts, verbatim, problem, usage
                                                what the summary before it was asked, see
                                                tui.context.exam
    uncompaction target                         makes every compaction before it void
    memory       path, notes, added, covers     the notes that were added to MEMORY.md
    goal         state, goal, command, round, rounds, usd, seconds, spent_usd, spent_s, why, same,
                 digest, model, usage           a goal was set, checked or ended; the last one has
                                                all that is known, see tui.agent.goal
    checkpoint   checkpoint, files, by, call_id, prompt
                                                the files as they were then, see
                                                tui.agent.checkpoints
    pin          target, pinned                 the last one for a target wins, as of overlays
    mcp          off                            tools of MCP servers that the model does not get
    title        title, model, usage            the last two where a model wrote it
    side_question    question, answer, outcome, model, server, usage, n, seconds, problem, refused,
                 estimated, cost_usd, cache     asked beside the conversation, in no request
    cache_warmed times, total_usd, until, model, usage, cost_usd, server, seconds, cache
                                                the cache was read again in a pause
    rewind       target, left, checkpoint, prompts, files_stay
                                                begins a branch before `target`, or without one goes
                                                on with another; `left` ends the one before, which
                                                has that many `prompts` more; `checkpoint` has the
                                                files then, `files_stay` that none was restored
    draft        prompt, queue, commands, answer, after, images
                                                no part of the branch, see `drafts`
    note         text
    chain        bytes, sha256                  no record, see tui.session.chain; its link, `chain`,
                                                is the last field of every line
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, cast

from msgspec import structs

from tui.core.config import profile_of
from tui.core.dataclass import dataclass, field
from tui.core.facts import DEFAULT_PROFILE
from tui.core.images import without_words
from tui.core.late_pattern import late_pattern
from tui.core.messages import Usage, blocks_of, list_of, object_of, string_of, text_of
from tui.core.redaction import mask_values

_TITLE_CHARS: Final = 80
VERSION = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first line. `origin` names the session that a fork came from, `parent_session` the one
    whose call `parent_call` started this one for a sub-agent. `started` is "print" or "background"
    where nobody was at a screen when it began, `profile` the one that it was made with, "" for
    none."""

    id: str
    created: str
    cwd: str
    app: str
    version: int = VERSION
    origin: str | None = None
    parent_session: str = ""
    parent_call: str = ""
    started: str = ""
    profile: str = ""

    def to_line(self) -> bytes:
        value: dict[str, Any] = {
            "type": "session",
            "version": self.version,
            "id": self.id,
            "created": self.created,
            "cwd": self.cwd,
            "app": self.app,
        }
        others = {
            "origin": self.origin,
            "parent_session": self.parent_session,
            "parent_call": self.parent_call,
            "started": self.started,
            "profile": self.profile,
        }
        return encode(value | {name: one for name, one in others.items() if one})


@dataclass(frozen=True, slots=True)
class Record:
    """One line. `data` holds the fields of the type, JSON values only, and is not changed.

    `payer` is the profile whose key paid then, "" for none. Its line doesn't have it: it is in the
    header, and in the `profile` records before it in the file.
    """

    type: str
    id: str
    parent: str | None
    time: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    payer: str = field(default="", compare=False)

    def to_line(self) -> bytes:
        head = {"type": self.type, "id": self.id, "parent": self.parent, "time": self.time}
        return encode(head | self.data)


PROFILE: Final = "profile"
"""The type of the records that say which profile pays from there on."""


def paid_by(model: str, profile: str) -> str:
    """The profile that pays for a model, "" for none: the one that the model's whole name says,
    else `profile`, the one in use."""
    named = profile_of(model)
    return "" if named == DEFAULT_PROFILE else named or profile


def profile_in(record: Record) -> str:
    """The profile that a `profile` record names, "" for none."""
    name = string_of(record.data.get("name"))
    return "" if name == DEFAULT_PROFILE else name


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage that was found, and what was done about it in memory.

    `code` names the kind of damage, a letter and a number; `where` is its place, as
    `line 12 (byte 3400)` in a file or `messages.3.content.0` in a request.
    """

    code: str
    where: str
    action: str

    def to_json(self) -> dict[str, str]:
        return {"code": self.code, "where": self.where, "action": self.action}


LEFT_OUT: Final = "B59"
"""The code of a finding that is no damage: what another program keeps in its file for itself."""

MENTIONED: Final = "mention"
"""Value of `by` in an `assistant` record whose calls read what a prompt names with `@`."""


HOOK: Final = "hook"
"""Value of `by` in a `user` record by which a hook lets the model continue."""

GOAL: Final = "goal"
"""The type of the records about a goal, and the value of `by` in a `user` record by which the check
of one lets the model continue."""

EVERY: Final = "every"
"""Value of `by` in a `user` record whose prompt the program repeats at an interval."""

PROGRAM: Final = "program"
"""Value of `by` in a `user` record of an imported session that its program said, not the person."""

BATCH: Final = "batch"
"""The field of an answer that came with a message batch, at half the price: the batch's id."""

COSTLY: Final = frozenset(
    {
        *("assistant", "cache_warmed", "compaction", "exam", GOAL, "memory", "side_question"),
        *("title", "unused"),
    }
)
"""The types of the records with the usage of an answer that was paid for."""

WARMED: Final = "cache_warmed"
"""The type of the records of requests that only kept the cache."""

BESIDE: Final = frozenset({"side_question", WARMED})
"""The types of the records of requests beside the conversation that begin as its last one did."""

SUB_AGENT: Final = "sub_agent"
"""The type of the records that say which sub-agents worked for a session."""


def spent_in(record: Record) -> Iterator[tuple[str, int, Usage]]:
    """Yield what a sub-agent's record says that it was billed for: a model, the number of its
    answers and their usage. Where a sum doesn't say how long its prompts were, they count as
    equally long: together they would cost as one long prompt."""
    for one in map(object_of, list_of(record.data.get("spent"))):
        usage, given = Usage.from_json(one.get("usage")), one.get("requests")
        count = given if type(given) is int and given > 0 else 1
        if count > 1 and not usage.context_tokens:
            usage = structs.replace(usage, context_tokens=usage.prompt_tokens // count)
        yield string_of(one.get("model")), count, usage


FILE_CHANGE: Final = "file_change"
"""The type of the records that say what sub-agents did to files."""
JOB_MOVED: Final = "job_moved"
"""The type of the records that say that a command was moved to the background."""
JOB_ENDED: Final = "job_ended"
"""The type of the records that say how a background command ended."""
CHECKPOINT: Final = "checkpoint"
"""The type of the records that say how the files of the workspace were."""


def is_answer(record: Record) -> bool:
    """True if the model gave it. An `assistant` record can also hold calls made for a prompt."""
    return record.type == "assistant" and record.data.get("by") != MENTIONED


_NOT_SENT: Final = (HOOK, GOAL, PROGRAM)


def is_prompt(record: Record) -> bool:
    """True if the person sent it. A `user` record can also hold the text of a hook or of a goal's
    check, or what another agent's program told the model."""
    return record.type == "user" and record.data.get("by") not in _NOT_SENT


_TURNS: Final = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})
GOAL_OVER: Final = frozenset({"met", "limit", "stuck", "blocked"})
"""The states of a goal with whose record a turn ends."""


def last_of_turn(records: Sequence[Record]) -> Record | None:
    """The last record that belongs to a turn; that of a goal where one ended the turn."""
    return next((record for record in reversed(records) if _is_of_turn(record)), None)


def _is_of_turn(record: Record) -> bool:
    return record.type in _TURNS or (record.type == GOAL and record.data.get("state") in GOAL_OVER)


def is_ours(value: dict[str, Any]) -> bool:
    """True if an object is a line of a session file of ours, and not of another program's."""
    if value.get("type") == "session":
        return "created" in value and "cwd" in value
    return value.keys() >= {"type", "id", "parent", "time"}


def encode(value: dict[str, Any]) -> bytes:
    """One JSON line with its newline. Lone surrogates survive as escapes."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def new_session_id() -> str:
    """An id of 12 hexadecimal digits. Random from the first digit on, so short prefixes differ."""
    return secrets.token_hex(6)


def new_id(now: datetime, after: str = "") -> str:
    """A record's id: 20 characters that sort by time, and always after the id `after`.

    So ids are in the order of their records even if the clock jumps back.
    """
    stamp = int(now.timestamp() * 1000) << 12
    if _ID.fullmatch(after):
        stamp = max(stamp, min(int(after[:14], 16) + 1, _LAST_STAMP))
    return f"{stamp:014x}{secrets.token_hex(3)}"


def can_be_typed(id_: str) -> bool:
    """True for an id that a command line can hold as it is. All of ours can; a session's file may
    come from anybody, and what is shown is pasted into a shell."""
    return _TYPED.fullmatch(id_) is not None


def fork_line(session: str, at: str) -> str:
    """Return the command line that continues in a copy of a session up to a message; "" where an id
    can't be typed."""
    typed = can_be_typed(session) and can_be_typed(at)
    return f"holdfast -r {session} --at {at} --fork" if typed else ""


_TYPED = late_pattern(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_ID = late_pattern(r"[0-9a-f]{20}")
_LAST_STAMP = (1 << 56) - 1


_SIGNED = frozenset({"thinking", "redacted_thinking"})


def redacted(data: dict[str, Any]) -> dict[str, Any]:
    """A record's fields with every secret masked.

    Thinking that held one is left out: its signature would not be valid for the masked text. So are
    a call of a server's own tool and its result, which it wants back as they were.
    """
    masked, count = mask_values(data)
    content: object = data.get("content")
    if not count or not isinstance(content, list):
        return masked
    pairs = list(zip(cast("list[Any]", content), masked["content"], strict=True))
    changed_ids = {_server_id(before) for before, after in pairs if before != after} - {""}
    kept = [
        after
        for before, after in pairs
        if _server_id(before) not in changed_ids
        and (before == after or object_of(before).get("type") not in _SIGNED)
    ]
    return masked | {"content": kept}


def _server_id(value: object) -> str:
    """The id of a server's own tool call, in its block and in that of its result; else ""."""
    block = object_of(value)
    kind = str(block.get("type"))
    if kind == "server_tool_use":
        return str(block.get("id"))
    return str(block.get("tool_use_id")) if kind.endswith("_tool_result") else ""


def title_of(prompt: dict[str, Any]) -> str:
    """The first words of a prompt's record, on one line."""
    text = prompt.get("text")
    if not isinstance(text, str):
        text = text_of(blocks_of(prompt.get("content")))
    text = without_words(text) or text
    line = " ".join(text[: _TITLE_CHARS * 8].split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"
