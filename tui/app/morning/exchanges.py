"""The exchanges of a session with the person, from its records: questions that were asked with
their answers, goals with their rounds, side questions, and what the program noted. Pure.

A question that nobody has answered yet is a finding, "Waiting for you".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tui.app.morning.findings import ExchangeKind, NightExchange
from tui.core.fact_words import goal_progress, side_figures
from tui.core.facts import GoalChanged, SideQuestion
from tui.core.formatting import shortened
from tui.core.messages import Block, list_of, object_of, string_of
from tui.core.redaction import is_secret_field, mask
from tui.core.text_cleaning import one_line
from tui.session.records import GOAL, Record
from tui.tools.registry import title as call_title
from tui.tools.registry import words_of

_WORDS: Final = 120
_PERMITTED: Final[Mapping[str, str]] = {
    "once": "allowed once",
    "session": "allowed for the session",
    "always": "allowed for ever",
    "no": "refused",
    "deny": "refused",
}
_SERVER_ANSWERS: Final[Mapping[str, str]] = {
    "": "not answered",
    "accept": "agreed",
    "decline": "declined",
    "cancel": "not answered",
    "error": "couldn't be shown",
}
_GOAL_ENDS: Final[Mapping[str, str]] = {
    "met": "met",
    "limit": "not met: a limit was reached",
    "stuck": "not met: stuck",
    "blocked": "not met: blocked",
    "stopped": "ended by the person",
    "paused": "paused",
}


def exchanges(records: Iterable[Record], calls: Mapping[str, Block]) -> Iterator[NightExchange]:
    """Yield the exchanges in some records of a session, in their order; `calls` are its calls, by
    id. Equal questions with equal answers are one, counted; so are a goal's rounds."""
    found: dict[object, NightExchange] = {}
    goals = 0
    for record in records:
        if record.type == GOAL:
            goal = GoalChanged.of_record(record.data)
            goals += goal.state == "set"
            found["goal", goals] = _goal(goal, record)
            continue
        for one in _exchanges_in(record, calls):
            key = one.kind, one.words, one.answer
            times = found[key].times + 1 if key in found else 1
            found[key] = (found.get(key) or one)._replace(times=times)
    yield from found.values()


def _exchanges_in(record: Record, calls: Mapping[str, Block]) -> Iterator[NightExchange]:
    data = record.data
    match record.type:
        case "permission" if data.get("by") == "person":
            yield _permission(record)
        case "tool_result":
            yield from _questions(record, object_of(calls.get(string_of(data.get("call_id")))))
        case "side_question":
            fact = SideQuestion.of_record(data)
            figures = [figures] if (figures := side_figures(fact)) else []
            yield _of(record, "side question", fact.question, ", ".join([fact.outcome, *figures]))
        case "note":
            yield _of(record, "note", string_of(data.get("text")))
        case _:
            pass


def _permission(record: Record) -> NightExchange:
    data = record.data
    answer, reason = string_of(data.get("answer")), string_of(data.get("reason"))
    words = _PERMITTED.get(answer, answer) + (f" ({reason})" if reason else "")
    title = call_title(string_of(data.get("tool")), string_of(data.get("subject")))
    return _of(record, "question", title, words)


def _questions(record: Record, call: Block) -> Iterator[NightExchange]:
    """The question that a call was, the secrets that its program asked for, and what its MCP server
    asked."""
    details, given = object_of(record.data.get("details")), object_of(call.get("input"))
    name = string_of(record.data.get("name"))
    if words_of(name).asks:
        asked = [
            string_of(object_of(one).get("question")) for one in list_of(given.get("questions"))
        ]
        text = " / ".join(filter(None, asked)) or string_of(given.get("title")) or name
        answer = string_of(record.data.get("summary")) or "answered"
        yield _of(record, "question", text, answer)
    for one in map(object_of, list_of(details.get("secrets"))):
        job, prompt = string_of(details.get("job")), string_of(one.get("prompt"))
        text = f"A secret for {job}" + (f": {prompt}" if prompt else "")
        yield _of(record, "question", text, string_of(one.get("answer")))
    for one in map(object_of, list_of(details.get("asked"))):
        server, message = string_of(one.get("server")), string_of(one.get("message"))
        text = ": ".join(filter(None, (f"{server} asks", message, string_of(one.get("url")))))
        yield _of(record, "question", text, _sent(one))


def _sent(asked: Block) -> str:
    """The answer that an MCP server got, without what a secret's field holds."""
    given = object_of(asked.get("answers"))
    shown = [
        f"{name}: {'not shown' if is_secret_field(name) else _value(value)}"
        for name, value in given.items()
    ]
    action = string_of(asked.get("action"))
    return ", ".join(shown) or _SERVER_ANSWERS.get(action, action)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, list_of(value))) or ("none" if value == [] else str(value))


def _goal(goal: GoalChanged, record: Record) -> NightExchange:
    state = _GOAL_ENDS.get(goal.state, "not met yet")
    return _of(record, "goal", goal.goal, f"{state}, {goal_progress(goal)}")


def _of(record: Record, kind: ExchangeKind, words: str, answer: str = "") -> NightExchange:
    return NightExchange(kind, _cut(words), _cut(answer), record.id, record.time)


def _cut(text: str) -> str:
    return shortened(mask(one_line(text))[0], _WORDS)
