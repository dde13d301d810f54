"""What a server asks the person: shown in full, checked, and answered in one of three ways."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tests.tools.mcp.test_offers import TELLING
from tests.tools.mcp.test_servers import started
from tui.core.config import McpServer
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.core.questions import AskPerson, UserAnswer, UserAnswers, UserQuestion
from tui.tools.mcp import Server
from tui.tools.mcp.elicitation import Reply, fill_form, open_address
from tui.tools.mcp.form import fields_of

ASKING = McpServer(command=sys.executable, args=("-m", "tests.tools.mcp.asking_server"))

DECLINE = UserAnswer(way="Decline")
SEND = UserAnswer(("Send",))
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2, "description": "Yours."},
        "age": {"type": "integer", "minimum": 1, "maximum": 150},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]},
        "pets": {
            "type": "array",
            "maxItems": 2,
            "items": {"anyOf": [{"const": c, "title": c.title()} for c in ("cat", "dog", "emu")]},
        },
        "news": {"type": "boolean", "default": True},
    },
    "required": ["name", "age"],
}


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


class Person:
    """Answers page by page with what a test wrote down, and keeps what it was shown."""

    def __init__(self, *rounds: Sequence[UserAnswer]) -> None:
        self.rounds, self.shown = list(rounds), list[Sequence[UserQuestion]]()

    async def ask(self, questions: Sequence[UserQuestion]) -> UserAnswers:
        self.shown.append(questions)
        return UserAnswers(tuple(self.rounds.pop(0)))


async def fill(person: Person, schema: dict[str, Any] = FORM) -> Reply:
    return await fill_form("docs", "Who are you?", schema, person.ask)


async def call(server: Server, tool: str, ask: AskPerson | None, **args: object) -> ToolOutput:
    host = FakeHost(person=ask)
    output = await asyncio.wait_for(server.calls.call(tool, dict(args), host), PATIENCE_S)
    return output.with_lines(host.emitted)


async def test_a_form_is_shown_field_by_field_checked_and_sent_after_a_last_look() -> None:
    answers = (
        UserAnswer(text="Ann"),
        UserAnswer(text="41"),
        UserAnswer(("Red",)),
        UserAnswer(("Cat", "Emu")),
        UserAnswer(("No",)),
    )
    person = Person(answers, [SEND])
    content: dict[str, Any] = {
        "name": "Ann",
        "age": 41,
        "color": "r",
        "pets": ["cat", "emu"],
        "news": False,
    }
    assert await fill(person) == Reply("accept", content)
    name, age, color, pets, news = person.shown[0]
    for page in person.shown[0]:
        assert page.server == "docs"
        assert page.text.startswith("The MCP server docs asks, and gets your answer.\n\nWho are")
    assert "Yours.\nLength: at least 2 characters." in name.text
    assert (name.own, [way.label for way in name.ways]) == ("first", ["Decline"])
    assert "A whole number 1 to 150." in age.text
    assert [one.label for one in color.choices] == ["Red", "g"]
    assert [way.label for way in color.ways] == ["Leave it out", "Decline"]
    assert (pets.several, pets.own) == (True, "none")
    assert [(one.label, one.description) for one in news.choices] == [
        ("Yes", "suggested"),
        ("No", ""),
    ]
    (review,) = person.shown[1]
    assert "  Name: Ann\n  age: 41\n  color: Red\n  pets: Cat, Emu\n  news: No" in review.text


async def test_what_does_not_fit_is_asked_again_and_nothing_else() -> None:
    out = UserAnswer(way="Leave it out")
    person = Person(
        (UserAnswer(text="A"), UserAnswer(text="old"), out, UserAnswer(("Cat", "Dog", "Emu")), out),
        (UserAnswer(text="Ann"), UserAnswer(text="151"), out),
        (UserAnswer(text="41"),),
        [SEND],
    )
    assert await fill(person) == Reply("accept", {"name": "Ann", "age": 41})
    assert [[page.header for page in pages] for pages in person.shown[1:3]] == [
        ["Name", "age", "pets"],
        ["age"],
    ]
    texts = [page.text for page in person.shown[1]]
    assert "Too few: 1 characters, but at least 2 are needed. Please answer again." in texts[0]
    assert "“old” isn't a whole number." in texts[1]
    assert "Too many: 3 chosen, but at most 2 are possible." in texts[2]
    assert "151 is more than 150." in person.shown[2][0].text


async def test_an_answer_can_be_changed_before_it_is_sent() -> None:
    schema = {"properties": {"city": {"type": "string", "default": "Rome"}}, "required": ["city"]}
    person = Person(
        [UserAnswer(way="Keep “Rome”")],
        [UserAnswer(("Change an answer",))],
        [UserAnswer(text="Oslo")],
        [UserAnswer(("Change an answer",))],
        [UserAnswer(way="Keep “Oslo”")],
        [SEND],
    )
    assert await fill(person, schema) == Reply("accept", {"city": "Oslo"})
    assert person.shown[4][0].ways[0].label == "Keep “Oslo”"


async def test_to_decline_and_to_leave_are_two_answers() -> None:
    ann = UserAnswer(text="Ann")
    assert await fill(Person([DECLINE])) == Reply("decline")
    assert await fill(Person([ann, DECLINE])) == Reply("decline")
    assert await fill(Person([])) == Reply("cancel")
    assert await fill(Person([ann])) == Reply("cancel")


async def test_nothing_is_sent_after_a_last_look_that_refuses() -> None:
    schema = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert await fill(Person([UserAnswer(text="Oslo")], [DECLINE]), schema) == Reply("decline")
    assert await fill(Person([UserAnswer(text="Oslo")], []), schema) == Reply("cancel")


async def test_one_choice_is_one_step_and_a_form_without_fields_a_yes_or_no() -> None:
    schema = {"properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    assert await fill(Person([UserAnswer(("No",))]), schema) == Reply("accept", {"sure": False})
    empty = Person([UserAnswer(("Accept",))])
    assert await fill(empty, {"type": "object"}) == Reply("accept", {})
    assert [way.label for way in empty.shown[0][0].ways] == ["Decline"]


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "number"}, "1,5", 1.5),
        ({"type": "number"}, "nan", None),
        ({"type": "string", "format": "email"}, "a@b.example", "a@b.example"),
        ({"type": "string", "format": "email"}, "a@b", None),
        ({"type": "string", "format": "uri"}, "https://a.example/x", "https://a.example/x"),
        ({"type": "string", "format": "uri"}, "a b", None),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date"}, "2026-02-30", None),
        ({"type": "string", "format": "date-time"}, "2026-02-28T08:00:00Z", "2026-02-28T08:00:00Z"),
        ({"type": "string", "format": "date-time"}, "2026-02-28", None),
        ({"type": "string", "maxLength": 3}, "abcd", None),
    ],
)
async def test_a_value_has_the_form_that_its_field_names(
    field: dict[str, Any], text: str, value: float | str | None
) -> None:
    schema = {"properties": {"x": field}, "required": ["x"]}
    again = [DECLINE] if value is None else [SEND]
    reply = await fill(Person([UserAnswer(text=text)], again), schema)
    assert reply == (Reply("decline") if value is None else Reply("accept", {"x": value}))


def test_a_question_for_a_secret_is_marked() -> None:
    person = Person([DECLINE])
    for name in ("password", "api_key", "Your access token"):
        person = Person([DECLINE])
        asyncio.run(fill(person, {"properties": {name: {"type": "string"}}}))
        assert "This looks like a secret." in person.shown[0][0].text
    asyncio.run(fill(plain := Person([DECLINE]), {"properties": {"keyboard": {"type": "string"}}}))
    assert "secret" not in plain.shown[0][0].text
    about = "Any number, but not your pin or a token."
    field = {"type": "string", "description": about}
    asyncio.run(fill(plain := Person([DECLINE]), {"properties": {"number": field}}))
    assert "secret" not in plain.shown[0][0].text
    field["description"] = "The password of your account."
    asyncio.run(fill(plain := Person([DECLINE]), {"properties": {"number": field}}))
    assert "This looks like a secret." in plain.shown[0][0].text


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"type": "object"}}},
        {"properties": {"x": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {f"x{n}": {"type": "string"} for n in range(31)}},
        {"properties": {"x": {"enum": [str(n) for n in range(201)]}}},
    ],
)
def test_a_form_that_cannot_be_shown_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        fields_of(schema)


async def test_a_page_is_opened_only_with_consent_and_shown_with_its_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    def opens(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setenv("BROWSER", "some")
    url = "https://bücher.example/sign?x=1"
    for answer in (DECLINE, UserAnswer(("Open the page",))):
        person = Person([answer])
        reply = await open_address("docs", "Sign.", url, person.ask, opens=opens)
        assert reply == Reply("decline" if answer is DECLINE else "accept")
        (page,) = person.shown[0]
        assert "https://xn--bcher-kva.example/sign?x=1" in page.text
        assert "The page is on xn--bcher-kva.example." in page.text
    assert opened == ["https://xn--bcher-kva.example/sign?x=1"]
    person = Person([UserAnswer(("I open it myself",))])
    await open_address("docs", "Sign.", url, person.ask, opens=opens)
    assert len(opened) == 1
    with pytest.raises(ToolError):
        await open_address("docs", "", "javascript:alert(1)", person.ask)


async def test_a_page_that_cannot_be_opened_is_left_to_the_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BROWSER", "some")
    person = Person([UserAnswer(("Open the page",))], [UserAnswer(("I open it myself",))])
    url = "https://a.example/x"
    reply = await open_address("docs", "Sign.", url, person.ask, opens=lambda _: False)
    assert reply == Reply("accept")
    first, second = (pages[0] for pages in person.shown)
    assert [one.label for one in first.choices] == ["Open the page", "I open it myself"]
    assert [one.notice for one in second.choices] == [f"Open {url} in a browser."]
    assert "It couldn't be opened from here." in second.text


# Real servers


async def test_both_protocols_bring_the_answer_to_the_server(tmp_path: Path) -> None:
    async with started(tmp_path, asking=ASKING, telling=TELLING) as servers:
        asking, telling = servers.all
        person = Person([UserAnswer(text="Ann")], [SEND])
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        output = await call(asking, "form", person.ask, schema=schema)
        assert json.loads(text_of(output.content)) == {
            "count": 0,
            "action": "accept",
            "content": {"name": "Ann"},
        }
        assert output.details["asked"] == [
            {
                "server": "asking",
                "message": "A form.",
                "action": "accept",
                "answers": {"name": "Ann"},
            }
        ]
        person = Person([UserAnswer(text="Bea")], [SEND])
        assert "accept {'name': 'Bea'}" in text_of(
            (await call(telling, "asks", person.ask)).content
        )


async def test_where_nobody_can_be_asked_it_is_declined_at_once(tmp_path: Path) -> None:
    async def nobody(_: object) -> UserAnswers:
        return UserAnswers(by="default")

    async with started(tmp_path, asking=ASKING, telling=TELLING) as servers:
        asking, telling = servers.all
        for ask in (None, nobody):
            output = await call(asking, "form", ask, schema=EMPTY)
            assert '"action": "decline"' in text_of(output.content)
            assert "decline None" in text_of((await call(telling, "asks", ask)).content)


async def test_a_form_that_is_none_is_an_error_for_the_server_and_said(tmp_path: Path) -> None:
    async with started(tmp_path, asking=ASKING) as servers:
        fields = {f"x{n}": {"type": "string"} for n in range(31)}
        schema = EMPTY | {"properties": fields}
        output = await call(servers.all[0], "form", Person().ask, schema=schema)
        assert '"code": -32602' in text_of(output.content)
        assert "asking asks what can't be shown: A form may have 30 fields" in text_of(
            output.content
        )


async def test_a_server_that_asks_for_ever_is_refused_after_twenty_times(tmp_path: Path) -> None:
    person = Person(*([UserAnswer(("Accept",))] for _ in range(30)))
    async with started(tmp_path, asking=ASKING) as servers:
        output = await call(servers.all[0], "grows", person.ask)
        assert '"count": 20' in text_of(output.content)


async def test_a_call_that_needs_a_page_first_says_so_to_the_model(tmp_path: Path) -> None:
    async with started(tmp_path, asking=ASKING) as servers:
        url = "http://127.0.0.1:1/form"
        person = Person([UserAnswer(("I open it myself",))])
        output = await call(servers.all[0], "locked", person.ask, url=url)
        assert output.is_error
        assert "Ask whether they are done, then call the tool again." in text_of(output.content)
        output = await call(servers.all[0], "locked", Person([DECLINE]).ask, url=url)
        assert "they didn't want to" in text_of(output.content)
        assert output.details["asked"][0]["action"] == "decline"


async def test_the_time_of_the_person_is_not_the_servers(
    tmp_path: Path,
) -> None:
    limits: list[float | None] = []

    async with started(tmp_path, asking=ASKING) as servers:
        (asking,) = servers.all

        async def person(_: object) -> UserAnswers:
            (open_call,) = asking.calls.open
            limits.append(open_call.limit.when())
            return UserAnswers((UserAnswer(("Accept",)),))

        await call(asking, "form", person, schema=EMPTY)
        assert limits == [None]


async def test_a_question_goes_with_the_call_that_it_belongs_to(tmp_path: Path) -> None:
    shown, withdrawn = asyncio.Event(), asyncio.Event()

    async def slow(_: object) -> UserAnswers:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    async with started(tmp_path, asking=ASKING) as servers:
        calling = asyncio.ensure_future(call(servers.all[0], "form", slow, schema=EMPTY))
        await asyncio.wait_for(shown.wait(), PATIENCE_S)
        calling.cancel()
        await asyncio.wait({calling}, timeout=PATIENCE_S)
        await asyncio.wait_for(withdrawn.wait(), PATIENCE_S)
        person = Person([UserAnswer(("Accept",))])
        output = await call(servers.all[0], "form", person.ask, schema=EMPTY)
        assert '"action": "accept"' in text_of(output.content)
