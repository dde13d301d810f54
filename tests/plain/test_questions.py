"""Questions of an MCP server in lines: numbers, words, and a way out on each."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.plain.face import FakeFace
from tui.core.questions import Alternative, AnswerChoice, SecretQuestion, UserQuestion
from tui.plain.questions import Asker, Person

if TYPE_CHECKING:
    from tui.plain.terminal import Terminal

DECLINE = Alternative("Decline", "Send nothing to docs.", ends=True)
QUESTIONS = (
    UserQuestion("Name", "docs asks.", (), own="first", ways=(DECLINE,), server="docs"),
    UserQuestion(
        "Pets",
        "Which?",
        (AnswerChoice("Cat"), AnswerChoice("Dog")),
        several=True,
        own="none",
        ways=(Alternative("Leave it out"), DECLINE),
        server="docs",
    ),
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["1", "Ann", "1, 2"], ["Ann", "Cat, Dog"]),
        (["1", "Ann", "1, 3", "3"], ["Ann", "Leave it out"]),
        (["2"], ["Decline"]),
        (["1", "Ann", "4"], ["Ann", "Decline"]),
        (["1", "Ann", ""], ["Ann"]),
    ],
)
async def test_a_server_asks_and_can_be_refused(typed: list[str], expected: list[str]) -> None:
    face = FakeFace(answers=deque(typed))
    asker = Asker(cast("Terminal", face), cast("Person", SimpleNamespace(call=face.bell)))
    answers = await asker.ask_user(QUESTIONS, "")
    assert [one.summary for one in answers.answers] == expected
    assert face.said[:3] == [
        "Question 1 of 2, Name: docs asks.",
        "1: in your own words",
        "2: Decline: Send nothing to docs.",
    ]
    assert not face.answers


@pytest.mark.parametrize(("typed", "expected"), [("hunter2 ", b"hunter2 "), ("", None)])
async def test_a_secret_is_asked_for_without_being_said_again(
    typed: str, expected: bytes | None
) -> None:
    face = FakeFace(answers=deque([typed]))
    asker = Asker(cast("Terminal", face), cast("Person", SimpleNamespace(call=face.bell)))
    question = SecretQuestion("job-2", "sudo true", "[sudo] password: ", "bash", "read -s x")
    answer = await asker.ask_secret(question)
    assert (None if answer is None else bytes(answer.data)) == expected
    assert face.asked == ["Secret, not shown, or just Enter: "]
    assert "Command: sudo true" in face.said
    assert "bash reads it. The model typed last: read -s x" in face.said
    assert "It shows: [sudo] password:" in face.said
    assert "hunter2" not in face.text
    assert face.said[-1] == ("Sent to the program." if expected else "Not answered.")
