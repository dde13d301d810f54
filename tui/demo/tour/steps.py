"""The steps of the tour: what is asked for at each place, and how it is known to be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tui.agent import events
from tui.core.formatting import size
from tui.demo.tour.observations import (
    APPROVAL,
    BUSY,
    CHAT,
    CONTEXT,
    DEBUG,
    OUTPUT,
    PICK,
    REPAIR,
    SESSIONS,
    WAYS,
    WHOLE,
    Seen,
)
from tui.provider.practice.script import Fault

Fact: TypeAlias = Callable[[Seen], bool]
Words: TypeAlias = str | Callable[[Seen], str]

ENOUGH_PROMPTS: Final = 2
"""So many prompts make a conversation that can be summarised."""

WAIT_S: Final = 20.0
"""What the server of the rate limit asks for: long enough to read the line that says so."""


def _always(_: Seen) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do next at a place, keys in backticks. `lay` is a prompt that is laid ready, `news`
    what has just happened or is shown there."""

    at: str
    say: str
    lay: str = ""
    when: Fact = _always
    news: Words = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One feature, `name`d in a word. The first of `hints` that fits is shown; `happened` is said
    above the next step when this one is done. The first request made meets `fault`."""

    name: str
    title: str
    hints: tuple[Hint, ...]
    done: Fact
    happened: Words
    fault: Fault | None = None


OPENING: Final = "About five minutes, offline. `F9`, or `Enter` on an empty prompt, skips a step."

GENERAL: Final[Mapping[str, Hint]] = {
    APPROVAL: Hint(
        APPROVAL,
        "`1` allows it this once, `4` says no and why, `Esc` says no.",
        news="You are asked before a file is changed or a command is run.",
    ),
    BUSY: Hint(BUSY, "It is at work. `Esc` stops it; nothing is lost."),
    OUTPUT: Hint(OUTPUT, "`Esc` comes back to the conversation."),
    WHOLE: Hint(WHOLE, "`o` makes it smaller again."),
    WAYS: Hint(WAYS, "A letter answers, `Esc` goes back."),
}
"""By place, where a step says nothing of it."""

ELSEWHERE: Final = Hint("", "`Esc` comes back to the conversation.")


def _edit_answered(seen: Seen) -> bool:
    answered = seen.all(events.PermissionAnswered)
    return seen.back and any(one.name in {"edit_file", "write_file"} for one in answered)


def _edit_told(seen: Seen) -> str:
    answered = seen.all(events.PermissionAnswered)
    if answered and answered[-1].answer in {"no", "deny"}:
        return "You said no: the file is as it was, and the model was told."
    return "You said yes: the file is changed. `/diff` shows every change of a session."


def _cut_told(seen: Seen) -> str:
    cut = seen.cut or {}
    total, shown = (cut.get(name) for name in ("bytes_total", "bytes_shown"))
    if not (isinstance(total, int) and isinstance(shown, int)):
        return "The model got a part, you keep all of it."
    return f"The model got {size(shown)}, you keep all {size(total)}."


def _waits(seen: Seen) -> bool:
    """Whether the wait that was announced is not over yet."""
    return seen.has(events.RetryScheduled) and not seen.has(
        events.RequestSent, after=events.RetryScheduled
    )


def _stopped(seen: Seen) -> bool:
    return any(one.outcome == "interrupted" for one in seen.all(events.TurnFinished))


def _queued(seen: Seen) -> bool:
    return any(one.texts for one in seen.all(events.QueueChanged))


def _given_back(seen: Seen) -> bool:
    """Whether what was queued is in the prompt again, and was not sent yet."""
    sent = seen.has(events.UserMessage, after=events.TurnFinished)
    return _stopped(seen) and _queued(seen) and not sent


STEPS: Final[tuple[Step, ...]] = (
    Step(
        "ask",
        "ask and read",
        (Hint(CHAT, "A prompt is laid ready: `Enter` sends it. Or ask for something else.",
              "read README.md"),
         Hint(BUSY, "Wait for the answer to end; `Esc` would stop it.", "",
              news="The model calls a tool, shown as a card. Its answer streams in.")),
        lambda seen: seen.back and seen.has(events.ToolFinished),
        "It read the file with a tool. Every step is on disk before you see it.",
    ),
    Step(
        "approval",
        "you are asked first",
        (Hint(CHAT, "`Enter` asks for a change of a file.",
              'append "- wind the clock" to notes.md'),
         Hint(APPROVAL, "`1` allows it this once, `4` says no and why, `Esc` says no. Any is fine.",
              news="This is the change, line by line. Nothing is written yet.")),
        _edit_answered,
        _edit_told,
    ),
    Step(
        "long output",
        "long output",
        (Hint(CHAT, "`Enter` runs a command that prints 20,000 lines; `1` allows it.",
              "run sh build.sh", lambda seen: seen.cut is None),
         Hint(CHAT, "`F4` shows the output. There, `Tab` and then `o` open all of it.", "",
              lambda seen: seen.narrow, _cut_told),
         Hint(CHAT, "`Tab` twice goes to the output, then `o` opens all of it.", "",
              news=_cut_told),
         Hint(OUTPUT, "`Tab` goes into it, then `o` opens all of it.", "", news=_cut_told),
         Hint(WHOLE, "`/` searches, `G` goes to the end. `o` makes it smaller again.", "",
              lambda seen: not seen.narrow, "This is the whole copy."),
         Hint(WHOLE, "`/` searches, `G` goes to the end. `F4` comes back.", "",
              news="This is the whole copy.")),
        lambda seen: seen.back and seen.cut is not None and WHOLE in seen.been,
        "Long output is cut for the model only, and every cut says so.",
    ),
    Step(
        "context",
        "what the model sees",
        (Hint(CHAT, "First something to look at: `Enter`.", "read README.md",
              lambda seen: not seen.has_result),
         Hint(CHAT, "`F2` shows what the model sees, item by item, and what each weighs."),
         Hint(CONTEXT, "`Esc` comes back to the conversation.", "",
              lambda seen: "full" in seen.views,
              "Undone. Nothing that is masked or pruned is lost: the record keeps it."),
         Hint(CONTEXT, "`u` undoes that.", "", lambda seen: "masked" in seen.views,
              "In its place the model will see one line."),
         Hint(CONTEXT, "`End`, then `↑` to a result, and `m` masks it.", "",
              news="Old results can be pruned, too: see the state of each item.")),
        lambda seen: seen.back and "masked" in seen.views,
        "What the model sees is a view, and you decide what is in it.",
    ),
    Step(
        "compaction",
        "a summary, and back",
        (Hint(CHAT, "First something to summarise: `Enter`.", "read README.md",
              lambda seen: seen.prompts < ENOUGH_PROMPTS),
         Hint(CHAT, "`Enter` asks for a summary of the beginning; a preview comes first.",
              "/compact", lambda seen: not seen.has(events.CompactionFinished)),
         Hint(CHAT, "`Enter` sends the full conversation again.", "/uncompact",
              news="The model sees a summary in the place of the beginning now."),
         Hint(BUSY, "Wait for the summary; `Esc` would stop it."),
         Hint(WAYS, "`c` does it, `b` goes back.", "",
              news="The preview: what becomes a summary, and what stays word for word.")),
        lambda seen: seen.back and seen.has(events.CompactionUndone),
        "The full conversation is back: its record was never touched.",
    ),
    Step(
        "rate limit",
        "a rate limit",
        (Hint(CHAT, "`Enter` sends a request that the server will put off.", "read notes.md"),
         Hint(BUSY, "`Enter` asks again now. Left alone, it asks when the time is over.",
              "/retry", _waits,
              f"The server wants a wait of {WAIT_S:.0f} s, which is counted down."),
         Hint(BUSY, "Wait for the answer to end.")),
        lambda seen: seen.back and seen.has(events.TurnFinished, after=events.RetryScheduled),
        "It asked again, and the answer is whole. You typed nothing twice.",
        Fault(status=429, retry_after=WAIT_S),
    ),
    Step(
        "stop",
        "stop, and type ahead",
        (Hint(CHAT, "`Enter` sends it after all.", "", _given_back,
              "Stopped at once. What you had queued is back in the prompt."),
         Hint(CHAT, "`Enter` starts a command that runs for ten minutes; `1` allows it.",
              "run sh watch.sh"),
         Hint(BUSY, "Wait for the answer to end.", "", _stopped),
         Hint(BUSY, "`Esc` stops the command, and all that it started.", "", _queued,
              "Queued: it waits until the agent can take it."),
         Hint(BUSY, "You can type meanwhile: `Enter` queues this prompt.", "read notes.md",
              lambda seen: seen.has(events.PermissionAnswered),
              "It runs, and prints a line a second.")),
        lambda seen: seen.back and _stopped(seen) and not _given_back(seen),
        "What was printed and what was typed until then is kept.",
    ),
    Step(
        "rewind",
        "back, with the files",
        (Hint(CHAT, "First a change to take back: `Enter`, then `1` allows it.",
              'append "- a mistake" to notes.md', lambda seen: not seen.changed_files),
         Hint(CHAT, "`Esc` twice goes back to an earlier prompt."),
         Hint(PICK, "`↑` to a prompt with a file changed since, then `Enter`."),
         Hint(WAYS, "`f` takes the conversation and the files back.")),
        lambda seen: seen.back and seen.has(events.SessionStarted) and PICK in seen.been,
        "Nothing is thrown away: what came since stays in the session's file.",
    ),
    Step(
        "sessions",
        "every session is kept",
        (Hint(CHAT, "`F3` shows the sessions of this folder."),
         Hint(SESSIONS, "`Ctrl+F`, type keeper, then `Enter` opens what was found.", "",
              news="A search goes through all that was ever said. `Esc` would come back.")),
        lambda seen: SESSIONS in seen.been and seen.at in {CHAT, REPAIR},
        "Sessions are files on this machine, a line of JSON for each record.",
    ),
    Step(
        "repair",
        "a damaged session",
        (Hint(CHAT, "`Enter` opens a session that a power cut has torn.", "/resume {damaged}"),
         Hint(REPAIR, "`↑` `↓` show each before and after. `c` goes on with it.", "",
              news="What was found, and what is done about it. No line of the file is changed.")),
        lambda seen: seen.back and REPAIR in seen.been,
        "Repaired in what the model sees; its lines stand in the file as before.",
    ),
    Step(
        "debug view",
        "every decision",
        (Hint(CHAT, "`Enter` turns the debug lines on. `/think` and `/elevated` work alike.",
              "/verbose on", lambda seen: not seen.has(events.DirectivesChanged)),
         Hint(CHAT, "`F12` shows every event, with its time and its reason."),
         Hint(DEBUG, "`/` filters, `Enter` shows all of an event. `F12` again closes it.")),
        lambda seen: seen.back and DEBUG in seen.been and seen.has(events.DirectivesChanged),
        "That was the tour. Nothing of it stays on this machine.",
    ),
)  # fmt: skip
"""In the order of the tour."""

END: Final = Step(
    "end",
    "where to go from here",
    (
        Hint(
            CHAT,
            "`Ctrl+Q` leaves. In a folder of yours, `holdfast` asks for a key once. There, `/init`"
            " writes AGENTS.md, `F1` shows all keys, `/drill` plays every fault of a server.",
        ),
    ),
    lambda _: False,
    "",
)
