"""/goal: work until a command passes, or a model says that the goal is met; within limits."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from tui.agent.goal import limit_of, next_round, with_limits
from tui.agent.prompts import GoalWish, ParsedPrompt
from tui.app.commands import split
from tui.app.reports import Report
from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.core.fact_words import goal_check, goal_progress
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.frontend import Submitted
    from tui.core.facts import GoalChanged

_OPTION = late_pattern(r"(--\S*)(?:\s+|\Z)")
_VALUE = late_pattern(r"(\S+)(?:\s+|\Z)")
_COMMAND = late_pattern(r"(?:\A|\s)--(?:\s+(.*))?\Z", re.DOTALL)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_S: Final = 366 * 86_400.0
_MOST: Final = 1_000_000
_FORMS: Final = {
    "--rounds": "--rounds takes a whole number above 0.",
    "--usd": "--usd takes an amount in dollars; 0 is no limit.",
    "--for": "--for takes a time such as 30m or 2h.",
}
_STATES: Final = {
    "set": "being worked on",
    "checked": "being worked on",
    "continued": "being worked on",
    "paused": "paused",
    "met": "met",
    "limit": "not met: a limit was reached",
    "stuck": "not met: nothing changed any more",
    "blocked": "not met: it needs you",
    "stopped": "ended by you",
}


@dataclass(frozen=True, slots=True)
class GoalOptions:
    """The limits that stand before a text, as options, and that text."""

    rest: str
    rounds: int | None = None
    usd: float | None = None
    seconds: float | None = None


def goal_options(text: str) -> GoalOptions:
    """Read `--rounds 5`, `--usd 2` and `--for 30m` at the beginning of a text. Raises UsageError
    for any other option there, and for a value that is none."""
    given: dict[str, float] = {}
    rest = text.strip()
    while (option := _OPTION.match(rest)) and option[1] != "--":
        name, equals, value = option[1].partition("=")
        rest = rest[option.end() :]
        if name not in _FORMS:
            known = "--rounds 5, --usd 2 and --for 30m"
            raise UsageError(f"Unknown option {name}.", hint=f"The options are {known}.")
        if not equals and (following := _VALUE.match(rest)):
            value, rest = following[1], rest[following.end() :]
        number = seconds_of(value) if name == "--for" else _number(value)
        whole = name != "--rounds" or (number > 0 and number % 1 == 0)
        if math.isnan(number) or not whole:
            raise UsageError(f"Not {value!r}: {_FORMS[name]}")
        given[name] = number
    rounds = given.get("--rounds")
    return GoalOptions(
        rest, int(rounds) if rounds else None, given.get("--usd"), given.get("--for")
    )


def seconds_of(text: str) -> float:
    """Seconds of `90s`, `45m`, `1h30m` or `2d`; not a number for anything else."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        return math.nan
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if 0 < seconds <= _LONGEST_S else math.nan


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,7}(\.\d{1,4})?", text) else math.nan


def read_wish(argument: str) -> GoalWish:
    """Read `[OPTIONS] TEXT [-- COMMAND]`. Raises UsageError."""
    options = goal_options(argument)
    text, command = options.rest, ""
    if found := _COMMAND.search(options.rest):
        text, command = options.rest[: found.start()].strip(), (found[1] or "").strip()
        if not command:
            raise UsageError("No command after --.", hint="Such as: /goal Fix it -- pytest -q")
    if command and not text:
        text = f"Make this pass: `{command}`"
    if not text:
        raise UsageError(
            "No goal given.", hint="Type it, and a command that checks it: /goal TEXT -- COMMAND"
        )
    return GoalWish(text, command, options.rounds, options.usd, options.seconds)


def goal_prompt(typed: str) -> ParsedPrompt:
    """A prompt that sets a goal, as it was typed; for `/goal continue` one without a text. Raises
    UsageError for the other forms of /goal, and for wrong options."""
    named = split(typed.strip())
    argument = named[1] if named else ""
    word, _, rest = argument.partition(" ")
    if word == "continue":
        options = goal_options(rest)
        if not options.rest:
            return ParsedPrompt(typed, "", goal=_continued(options))
    if argument in {"", "stop"}:
        raise UsageError(
            f"{typed.strip()} needs the session's own screen.",
            hint="Open the session with holdfast -r and type it there.",
        )
    wish = read_wish(argument)
    return ParsedPrompt(typed, wish.text, goal=wish)


def _continued(options: GoalOptions) -> GoalWish:
    return GoalWish(rounds=options.rounds, usd=options.usd, seconds=options.seconds)


async def goal(conversation: Conversation, argument: str) -> None:
    """Set, show, continue or end the goal of the session."""
    agent = conversation.open_agent(to_write=bool(argument))
    if agent is None:
        return
    if argument:
        act(conversation, agent, f"/goal {argument}")
    else:
        conversation.frontend.report(goal_report(agent.goal.now))


def act(conversation: Conversation, agent: Agent, line: str) -> Submitted | None:
    """Do what a /goal with an argument says. What became of the prompt, if it sends one. Raises
    UsageError."""
    named = split(line.strip())
    if named is not None and named[1] == "stop":
        if not (now := agent.goal.now) or now.state in {"met", "stopped"}:
            raise UsageError("There is no goal to end.", hint="/goal TEXT sets one.")
        for event in agent.goal.stop():
            conversation.frontend.show(event)
        return None
    prompt = goal_prompt(line)
    if agent.permissions.mode == "plan":
        raise UsageError(
            "Plan mode only plans, and a goal is worked on.", hint="/plan switches it off."
        )
    if prompt.goal is not None and not prompt.goal.text:
        _go_on(conversation, agent, prompt.goal)
        return None
    return conversation.submit_parsed(prompt)


def _go_on(conversation: Conversation, agent: Agent, wish: GoalWish) -> None:
    if problem := objection(agent, wish):
        raise problem
    if not conversation.resume_turn(goal=wish):
        raise UsageError(
            "The agent is working.", hint=f"{conversation.frontend.stop_key} stops it."
        )


def objection(agent: Agent, wish: GoalWish) -> UsageError | None:
    """The reason why a session's goal can't be continued with these limits; None if it can."""
    now = agent.goal.now
    if now is None or now.state in {"met", "stopped"}:
        why = "There is no goal to continue." if now is None else "That goal is over."
        return UsageError(why, hint="/goal TEXT sets one.")
    limited = with_limits(now, wish)
    if why := limit_of(limited, next_round(agent.session.records)):
        return UsageError(
            f"The goal can't go on: {why}.",
            hint="Give it more: /goal continue --rounds N, --usd N or --for 2h.",
        )
    return None


def goal_report(now: GoalChanged | None) -> Report:
    """Report what is known of a goal."""
    if now is None:
        return Report("No goal", ("/goal TEXT -- COMMAND works until the command passes.",))
    rows = [one_line(now.goal), goal_check(now), f"{_STATES[now.state]} · {goal_progress(now)}"]
    if now.why:
        rows.append(f"Last: {now.why}")
    notes = () if now.state in {"met", "stopped"} else ("/goal continue, /goal stop",)
    return Report("Goal", rows, notes=notes)
