"""Questions of an MCP server to the person in the middle of a call: a form of plain fields, or a
page to open. Every answer is checked before the server gets it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from tui.core.browser import has_browser, open_page
from tui.core.dataclass import dataclass, replace
from tui.core.formatting import shortened
from tui.core.questions import (
    Alternative,
    AnswerChoice,
    AskPerson,
    UserAnswer,
    UserAnswers,
    UserQuestion,
)
from tui.core.redaction import is_secret_field
from tui.core.text_cleaning import one_line
from tui.core.web_address import WebAddress
from tui.tools.mcp.form import SHORT, FormField, Value, accepted, checked, fields_of, value_of

TEXT_MAX: Final = 4000
"""Characters of a server's words that are shown."""
_PASSWORD: Final = re.compile(r"pass(?:word|phrase|code)|(?:api|private).?key", re.IGNORECASE)
"""Words that mean a secret in a description too; other words of a secret's name often don't
there."""

_LEAVE_OUT: Final = Alternative("Leave it out", "The server doesn't need it.")
_ACCEPT: Final = AnswerChoice("Accept")
_SEND: Final = AnswerChoice("Send")
_CHANGE: Final = AnswerChoice("Change an answer")
_OPEN: Final = AnswerChoice("Open the page", "In your browser.")

Action: TypeAlias = Literal["accept", "decline", "cancel"]
Content: TypeAlias = dict[str, Value | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to the server: `content` only where a form is accepted."""

    action: Action
    content: Content | None = None


async def fill_form(server: str, message: str, schema: Mapping[str, Any], ask: AskPerson) -> Reply:
    """Put a form to the person, and what does not fit again. Raises ToolError for a form that can't
    be shown."""
    fields = fields_of(schema)
    if not fields:
        return await _confirm(server, message, ask)
    filled: Content = {}
    wrong: dict[str, str] = {}
    todo: Sequence[FormField] = fields
    while True:
        pages = [
            _page(server, message, one, filled.get(one.name), wrong.get(one.name, ""))
            for one in todo
        ]
        answers = await ask(pages)
        if (ended := _ended(server, answers, len(todo))) is not None:
            return ended
        wrong = _take(todo, answers.answers, filled)
        if wrong:
            todo = [one for one in todo if one.name in wrong]
            continue
        content: Content = {name: value for name, value in filled.items() if value is not None}
        if len(fields) == 1 and fields[0].options and not fields[0].several:
            return Reply("accept", content)
        answers = await ask([_review(server, fields, filled)])
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
    return Alternative(f"Keep “{shortened(short, SHORT)}”")


def _page(
    server: str, message: str, one: FormField, kept: Value | None, problem: str
) -> UserQuestion:
    """The question for a field."""
    about = one_line(str(one.rules.get("description") or ""))[:TEXT_MAX]
    lines = [_words(server, message), "\n".join(filter(None, (about, accepted(one))))]
    if is_secret_field(f"{one.name} {one.title}") or _PASSWORD.search(about):
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
    """Return the earlier answer, or the server's suggestion, if that fits."""
    if kept is not None:
        return kept
    try:
        return checked(one, one.rules.get("default"))
    except ValueError:
        return None


def _can_repeat(one: FormField, value: object) -> bool:
    """True if a value that is there can be kept with one key."""
    return value is not None and (one.several or not one.options)


def _review(
    server: str, fields: Iterable[FormField], given: Mapping[str, Value | None]
) -> UserQuestion:
    lines = [f"  {one.title}: {one.shown(given.get(one.name))}" for one in fields]
    text = "\n".join([f"Send this to the MCP server {server}?", "", *lines])
    return UserQuestion(
        "Send", text, (_SEND, _CHANGE), own="none", ways=(_decline(server),), server=server
    )


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
                given[one.name] = checked(one, value_of(one, answer))
        except ValueError as error:
            wrong[one.name] = str(error)
    return wrong
