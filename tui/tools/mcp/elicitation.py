"""What an MCP server asks the person in the middle of a call: a form of plain fields, or a page to
open. Whatever is answered is checked here before the server gets it."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.browser import has_browser, open_page
from tui.core.errors import ToolError
from tui.core.messages import list_of, object_of
from tui.core.questions import (
    Alternative,
    AnswerChoice,
    AskPerson,
    UserAnswer,
    UserAnswers,
    UserQuestion,
)
from tui.core.text_cleaning import one_line
from tui.core.web_address import WebAddress

FIELDS_MAX: Final = 30
OPTIONS_MAX: Final = 200
TEXT_MAX: Final = 4000
"""Characters of a server's words that are shown."""
_SHORT: Final = 60
_SECRET: Final = re.compile(
    r"pass(?:word|phrase|code)|secret|token|api.?key|private.?key|credential|\bpin\b|\bcvv?\b",
    re.IGNORECASE,
)
_PASSWORD: Final = re.compile(r"pass(?:word|phrase|code)|(?:api|private).?key", re.IGNORECASE)
"""What means a secret in a description too; other words of `_SECRET` often don't there."""
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

_LEAVE_OUT: Final = Alternative("Leave it out", "The server doesn't need it.")
_ACCEPT: Final = AnswerChoice("Accept")
_SEND: Final = AnswerChoice("Send")
_CHANGE: Final = AnswerChoice("Change an answer")
_OPEN: Final = AnswerChoice("Open the page", "In your browser.")

Action: TypeAlias = Literal["accept", "decline", "cancel"]
Value: TypeAlias = str | int | float | bool | list[str]
Content: TypeAlias = dict[str, Value | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server gets: `content` only where a form is accepted."""

    action: Action
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form. `options` are values with what they are called; none for a field that is
    written. `rules` is its schema."""

    name: str
    title: str
    kind: Literal["string", "number", "integer", "boolean", "array"]
    required: bool
    options: tuple[tuple[str | bool, str], ...] = ()
    rules: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def several(self) -> bool:
        return self.kind == "array"

    def shown(self, value: Value | None) -> str:
        """A value in the person's words."""
        names = {str(one): label for one, label in self.options}
        if value is None:
            return "(left out)"
        if isinstance(value, list):
            return ", ".join(names.get(one, one) for one in value)
        return names.get(str(value), str(value))


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a form. Raises ToolError for one that can't be shown."""
    required = {str(one) for one in list_of(schema.get("required"))}
    properties = object_of(schema.get("properties"))
    if len(properties) > FIELDS_MAX:
        raise ToolError(f"A form may have {FIELDS_MAX} fields; this one has {len(properties)}.")
    return tuple(_field(name, object_of(given), required) for name, given in properties.items())


def _field(name: str, rules: dict[str, Any], required: set[str]) -> FormField:
    kind = rules.get("type", "string")
    title = one_line(str(rules.get("title") or name))[:_SHORT] or "Answer"
    options: list[tuple[str | bool, str]] = []
    match kind:
        case "boolean":
            options = [(True, "Yes"), (False, "No")]
        case "string":
            options = _options(rules)
        case "array":
            options = _options(object_of(rules.get("items")))
            if not options:
                raise ToolError(f"The field {name:.200} is a list without options.")
        case "number" | "integer":
            pass
        case _:
            raise ToolError(f"The field {name:.200} has the type {kind!s:.50}.")
    if len(options) > OPTIONS_MAX:
        raise ToolError(f"The field {name:.200} has more than {OPTIONS_MAX} options.")
    return FormField(name, title, kind, name in required, tuple(options), rules)


def _options(rules: Mapping[str, Any]) -> list[tuple[str | bool, str]]:
    """The values of an enumeration with their names, which differ from each other."""
    titled = list_of(rules.get("oneOf")) or list_of(rules.get("anyOf"))
    pairs = [(object_of(one).get("const"), object_of(one).get("title")) for one in titled]
    if not pairs:
        values, names = list_of(rules.get("enum")), list_of(rules.get("enumNames"))
        names = names if len(names) == len(values) else values
        pairs = list(zip(values, names, strict=True))
    found: list[tuple[str | bool, str]] = []
    taken: set[str] = set()
    for value, name in pairs:
        if isinstance(value, str):
            label = one_line(str(name or value)) or '""'
            label = label if label not in taken else f"{label} ({value})"
            taken.add(label)
            found.append((value, label))
    return found


# Asking


async def fill_form(server: str, message: str, schema: Mapping[str, Any], ask: AskPerson) -> Reply:
    """Put a form to the person, and what does not fit again. Raises ToolError for a form that can't
    be shown."""
    fields = fields_of(schema)
    if not fields:
        return await _confirm(server, message, ask)
    given: Content = {}
    wrong: dict[str, str] = {}
    todo: Sequence[FormField] = fields
    while True:
        pages = [
            _page(server, message, one, given.get(one.name), wrong.get(one.name, ""))
            for one in todo
        ]
        answers = await ask(pages)
        if (ended := _ended(server, answers, len(todo))) is not None:
            return ended
        wrong = _take(todo, answers.answers, given)
        if wrong:
            todo = [one for one in todo if one.name in wrong]
            continue
        content: Content = {name: value for name, value in given.items() if value is not None}
        if len(fields) == 1 and fields[0].options and not fields[0].several:
            return Reply("accept", content)
        answers = await ask([_review(server, fields, given)])
        if (ended := _ended(server, answers, 1)) is not None:
            return ended
        if answers.answers[0].chosen == (_SEND.label,):
            return Reply("accept", content)
        todo = fields


async def open_address(
    server: str,
    message: str,
    url: str,
    ask: AskPerson,
    *,
    opens: Callable[[str], bool] = open_page,
) -> Reply:
    """Show the person a page that the server wants them to open; open it if they agree, and where
    that fails leave it to them. Raises ToolError for an address that is none of the web."""
    address = WebAddress.parse(url)
    text = (
        f"The MCP server {server} wants you to open a page, and gets what you do there.\n\n"
        f"{message:.{TEXT_MAX}}\n\n{address}\n\nThe page is on {address.site}."
    )
    myself = AnswerChoice(
        "I open it myself", "The conversation shows the address.", f"Open {address} in a browser."
    )
    choices = (*((_OPEN,) if has_browser(os.environ) else ()), myself)
    page = UserQuestion(
        "Open a page", text, choices, own="none", ways=(_decline(server),), server=server
    )
    while True:
        answers = await ask([page])
        if (ended := _ended(server, answers, 1)) is not None:
            return ended
        if answers.answers[0].chosen != (_OPEN.label,):
            return Reply("accept")
        if await asyncio.to_thread(opens, str(address)):
            return Reply("accept")
        failed = f"{text}\n\nIt couldn't be opened from here."
        page = replace(page, text=failed, choices=(myself,))


async def _confirm(server: str, message: str, ask: AskPerson) -> Reply:
    """A form without fields: only a yes or no."""
    page = UserQuestion(
        "Confirm", _words(server, message), (_ACCEPT,), own="none", ways=(_decline(server),),
        server=server,
    )  # fmt: skip
    answers = await ask([page])
    return _ended(server, answers, 1) or Reply("accept", {})


def _ended(server: str, answers: UserAnswers, wanted: int) -> Reply | None:
    """The reply where the person refused, left, or can't be asked at all."""
    refused = _decline(server).label
    if answers.by == "default" or any(one.way == refused for one in answers.answers):
        return Reply("decline")
    return Reply("cancel") if len(answers.answers) < wanted else None


def _decline(server: str) -> Alternative:
    return Alternative("Decline", f"Send nothing to {one_line(server)}.", ends=True)


def _words(server: str, message: str) -> str:
    return f"The MCP server {server} asks, and gets your answer.\n\n{message:.{TEXT_MAX}}"


def _keep(shown: str) -> Alternative:
    short = one_line(shown)
    return Alternative(f"Keep “{short if len(short) <= _SHORT else short[: _SHORT - 1] + '…'}”")


def _page(
    server: str, message: str, one: FormField, kept: Value | None, problem: str
) -> UserQuestion:
    """The question for a field."""
    about = one_line(str(one.rules.get("description") or ""))[:TEXT_MAX]
    lines = [_words(server, message), "\n".join(filter(None, (about, _hint(one))))]
    if _SECRET.search(f"{one.name} {one.title}") or _PASSWORD.search(about):
        lines.append("This looks like a secret. A server may not ask for one here: decline.")
    if problem:
        lines.append(f"{problem} Please answer again.")
    suggested = _suggested(one, kept)
    marked: Sequence[Value | None] = suggested if isinstance(suggested, list) else [suggested]
    choices = tuple(
        AnswerChoice(label, "suggested" if kept is None and value in marked else "")
        for value, label in one.options
    )
    ways = [_keep(one.shown(suggested))] if _can_repeat(one, suggested) else []
    ways += [] if one.required else [_LEAVE_OUT]
    text = "\n\n".join(filter(None, lines))
    own = "none" if one.options else "first"
    return UserQuestion(
        one.title, text, choices, one.several, own, (*ways, _decline(server)), server
    )


def _suggested(one: FormField, kept: Value | None) -> Value | None:
    """What was answered before, or what the server suggests, if that fits."""
    if kept is not None:
        return kept
    try:
        return checked(one, one.rules.get("default"))
    except ValueError:
        return None


def _can_repeat(one: FormField, value: object) -> bool:
    """Whether a value that is there can be kept with one key."""
    return value is not None and (one.several or not one.options)


def _hint(one: FormField) -> str:
    """What is accepted, in words."""
    low, high = one.rules.get("minimum"), one.rules.get("maximum")
    few, many = _length_rules(one)
    match one.kind:
        case "integer" | "number":
            what = "A whole number" if one.kind == "integer" else "A number"
            return f"{what}{_between(low, high)}."
        case "array":
            return f"Choose{_between(few, many)}." if few or many else ""
        case "string" if not one.options:
            formats = {
                "email": "An email address.",
                "uri": "An address, such as https://example.com.",
                "date": "A date, such as 2026-01-31.",
                "date-time": "A date and time, such as 2026-01-31T08:00:00Z.",
            }
            hint = formats.get(str(one.rules.get("format")), "")
            length = f"Length:{_between(few, many)} characters." if few or many else ""
            return " ".join(filter(None, (hint, length)))
        case _:
            return ""


def _between(low: object, high: object) -> str:
    if low is not None and high is not None:
        return f" {low} to {high}"
    return f" at least {low}" if low is not None else f" at most {high}" if high is not None else ""


def _length_rules(one: FormField) -> tuple[int | None, int | None]:
    names = ("minItems", "maxItems") if one.several else ("minLength", "maxLength")
    few, many = (one.rules.get(name) for name in names)
    return (few if isinstance(few, int) and few > 0 else None), (
        many if isinstance(many, int) else None
    )


def _review(
    server: str, fields: Iterable[FormField], given: Mapping[str, Value | None]
) -> UserQuestion:
    lines = [f"  {one.title}: {one.shown(given.get(one.name))}" for one in fields]
    text = "\n".join([f"Send this to the MCP server {server}?", "", *lines])
    return UserQuestion(
        "Send", text, (_SEND, _CHANGE), own="none", ways=(_decline(server),), server=server
    )


# Checking


def _take(
    todo: Iterable[FormField], answers: Iterable[UserAnswer], given: Content
) -> dict[str, str]:
    """Put the answers where they belong. Returns by name what is wrong with those that don't
    fit."""
    wrong: dict[str, str] = {}
    for one, answer in zip(todo, answers, strict=False):
        try:
            if answer.way == _LEAVE_OUT.label:
                given[one.name] = None
            elif answer.way:
                given[one.name] = _suggested(one, given.get(one.name))
            else:
                given[one.name] = checked(one, _value(one, answer))
        except ValueError as error:
            wrong[one.name] = str(error)
    return wrong


def _value(one: FormField, answer: UserAnswer) -> Value:
    """An answer as the value that its field takes. Raises ValueError in words for the person."""
    values = {label: value for value, label in one.options}
    if one.several:
        return [str(values[label]) for label in answer.chosen]
    if one.options:
        return values[answer.chosen[0]]
    text = answer.text
    if one.kind == "string":
        return text
    try:
        return int(text) if one.kind == "integer" else float(text.replace(",", "."))
    except ValueError:
        what = "a whole number" if one.kind == "integer" else "a number"
        raise ValueError(f"“{one_line(text)[:_SHORT]}” isn't {what}.") from None


def checked(one: FormField, value: object) -> Value:
    """A value that fits its field. Raises ValueError in words for the person."""
    match value:
        case bool() if one.kind == "boolean":
            return value
        case int() | float() if one.kind in {"integer", "number"} and not isinstance(value, bool):
            return _number(one, value)
        case str() if one.kind == "string":
            return _string(one, value)
        case list() if one.several:
            chosen = [str(each) for each in list_of(cast("object", value))]
            if not {each for each, _ in one.options}.issuperset(chosen):
                raise ValueError("That isn't one of the options.")
            _measure(one, len(chosen), "chosen")
            return chosen
        case _:
            raise ValueError("That doesn't fit.")


def _number(one: FormField, value: float) -> float:
    low, high = one.rules.get("minimum"), one.rules.get("maximum")
    if not math.isfinite(value):
        raise ValueError(f"{value} can't be sent.")
    if isinstance(low, int | float) and value < low:
        raise ValueError(f"{value:g} is less than {low}.")
    if isinstance(high, int | float) and value > high:
        raise ValueError(f"{value:g} is more than {high}.")
    return value


def _string(one: FormField, value: str) -> str:
    if one.options:
        if value not in {each for each, _ in one.options}:
            raise ValueError("That isn't one of the options.")
        return value
    _measure(one, len(value), "characters")
    shown = one_line(value)[:_SHORT]
    match one.rules.get("format"):
        case "email" if not _EMAIL.fullmatch(value):
            raise ValueError(f"“{shown}” isn't an email address.")
        case "uri" if not _URI.fullmatch(value):
            raise ValueError(f"“{shown}” isn't an address.")
        case "date" if not _parses(date.fromisoformat, value):
            raise ValueError(f"“{shown}” isn't a date like 2026-01-31.")
        case "date-time" if not ("T" in value and _parses(datetime.fromisoformat, value)):
            raise ValueError(f"“{shown}” isn't a date and time like 2026-01-31T08:00:00Z.")
        case _:
            return value


def _measure(one: FormField, count: int, what: str) -> None:
    few, many = _length_rules(one)
    if few is not None and count < few:
        raise ValueError(f"Too few: {count} {what}, but at least {few} are needed.")
    if many is not None and count > many:
        raise ValueError(f"Too many: {count} {what}, but at most {many} are possible.")


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
