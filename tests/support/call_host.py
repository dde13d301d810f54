"""What a call reaches in tests in place of the agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tui.core.messages import ToolOutput
from tui.core.questions import (
    AskPerson,
    SecretAnswer,
    SecretQuestion,
    UserAnswers,
    UserQuestion,
)
from tui.tools.base import Answer, CallHost, Todo
from tui.tools.mcp.tool import ServerCalls

UNCALLED = cast("ServerCalls", None)
"""The requests to a server that nobody calls."""


@dataclass
class FakeHost(CallHost):
    """Keeps what a call tells. Its rules allow all reading; without a `person` nobody
    answers, and nobody types a secret but the one that is given."""

    emitted: list[str] = field(default_factory=list[str])
    todos: list[Todo] = field(default_factory=list[Todo])
    on_output: Callable[[], None] = lambda: None
    person: AskPerson | None = None
    session: str = "5e55101d"
    span: str = ""
    secret: str | None = None
    asked: list[SecretQuestion] = field(default_factory=list[SecretQuestion])

    @property
    def session_id(self) -> str:
        return self.session

    @property
    def traceparent(self) -> str:
        return self.span

    def emit(self, text: str, picture: str = "") -> None:
        self.emitted.append(text)
        self.on_output()

    def set_todos(self, todos: Sequence[Todo]) -> None:
        self.todos[:] = todos

    def leave(self, output: ToolOutput) -> None:
        pass

    def started(self, pid: int) -> None:
        pass

    def waited(self) -> None:
        pass

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        self.asked.append(question)
        return SecretAnswer(bytearray(self.secret.encode())) if self.secret is not None else None

    async def ask(self, questions: Sequence[UserQuestion]) -> UserAnswers:
        return await self.person(questions) if self.person else UserAnswers(by="default")

    def reading(self, path: Path) -> Answer:
        return "allow"
