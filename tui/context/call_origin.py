"""The origin of a call: its prompt, its request, what the model had seen, who allowed it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.messages import blocks_of, object_of, string_of
from tui.session.records import JOB_MOVED, Record, is_answer, is_prompt, title_of
from tui.session.request_numbers import REQUEST

_SPEAKS: Final = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """The origin of a call in a record, as far as it is known. `prompt` and `answer` are the
    records of the person's prompt and of the answer that holds the call, `result` and `permission`
    those of the call itself. `request` is the number of the request, 0 where none is recorded.
    `fork_at` is the record up to which the conversation was before that answer, "" for none.
    """

    tool: str
    subject: str
    prompt: Record | None = None
    answer: Record | None = None
    result: Record | None = None
    permission: Record | None = None
    request: int = 0
    fork_at: str = ""

    @property
    def prompt_text(self) -> str:
        return title_of(self.prompt.data) if self.prompt else ""

    @property
    def model(self) -> str:
        return string_of(self.answer.data.get("model")) if self.answer else ""


@dataclass(frozen=True, slots=True)
class SeenContext:
    """The context that the model had at a request, in short. `read` are the paths of the files that
    its tools had read by then; `hidden` counts the results that were left out or masked."""

    messages: int
    read: tuple[str, ...]
    hidden: int
    summarized: bool


def origin_of(records: Sequence[Record], call_id: str) -> CallOrigin | None:
    """The origin of the last call with an id; None where the records don't have it."""
    place, block = -1, dict[str, object]()
    for n in range(len(records) - 1, -1, -1):
        record = records[n]
        if record.type != "assistant":
            continue
        found = (one for one in blocks_of(record.data.get("content")) if one.get("id") == call_id)
        if (one := next(found, None)) is not None:
            place, block = n, one
            break
    if place < 0:
        return None
    before, after = records[:place], records[place + 1 :]
    mine = [record for record in after if record.data.get("call_id") == call_id]
    of_type = {record.type: record for record in reversed(mine)}
    request = next((one for one in reversed(before) if one.type == REQUEST), None)
    number = request.data.get("n") if request else 0
    intent, permission = of_type.get("intent"), of_type.get("permission")
    labels = (
        string_of(intent.data.get("label")) if intent else "",
        string_of(permission.data.get("subject")) if permission else "",
        subject_of(object_of(block.get("input"))),
    )
    return CallOrigin(
        tool=string_of(block.get("name")),
        subject=next(filter(None, labels), ""),
        prompt=next((one for one in reversed(before) if is_prompt(one)), None),
        answer=records[place] if is_answer(records[place]) else None,
        result=of_type.get("tool_result"),
        permission=permission,
        request=number if isinstance(number, int) else 0,
        fork_at=next((one.id for one in reversed(before) if one.type in _SPEAKS), ""),
    )


def seen_at(records: Sequence[Record], request: int) -> SeenContext | None:
    """The context at a request of the records; None where it isn't in them."""
    place = next(
        (
            n
            for n, one in enumerate(records)
            if one.type == REQUEST and one.data.get("n") == request
        ),
        None,
    )
    if place is None:
        return None
    messages, views = records[place].data.get("messages"), dict[str, str]()
    read: dict[str, None] = {}
    summarized = False
    for record in records[:place]:
        data = record.data
        if record.type == "overlay":
            views[string_of(data.get("target"))] = string_of(data.get("view"))
        elif record.type in {"compaction", "uncompaction"}:
            summarized = record.type == "compaction"
        elif record.type == "tool_result" and data.get("name") == "read_file":
            path = string_of(object_of(data.get("details")).get("path"))
            if path and not data.get("is_error"):
                read[path] = None
    return SeenContext(
        messages if isinstance(messages, int) else 0,
        tuple(read),
        sum(view != "full" for view in views.values()),
        summarized,
    )


def background_commands(records: Sequence[Record]) -> list[str]:
    """The commands that were running in the background after the last of these records."""
    running: dict[object, str] = {}
    labels = {
        string_of(one.data.get("call_id")): string_of(one.data.get("label")).removesuffix(" &")
        for one in records
        if one.type == "intent"
    }
    for record in records:
        data = record.data
        job = object_of(data.get("details")).get("job") or data.get("job")
        if record.type == "job_ended":
            running.pop(job, None)
        elif job is not None and record.type in {JOB_MOVED, "tool_result"}:
            running[job] = labels.get(string_of(data.get("call_id")), "")
    return [command for command in running.values() if command]


def subject_of(given: Mapping[str, object]) -> str:
    """The argument of a call that says most about it, also of another agent's."""
    names = ("command", "path", "file_path", "cmd", "pattern", "query", "url")
    named = (given.get(name) for name in names)
    return next((one for one in named if isinstance(one, str) and one), "")
