"""The steps of the tour: what each asks for at a place, and when it is done, by the events since it
began and the person's place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from tui.context.file_changes import changes
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact
from tui.core.formatting import size
from tui.demo.guide import GuideStep
from tui.provider.practice.script import Fault
from tui.session.records import Record

CHAT, BUSY, OUTPUT, WHOLE = "chat", "busy", "output", "whole"
"""The places: the conversation while nothing runs, and while something does; the output over it in
a narrow terminal, and over the whole screen. Every other place is the name of a screen's class."""

APPROVAL, CONTEXT, WAYS, PICK = "ApprovalModal", "ContextScreen", "ChoiceDialog", "PickScreen"
SESSIONS, REPAIR, DEBUG = "SessionsScreen", "RepairScreen", "DebugLogScreen"

E = TypeVar("E")

_SMALL: Final = (
    facts.TextDelta,
    facts.ThinkingDelta,
    facts.ToolInputDelta,
    facts.ToolOutputChunk,
    facts.CompactionDelta,
    facts.Alive,
)
"""Frequent facts that no step waits for."""


@dataclass(slots=True)
class Observations:
    """Events and places since a step began."""

    at: str = CHAT
    """The place where the person is."""
    narrow: bool = False
    """True if the output covers the conversation when it is shown."""
    output: bool = False
    """True if the output is visible."""
    records: Sequence[Record] = ()
    """The records of the open session."""
    been: set[str] = field(default_factory=set[str])
    """The places where the person has been."""
    _heard: list[Fact] = field(default_factory=list[Fact])

    def hear(self, event: Fact) -> None:
        if not isinstance(event, _SMALL):
            self._heard.append(event)

    def all(self, kind: type[E]) -> list[E]:
        """Return the events of a kind, in order."""
        return [event for event in self._heard if isinstance(event, kind)]

    def has(self, kind: type[Fact], *, after: type[Fact] | None = None) -> bool:
        """True if there was an event of a kind; with `after`, since the first event of that
        kind."""
        events = self._heard
        if after is not None:
            first = next((n for n, event in enumerate(events) if isinstance(event, after)), None)
            events = [] if first is None else events[first + 1 :]
        return any(isinstance(event, kind) for event in events)

    @property
    def back(self) -> bool:
        """True if the conversation is shown and nothing runs."""
        return self.at == CHAT

    @property
    def prompts(self) -> int:
        """Number of prompts in the session."""
        return sum(record.type == "user" for record in self.records)

    @property
    def cut(self) -> dict[str, object] | None:
        """The receipt of the first output that was cut."""
        finished = self.all(facts.ToolFinished)
        return next((event.receipt for event in finished if event.receipt), None)

    @property
    def views(self) -> list[str]:
        """The changes of results in the context, in order: masked, full and so on."""
        changed = self.all(facts.ContextChanged)
        return [str(one.get("view", "")) for event in changed for one in event.changes]


Condition: TypeAlias = Callable[[Observations], bool]
Words: TypeAlias = str | Callable[[Observations], str]

ENOUGH_PROMPTS: Final = 2
"""Number of prompts that make a conversation long enough to summarize."""

WAIT_S: Final = 20.0
"""Seconds that the server of the rate limit asks for: long enough to read the line about it."""


def _always(_: Observations) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Cue:
    """The next thing to do at a place."""

    at: str
    """The place."""
    say: str
    """The keys to press, in backticks, and why."""
    lay: str = ""
    """A prompt to put into the input line."""
    when: Condition = _always
    news: Words = ""
    """Something that has just happened, or is shown there."""


@dataclass(frozen=True, slots=True)
class TourStep(GuideStep):
    """One feature of the program."""

    name: str
    """A short name, for tests."""
    title: str
    cues: tuple[Cue, ...]
    """The first one that fits is shown."""
    done: Condition
    happened: Words
    """The text above the next step once this one is done."""


OPENING: Final = "About five minutes, offline. `F9`, or `Enter` on an empty prompt, skips a step."

GENERAL: Final[Mapping[str, Cue]] = {
    APPROVAL: Cue(
        APPROVAL,
        "Press `1` for yes, `4` for no with a reason, `Esc` for no.",
        news="You're asked before a file changes or a command runs.",
    ),
    BUSY: Cue(BUSY, "The agent is working. `Esc` stops it; nothing is lost."),
    OUTPUT: Cue(OUTPUT, "`Esc` returns to the conversation."),
    WHOLE: Cue(WHOLE, "`o` makes it smaller again."),
    WAYS: Cue(WAYS, "Press a letter to answer, `Esc` to go back."),
}
"""The cues by place, for steps without their own."""

ELSEWHERE: Final = Cue("", "`Esc` returns to the conversation.")


def _edit_answered(seen: Observations) -> bool:
    answered = seen.all(facts.PermissionAnswered)
    return seen.back and any(
        one.name in {"edit_file", "write_file", "apply_patch"} for one in answered
    )


def _edit_outcome(seen: Observations) -> str:
    answered = seen.all(facts.PermissionAnswered)
    if answered and answered[-1].answer in {"no", "deny"}:
        return "You declined: the file is unchanged and the model was told."
    return "You allowed it: the file has changed. `/diff` shows every change in a session."


def _cut_sizes(seen: Observations) -> str:
    cut = seen.cut or {}
    total, shown = (cut.get(name) for name in ("bytes_total", "bytes_shown"))
    if not (isinstance(total, int) and isinstance(shown, int)):
        return "The model got a part; you keep all of it."
    return f"The model got {size(shown)}, you keep all {size(total)}."


def _waits(seen: Observations) -> bool:
    """True if the announced wait is not over yet."""
    return seen.has(facts.RetryScheduled) and not seen.has(
        facts.RequestSent, after=facts.RetryScheduled
    )


def _stopped(seen: Observations) -> bool:
    return any(one.outcome == "interrupted" for one in seen.all(facts.TurnFinished))


def _queued(seen: Observations) -> bool:
    return any(one.texts for one in seen.all(facts.QueueChanged))


def _given_back(seen: Observations) -> bool:
    """True if the queued text is in the prompt again, and was not sent yet."""
    sent = seen.has(facts.UserMessage, after=facts.TurnFinished)
    return _stopped(seen) and _queued(seen) and not sent


STEPS: Final[tuple[TourStep, ...]] = (
    TourStep(
        "ask",
        "ask and read",
        (Cue(CHAT, "Press `Enter` to send this prompt, or type your own.",
             "read README.md"),
         Cue(BUSY, "Wait for the answer; `Esc` stops it.", "",
             news="The model calls a tool, shown as a card. Its answer streams in.")),
        lambda seen: seen.back and seen.has(facts.ToolFinished),
        "It read the file with a tool. Every step is on disk before you see it.",
    ),
    TourStep(
        "approval",
        "you are asked first",
        (Cue(CHAT, "Press `Enter` to ask for a change to a file.",
             'append "- wind the clock" to notes.md'),
         Cue(APPROVAL, "Press `1` for yes, `4` for no with a reason, `Esc` for no.",
             news="This is the change, line by line. Nothing is written yet.")),
        _edit_answered,
        _edit_outcome,
    ),
    TourStep(
        "long output",
        "long output",
        (Cue(CHAT, "Press `Enter` to run a command that prints 20,000 lines; `1` allows it.",
             "run sh build.sh", lambda seen: seen.cut is None),
         Cue(CHAT, "Press `F4` to show the output.", "", lambda seen: not seen.output, _cut_sizes),
         Cue(CHAT, "Press `Tab` twice to reach the output, then `o` to open all of it.", "",
             news=_cut_sizes),
         Cue(OUTPUT, "Press `Tab` to enter it, then `o` to open all of it.", "", news=_cut_sizes),
         Cue(WHOLE, "`/` searches, `G` goes to the end. `o` makes it smaller again.", "",
             lambda seen: not seen.narrow, "This is the full copy."),
         Cue(WHOLE, "`/` searches, `G` goes to the end. `F4` returns.", "",
             news="This is the full copy.")),
        lambda seen: seen.back and seen.cut is not None and WHOLE in seen.been,
        "Long output is cut for the model only, and every cut says so.",
    ),
    TourStep(
        "context",
        "what the model sees",
        (Cue(CHAT, "Press `Enter` to run a sample prompt first.", "read README.md",
             lambda seen: not any(one.type == "tool_result" for one in seen.records)),
         Cue(CHAT, "Press `F2` to see the context item by item, with the size of each."),
         Cue(CONTEXT, "`Esc` returns to the conversation.", "",
             lambda seen: "full" in seen.views,
             "Undone. Nothing hidden or left out is lost: the session file keeps it."),
         Cue(CONTEXT, "Press `u` to undo that.", "", lambda seen: "masked" in seen.views,
             "The model will see one line instead."),
         Cue(CONTEXT, "The largest result is selected: press `m` to hide it.", "",
             news="Old results are left out too: see each item's state.")),
        lambda seen: seen.back and "masked" in seen.views,
        "You decide what the model sees; the record stays complete.",
    ),
    TourStep(
        "compaction",
        "a summary, and back",
        (Cue(CHAT, "Press `Enter` to run a sample prompt first.", "read README.md",
             lambda seen: seen.prompts < ENOUGH_PROMPTS),
         Cue(CHAT, "Press `Enter` to summarize older messages; a preview comes first.",
             "/compact", lambda seen: not seen.has(facts.CompactionFinished)),
         Cue(CHAT, "Press `Enter` to send the full conversation again.", "/uncompact",
             news="The model now sees a summary instead of older messages."),
         Cue(BUSY, "Wait for the summary; `Esc` stops it."),
         Cue(WAYS, "Press `c` to compact, `Esc` to cancel.", "",
             news="The preview: what is summarized, and what is kept unchanged.")),
        lambda seen: seen.back and seen.has(facts.CompactionUndone),
        "The full conversation is back: its record never changed.",
    ),
    TourStep(
        "rate limit",
        "a rate limit",
        (Cue(CHAT, "Press `Enter` to send a request that hits the limit.", "read notes.md"),
         Cue(BUSY, "Press `Enter` to retry now. Otherwise it retries when the time is up.",
             "/retry", _waits,
             f"The server asks for a wait of {WAIT_S:.0f} s; the line counts down."),
         Cue(BUSY, "Wait for the answer.")),
        lambda seen: seen.back and seen.has(facts.TurnFinished, after=facts.RetryScheduled),
        "Holdfast retried and the answer is complete. You had nothing to retype.",
        fault=Fault(status=429, retry_after=WAIT_S),
    ),
    TourStep(
        "stop",
        "stop, and type ahead",
        (Cue(CHAT, "Press `Enter` to send it after all.", "", _given_back,
             "Stopped at once. Your queued message is back in the prompt."),
         Cue(CHAT, "Press `Enter` to start a command that runs for ten minutes; `1` allows it.",
             "run sh watch.sh"),
         Cue(BUSY, "Wait for the answer.", "", _stopped),
         Cue(BUSY, "Press `Esc` to stop the command and everything it started.", "", _queued,
             "Queued: it is sent as soon as the agent can take it."),
         Cue(BUSY, "You can type ahead: press `Enter` to queue this prompt.", "read notes.md",
             lambda seen: seen.has(facts.PermissionAnswered),
             "It runs and prints one line per second.")),
        lambda seen: seen.back and _stopped(seen) and not _given_back(seen),
        "What was printed and typed until then is kept.",
    ),
    TourStep(
        "rewind",
        "back, with the files",
        (Cue(CHAT, "Make a change first: `Enter`, then `1` to allow it.",
             'append "- a mistake" to notes.md', lambda seen: not changes(seen.records)),
         Cue(CHAT, "Press `Esc` twice to rewind to an earlier prompt."),
         Cue(PICK, "Press `↑` to reach a prompt with a changed file, then `Enter`."),
         Cue(WAYS, "Press `f` to restore conversation and files.")),
        lambda seen: seen.back and seen.has(facts.SessionStarted) and PICK in seen.been,
        "Nothing is thrown away: later messages stay in the session file.",
    ),
    TourStep(
        "sessions",
        "every session is kept",
        (Cue(CHAT, "Press `F3` to see this folder's sessions."),
         Cue(SESSIONS, "Press `Ctrl+F`, type “keeper”, then `Enter`.", "",
             news="The search covers every message. `Esc` returns.")),
        lambda seen: SESSIONS in seen.been and seen.at in {CHAT, REPAIR},
        "Sessions are files on this machine: one line of JSON per record.",
    ),
    TourStep(
        "repair",
        "a damaged session",
        (Cue(CHAT, "Press `Enter` to open a session damaged by a power cut.", "/resume {damaged}"),
         Cue(REPAIR, "`↑` `↓` show each before and after. Press `c` to continue.", "",
             news="What was found and how it is repaired. No line in the file changes.")),
        lambda seen: seen.back and REPAIR in seen.been,
        "Repaired in what the model sees; the file keeps its lines.",
    ),
    TourStep(
        "debug view",
        "every decision",
        (Cue(CHAT, "Press `Enter` to turn on debug lines. `/think` and `/elevated` work like it.",
             "/verbose on", lambda seen: not seen.has(facts.DirectivesChanged)),
         Cue(CHAT, "Press `F12` to see every event with its time and reason."),
         Cue(DEBUG, "`/` filters, `Enter` shows the whole event. `F12` again closes it.")),
        lambda seen: seen.back and DEBUG in seen.been and seen.has(facts.DirectivesChanged),
        "That was the tour. It leaves nothing on this machine.",
    ),
)  # fmt: skip
"""The steps in the order of the tour."""

END: Final = TourStep(
    "end",
    "where to go from here",
    (
        Cue(
            CHAT,
            "Press `Ctrl+Q` to quit. In your own folder, `holdfast` asks for a key once. "
            "There, `/init`"
            " writes AGENTS.md, `F1` shows all keys, `/drill` simulates API failures.",
        ),
    ),
    lambda _: False,
    "",
)
