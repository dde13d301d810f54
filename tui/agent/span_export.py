"""Sends the spans of a session to the person's collector while it runs.

Records come as they are appended, from the loop, and cost it an append each. A thread of its own
folds them into spans and sends these in batches. Spans are computed from the record, so a collector
that is gone costs no memory but a batch: what it lacks is folded once it is back. A mark on the
disk says up to which record it has everything, from which the next run of the session continues.

A turn belongs to the collector that was set when its prompt was recorded, by the prompt's record:
to no other one are its spans sent, whatever the next run of the session has set.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Protocol

from tui.agent.span_collector import MOST_TEXT, Delivery
from tui.context.spans import RunningCall, SpanFold
from tui.core.dataclass import dataclass, field
from tui.core.errors import SessionError
from tui.core.formatting import plural
from tui.core.messages import string_of
from tui.core.otlp import Span, parent_in, text_size
from tui.session.reader import read
from tui.session.records import SUB_AGENT, Record
from tui.session.session import Session, file_of_child

log = logging.getLogger(__name__)

BATCH: Final = 128
"""Most spans of one request: to write more at once would keep the loop from the interpreter."""
GATHER_S: Final = 1.0
"""Seconds for which spans are gathered before they are sent."""
FLUSH_S: Final = 1.0
"""Most seconds that the end of a session waits for its last spans."""
HEADLESS_FLUSH_S: Final = 10.0
"""The same where nobody waits at a screen, and the session may never be opened again: the seconds
of a request, by the protocol's own rule."""
_STEP: Final = 100
"""Records that are folded at a time: between them the loop has the interpreter."""
PAUSE_S: Final = 0.01
"""Seconds between two steps while there is more to do."""
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
_NOTHING: Final = "-"
"""A mark before all records."""
_KEEP_S: Final = 30 * 86_400
_MARK_CHARS: Final = 64


class SpanTarget(Protocol):
    """A collector as `SpanSender` needs it; see `tui.agent.span_collector`."""

    @property
    def name(self) -> str: ...
    def deliver(self, spans: Sequence[Span], *, within_s: float) -> Delivery:
        """Send spans. Blocks, never raises."""
        ...


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """Counts of the spans that a collector took so far and of those that it refused, and why it
    doesn't take the next ones, "" while it does."""

    sent: int = 0
    dropped: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    """A record to fold. `marks`: it is of the session itself; `old`: its spans aren't sent."""

    fold: SpanFold
    record: Record
    marks: bool
    old: bool = False


@dataclass(slots=True)
class SpanSender:
    """Folds what `queue` has, and sends it to `target`; used by one thread. Only turns of the
    collector `identity` are sent. `mark` is the file of the mark, None where nothing is kept."""

    target: SpanTarget
    identity: str
    mark: Path | None = None
    queue: deque[_Item] = field(default_factory=deque[_Item])
    figures: SpanFigures = field(default_factory=SpanFigures)
    _batch: list[Span] = field(default_factory=list[Span])
    _text: int = 0
    """The characters of the batch."""
    _last: str = ""
    """The last record that was folded."""
    _marked: str = ""
    _own: bool = False
    """True in a turn that belongs to the target."""
    _since: float = 0.0
    _not_before: float = 0.0
    _wait: float = _FIRST_WAIT_S

    @property
    def marked(self) -> str:
        """The last record up to which the collector has everything."""
        return self._marked

    def open(self, start: str) -> None:
        """Find the record up to which the collector has everything: `start` in a session that is
        sent for the first time. Marks of long ago are removed. Blocks."""
        self._marked = start
        if self.mark is None:
            return
        with suppress(OSError, ValueError):
            self._marked = self.mark.read_text()[:_MARK_CHARS].strip() or start
            return
        self._last, self._marked = start, ""
        self._write_mark()
        with suppress(OSError):
            for file in self.mark.parent.iterdir():
                if file.stat().st_mtime < time.time() - _KEEP_S:
                    file.unlink()

    def step(self, now: float, *, last_s: float = 0.0) -> float | None:
        """Fold and send what is due. `last_s`: it is the end, and so long may be waited for an
        answer. Returns after how many seconds to call again; None when a record comes."""
        self._fold(now)
        if not self._batch:
            self._write_mark()
            return PAUSE_S if self.queue else None
        if not last_s:
            if self._not_before > now:
                return self._not_before - now
            if not self._full and (left := self._since + GATHER_S - now) > 0:
                return PAUSE_S if self.queue else left
        done = self.target.deliver(self._batch, within_s=last_s or 60.0)
        if done.outcome == "later":
            wait = max(done.wait_s, self._wait)
            self._wait = min(2 * self._wait, _LONGEST_WAIT_S)
            self._not_before = now + wait
            self._note(problem=done.why or "no reason given")
            return wait
        count, self._wait, self._not_before = len(self._batch), _FIRST_WAIT_S, 0.0
        self._batch, self._text = [], 0
        if done.outcome == "refused":
            self._note(dropped=count, problem=done.why)
        else:
            rejected = min(done.rejected, count)
            why = done.why or "it doesn't say why"
            problem = f"it rejected {plural(rejected, 'span')}: {why}" if rejected else ""
            self._note(sent=count - rejected, dropped=rejected, problem=problem)
        self._write_mark()
        return PAUSE_S if self.queue else None

    @property
    def _full(self) -> bool:
        return len(self._batch) >= BATCH or self._text >= MOST_TEXT

    def _fold(self, now: float) -> None:
        for _ in range(_STEP):
            if not self.queue or self._full:
                return
            item = self.queue.popleft()
            made = item.fold.add(item.record)
            past = item.old or (item.marks and (item.record.id <= self._marked or not self._own))
            if item.marks and item.record.type == "user":
                self._own = item.record.data.get("collector") == self.identity
            if not past:
                if made and not self._batch:
                    self._since = now
                self._batch += made
                self._text += sum(map(text_size, made))
            if item.marks:
                self._last = item.record.id

    def _note(self, *, sent: int = 0, dropped: int = 0, problem: str) -> None:
        before = self.figures
        self.figures = SpanFigures(before.sent + sent, before.dropped + dropped, problem)

    def _write_mark(self) -> None:
        """Note that the collector has all spans up to the last record. Not worth a sync: a mark
        that is lost sends spans again that the collector knows by their ids."""
        if self.mark is None or self._last <= self._marked:
            return
        self._marked = self._last
        with suppress(OSError):
            self.mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.mark.write_text(self._last)


class SpanExport:
    """Follows a session and those of its sub-agents, until `close`."""

    def __init__(
        self,
        sender: SpanSender,
        fold: SpanFold,
        session: Session,
        *,
        around: str = "",
        headless: bool = False,
    ) -> None:
        self._sender, self._fold, self._session = sender, fold, session
        self._live = live_fold(session)
        self._headless = headless
        outer = parent_in(around)
        self._around = {"traceparent": outer.traceparent} if outer else {}
        self._from = session.records[-1].id if session.records else _NOTHING
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends: float | None = None

    @property
    def figures(self) -> SpanFigures:
        return self._sender.figures

    @property
    def collector(self) -> str:
        """The collector's host and port."""
        return self._sender.target.name

    @property
    def prompt_fields(self) -> Mapping[str, str]:
        return {"collector": self._sender.identity, **self._around}

    def recorded(self, record: Record) -> None:
        self._live.add(record)
        self._take(_Item(self._fold, record, marks=True))

    def traceparent(self, call_id: str) -> str:
        return traceparent_in(self._live, call_id)

    def of_sub_agent(self, session: Session) -> SubAgentSpans:
        """Follow the session of a sub-agent, which may have worked before."""
        own = self._fold_of(session.id)
        for record in session.records:
            self._take(_Item(own, record, marks=False, old=True))
        live = live_fold(session, self._live.runs.setdefault(session.id, []))
        return SubAgentSpans(self, own, live)

    def _fold_of(self, session: str) -> SpanFold:
        """Return a fold for the session of a sub-agent."""
        fold = self._fold
        fold.followed.add(session)
        return SpanFold(session, fold.prices, fold.content, fold.runs.setdefault(session, []))

    def take(self, fold: SpanFold, record: Record) -> None:
        """Take a record of a sub-agent's session."""
        self._take(_Item(fold, record, marks=False))

    def begin(self, say: Callable[[str], Any]) -> None:
        """Start to send, with what an earlier run recorded and could not send. `say` is called in a
        thread with a sentence, once for each trouble with the collector."""
        if self._thread is not None:
            return
        session = self._session
        every = [*session.elsewhere, *session.records]
        self._sender.queue.clear()  # what came since is among these
        run = threading.Thread(target=self._run, args=(every, say), name="spans", daemon=True)
        self._thread = run
        run.start()

    def close(self) -> None:
        """Send what is left. Blocks, for a few seconds at most: not long for a collector that has
        made trouble."""
        patient = self._headless and not self.figures.problem
        seconds = HEADLESS_FLUSH_S if patient else FLUSH_S
        with self._news:
            self._ends = time.monotonic() + seconds
            self._news.notify()
        if self._thread is not None:
            self._thread.join(seconds)

    def _take(self, item: _Item) -> None:
        with self._news:
            self._sender.queue.append(item)
            self._news.notify()

    def _run(self, every: list[Record], say: Callable[[str], Any]) -> None:
        try:
            self._sender.open(self._from)
            every.sort(key=attrgetter("id"))
            earlier = [_Item(self._fold, one, marks=True) for one in every]
            earlier += [item for start in self._unsent_starts(every) for item in self._inner(start)]
            earlier.sort(key=attrgetter("record.id"), reverse=True)
            self._sender.queue.extendleft(earlier)
            self._send_all(say)
        except Exception as error:
            log.exception("the sending of spans ended")
            say(f"Spans are no longer sent to {self.collector}: {type(error).__name__}.")

    def _unsent_starts(self, every: Iterable[Record]) -> Iterable[Record]:
        """Return the first start of each sub-agent that had not ended when the collector had
        everything."""
        own, starts = False, dict[str, Record]()
        for record in every:
            session = string_of(record.data.get("session"))
            if record.type == "user":
                own = record.data.get("collector") == self._sender.identity
            elif record.type == SUB_AGENT and record.data.get("state") == "started":
                if own:
                    starts.setdefault(session, record)
            elif record.type == SUB_AGENT and record.id <= self._sender.marked:
                starts.pop(session, None)
        return starts.values()

    def _inner(self, start: Record) -> Iterator[_Item]:
        """Yield what a sub-agent recorded; what came before its start was sent."""
        with suppress(SessionError, OSError):
            file = file_of_child(self._session.path, string_of(start.data.get("path")))
            records = read(file).records if file is not None else ()
            if records:
                fold = self._fold_of(string_of(start.data.get("session")))
                for one in records:
                    yield _Item(fold, one, marks=False, old=one.id < start.id)

    def _send_all(self, say: Callable[[str], Any]) -> None:
        said = False
        while True:
            ends, now = self._ends, time.monotonic()
            if ends is not None and now >= ends:
                return
            wait = self._sender.step(now, last_s=ends - now if ends is not None else 0.0)
            problem = self.figures.problem
            if problem and not said:
                say(f"The collector at {self.collector} doesn't take spans: {problem}.")
            said = bool(problem)
            if ends is not None and (wait is None or wait > PAUSE_S):
                return
            with self._news:
                if self._ends is None and not (wait is None and self._sender.queue):
                    _ = self._news.wait(wait)


@dataclass(frozen=True, slots=True)
class SubAgentSpans:
    """Follows the session of a sub-agent."""

    export: SpanExport
    fold: SpanFold
    live: SpanFold

    @property
    def prompt_fields(self) -> Mapping[str, str]:
        return {}

    def recorded(self, record: Record) -> None:
        self.live.add(record)
        self.export.take(self.fold, record)

    def traceparent(self, call_id: str) -> str:
        return traceparent_in(self.live, call_id)

    def of_sub_agent(self, session: Session) -> SubAgentSpans:
        return self.export.of_sub_agent(session)


def live_fold(session: Session, within: Sequence[RunningCall] = ()) -> SpanFold:
    """Return a fold of the turn that goes on. It is never behind, as the one that is sent may be:
    what starts now has to know the ids of the spans that it is in."""
    fold, records = SpanFold(session.id, within=within), session.records
    newest = next((n for n in range(len(records) - 1, -1, -1) if records[n].type == "user"), 0)
    for record in records[newest:]:
        fold.add(record)
    return fold


def traceparent_in(fold: SpanFold, call_id: str) -> str:
    """Return the span of an open call, or that of the turn, for whoever continues its trace."""
    call = fold.calls.get(call_id)
    if call is not None:
        return call.context.traceparent
    return fold.turn.root.traceparent if fold.turn is not None else ""
