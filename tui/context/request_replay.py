"""Sent requests, rebuilt from the record alone. Pure.

A request is determined by its `request` record (the model, its limits, the places of the cache
marks, the form of notices) and by the records before it on its branch, after the last frame among
them. The hash in the record tells if the rebuilt request is the one that was sent: it covers the
system prompt, the tools and all messages. The other fields of a request are in its record as they
were sent.

Nothing else plays a part: no setting, no file, no key, no server. So it works on a session of
another installation, too; it is only noted if a frame was made by this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tui.context.compaction_block import with_block
from tui.context.frame import FRAME, Frame, frame_in, is_sealed
from tui.context.history import Rendering
from tui.context.level_view import LevelViewer
from tui.context.notices import Form, NoticeLifter
from tui.context.prune import rule_of_json
from tui.context.record_index import RecordIndex
from tui.context.request_assembly import MarkLife, with_marks
from tui.context.request_trail import Candidate, RequestTrail, Sent
from tui.context.view import View
from tui.core.dataclass import dataclass, field, replace
from tui.core.messages import string_of
from tui.provider.base import Request
from tui.session.records import Record, is_answer
from tui.session.request_numbers import REQUEST, numbered
from tui.tools.limits.clamp import Room

_DAMAGED = "its record is damaged"
_NO_FRAME = "the record of its system prompt and tools (the frame) is missing or damaged"
_OLD = "an older version of the program did not record everything in it"


class SentFields(msgspec.Struct, frozen=True):
    """The fields of a `request` record besides the request's place (`Sent`)."""

    model: str
    max_tokens: int
    server: str = ""
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    marks: list[tuple[int, int]] = []
    form: list[bool] = []
    shared_thinking: bool | None = None
    prune: dict[str, Any] | None = None
    untrusted: list[str] = []
    diagnostics: dict[str, Any] | None = None
    cache_life: MarkLife = "5m"

    def rendering(self, frame: Record) -> Rendering:
        """The receiver that its messages were made for, after a frame."""
        shared = self.shared_thinking is True
        form, untrusted = Form(*self.form[:4]), frozenset(self.untrusted)
        return Rendering(self.server, form, shared, untrusted, frame.id)


@dataclass(frozen=True, slots=True)
class ReplayedRequest:
    """A rebuilt request. `problem` says why it is not the one that was sent, "" if it is.

    `request` is None if there is nothing to build it from. `frame` is the record of its frame;
    `own_frame` is True if this installation made that.
    """

    number: int
    record: Record
    request: Request | None = None
    problem: str = ""
    frame: Record | None = None
    own_frame: bool = False


@dataclass(slots=True)
class _Maker:
    """Builds the requests of one rendering, and reuses what it has already read."""

    viewer: LevelViewer
    lifter: NoticeLifter = field(default_factory=NoticeLifter)
    trail: RequestTrail = field(default_factory=RequestTrail)


class RequestReplay:
    """Rebuilds the requests of a session. `requests` are their records by number."""

    def __init__(self, records: Sequence[Record], key: bytes = b"") -> None:
        """`records` are all of the session, on every branch; `key` is the installation's."""
        self.requests = dict(numbered(records))
        self._records = records
        self._key = key
        self._by_id = {record.id: record for record in records}
        self._frames: dict[str, tuple[Frame | None, bool]] = {}
        self._makers: dict[object, _Maker] = {}
        self._frame_index = RecordIndex({FRAME})
        self._request_index = RecordIndex({REQUEST})
        self._teller = LevelViewer(Room(), None, Rendering())

    def at(self, number: int) -> ReplayedRequest:
        """Rebuild the request with this number, which is one of `requests`."""
        record = self.requests[number]
        return self._replayed(number, record, self.branch(number))

    def seen(self, number: int) -> tuple[View, Frame, str] | str:
        """The view and the frame that a request was made from, and its model; or why they can't be
        rebuilt."""
        record, before = self.requests[number], self.branch(number)
        frame_record = next(reversed(self._frame_index.of(before)), None)
        frame = self._frame(frame_record)[0] if frame_record else None
        fields = sent_fields(record)
        if fields is None:
            return _DAMAGED
        if frame_record is None or frame is None:
            return _NO_FRAME
        maker = self._maker(fields, fields.rendering(frame_record), frame.room)
        return maker.viewer.build(before, model=fields.model), frame, fields.model

    def branch(self, number: int) -> list[Record]:
        """Return the records before a request on its branch."""
        return self._path_to(self.requests[number].parent)

    def number_of(self, record: str) -> int | None:
        """The number of the request with the record of that id; None where it isn't one."""
        return next((n for n, one in self.requests.items() if one.id == record), None)

    def messages_before(self, record: str) -> tuple[View, list[Record], str] | None:
        """The view that the messages before an answer give, those records, and the answer's model:
        what there is of a request without a record. None where there is no such answer."""
        answer = self._by_id.get(record)
        if answer is None or not is_answer(answer):
            return None
        before, model = self._path_to(answer.parent), string_of(answer.data.get("model"))
        return self._teller.build(before, model=model), before, model

    def every(self) -> Iterator[ReplayedRequest]:
        """Rebuild all requests in the order of their numbers; each costs only what is new in it."""
        numbers = {record.id: number for number, record in self.requests.items()}
        path: list[Record] = []
        for record in self._records:
            if record.parent != (path[-1].id if path else None):
                path = self._path_to(record.parent)
            if record.id in numbers:
                yield self._replayed(numbers[record.id], record, path)
            path.append(record)

    def _path_to(self, id_: str | None) -> list[Record]:
        path: list[Record] = []
        while id_ is not None and (record := self._by_id.get(id_)) is not None:
            path.append(record)
            id_ = record.parent
        path.reverse()
        return path

    def _replayed(self, number: int, record: Record, before: Sequence[Record]) -> ReplayedRequest:
        frame_record = next(reversed(self._frame_index.of(before)), None)
        frame, own = self._frame(frame_record) if frame_record else (None, False)
        made = ReplayedRequest(number, record, frame=frame_record, own_frame=own)
        sent, fields = Sent.of(record), sent_fields(record)
        if sent is None or fields is None:
            return replace(made, problem=_DAMAGED)
        if frame_record is None or frame is None:
            return replace(made, problem=_NO_FRAME)
        maker = self._maker(fields, fields.rendering(frame_record), frame.room)
        first = not self._request_index.of(before)
        request = _request(fields, frame, maker, before, first=first)
        measured, candidate = maker.trail.measure(request)
        problem = ""
        if replace(measured, bound=sent.bound) != sent:  # what blocks stand for does not count
            problem = self._difference(fields, sent, maker.trail, candidate, before)
        maker.trail.keep(candidate)
        return replace(made, request=request, problem=problem)

    def _frame(self, record: Record) -> tuple[Frame | None, bool]:
        """Return the frame in a record, None if it is damaged, and True if it was made here."""
        if record.id not in self._frames:
            own = bool(self._key) and is_sealed(record, self._key)
            self._frames[record.id] = frame_in(record), own
        return self._frames[record.id]

    def _maker(self, fields: SentFields, rendering: Rendering, room: Room) -> _Maker:
        rule = rule_of_json(fields.prune)
        key = (fields.model, rendering, room, rule)
        if key not in self._makers:
            self._makers[key] = _Maker(LevelViewer(room, rule, rendering))
        return self._makers[key]

    def _difference(
        self,
        fields: SentFields,
        sent: Sent,
        trail: RequestTrail,
        made: Candidate,
        before: Sequence[Record],
    ) -> str:
        """Say as precisely as possible where a rebuilt request differs from the one sent."""
        if fields.shared_thinking is None:
            return _OLD
        earlier = [Sent.of(record) for record in self._request_index.of(before)]
        points = [(one.messages, one.sha256) for one in earlier if one]
        points.append((sent.open_messages, sent.open_sha256))
        same = [count for count, hash_ in points if trail.digest_after(made, count) == hash_]
        first, last = max(same, default=0) + 1, sent.messages
        if first <= sent.open_messages:
            last = sent.open_messages
        if first >= last:
            return f"message {last} is not what was sent"
        return f"something in messages {first} to {last} is not what was sent"


def sent_fields(record: Record) -> SentFields | None:
    """Decode a record's fields; None if it is damaged."""
    try:
        fields = msgspec.convert(record.data, SentFields)
        rule_of_json(fields.prune)
    except (msgspec.ValidationError, UnicodeError):  # half a surrogate pair
        return None
    return fields


def _request(
    fields: SentFields, frame: Frame, maker: _Maker, before: Sequence[Record], *, first: bool
) -> Request:
    messages = maker.viewer.build(before, model=fields.model).messages
    if Form(*fields.form[:4]).system_messages:
        messages = maker.lifter.lifted(messages)
    messages = [*with_block(messages)]
    system, marked = with_marks(
        frame.system, messages, fields.marks, fields.cache_life, first=first
    )
    return Request(
        fields.model,
        system,
        marked,
        frame.tools,
        fields.max_tokens,
        fields.thinking,
        fields.effort,
        diagnostics=fields.diagnostics,
    )
