"""Folds the records of a session into its timeline, one by one. Pure.

A record is looked at once, when it comes; nothing of its text is kept but a label. So a timeline
can grow while a turn runs, and its memory is that of its steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tui.context.failed_attempts import attempt_in
from tui.context.labels import call_label, one_line
from tui.context.overrides import content_of
from tui.context.record_index import continues
from tui.context.timeline.axis import BACK_S, KEPT_S, TimeAxis
from tui.context.timeline.check_line import check_in
from tui.context.timeline.check_runs import CheckRun, CheckRuns
from tui.context.timeline.checks import verdict_of
from tui.context.timeline.lanes import CountSums, LaneGroup, Sums
from tui.context.timeline.sizes import ContextSizes
from tui.context.timeline.steps import LANES, Kind, Marks, RequestInput, TimelineStep
from tui.context.timeline.totals import Totals
from tui.core.config import Price
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import break_reason
from tui.core.formatting import plural, tokens, wait_time
from tui.core.messages import (
    Block,
    Usage,
    as_meant,
    list_of,
    object_of,
    string_of,
    tool_calls,
)
from tui.core.retold import retold, retold_lines
from tui.provider.prices import CacheLife, ModelPrice, price_of
from tui.session.records import BATCH, BESIDE, Record, is_answer, is_prompt, spent_in, title_of
from tui.tools.registry import title as call_title
from tui.tools.registry import words_of

_LONG_S: Final = 3600.0
"""Most seconds that a request may have run."""
_ASKED_S: Final = 600.0
"""Most seconds of a wait for the person that stay on the axis."""
_AGENT_S: Final = 86_400.0
_BY_HAND: Final = "manual"
"""Why a compaction was made that a person asked for."""
_LOST_TOKENS: Final = 2_000
"""Fewest tokens of which it is said that the cache lost them."""
_CACHE_LIFE_S: Final = 240.0
"""Seconds after which it may be the pause that made the server forget: it says 5 minutes."""
_EDITS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "edit", "write"})
"""Other programs' tools that change the file that they name."""
_ASKS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
_COMMANDS: Final = frozenset({"run_command", "Bash", "bash", "shell", "exec_command"})
_SIDE: Final = {
    "cache_warmed": "cache kept warm",
    "exam": "exam of a summary",
    "goal": "check of the goal",
    "memory": "notes for MEMORY.md",
    "side_question": "side question",
    "title": "title",
}
_ASIDE: Final = (*_SIDE, "unused")
_FILES_MAX: Final = 20
_SAID_CHARS: Final = 200
_EXPLAIN: Final = frozenset(
    {
        "assistant",
        "tool_result",
        "permission",
        "sub_agent",
        "compaction",
        "exam",
        "goal",
        "memory",
        "unused",
    }
)
"""The types of records that come after something ran."""

MARKS: Final = ("prompt", "context", "check", "trouble", "pause")
"""The sorts of marks: prompts; breaks, compactions and other changes of the context; checks; what
went wrong; where time is cut out."""


@dataclass(slots=True)
class _OpenCall:
    """A call that has no result yet."""

    block: Block
    at: float
    time: str
    label: str = ""


@dataclass(slots=True)
class _OpenRequest:
    """A request that has no answer yet: its step, the place of that, since when the present attempt
    runs, and the time by the clock when it was made."""

    step: TimelineStep
    place: int
    attempt: float
    clock: float | None = None

    def seconds(self, timeline: SessionTimeline) -> float:
        """The seconds since then by the clock, by the axis where that jumped."""
        drawn, clock = timeline.now - self.step.at, timeline.axis.clock
        if clock is None or self.clock is None:
            return drawn
        return max(drawn, clock - self.clock)


@dataclass(slots=True)
class SessionTimeline:
    """The timeline of one branch of a session. `prices` are the configured ones."""

    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    cwd: str = ""
    """The folder that the session began in, as far as it is known."""
    steps: list[TimelineStep] = field(default_factory=list[TimelineStep])
    anchors: array[float] = field(default_factory=lambda: array("d"))
    """Where each step was begun to be told; unlike its time, in the order of the steps."""
    lanes: dict[Kind, LaneGroup] = field(
        default_factory=lambda: {kind: LaneGroup() for kind in LANES}
    )
    marks: dict[str, Marks] = field(default_factory=lambda: {sort: Marks() for sort in MARKS})
    requests: Marks = field(default_factory=Marks)
    """The requests that were answered."""
    inputs: CountSums = field(default_factory=CountSums)
    """The tokens of each of them, and those that were not cached."""
    news: CountSums = field(default_factory=CountSums)
    spent: Sums = field(default_factory=Sums)
    prompt_costs: array[float] = field(default_factory=lambda: array("d"))
    """What each prompt has cost, as far as prices are known."""
    changed: Sums = field(default_factory=Sums)
    """How many files steps changed, as often as they did."""
    reds: array[int] = field(default_factory=lambda: array("l"))
    """After each check, how many of them are red."""
    unpriced: int = 0
    """Answers whose price is not known: that of their model, or how many tokens they were."""
    refused: int = 0
    """Attempts that failed and are not billed, and those that may be: see `attempt_in`."""
    lost: int = 0
    totals: Totals = field(default_factory=Totals)
    axis: TimeAxis = field(default_factory=TimeAxis)
    now: float = 0.0
    """The end of the axis."""
    _work: _Work = field(default_factory=lambda: _Work())  # noqa: PLW0108 - it is defined below

    @property
    def worked(self) -> float:
        """The seconds of the axis in which it worked, without those between prompts and those in
        which it waited for the person."""
        waiting = sum(lane.busy for lane in self.lanes["question"].rows)
        return max(0.0, self.now - self.totals.idle - waiting)

    @property
    def usd(self) -> float | None:
        """The cost of the branch; None as soon as one price is not known."""
        return None if self.unpriced else self.spent.total

    @property
    def count(self) -> int:
        """The records that were folded."""
        return self._work.count

    def context_changes(self) -> list[TimelineStep]:
        """The breaks, the compactions and the other changes of what the model sees."""
        return [self.steps[step] for step in self.marks["context"].steps]

    def red_checks(self) -> list[str]:
        """The checks that were red when they were last run."""
        return [*self._work.checks.red_ones()]

    def last_checks(self) -> dict[str, TimelineStep]:
        """The run by which each check is judged: its last red one, if no green one since then
        covered that, else its last one."""
        steps = (self.steps[place] for place in self.marks["check"].steps)
        found = {step.check: step for step in steps if step.verdict == "green"}
        return found | self._work.checks.red_ones()

    def red_runs(self) -> list[CheckRun]:
        """The last red run of each check in each folder that no green one since then answered."""
        red = self._work.checks.red
        return [*{(run.step.check, run.scope.folder): run for run in red}.values()]

    def green_runs(self) -> list[CheckRun]:
        """The last green run of each check for each part of the project."""
        return [*self._work.checks.green.values()]

    def running(self) -> list[TimelineStep]:
        """The steps that have begun and not ended: the request, and the calls."""
        work, found = self._work, list[TimelineStep]()
        if work.request is not None:
            found.append(work.request.step)
        for id_, call in work.calls.items():
            label = _call_label(call.block, call.label)
            running = TimelineStep(
                "call", call.at, self.now, call.time, self.now - call.at, label, ""
            )
            running.state, running.call_id = "running", id_
            found.append(running)
        return found

    def follow(self, records: Sequence[Record]) -> bool:
        """Add what is new on a branch that grows. False where it is another one now: then fold it
        from the beginning."""
        work = self._work
        if not continues(records, work.count, work.last):
            return False
        self.extend(records[work.count :] if work.count else records)
        return True

    def extend(self, records: Iterable[Record]) -> None:
        """Add records in their order."""
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add the next record of the branch."""
        work, axis, kind, data = self._work, self.axis, record.type, record.data
        work.count += 1
        work.last = record
        work.before = axis.now
        work.passed = seconds = axis.passed(record.time)
        if seconds > 0:
            work.idle += seconds
            rests = work.request is None and not work.calls
            needed = rests or seconds > KEPT_S
            explained = work.explained(kind, data) if needed else 0.0
            cut = axis.move(seconds, explained)
            self.now = axis.now
            if rests and not explained:
                self.totals.idle += axis.now - work.before
            if cut:
                self._cut(record, seconds, cut)
        elif seconds < -BACK_S:
            axis.jumps += 1
            self._jumped_back(record, seconds)
        if work.wait >= 0:
            work.end_wait(self)
        if handler := _HANDLERS.get(kind):
            handler(self, record, data)
        work.type = kind

    # What the handlers use

    def put(self, step: TimelineStep, marked: str = "") -> int:
        """Append a step, with a mark of its sort."""
        place = len(self.steps)
        self.steps.append(step)
        at = step.at
        anchors = self.anchors
        anchors.append(anchors[-1] if anchors and anchors[-1] > at else at)
        if marked:
            self.marks[marked].add(anchors[-1], place)
        return place

    def bar(self, step: int, start: float | None = None, *, failed: bool = False) -> None:
        """Give a step a bar in the lane of its kind."""
        one = self.steps[step]
        group = self.lanes["request" if one.kind in {"compaction", "aside"} else one.kind]
        group.add(one.at if start is None else start, one.end, step, failed=failed)

    def pay(self, model: str, usage: Usage, *, batch: bool = False) -> float | None:
        """Count the cost of an answer now."""
        usd = None
        if price := self._work.price(model, self.prices):
            usd = (price.in_batch() if batch else price).cost(usage)
        if usd is None:
            self.unpriced += 1
        elif usd:
            self.spent.add(self.now, usd)
            if self.prompt_costs:
                self.prompt_costs[-1] += usd
        return usd

    def count_attempt(self, record: Record) -> None:
        """Count an attempt that failed, if a record is of one."""
        how = attempt_in(record)
        self.refused += how == "refused"
        self.lost += how == "lost"

    def close_request(self, state: str, note: str = "") -> None:
        """End the open request without an answer."""
        work = self._work
        if (request := work.request) is None:
            return
        step = request.step
        step.end, step.state, step.note = self.now, state, note
        step.seconds = request.seconds(self)
        self.bar(request.place, request.attempt, failed=True)
        work.request = None

    def close_calls(self, state: str) -> None:
        """End the calls that have no result."""
        for id_ in [*self._work.calls]:
            self.end_call(id_, self._work.calls[id_].time, {}, state)

    def end_call(
        self, id_: str, time: str, data: dict[str, Any], state: str, record: str = ""
    ) -> None:
        """Append a call with its result."""
        call = self._work.calls.pop(id_, None)
        now, seconds = self.now, _number(data.get("seconds"))
        block: Block = as_meant(call.block) if call else {"name": data.get("name")}
        name = string_of(block.get("name"))
        asks = words_of(name).asks or name in _ASKS
        begun = call.at if call else now
        if asks or (not seconds and "seconds" not in data):
            start = max(begun, self._work.before) if asks else begun
            seconds = self._work.passed if asks else now - start
        else:
            start = max(begun, now - seconds)
        label = _call_label(block, call.label if call else "")
        step = TimelineStep(
            "question" if asks else "call", start, now, time, seconds, label, record
        )
        step.state, step.call_id = state, id_
        given = object_of(block.get("input"))
        step.files = _files(name, given, object_of(data.get("details"))) if not state else ()
        if name in _COMMANDS and data and data.get("summary") != "denied":
            self._checked(step, name, given, data)
        place = self.put(step, "check" if step.verdict else "")
        if step.verdict:
            if step.turned and step.verdict == "red":
                self.totals.red_turns.append(place)
            self.reds.append(len(self.red_checks()))
        if step.files:
            self.changed.add(now, len(step.files))
        if asks:
            self.totals.waited += max(0.0, seconds)
        if name != "task":
            self.bar(place, failed=bool(state) or step.verdict == "red")

    def _checked(
        self, step: TimelineStep, tool: str, given: dict[str, Any], data: dict[str, Any]
    ) -> None:
        """Judge a command that ran, if it is a check."""
        checks, command = self._work.checks, string_of(given.get("command"))
        folder = checks.folder_of(tool, given, self.cwd)
        step.check = check_in(command)
        if step.check and (verdict := verdict_of(command, data)):
            step.verdict = verdict
            step.turned = checks.add(step, command, folder)
        if not step.state:
            checks.follow(tool, command, self.cwd)

    def _cut(self, record: Record, seconds: float, cut: float) -> None:
        """Say where the axis leaves time out."""
        work, label = self._work, f"{wait_time(seconds)} passed"
        step = TimelineStep("pause", work.before, self.now, record.time, seconds, label, record.id)
        step.note = f"{wait_time(cut)} of it aren't drawn"
        if work.request is None and not work.calls:
            step.note += "."
        else:
            step.note += (
                ": nothing is known to have run, so someone was waited for, the computer slept, or"
                " its clock was changed."
            )
        self.put(step, "pause")

    def _jumped_back(self, record: Record, seconds: float) -> None:
        """Say where the clock did."""
        now, label = self.now, f"The clock jumped back by {wait_time(-seconds)}"
        step = TimelineStep("pause", now, now, record.time, seconds, label, record.id)
        step.note = "The order of the record counts here."
        self.put(step, "pause")


@dataclass(slots=True)
class _Work:
    """The state of a timeline between two records."""

    count: int = 0
    last: Record | None = None
    type: str = ""
    before: float = 0.0
    """The end of the axis before this record."""
    passed: float = 0.0
    sizes: ContextSizes = field(default_factory=ContextSizes)
    calls: dict[str, _OpenCall] = field(default_factory=dict[str, _OpenCall])
    request: _OpenRequest | None = None
    wait: int = -1
    """The step that waits now."""
    delay: float = 0.0
    prompts: int = 0
    number: int = 0
    """Of the last request."""
    answered: tuple[TimelineStep, str] | None = None
    """The last request that was, and the profile that paid it."""
    idle: float = 0.0
    """The seconds by the clock since then."""
    known: dict[tuple[str, str], ModelPrice | None] = field(
        default_factory=dict[tuple[str, str], "ModelPrice | None"]
    )
    """The price of a model, for each profile that paid."""
    checks: CheckRuns = field(default_factory=CheckRuns)
    agents: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])
    jobs: dict[str, float] = field(default_factory=dict[str, float])
    broken: int = -1
    """The last break, until it is billed."""
    explained_break: bool = False
    """The record says why the next request isn't cached."""

    def explained(self, kind: str, data: dict[str, Any]) -> float:
        """The seconds before a record in which something is known to have run."""
        if kind not in _EXPLAIN:
            return self.delay
        match kind:
            case "assistant":
                return _LONG_S
            case "tool_result":
                asks = words_of(string_of(data.get("name"))).asks
                return _ASKED_S if asks else _number(data.get("seconds"))
            case "permission":
                return _ASKED_S if data.get("by") == "person" else 0.0
            case "sub_agent":
                return 0.0 if data.get("state") == "started" else _AGENT_S
            case "compaction":
                return 0.0 if data.get("reason") == _BY_HAND else _ASKED_S
            case _:
                return _ASKED_S

    def price(self, model: str, prices: Mapping[str, Price]) -> ModelPrice | None:
        """The price of a model for who pays now, looked up once."""
        payer = self.last.payer if self.last else ""
        if (payer, model) not in self.known:
            self.known[payer, model] = price_of(model, prices, payer)
        return self.known[payer, model]

    def end_wait(self, timeline: SessionTimeline) -> None:
        """End the wait that the record before has begun."""
        step = timeline.steps[self.wait]
        step.end = min(timeline.now, step.at + self.delay) if self.delay else timeline.now
        step.state = ""
        timeline.bar(self.wait)
        if self.request is not None:
            self.request.attempt = step.end
        self.wait, self.delay = -1, 0.0


_Handler = Callable[[SessionTimeline, Record, dict[str, Any]], None]


def _prompt(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    line.close_request("no answer")
    line.close_calls("no result")
    work.sizes.add(record, content_of(record))
    if is_prompt(record):
        label = title_of(data)
        work.prompts += 1
        step = TimelineStep("prompt", line.now, line.now, record.time, 0.0, label, record.id)
        step.number = work.prompts
        if prompts := line.marks["prompt"].steps:
            line.totals.end_prompt(line.prompt_costs[-1], prompts[-1])
        line.put(step, "prompt")
        line.prompt_costs.append(0.0)


def _request(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    line.close_request("no answer")
    line.close_calls("no result")
    model, number = string_of(data.get("model")), data.get("n")
    step = TimelineStep("request", line.now, line.now, record.time, 0.0, model, record.id)
    step.model, step.state = model, "running"
    work.number = step.number = number if isinstance(number, int) else work.number + 1
    work.request = _OpenRequest(step, line.put(step), line.now, line.axis.clock)


def _answer(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work, content = _work(line), content_of(record)
    if not is_answer(record):
        work.sizes.add(record, content)
        _calls(line, record, content)
        return
    usage, request = Usage.from_json(data.get("usage")), work.request
    if request is None:  # another program's session, or an old one: they don't record requests
        line.close_calls("no result")
        step = TimelineStep("request", work.before, line.now, record.time, 0.0, "", record.id)
        step.seconds = line.now - work.before
        work.number = step.number = work.number + 1
        request = _OpenRequest(step, line.put(step), work.before)
    else:
        step = request.step
        step.seconds = request.seconds(line)
    step.end, step.state = line.now, ""
    step.model = string_of(data.get("model")) or step.model
    step.label = step.model
    reason = string_of(data.get("stop_reason"))
    if reason in {"max_tokens", "refusal", "model_context_window_exceeded"}:
        step.note = f"The answer ended early: {reason}."
    whole = usage.prompt_tokens
    if usage.context_tokens:
        whole = min(whole, usage.context_tokens)
    parts = work.sizes.parts(whole)
    counted = whole > 0
    whole = whole or sum(parts)
    cached = min(whole, usage.cache_read_input_tokens)
    written = min(whole - cached, usage.cache_creation_input_tokens)
    step.sent = RequestInput(
        whole, cached, written, usage.output_tokens, usage.thinking_tokens, parts, counted
    )
    step.usd = None
    if usage.total:
        step.usd = line.pay(step.model, usage, batch=bool(data.get(BATCH)))
    else:
        line.unpriced += 1
    line.requests.add(line.anchors[request.place], request.place)
    line.inputs.add(whole)
    line.news.add(whole - cached)
    line.bar(request.place, request.attempt)
    work.request = None
    life: CacheLife = "1h" if usage.ephemeral_1h_input_tokens else "5m"
    _cache_lost(line, record, step, step.sent, life)
    work.sizes.add(record, content)
    _calls(line, record, content)


def _cache_lost(
    line: SessionTimeline, record: Record, step: TimelineStep, sent: RequestInput, life: CacheLife
) -> None:
    """Say where the server had lost what it cached, and nothing in the record explains it."""
    work = _work(line)
    last, payer = work.answered or (None, "")
    work.answered, idle, work.idle = (step, record.payer), work.idle, 0.0
    before = last.sent if last else None
    explained, work.explained_break = work.explained_break, False
    if explained or not last or not before or not (before.cached or before.written):
        return
    kept = min(before.cached + before.written, sent.tokens)
    lost = kept - sent.cached
    if lost < _LOST_TOKENS or lost < kept / 2:
        return
    why, lost_by = "", "not kept by the server"
    if idle >= _CACHE_LIFE_S:
        why, lost_by = f" after {wait_time(idle)} without a request", "after a pause"
    if last.model != step.model:
        why, lost_by = f" for {step.model}: it was {last.model}'s", "another model"
    if payer != record.payer:
        why, lost_by = ": it was another profile's", "another profile"
    label = f"The server had not kept its cache{why}: {lost:,} tokens paid for again"
    mark = TimelineStep("break", step.at, step.at, step.time, 0.0, label, step.record)
    mark.tokens, mark.model, mark.lost, mark.usd = lost, step.model, lost_by, None
    if price := work.price(step.model, line.prices):
        written, prompt = min(lost, sent.written), sent.tokens
        again = price.forecast(written=written, fresh=lost - written, life=life, prompt=prompt)
        mark.usd = max(0.0, again - price.forecast(read=lost, prompt=prompt))
    mark.note = "worked out from the server's counts"
    line.put(mark, "context")
    line.totals.add_break(mark)


def _calls(line: SessionTimeline, record: Record, content: list[Block]) -> None:
    for block in tool_calls(content):
        id_ = string_of(block.get("id"))
        _work(line).calls[id_] = _OpenCall(block, line.now, record.time)


def _intent(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del record
    if call := _work(line).calls.get(string_of(data.get("call_id"))):
        call.label = string_of(data.get("label"))
        call.at = line.now


def _result(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    _work(line).sizes.add(record, content_of(record))
    state = "failed" if data.get("is_error") else ""
    if data.get("summary") == "interrupted":
        state = "stopped"
    line.end_call(string_of(data.get("call_id")), record.time, data, state, record.id)


def _permission(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    refused = string_of(data.get("answer")) in {"no", "deny"}
    if data.get("by") != "person":
        return
    work = _work(line)
    subject = call_title(string_of(data.get("tool")), string_of(data.get("subject")))
    begun, id_ = work.before, string_of(data.get("call_id"))
    step = TimelineStep("question", begun, line.now, record.time, 0.0, one_line(subject), record.id)
    step.seconds = max(line.now - begun, work.passed if work.passed > 0 else 0.0)
    step.state, step.call_id = "refused" if refused else "", id_
    step.note = one_line(string_of(data.get("reason"))) if refused else ""
    line.totals.waited += step.seconds
    line.bar(line.put(step), failed=refused)
    if call := work.calls.get(id_):
        call.at = line.now


def _wait(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    """Take a retry, a park or a change of models."""
    line.count_attempt(record)
    work = _work(line)
    if (request := work.request) is not None:
        request.step.end = line.now
        line.bar(request.place, request.attempt, failed=True)
        request.attempt = line.now
    step = TimelineStep("wait", line.now, line.now, record.time, 0.0, _words(record), record.id)
    if record.type == "failover":
        line.put(step, "trouble")
        return
    step.state = "waiting"
    if record.type == "retry":
        work.delay = step.seconds = min(_number(data.get("delay_s")), _AGENT_S)
    else:
        step.seconds = max(0.0, -(line.axis.since(data.get("until")) or 0.0))
    work.wait = line.put(step, "trouble")


def _agent(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work, id_ = _work(line), string_of(data.get("call_id"))
    if data.get("state") == "started":
        work.agents[id_] = line.now, record.time
        return
    at, time = work.agents.pop(id_, (work.before, record.time))
    label = one_line(f"{string_of(data.get('agent'))}: {string_of(data.get('description'))}")
    step = TimelineStep("agent", at, line.now, time, line.now - at, label, record.id)
    step.call_id, step.model = id_, string_of(data.get("model"))
    state = string_of(data.get("state"))
    step.state = "" if state == "done" else state
    step.usd = 0.0
    for model, _, usage in spent_in(record):
        usd = line.pay(model, usage)
        step.usd = None if usd is None or step.usd is None else step.usd + usd
    calls = data.get("calls")
    step.note = plural(calls, "call") if isinstance(calls, int) else ""
    line.bar(line.put(step), failed=step.failed)


def _job_begun(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del record
    _work(line).jobs.setdefault(string_of(data.get("call_id")), line.now)


def _job_ended(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work, id_ = _work(line), string_of(data.get("call_id"))
    seconds = _number(data.get("seconds"))
    at = max(work.jobs.pop(id_, 0.0), line.now - seconds, 0.0)
    label = one_line(string_of(data.get("command"))) or string_of(data.get("job"))
    step = TimelineStep("job", at, line.now, record.time, seconds, label, record.id)
    step.call_id, code = id_, data.get("exit_code")
    step.state = "" if code == 0 else string_of(data.get("state")) or "ended"
    line.bar(line.put(step), failed=bool(step.state))


def _compaction(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    work.sizes.compact(record)
    work.explained_break = True
    before, after = (_whole(data.get(f"tokens_{name}")) for name in ("before", "after"))
    removed = _whole(data.get("messages_removed"))
    label = f"{plural(removed, 'message')} summarized" if removed else "summarized"
    # before one that a person asks for, nobody knows since when it ran
    begun = line.now if data.get("reason") == _BY_HAND else work.before
    step = TimelineStep("compaction", begun, line.now, record.time, 0.0, label, record.id)
    step.seconds, step.tokens = line.now - begun, max(0, before - after)
    step.model, reason = string_of(data.get("model")), string_of(data.get("reason"))
    step.note = f"{tokens(before)} → {tokens(after)} tokens" + (f", {reason}" if reason else "")
    usage = Usage.from_json(data.get("usage"))
    step.usd = line.pay(step.model, usage) if usage.total else 0.0
    line.bar(line.put(step, "context"))
    line.totals.compactions += 1


def _aside(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    """Take a request beside the conversation: it is paid for, too."""
    usage = Usage.from_json(data.get("usage"))
    if not usage.total:
        return
    work, model = _work(line), string_of(data.get("model"))
    if record.type == "title" and work.price(model, line.prices) is None:
        return  # so little that the sum of the others stays known
    label = _SIDE.get(record.type, "summary that was not used")
    begun = line.now if record.type == "title" else work.before
    if record.type in BESIDE:
        begun = max(begun, line.now - _number(data.get("seconds")))
    step = TimelineStep("aside", begun, line.now, record.time, line.now - begun, label, record.id)
    step.model, step.usd = model, line.pay(model, usage)
    line.bar(line.put(step))


def _break(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    work.explained_break = True
    work.sizes.drop_thinking(data.get("from"))
    step = TimelineStep("break", line.now, line.now, record.time, 0.0, _words(record), record.id)
    usd = data.get("cost_usd")
    step.tokens = _whole(data.get("tokens"))
    step.usd = float(usd) if isinstance(usd, int | float) else None if step.tokens else 0.0
    step.note = "forecast" if step.usd else ""
    step.lost = break_reason(string_of(data.get("reason")))
    work.broken = line.put(step, "context")
    line.totals.add_break(step, billed=False)


def _billed(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    if work.broken < 0:
        return
    step, usd = line.steps[work.broken], data.get("billed_usd")
    step.tokens = _whole(data.get("tokens"))
    step.usd = float(usd) if isinstance(usd, int | float) else None if step.tokens else 0.0
    step.label, step.note = _words(record) or step.label, ""
    line.totals.close_break()
    work.broken = -1


def _overlay(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    work = _work(line)
    work.sizes.overlay(data)
    view, by = string_of(data.get("view")), string_of(data.get("by"))
    what = {"masked": "hidden", "full": "shown again", "pruned": "pruned"}.get(view, "shortened")
    same = f"{view} {by}"
    if work.type == "overlay" and line.steps and line.steps[-1].model == same:
        step = line.steps[-1]
        step.number += 1
        step.label = f"{step.number:,} items {what}"
        return
    step = TimelineStep("change", line.now, line.now, record.time, 0.0, f"1 item {what}", record.id)
    step.model, step.number = same, 1
    line.put(step, "context")


def _uncompaction(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del data
    _work(line).sizes.uncompact()
    _change(line, record, {})


def _change(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del data
    label = _words(record) or record.type
    line.put(
        TimelineStep("change", line.now, line.now, record.time, 0.0, label, record.id), "context"
    )


def _trouble(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    line.count_attempt(record)
    stopped = record.type == "interrupt"
    line.close_request("stopped" if stopped else "failed")
    if stopped:
        _work(line).sizes.add(record, content_of(record))
    label = _words(record) or one_line(string_of(data.get("message")))
    label = label or ("stopped by you" if stopped else record.type)
    step = TimelineStep("trouble", line.now, line.now, record.time, 0.0, label, record.id)
    step.state = "stopped" if stopped else "failed"
    line.put(step, "trouble")
    line.totals.stops += stopped


def _recovery(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del data
    step = TimelineStep("trouble", line.now, line.now, record.time, 0.0, _words(record), record.id)
    line.put(step, "trouble")


def _frame(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del data
    _work(line).sizes.frame(record)


def _notice(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del data
    _work(line).sizes.add(record, content_of(record))


def _file_change(line: SessionTimeline, record: Record, data: dict[str, Any]) -> None:
    del record
    if isinstance(data.get("path"), str):
        line.changed.add(line.now, 1)


_HANDLERS: Final[Mapping[str, _Handler]] = {
    "user": _prompt,
    "request": _request,
    "assistant": _answer,
    "intent": _intent,
    "tool_result": _result,
    "permission": _permission,
    "retry": _wait,
    "parked": _wait,
    "failover": _wait,
    "sub_agent": _agent,
    "job": _job_begun,
    "job_moved": _job_begun,
    "job_ended": _job_ended,
    "compaction": _compaction,
    "uncompaction": _uncompaction,
    **dict.fromkeys(_ASIDE, _aside),
    "break": _break,
    "break_billed": _billed,
    "overlay": _overlay,
    "rewind": _change,
    "reload": _change,
    "repair": _recovery,
    "error": _trouble,
    "interrupt": _trouble,
    "recovery": _recovery,
    "frame": _frame,
    "notice": _notice,
    "file_change": _file_change,
}


def _work(line: SessionTimeline) -> _Work:
    return line._work  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the handlers are its own


def _words(record: Record) -> str:
    """The sentence of a record, as every front end says it."""
    ((_, fact),) = retold([record])
    return " ".join(" ".join(retold_lines(fact)).split())[:_SAID_CHARS]


def _call_label(block: Block, label: str) -> str:
    """Name a call by its verb and its object."""
    name = string_of(block.get("name"))
    if not label:
        label = call_label(block).removeprefix(name).strip()
    return one_line(call_title(name, label)) or "a call"


def _files(name: str, given: dict[str, Any], details: dict[str, Any]) -> tuple[str, ...]:
    """The files that a call changed, as far as its result says."""
    if name in _EDITS:
        named = (given.get(key) for key in ("file_path", "path", "notebook_path"))
        return tuple(one for one in named if isinstance(one, str))[:1]
    if not details:
        return ()
    found: list[object] = []
    if "after_sha256" in details:
        found.append(details.get("path"))
    if "files" in details:
        listed = map(object_of, list_of(details["files"]))
        found += [one.get("path") for one in listed if "after_sha256" in one]
    if "changed_files" in details:
        found += list_of(details["changed_files"])
    return tuple(dict.fromkeys(one for one in found if isinstance(one, str)))[:_FILES_MAX]


def _number(value: object) -> float:
    """A number of seconds that can be counted with; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e9 else 0.0


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 62 else 0
