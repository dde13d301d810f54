"""The parts of a report over sessions: findings by kind, and each session with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tui.context.timeline import CheckRun
from tui.context.usage import Amount, total_of
from tui.core.clock import timestamp
from tui.core.dataclass import dataclass, field
from tui.core.formatting import moment_of

Kind: TypeAlias = Literal[
    "red",
    "claimed",
    "failed",
    "error",
    "died",
    "waiting",
    "parked",
    "unfinished",
    "unchecked",
    "refused",
    "undone",
    "unknown",
    "cache",
]

TITLES: Final[Mapping[Kind, str]] = {
    "red": "Red when last run",
    "claimed": "Ended while red",
    "failed": "Failed, and not repeated with success",
    "error": "Stopped by an error",
    "died": "Died",
    "waiting": "Waiting for you",
    "parked": "Waiting for the server",
    "unfinished": "Unfinished",
    "unchecked": "Changed and not checked",
    "refused": "Refused",
    "undone": "Undone",
    "unknown": "Not known",
    "cache": "Cache restarts",
}
"""The kinds of rows in their order, the worst first, with their titles."""
FIGURES: Final[Mapping[Kind, str]] = {
    "red": "red",
    "claimed": "ended while red",
    "failed": "failed",
    "error": "stopped by errors",
    "died": "died",
    "waiting": "waiting for you",
    "parked": "waiting for the server",
    "unfinished": "unfinished",
    "unchecked": "unchecked",
    "refused": "refused",
    "undone": "undone",
    "unknown": "not known",
}
"""The kinds that the summary counts, and how it names them."""
RED: Final[tuple[Kind, ...]] = ("red", "claimed", "failed", "error", "died")
"""The kinds without which nothing is red."""


class NightFinding(NamedTuple):
    """One finding. `record` is the id of the record that says so, "" where it is no record's;
    `evidence` is what the record holds. `times` counts rows that say the same. `command` is what
    answers it, "" for the command that opens the session."""

    kind: Kind
    words: str
    record: str = ""
    time: str = ""
    evidence: str = ""
    times: int = 1
    command: str = ""


class NightPrompt(NamedTuple):
    """A prompt, by its first words."""

    record: str
    time: str
    words: str


ExchangeKind: TypeAlias = Literal["question", "goal", "side question", "note"]
EXCHANGES: Final[Mapping[ExchangeKind, str]] = {
    "question": "Question",
    "goal": "Goal",
    "side question": "On the side",
    "note": "Noted",
}
"""The kinds of exchanges with the person, and how a line with one begins."""


class NightExchange(NamedTuple):
    """Something that passed between a session and the person, with what was answered or came of it;
    "" for a note. `times` counts those that say the same."""

    kind: ExchangeKind
    words: str
    answer: str
    record: str
    time: str
    times: int = 1

    @property
    def line(self) -> str:
        head, often = EXCHANGES[self.kind], f" ({self.times:,} times)" if self.times > 1 else ""
        return f"{head}: {self.words}{often}" + (f" · {self.answer}" if self.answer else "")


class NightCommit(NamedTuple):
    """A commit that a command made, by its own words. `id` is what it printed, "" for nothing;
    `time` is when it ended, after `seconds`. `in_git`: git knows it as made there."""

    words: str
    id: str = ""
    time: str = ""
    seconds: float = 0.0
    in_git: bool = False

    @property
    def label(self) -> str:
        return self.words if self.in_git else f"{self.words} (said by the command)"


@dataclass(frozen=True, slots=True)
class NightSpan:
    """The time that a report is about. `until` is None for one that goes up to now."""

    since: datetime
    until: datetime | None = None

    def holds(self, time: str) -> bool:
        """True if a record of that time is in the span; without a readable time it may be."""
        then = moment_of(time)
        return then is None or (then >= self.since and not self.ends_before(time))

    def ends_before(self, time: str) -> bool:
        """True if a record of that time came after the span."""
        then = moment_of(time) if self.until else None
        return then is not None and self.until is not None and then > self.until


@dataclass(slots=True)
class NightWork:
    """The prompts of a session, and the work that came of them."""

    asked: list[NightPrompt] = field(default_factory=list[NightPrompt])
    exchanges: list[NightExchange] = field(default_factory=list[NightExchange])
    left: int = 0
    """The number of these that were undone: they are on branches that were left."""
    turns: int = 0
    """The others, and those of earlier that were worked on; and how many have a whole answer."""
    answered: int = 0
    calls: int = 0
    files: tuple[str, ...] = ()
    commits: list[NightCommit] = field(default_factory=list[NightCommit])
    checkpoints: int = 0
    lost: int = 0
    """Answers without a bill, that may have cost something."""
    checks: int = 0
    """Runs of tests, linters and builds."""


@dataclass(slots=True)
class SessionNight:
    """One session in the span. `command` opens it, "" where its id can't be typed. `branch` is of
    git; `state` and `started_by` are words."""

    id: str
    path: str
    command: str
    title: str = ""
    folder: str = ""
    branch: str = ""
    models: tuple[str, ...] = ()
    started_by: str = ""
    state: str = ""
    first: str = ""
    last: str = ""
    work: NightWork = field(default_factory=NightWork)
    rows: list[NightFinding] = field(default_factory=list[NightFinding])
    red: list[CheckRun] = field(default_factory=list[CheckRun])
    green: list[CheckRun] = field(default_factory=list[CheckRun])
    """The runs of checks that its verdicts are from."""
    spent: dict[str, Amount] = field(default_factory=dict[str, Amount])
    """The bills of each model."""
    paid: dict[str, Amount] = field(default_factory=dict[str, Amount])
    """The bills of each profile, "default" for none."""

    @property
    def amount(self) -> Amount:
        return total_of(self.spent.values())

    def count(self, kind: Kind) -> int:
        """Count the findings of a kind."""
        return sum(row.times for row in self.rows if row.kind == kind)

    def exchanged(self, kind: ExchangeKind) -> int:
        """Count the exchanges of a kind."""
        return sum(one.times for one in self.work.exchanges if one.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "id": self.id,
            "path": self.path,
            "command": self.command or None,
            "title": self.title,
            "folder": self.folder,
            "branch": self.branch or None,
            "models": list(self.models),
            "started_by": self.started_by,
            "state": self.state,
            "first": self.first or None,
            "last": self.last or None,
            "asked": [one._asdict() for one in self.work.asked],
            "exchanges": [one._asdict() for one in self.work.exchanges],
            "undone_prompts": self.work.left,
            "done": {
                "prompts": self.work.turns,
                "answered": self.work.answered,
                "calls": self.work.calls,
                "files": list(self.work.files),
                "commits": [
                    {"text": one.words, "id": one.id or None, "in_git": one.in_git}
                    for one in self.work.commits
                ],
                "checkpoints": self.work.checkpoints,
                "lost_answers": self.work.lost,
                "checks": self.work.checks,
            },
            "findings": [_row_json(row) for row in self.rows],
            "money": {model: money_json(one) for model, one in self.spent.items()},
            "money_by_profile": {name: money_json(one) for name, one in self.paid.items()},
        }


def _row_json(row: NightFinding) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "text": row.words,
        "record": row.record or None,
        "time": row.time or None,
        "evidence": row.evidence or None,
        "times": row.times,
        "command": row.command or None,
    }


def money_json(amount: Amount) -> dict[str, Any]:
    """Return an amount as data: no price is null, never 0."""
    known = amount.usd if amount.usd or not amount.unpriced else None
    return {
        "cost_usd": None if known is None else round(known, 6),
        "tokens": round(amount.tokens),
        "tokens_without_price": round(amount.unpriced),
    }


@dataclass(slots=True)
class Morning:
    """All that is reported. `rows` are findings that belong to no session; `tasks` counts the
    tasks of the runs by their state; `elsewhere` says whose sessions aren't looked into."""

    span: NightSpan
    made: datetime
    where: str = ""
    sessions: list[SessionNight] = field(default_factory=list[SessionNight])
    rows: list[NightFinding] = field(default_factory=list[NightFinding])
    tasks: dict[str, int] = field(default_factory=dict[str, int])

    def findings(self) -> Iterator[tuple[NightFinding, SessionNight | None]]:
        """Yield all findings in the order of their kinds, each with its session."""
        for kind in TITLES:
            for session in self.sessions:
                yield from ((row, session) for row in session.rows if row.kind == kind)
            yield from ((row, None) for row in self.rows if row.kind == kind)

    def counts(self) -> dict[Kind, int]:
        """The number of findings of each kind."""
        found: dict[Kind, int] = dict.fromkeys(TITLES, 0)
        for row, _ in self.findings():
            found[row.kind] += row.times
        return found

    def total(self) -> Amount:
        """Sum up the bills of all sessions."""
        return total_of(session.amount for session in self.sessions)

    def by_model(self) -> dict[str, Amount]:
        """Sum up the bills of each model."""
        found: dict[str, Amount] = {}
        for session in self.sessions:
            for model, amount in session.spent.items():
                found.setdefault(model, Amount()).add(amount)
        return found

    def by_profile(self) -> dict[str, Amount]:
        """Sum up the bills of each profile."""
        found: dict[str, Amount] = {}
        for session in self.sessions:
            for name, amount in session.paid.items():
                found.setdefault(name, Amount()).add(amount)
        return found

    @property
    def checks(self) -> int:
        return sum(session.work.checks for session in self.sessions)

    def exchanged(self, kind: ExchangeKind) -> int:
        """Count the exchanges of a kind in all sessions."""
        return sum(session.exchanged(kind) for session in self.sessions)

    @property
    def running(self) -> int:
        return sum(
            session.state.startswith(("running", "waiting for you")) for session in self.sessions
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        until = self.span.until
        return {
            "since": timestamp(self.span.since),
            "until": timestamp(until) if until else None,
            "made": timestamp(self.made),
            "folder": self.where or None,
            "summary": {
                **self.counts(),
                "checks": self.checks,
                "sessions": len(self.sessions),
                "running": self.running,
                "prompts": sum(len(one.work.asked) for one in self.sessions),
                "answered": sum(one.work.answered for one in self.sessions),
                "questions": self.exchanged("question"),
                "goals": self.exchanged("goal"),
                "side_questions": self.exchanged("side question"),
                "files": len({name for one in self.sessions for name in one.work.files}),
                "commits": sum(len(one.work.commits) for one in self.sessions),
                "money": money_json(self.total()),
            },
            "tasks": self.tasks,
            "sessions": [one.to_json() for one in self.sessions],
            "findings": [_row_json(row) for row in self.rows],
        }
