"""The work on a session up to the end of a span of time, and a finding for all that went otherwise.
Pure.

Everything is worked out from the records. What the model says of its work counts for nothing: its
words are quoted only beside a check that was red when it wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tui.app.morning.findings import NightCommit, NightFinding, NightSpan, SessionNight
from tui.app.session_page.glance import REFUSED, answered, last_of
from tui.app.session_report import Turn, allowed_by, turns
from tui.context.interrupted_calls import Interrupted, interrupted_calls
from tui.context.timeline import SessionTimeline, TimelineStep, check_in, without_texts
from tui.core import facts
from tui.core.config import Price
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import words as class_in_words
from tui.core.fact_words import goal_progress
from tui.core.facts import GoalChanged
from tui.core.formatting import moment_of, money, plural, shortened
from tui.core.messages import Block, blocks_of, list_of, object_of, string_of, text_of, tool_calls
from tui.core.redaction import mask
from tui.core.retold import retold, retold_lines
from tui.core.text_cleaning import one_line, printed_text
from tui.session.reader import LoadedSession
from tui.session.records import (
    FILE_CHANGE,
    GOAL,
    JOB_ENDED,
    Record,
    is_prompt,
    title_of,
)
from tui.tools.registry import title as call_title
from tui.tools.registry import words_of

_QUOTED: Final = 160
_EVIDENCE: Final = 1_200
_LINES: Final = 8
_AHEAD: Final = timedelta(minutes=2)
"""Time by which a record may be ahead of this machine's clock without a word about it."""
_COMMIT: Final = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_NO_COMMIT: Final = re.compile(r"nothing to commit|nothing added to commit|--dry-run")
_COMMITTED: Final = re.compile(r"^\[(.+ [0-9a-f]{7,40})\] (.*)$", re.MULTILINE)
_LOOKS: Final = re.compile(r"\s*(?:git\s+(?:diff|grep)|e?grep|fgrep|rg|diff|cmp|test|\[|which)\s")
"""Commands that say no by exit code 1, which is no failure."""
_PARTS: Final = re.compile(r";|&&|\|\||\n|(?<![&<>])&(?![&>])")
"""Between commands of which each may fail for itself."""
_EFFECTS: Final = frozenset({"execute", "edit"})
_NO_WORK: Final = frozenset(
    {"cache_warmed", "draft", "note", "profile", "side_question", "title", "unused"}
)
"""The records that may follow the end of a turn, or belong to none."""
_OUTCOMES: Final[Mapping[str, str]] = {
    "never_started": "it never began",
    "finished_result_lost": "it may have finished; its result is lost",
    "unknown": "whether it had an effect isn't known",
}


@dataclass(frozen=True, slots=True)
class LiveSession:
    """Facts about a session that its file doesn't hold. `running`: a program has it open; `state`
    is that of its process in the background, in words; `asks` is what that waits for."""

    running: bool = False
    state: str = ""
    asks: str = ""
    answer: str = ""
    """The command that answers it."""


@dataclass(frozen=True, slots=True)
class NightScope:
    """The rules by which a session is judged. `copied` are records that another session has,
    too."""

    span: NightSpan
    now: datetime
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    known: LiveSession = LiveSession()
    copied: Collection[str] = ()
    sub_agents: Sequence[SessionNight] = ()
    """The sub-agents that worked for it in the span."""


@dataclass(slots=True)
class SessionWork:
    """A session up to the end of the span. `mine` are the turns that were worked on in it."""

    night: SessionNight
    span: NightSpan
    known: LiveSession
    records: Sequence[Record]
    branch: Sequence[Record]
    timeline: SessionTimeline
    mine: list[Turn]
    steps: list[TimelineStep]
    copied: Collection[str]
    sub_agents: Sequence[SessionNight] = ()
    by_id: dict[str, Record] = field(default_factory=dict[str, Record])
    calls: dict[str, Block] = field(default_factory=dict[str, Block])
    denied: set[str] = field(default_factory=set[str])
    """The calls that were refused."""
    went_on: bool = False
    """There are records after the span."""

    @classmethod
    def of(cls, night: SessionNight, loaded: LoadedSession, setting: NightScope) -> SessionWork:
        span, copied = setting.span, setting.copied
        every = records = loaded.records
        if span.until is not None:
            within = [n for n, one in enumerate(records) if not span.ends_before(one.time)]
            records = records[: within[-1] + 1 if within else 0]
            loaded = replace(loaded, records=records)
        branch = loaded.branch
        timeline = SessionTimeline(setting.prices, loaded.header.cwd)
        timeline.extend(branch)
        work = cls(night, span, setting.known, records, branch, timeline, [], [], copied)
        work.sub_agents = setting.sub_agents
        work.went_on = len(records) < len(every)
        work.mine = [turn for turn in turns(branch) if any(work.is_work(one) for one, _ in turn)]
        work.by_id = {record.id: record for record in branch}
        work.steps = [
            step for step in timeline.steps if span.holds(step.time) and step.record not in copied
        ]
        for record in branch:
            if record.type == "assistant":
                for call in tool_calls(blocks_of(record.data.get("content"))):
                    work.calls[string_of(call.get("id"))] = call
            elif record.type == "permission" and record.data.get("answer") in REFUSED:
                work.denied.add(string_of(record.data.get("call_id")))
        return work

    def counts(self, record: Record) -> bool:
        """True if a record is of this session and of the span."""
        return record.id not in self.copied and self.span.holds(record.time)

    def is_work(self, record: Record) -> bool:
        """True if such a record is of the work on a prompt: a note of a later day is not."""
        return self.counts(record) and record.type not in _NO_WORK

    # Red

    def red(self) -> Iterator[NightFinding]:
        red = [run.step for run in self.timeline.red_runs()]
        places = {id(step): place for place, step in enumerate(self.timeline.steps)}
        runs = [step for step in self.timeline.steps if step.check]
        for step in red:
            since = [one for one in runs if places[id(one)] > places[id(step)]]
            later = {one.verdict for one in since if one.check == step.check}
            why = ""
            if "green" in later:
                why = " (no later green run covered it)"
            elif "" in later:
                why = " (a later run gave no verdict)"
            yield NightFinding(
                "red",
                f"{step.check} was red when last run: {masked(self._command(step))}{why}",
                step.record,
                step.time,
                self._printed(step.record),
            )
        last = self.mine[-1] if self.mine else []
        if not red or not last or not answered(last):
            return
        record, fact = last_of(last)
        said = _quoted(fact.text) if isinstance(fact, facts.AssistantMessage) else ""
        names = ", ".join(dict.fromkeys(step.check for step in red))
        words = f"The model ended its turn while {names} was red."
        yield NightFinding(
            "claimed",
            f"{words} It wrote: {said}" if said else words,
            record.id if record else "",
            record.time if record else "",
        )

    def _command(self, step: TimelineStep) -> str:
        """The command of a check, whole: a label is cut."""
        given = object_of(self.calls.get(step.call_id, {}).get("input"))
        command, cwd = string_of(given.get("command")), string_of(given.get("cwd"))
        if cwd and command:
            return f"cd {cwd} && {command}"
        return command or step.label

    def unjudged(self, failed: Collection[NightFinding]) -> Iterator[NightFinding]:
        """The checks whose last run has no verdict, and is told nowhere else."""
        last = {step.check: step for step in self.timeline.steps if step.check}
        told = {row.record for row in failed} | self.in_background()
        red = {run.step.check for run in self.timeline.red_runs()}
        for step in last.values():
            if not step.verdict and step.record not in told and step.check not in red:
                words = f"{step.check} gave no verdict when last run: {masked(self._command(step))}"
                printed = self._printed(step.record)
                yield NightFinding("unknown", words, step.record, step.time, printed)

    def in_background(self) -> set[str]:
        """The results that only say that a command goes on in the background."""
        every = (one for one in self.branch if one.type == "tool_result")
        return {one.id for one in every if object_of(one.data.get("details")).get("job")}

    def failed(self) -> Iterator[NightFinding]:
        """The last call without success, unless it is a check that has a verdict."""
        last: dict[str, tuple[Record, str, bool]] = {}
        judged = {step.record for step in self.timeline.steps if step.verdict}
        for record in self.branch:
            if record.type == JOB_ENDED:
                command, code = (
                    one_line(string_of(record.data.get("command"))),
                    record.data.get("exit_code"),
                )
                bad = not record.data.get("stopped_by") and code != 0
                last[command] = record, call_title("run_command", command), bad
            elif record.type == "tool_result" and (tried := self._tried(record)):
                key, label = tried
                last[key] = record, label, record.id not in judged and self._went_wrong(record)
        for record, label, bad in last.values():
            if bad and self.counts(record):
                code = object_of(record.data.get("details")).get(
                    "exit_code", record.data.get("exit_code")
                )
                how = f"exit code {code}" if isinstance(code, int) else "failed"
                words = f"{masked(label)}: {how}, and no later try succeeded."
                yield NightFinding(
                    "failed", words, record.id, record.time, self._printed(record.id)
                )

    def _tried(self, record: Record) -> tuple[str, str] | None:
        """The subject of a call with effects, and its title; None for any other. A check goes by
        its name."""
        call_id = string_of(record.data.get("call_id"))
        name = string_of(record.data.get("name"))
        if words_of(name).kind not in _EFFECTS or call_id in self.denied:
            return None
        given = object_of(self.calls.get(call_id, {}).get("input"))
        about = one_line(string_of(given.get("command") or given.get("path")))
        if not about:
            return None
        check = check_in(string_of(given.get("command")))
        return check or about, call_title(name, about)

    def _went_wrong(self, record: Record) -> bool:
        code = object_of(record.data.get("details")).get("exit_code")
        call = self.calls.get(string_of(record.data.get("call_id")), {})
        command = without_texts(string_of(object_of(call.get("input")).get("command")))
        parts = [part.rpartition("|")[2] for part in _PARTS.split(command) if part.strip()]
        if code == 1 and parts and all(map(_LOOKS.match, parts)):
            return False
        return record.data.get("is_error") is True or (isinstance(code, int) and code != 0)

    def _printed(self, record: str) -> str:
        """The last lines of a result."""
        found = self.by_id.get(record)
        if found is None:
            return ""
        text = string_of(found.data.get("text")) or text_of(blocks_of(found.data.get("content")))
        text = mask(text)[0]
        lines = printed_text(text).rstrip().splitlines()[-_LINES:]
        return "\n".join(lines)[-_EVIDENCE:]

    # What ended a turn, and the session

    def errors(self) -> Iterator[NightFinding]:
        for turn in self.mine:
            record, fact = last_of(turn)
            if record is None:
                continue
            if isinstance(fact, facts.ErrorRaised):
                kind, message = class_in_words(fact.error_class), one_line(fact.message)
                yield NightFinding(
                    "error", f"{kind}: {masked(message)}", record.id, record.time, fact.hint
                )
            elif isinstance(fact, facts.TurnInterrupted):
                why = masked(fact.reason) or "no reason recorded"
                yield NightFinding("unfinished", f"Interrupted: {why}.", record.id, record.time)
        for step in self.steps:
            if step.kind == "request" and step.note:
                yield NightFinding("unfinished", step.note, step.record, step.time)

    def end(self) -> tuple[str, list[NightFinding]]:
        """The state of the session, and the rows that say so."""
        known = self.known
        if self.went_on:
            return "went on after that", []
        if known.asks:
            words = f"Asks: {masked(known.asks)}"
            row = NightFinding("waiting", words, "", self.night.last, command=known.answer)
            return "waiting for you", [row]
        asking = [*self._asking()]
        rows = [self._question(call, record) for call, record in asking]
        parked = self._parked()
        if parked is not None:
            rows.append(NightFinding("parked", masked(_sentence(parked)), parked.id, parked.time))
        if known.running:
            return ("running, asks" if asking else "running"), rows
        turn = self.mine[-1] if self.mine else []
        record, fact = last_of(turn)
        if parked is not None:
            return "parked", rows
        if asking:
            return "asked, and not open", rows
        if isinstance(fact, facts.ErrorRaised):
            return "stopped by an error", rows
        if isinstance(fact, facts.TurnInterrupted):
            return "interrupted", rows
        open_ = [
            f"a request to {step.label}" if step.kind == "request" else step.label
            for step in self.timeline.running()
        ]
        if turn and is_prompt(turn[0][0]) and not answered(turn):
            doing = f" during: {masked(', '.join(open_))}" if open_ else " before its turn was over"
            why = f" ({known.state})" if known.state else ""
            words = f"The program ended{doing}. No record says why{why}."
            last = record or turn[-1][0]
            rows.append(NightFinding("died", words, last.id, last.time))
            return "died", rows
        return known.state or "ended", rows

    def _asking(self) -> Iterator[tuple[Block, Record]]:
        """The questions that have no answer, each with the record of its call."""
        results = {
            string_of(one.data.get("call_id")) for one in self.branch if one.type == "tool_result"
        }
        last = next((one for one in reversed(self.branch) if one.type == "assistant"), None)
        if last is None or any(is_prompt(one) for one in self.branch[self.branch.index(last) :]):
            return
        for call in tool_calls(blocks_of(last.data.get("content"))):
            asks = words_of(string_of(call.get("name"))).asks
            if asks and string_of(call.get("id")) not in results:
                yield call, last

    def _question(self, call: Block, record: Record) -> NightFinding:
        given = object_of(call.get("input"))
        asked = [
            string_of(object_of(one).get("question")) for one in list_of(given.get("questions"))
        ]
        words = (
            " / ".join(filter(None, asked)) or string_of(given.get("title")) or "a plan to review"
        )
        return NightFinding(
            "waiting",
            f"Asked, and nobody has answered: {masked(words)}",
            record.id,
            record.time,
        )

    def _parked(self) -> Record | None:
        """The record by which the last request waits; None if it doesn't."""
        for record in reversed(self.branch):
            if record.type == "parked":
                return record
            if record.type in {"assistant", "error", "interrupt", "user", "request"}:
                return None
        return None

    def unfinished(self) -> Iterator[NightFinding]:
        """The calls that have no result."""
        if self.known.running or self.went_on:
            return
        for call in interrupted_calls(self.branch):
            record = self.by_id.get(call.record)
            if words_of(call.tool).asks or record is None or not self.counts(record):
                continue
            label = masked(call_title(call.tool, call.label))
            words = f"{label}: no result; {_outcome(call)}."
            yield NightFinding("unfinished", words, call.record, call.started or record.time)

    def goal(self) -> Iterator[NightFinding]:
        """The goal that isn't met, unless it is worked on."""
        record = next((one for one in reversed(self.branch) if one.type == GOAL), None)
        if record is None or not self.counts(record) or self.went_on or self.known.running:
            return
        goal = GoalChanged.of_record(record.data)
        if goal.state not in {"met", "stopped"}:
            why = f" · {goal.why}" if goal.why else ""
            words = f"Goal not met ({goal_progress(goal)}): {one_line(goal.goal)}{why}"
            yield NightFinding("unfinished", masked(words), record.id, record.time)

    def jobs(self) -> Iterator[NightFinding]:
        """The commands in the background without an end."""
        begun: dict[str, Record] = {}
        results: set[str] = set()
        for record in self.branch:
            id_ = string_of(record.data.get("call_id"))
            if record.type in {"job", "job_moved"}:
                begun.setdefault(id_, record)
            elif record.type == JOB_ENDED:
                begun.pop(id_, None)
            elif record.type == "tool_result":
                results.add(id_)
                if not object_of(record.data.get("details")).get("job"):
                    begun.pop(id_, None)
        for id_, record in begun.items():
            if id_ in results and self.counts(record) and not (self.known.running or self.went_on):
                label = masked(string_of(record.data.get("command")) or "a command")
                words = f"In the background, without a recorded end: {label}"
                yield NightFinding("unfinished", words, record.id, record.time)

    # Done, refused, undone

    def commits(self) -> Iterator[NightCommit]:
        """The commits that commands made, as they printed them."""
        for record in self.branch:
            if record.type != "tool_result" or not self.counts(record):
                continue
            call = self.calls.get(string_of(record.data.get("call_id")), {})
            command = string_of(object_of(call.get("input")).get("command"))
            code = object_of(record.data.get("details")).get("exit_code")
            if code != 0 or not _COMMIT.search(command):
                continue
            text = text_of(blocks_of(record.data.get("content")))
            if _NO_COMMIT.search(f"{command}\n{text}"):
                continue
            named = _COMMITTED.findall(text)
            for where, what in named:
                yield NightCommit(f"{where}: {masked(what)}", where.rpartition(" ")[2])
            if not named:
                taken = record.data.get("seconds")
                seconds = float(taken) if isinstance(taken, int | float) else 0.0
                yield NightCommit(masked(one_line(command)), "", record.time, seconds)

    def unchecked(self) -> Iterator[NightFinding]:
        """The files that were changed after the last check, if that was green."""
        if any(step.verdict == "red" for step in self.timeline.last_checks().values()):
            return
        order = {record.id: place for place, record in enumerate(self.branch)}
        green = [order.get(step.record, 0) for step in self.timeline.steps if step.verdict]
        files = {step.record: step.files for step in self.steps}
        files |= {one.id: (string_of(one.data["path"]),) for one in self._by_sub_agents()}
        changed = [one for id_, one in self.by_id.items() if files.get(id_)]
        changed = [one for one in changed if not green or order[one.id] > green[-1]]
        if not changed:
            return
        names = [*dict.fromkeys(name for one in changed for name in files[one.id])]
        what = f"{plural(len(names), 'file')} changed ({masked(', '.join(map(_short, names)))})"
        since = (
            "after the last green check" if green else "and no test, linter or build gave a result"
        )
        last = changed[-1]
        yield NightFinding("unchecked", f"{what} {since}.", last.id, last.time)

    def _by_sub_agents(self) -> Iterator[Record]:
        """The changes of sub-agents that didn't check them."""
        checked = {one.id for one in self.sub_agents if one.green and not one.count("unchecked")}
        for record in self.branch:
            theirs = record.type == FILE_CHANGE and record.data.get("session") not in checked
            if theirs and string_of(record.data.get("path")) and self.counts(record):
                yield record

    def refused(self, inside: Iterable[Record]) -> Iterator[NightFinding]:
        rows: dict[str, NightFinding] = {}
        for record, fact in retold([one for one in inside if one.type == "permission"]):
            if isinstance(fact, facts.PermissionAnswered) and fact.answer in REFUSED:
                words = f"{masked(call_title(fact.name, fact.subject))}: {allowed_by(fact)}"
                known = rows.get(words)
                times = known.times + 1 if known else 1
                rows[words] = NightFinding("refused", words, record.id, record.time, times=times)
        yield from rows.values()

    def undone(self, inside: Sequence[Record]) -> Iterator[NightFinding]:
        for record in inside:
            if record.type == "rewind":
                yield NightFinding("undone", masked(_sentence(record)), record.id, record.time)
        if left := self.abandoned_prompts(inside):
            named = "; ".join(map(first_words, left[:3]))
            words = f"{plural(len(left), 'prompt')} on branches that were left: {masked(named)}"
            yield NightFinding("undone", words, left[0].id, left[0].time)

    def abandoned_prompts(self, inside: Iterable[Record]) -> list[Record]:
        """The prompts on branches that were left."""
        return [one for one in inside if is_prompt(one) and one.id not in self.by_id]

    # What is not known

    def clock(self, inside: Sequence[Record], now: datetime) -> Iterator[NightFinding]:
        for step in self.steps:
            if step.kind == "pause" and step.seconds < 0:
                words = f"{step.label}: when what happened is uncertain."
                yield NightFinding("unknown", words, step.record, step.time)
        timed = [(record, moment_of(record.time)) for record in inside]
        if lost := sum(then is None for _, then in timed):
            yield NightFinding(
                "unknown", f"{plural(lost, 'record')} without a readable time, counted here."
            )
        ahead = [record for record, then in timed if then is not None and then > now + _AHEAD]
        if ahead:
            words = f"{plural(len(ahead), 'record')} from the future: a clock was wrong."
            yield NightFinding("unknown", words, ahead[0].id, ahead[0].time)

    def restarts(self) -> Iterator[NightFinding]:
        for step in self.steps:
            if step.kind == "break":
                price = "price unknown" if step.usd is None else money(step.usd)
                note = f", {step.note}" if step.note else ""
                words = f"{masked(step.label.rstrip('.'))} ({price}{note})"
                yield NightFinding("cache", words, step.record, step.time)


def _outcome(call: Interrupted) -> str:
    return _OUTCOMES[call.outcome]


def _sentence(record: Record) -> str:
    ((_, fact),) = retold([record])
    return " ".join(retold_lines(fact)) or record.type


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def first_words(record: Record) -> str:
    """A prompt by its first words; a secret is masked before it could be cut."""
    text = record.data.get("text")
    if not isinstance(text, str):
        text = text_of(blocks_of(record.data.get("content")))
    return title_of({"text": mask(text)[0]})


def _quoted(text: str) -> str:
    line = shortened(mask(one_line(text))[0], _QUOTED)
    return f'"{line}"' if line else ""


def masked(text: str) -> str:
    """A text in one line, without secrets, that is not too long for a row."""
    return shortened(mask(one_line(text))[0], _QUOTED * 2)
