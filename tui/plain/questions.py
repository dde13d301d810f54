"""Questions as lines: what would happen and why, then the answers by number.

One question at a time. Only a number or the answer's own word answers; anything else that is typed
was meant for the prompt and goes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, Protocol, TypeAlias

from tui.agent.interrupted_work import InterruptedWork
from tui.app.damage_report import findings_summary, where
from tui.app.dialog_data import (
    ALL_BRANCHES,
    OTHER_PROFILE,
    UNDO,
    BranchQuestion,
    BranchRow,
    ChoiceQuestion,
    DamageQuestion,
    FailedRequest,
    KeySetup,
    ModelQuestion,
    ModelRow,
    PointQuestion,
    PracticeSetup,
    ProfileQuestion,
    ProfileRow,
    Question,
    ServerSetup,
    SessionRow,
    Setup,
    SetupQuestion,
    SignInSetup,
)
from tui.app.interruption import known
from tui.app.reports.branches import NOTHING_SAID, branch_facts
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.formatting import plural
from tui.core.questions import (
    PLAN_CHOICES,
    Alternative,
    AnswerChoice,
    PlanReview,
    SecretAnswer,
    SecretQuestion,
    UserAnswer,
    UserAnswers,
    UserQuestion,
    Verdict,
)
from tui.core.text_cleaning import visible
from tui.core.web_address import server_address
from tui.permissions.types import (
    REACHES,
    Answer,
    Call,
    Decision,
    always_in_words,
    offered,
    rules_in_words,
)
from tui.plain.markdown_to_speech import read
from tui.plain.speech_text import changed, counted, decided_about, diff, numbered, sentence, spoken
from tui.plain.terminal import Terminal
from tui.session.catalog import state_name
from tui.session.records import Finding
from tui.settings.local_servers import LocalServer

_WORD_MAX: Final = 12
_ANSWERS: Final[dict[str, Literal["once", "session", "always", "no"]]] = {
    **dict.fromkeys(("1", "once"), "once"),
    **dict.fromkeys(("2", "session", "this session"), "session"),
    **dict.fromkeys(("3", "always"), "always"),
    **dict.fromkeys(("4", "no"), "no"),
}
_QUESTIONS: Final = {
    "command": "Question: run this command?",
    "diff": "Question: make this change?",
    "text": "Question: allow this?",
}


def approval_lines(call: Call, decision: Decision) -> list[str]:
    """Return everything that a person needs to know to decide about a call."""
    text = call.preview or call.subject or "(nothing to show)"
    asks = f"Sub-agent {spoken(call.agent)} asks. " if call.agent else ""
    lines = [f"{asks}{_QUESTIONS[call.preview_kind]}"]
    if call.preview_kind == "command":
        lines += _named(f"{call.tool}, the command", decided_about(text))
    elif call.preview_kind == "diff":
        lines.append(
            spoken(f"{call.tool}, {' '.join(decided_about(call.subject))}: {changed(text)}")
        )
        lines += diff(text)
    else:
        lines += _named(call.tool, decided_about(text))
    if decision.risk:
        lines.append(f"Risk: {decision.risk}.")
    if decision.reason:
        lines.append(sentence(f"Why you're asked: {' '.join(decided_about(decision.reason))}"))
    # The answers to a command also decide what it can reach.
    beyond = REACHES[decision.level] if call.effect == "run" else ""
    lasting = offered(call, decision)
    if not lasting:
        return [*lines, sentence("You're asked each time", beyond)]
    numbers = "2 and 3 allow" if "always" in lasting else "2 allows"
    scope = " ".join(decided_about(call.scope or "this call"))
    return [*lines, sentence(f"{numbers} {scope}. Type ? for the rules", beyond)]


def _answers(call: Call, decision: Decision) -> str:
    named = always_in_words(call, decision).removesuffix(" here")  # where is said before
    lasting = {"session": "2 this session, ", "always": f"3 {named}, "}
    return f"1 once, {''.join(lasting[one] for one in offered(call, decision))}4 no: "


def _named(name: str, text: list[str]) -> list[str]:
    if len(text) == 1:
        return [f"{name}: {text[0]}"]
    return [f"{name}, {len(text)} lines:", *(f"  {line}" for line in text)]


class Person(Protocol):
    """The person who is asked."""

    def call(self) -> None:
        """Call them before a question: they may be elsewhere."""

    def typed(self, text: str) -> None:
        """Take what they meant for the prompt."""


@dataclass(slots=True)
class Asker:
    """Asks on a `terminal`. Implements `Approver` and `AsksSecrets`."""

    terminal: Terminal
    person: Person
    asks_secrets: bool = True
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def asking(self) -> bool:
        """True while a question is asked."""
        return self._asking.locked()

    async def answered(self) -> None:
        """Wait until no question is asked."""
        async with self._asking:
            pass

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Ask for an approval. Cancelling the wait withdraws the question, which counts as no."""
        async with self._asking:
            self.person.call()
            self.terminal.say(*approval_lines(call, decision))
            while True:
                typed = await self.terminal.answer(_answers(call, decision))
                if typed is None:
                    self.terminal.say("Answered: no.")
                    return Answer("no")
                if typed.strip() == "?":
                    self.terminal.say(*rules_in_words(call, decision))
                    continue
                answer, reason = _parsed(typed)
                lasting = offered(call, decision)
                if answer is None or (answer in {"session", "always"} and answer not in lasting):
                    numbers = ", ".join(["1", "2", "3"][: 1 + len(lasting)])
                    self._again(typed, f"Answer {numbers} or 4.")
                    continue
                if answer == "no" and not reason:
                    reason = await self.terminal.answer("Tell the model why, or press Enter: ")
                outcome = {"once": "once", "session": "for this session"}.get(answer, answer)
                self.terminal.say(f"Answered: {outcome}.")
                return Answer(answer, (reason or "").strip())

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        """Ask the model's questions, one after the other. Refusing one ends them."""
        answers: list[UserAnswer] = []
        async with self._asking:
            self.person.call()
            if agent:
                self.terminal.say(f"Sub-agent {spoken(agent)} asks.")
            for number, question in enumerate(questions, 1):
                place = f" {number} of {len(questions)}" if len(questions) > 1 else ""
                answer = await self._answer_to(question, f"Question{place}")
                if answer is None:
                    self.terminal.say("Not answered.")
                    break
                self.terminal.say(sentence(f"Answered: {spoken(answer.summary)}"))
                answers.append(answer)
                if answer.ends(question):
                    break
        return UserAnswers(tuple(answers))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        """Read a plan out, then ask what to do with it."""
        labels = tuple((str(verdict), label) for verdict, label in PLAN_CHOICES)
        chosen = await self.choose([*plan_lines(title, plan), "What about this plan?"], labels)
        verdicts: dict[str | None, Verdict] = {str(one): one for one, _ in PLAN_CHOICES}
        verdict = verdicts.get(chosen, "none")
        comment = await self.text("What to change: ") if verdict == "change" else ""
        if verdict == "change" and not comment:
            verdict = "none"
        label = next((label for one, label in PLAN_CHOICES if one == verdict), "not now")
        self.terminal.say(sentence(f"Answered: {label}"))
        return PlanReview(verdict, plan, comment)

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        """Ask for a line that isn't shown; an empty one is no answer."""
        async with self._asking:
            self.person.call()
            prompt = " ".join(decided_about(question.prompt)).strip()
            self.terminal.say(
                f"Question: a program asks for a secret in {spoken(question.terminal)}.",
                *_named("Command", decided_about(question.command)),
                *([" ".join(decided_about(question.asker))] if question.asker else []),
                *([f"It shows: {prompt}"] if prompt else []),
                "Only the program gets it; Holdfast saves it nowhere. A program that prints it"
                " shows it to the model, so check what asks: the model may have written it. /jobs"
                " stop ends the program.",
            )
            typed = await self.terminal.answer("Secret, not shown, or just Enter: ", hidden=True)
            if not typed:
                self.terminal.say("Not answered.")
                return None
            self.terminal.say("Sent to the program.")
            return SecretAnswer(bytearray(typed, "utf-8", "surrogateescape"))

    async def _answer_to(self, question: UserQuestion, title: str) -> UserAnswer | None:
        """Ask a question; it takes a number, several if possible, or the person's own words."""
        rows = answer_rows(question)
        self.terminal.say(
            f"{title}, {spoken(question.header)}: {' '.join(decided_about(question.text))}",
            *numbered(visible(f"{one.label}: {one.description}".rstrip(": ")) for one in rows),
        )
        which = f"1 to {len(rows)}" if len(rows) > 1 else "1"
        which += ", several with commas" if question.several else ""
        while True:
            typed = await self.terminal.answer(f"{which}, or just Enter for no answer: ")
            if typed is None or not typed.strip():
                return None
            numbers = typed.replace(",", " ").split() if question.several else [typed.strip()]
            if not all(one.isdecimal() and 1 <= int(one) <= len(rows) for one in numbers):
                self._again(typed, f"Answer {which}.")
                continue
            picked = [rows[one - 1] for one in sorted({int(one) for one in numbers})]
            # An alternative answers alone.
            if ways := [one for one in picked if isinstance(one, Alternative)]:
                if len(picked) == 1:
                    return UserAnswer(way=ways[0].label)
                self.terminal.say(sentence(f"{spoken(ways[0].label)} goes with nothing else"))
                continue
            chosen = tuple(one.label for one in picked if one is not OWN_WORDS)
            if OWN_WORDS not in picked:
                return UserAnswer(chosen)
            text = ((await self.terminal.answer("Your answer: ")) or "").strip()
            if text or chosen:
                return UserAnswer(chosen, text)

    async def choose(self, lines: Sequence[str], labels: Labels) -> str | None:
        """Say `lines` and the answers; return the name of the chosen one, None for none of them."""
        numbers = {str(number): name for number, (name, _) in enumerate(labels, 1)}
        count = len(labels)
        which = "1" if count == 1 else f"1 to {count}"
        async with self._asking:
            self.person.call()
            self.terminal.say(*lines, *numbered(label for _, label in labels))
            while True:
                typed = await self.terminal.answer(f"{which}, or just Enter for none: ")
                if typed is None or not typed.strip():
                    return None
                word = typed.strip().lower()
                if word in numbers:
                    return numbers[word]
                self._again(typed, f"Answer {which}.")

    async def setup(
        self, question: SetupQuestion, found: Sequence[LocalServer]
    ) -> Setup | str | None:
        """Ask how to reach a model; None if the person wants none, `OTHER_PROFILE` as it is.
        `found` are servers on this machine."""
        servers = {server.base_url: server for server in found}
        sign_in = f"sign-in {spoken(question.sign_in)}, made with ant auth login"
        mine = question.server
        labels = [
            *([("sign-in", sign_in)] if question.sign_in else ()),
            *([(mine.base_url, f"{spoken(mine.base_url)}, with a key")] if mine else ()),
            ("key", "paste an Anthropic API key"),
            *(
                (
                    url,
                    f"{server.name} on this machine: {', '.join(server.models[:2]) or 'no models'}",
                )
                for url, server in servers.items()
            ),
            ("server", "another server: address and model"),
            ("practice", "the practice model: offline, no key"),
            *([(OTHER_PROFILE, "another of your profiles")] if question.others else ()),
        ]
        # A way that was not completed returns to the list.
        whom = f" profile {spoken(question.profile)}" if question.profile else ""
        head = [
            *([sentence(question.why)] if question.why else ()),
            f"How do you want to connect{whom}?",
        ]
        while (way := await self.choose(head, labels)) is not None:
            if way == "sign-in":
                return SignInSetup(question.sign_in)
            if way == OTHER_PROFILE:
                return OTHER_PROFILE
            known = servers.get(way)
            models = known.models if known else ()
            models = (mine.model,) if mine and way == mine.base_url else models
            if setup := await self._setup_by(way, models[0] if models else ""):
                return setup
        return None

    async def _setup_by(self, way: str, usual: str) -> Setup | None:
        """Ask for the details of a way; None if they were not given."""
        if way == "practice":
            return PracticeSetup()
        if way == "key":
            key = await self.text("API key, not shown: ", hidden=True)
            return KeySetup(key) if key else None
        typed = way if "://" in way else await self.text("Address: ")
        try:
            url = server_address(typed)
        except ToolError as error:
            self.terminal.say(str(error) if typed else "Enter an address.")
            return None
        self.terminal.say(f"Using {url}.")
        hint = f", or just Enter for {usual}" if usual else ""
        model = await self.text(f"Model name{hint}: ") or usual
        if not model:
            self.terminal.say("Enter a model name.")
            return None
        key = await self.text("Key, if needed (not shown): ", hidden=True)
        return ServerSetup(url, model, key)

    async def text(self, question: str, *, hidden: bool = False) -> str:
        """Ask for a line of text, "" for none."""
        async with self._asking:
            return ((await self.terminal.answer(question, hidden=hidden)) or "").strip()

    def _again(self, typed: str, hint: str) -> None:
        """Handle what is no answer: a slip of a key is dropped, a text goes to the prompt."""
        if len(typed.strip()) > _WORD_MAX or " " in typed.strip():
            self.person.typed(typed)
        self.terminal.say(hint)


def _parsed(typed: str) -> tuple[Literal["once", "session", "always", "no"] | None, str]:
    """Return an approval's answer from the typed text, and the reason after a no."""
    word = typed.strip().lower()
    if answer := _ANSWERS.get(word):
        return answer, ""
    first, _, reason = typed.strip().partition(" ")
    if first.rstrip(",:").lower() in {"4", "no"} and reason.strip():
        return "no", reason.strip()
    return None, ""


OWN_WORDS: Final = AnswerChoice("in your own words")
"""The row of an answer that is typed."""


def answer_rows(question: UserQuestion) -> list[AnswerChoice | Alternative]:
    """Return the possible answers, in the order of their numbers."""
    own = {place: [OWN_WORDS] if question.own == place else [] for place in ("first", "last")}
    return [*own["first"], *question.choices, *own["last"], *question.ways]


def plan_lines(title: str, plan: str) -> list[str]:
    """Return a plan as it is read out."""
    return [f"Plan: {spoken(title)}", *read(plan), "End of the plan."]


Labels: TypeAlias = Sequence[tuple[str, str]]
"""Names of answers, each with its text."""

_FINDINGS: Final = 20
_SESSIONS: Final = 20
_POINTS: Final = 30
_BRANCHES: Final = 100
_NOTHING: Final = "Request check: no problems found."


def question_lines(question: Question) -> tuple[list[str], Labels]:
    """Return the lines of a question, and its answers."""
    match question:
        case ChoiceQuestion(title, text, options, details):
            lines = [sentence(visible(title), *visible(text).split("\n\n"))]
            lines += [spoken(visible(detail)) for detail in details]
            return lines, [(option.name, visible(option.label)) for option in options]
        case DamageQuestion(damage, copy):
            return damage_lines(damage.findings), _damage_options(copy=copy is not None)
        case ModelQuestion(rows):
            return ["Which model?"], [(row.name, model_line(row)) for row in rows]
        case ProfileQuestion(rows):
            return ["Which profile?"], [(row.name, profile_line(row)) for row in rows]
        case BranchQuestion(rows, can_undo):
            return branch_choices(rows, can_undo=can_undo)
        case PointQuestion(points, can_undo):
            labels = [
                (
                    str(place),
                    spoken(point.text)[:120]
                    + (f", {plural(point.files, 'file')} changed since" if point.files else ""),
                )
                for place, point in enumerate(points)
            ]
            labels = labels[: -_POINTS - 1 : -1]
            if can_undo:
                labels += [(UNDO, "Undo the last rewind"), (ALL_BRANCHES, "Show all branches")]
            return ["Rewind to which prompt? Newest first."], labels
        case FailedRequest():
            ways = [(way.name, f"{way.label}: {way.help}") for way in question.ways]
            return trouble_lines(question), ways


def branch_choices(rows: Sequence[BranchRow], *, can_undo: bool) -> tuple[list[str], Labels]:
    """Return the branches to choose from, in the order of the tree."""
    numbers = {row.leaf: number for number, row in enumerate(rows, 1)}
    now = datetime.now(UTC)
    labels = [
        (row.leaf, ", ".join(filter(None, _branch_facts(row, numbers, now))))
        for row in rows[:_BRANCHES]
    ]
    if can_undo:
        labels.append((UNDO, "Undo the last rewind or switch"))
    more = "" if len(rows) <= _BRANCHES else "holdfast sessions tree lists them all"
    count = "1 branch" if len(rows) == 1 else f"{len(rows):,} branches"
    return [sentence(f"{count}. Continue on which?", more)], labels


def _branch_facts(row: BranchRow, numbers: Mapping[str, int], now: datetime) -> Iterator[str]:
    """Yield what there is to say of a branch."""
    yield spoken(row.first or NOTHING_SAID)[:120]
    yield "you are here" if row.current else ""
    if row.parent is not None:
        yield f"branches off {numbers.get(row.parent, 0)} after {spoken(row.fork_words)[:60]}"
    yield branch_facts(row, now).replace(" · ", ", ")


def trouble_lines(trouble: FailedRequest) -> list[str]:
    """Say what is known of a failed request."""
    status = f"Status {trouble.status}" if trouble.status else ""
    id_ = f"request {trouble.request_id}" if trouble.request_id else ""
    lines = [sentence(trouble.title, ", ".join(filter(None, (status, id_))))]
    lines += [sentence(trouble.meaning)] if trouble.meaning else []
    if trouble.before:
        lines.append(sentence(f"Tried so far: {', '.join(trouble.before)}"))
    if trouble.findings is not None:
        lines += [f"Finding: {spoken(one)}" for one in trouble.findings[:_FINDINGS]] or [_NOTHING]
        if (more := len(trouble.findings) - _FINDINGS) > 0:
            lines.append(f"And {more:,} more findings.")
    return lines


def damage_lines(found: Sequence[Finding]) -> list[str]:
    """Return the findings, counted, then one by one."""
    places = "one place" if len(found) == 1 else f"{len(found):,} places"
    lines = [
        sentence(
            f"This session is damaged. It needs repair in {places}: {findings_summary(found)}"
        ),
        "The file stays as it is: Holdfast repairs it in memory.",
        *(sentence(f"{where(one)}: {one.action}") for one in found[:_FINDINGS]),
    ]
    if (more := len(found) - _FINDINGS) > 0:
        lines.append(f"And {more:,} more.")
    return lines


def _damage_options(*, copy: bool) -> Labels:
    if not copy:
        return [("continue", "Continue with a repaired copy"), ("back", "Cancel")]
    return [
        ("continue", "Continue; new messages go at the end of the file"),
        ("read_only", "Open it read-only"),
        ("copy", "Write a repaired copy and continue with it"),
        ("back", "Cancel"),
    ]


def model_line(row: ModelRow) -> str:
    """Describe a model, and whether the session fits it."""
    facts = [row.name, f"window {counted(row.window)}"]
    facts += ["in use now"] if row.now else []
    facts += [f"fallback {row.fallback}"] if row.fallback else []
    facts += [] if row.fits else [f"too small, the session needs {counted(row.needs)}"]
    facts += [row.rates] if row.rates else []
    facts += [f"the next prompt costs {row.next.removeprefix('≈ ')}"] if "$" in row.next else []
    facts += [row.retires] if row.retires else []
    return ", ".join(facts)


def profile_line(row: ProfileRow) -> str:
    """Describe a profile."""
    facts = [spoken(row.name), *map(spoken, (row.model, row.server, row.key))]
    facts += ["in use now"] if row.now else []
    facts += [f"the next prompt costs {row.next.removeprefix('≈ ')}"] if "$" in row.next else []
    return ", ".join(facts)


def session_choices(rows: Sequence[SessionRow], current: str) -> tuple[list[str], Labels]:
    """Return the sessions to choose from; `current` is the id of the open one."""
    labels = [
        (
            row.id,
            f"{row.title or 'untitled'}, {row.updated.astimezone():%d %B %H:%M},"
            f" {plural(row.messages, 'message')}"
            + (f", {state_name(row.state)}" if row.state != "ok" else "")
            + (", open now" if row.id == current else ""),
        )
        for row in rows[:_SESSIONS]
    ]
    head = f"{plural(len(rows), 'session')} in this folder, newest first."
    more = "" if len(rows) <= _SESSIONS else "holdfast sessions list shows all"
    return [sentence(head, more)], labels


def interruption_lines(work: InterruptedWork) -> tuple[list[str], Labels]:
    """Return each call with what is known of it, each command that still runs, and the options."""
    lines = ["The last run of this session was interrupted."]
    lines += [
        spoken(f"Tool {call.tool} {call.label}".rstrip() + f": {known(call)}.")
        for call in work.calls
    ]
    lines += [
        spoken(
            f"Still running: {each.name}, {each.command}, since"
            f" {each.started[:16].replace('T', ' ')} UTC."
        )
        for each in work.orphans
    ]
    ways = [("tell", "Tell the model what is known, and let it continue")]
    if work.calls:
        ways.append(("again", "Run the interrupted calls again, asking where needed"))
    if work.orphans:
        count = len(work.orphans)
        runs = "runs" if count == 1 else "run"
        ways.append(("stop", f"Stop {plural(count, 'command')} that still {runs}"))
    ways.append(("leave", "Skip it: the model sees that the run was interrupted"))
    return lines, ways
