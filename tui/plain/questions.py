"""Questions as lines: what would happen and why, then the answers by number.

One question at a time. Only a number or the answer's own word answers; anything else that is typed
was meant for the prompt and goes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tui.app.dialog_data import KeySetup, PracticeSetup, ServerSetup, Setup
from tui.permissions.types import Answer, Call, Decision
from tui.plain.question_lines import Labels
from tui.plain.speech_text import changed, decided_about, diff, numbered, sentence, spoken
from tui.plain.terminal import TerminalPort
from tui.settings.local_servers import LocalServer

_WORD_MAX: Final = 12
_ANSWERS: Final[dict[str, Literal["once", "session", "always", "no"]]] = {
    "1": "once",
    "once": "once",
    "2": "session",
    "session": "session",
    "this session": "session",
    "3": "always",
    "always": "always",
    "4": "no",
    "no": "no",
}
_QUESTIONS: Final = {
    "command": "Question: run this command?",
    "diff": "Question: make this change?",
    "text": "Question: allow this?",
}
_APPROVAL: Final = "1 once, 2 this session, 3 always, 4 no: "


def approval_lines(call: Call, decision: Decision) -> list[str]:
    """All that a person needs to know to decide about a call."""
    text = call.preview or call.subject or "(nothing to show)"
    lines = [_QUESTIONS[call.preview_kind]]
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
    lines.append(sentence(f"Why it is asked: {' '.join(decided_about(decision.reason))}"))
    scope = call.scope or f"later calls of {call.tool} just like this one"
    beyond = "A command that runs can reach beyond this folder" if call.effect == "run" else ""
    lines.append(sentence(f"2 and 3 cover {' '.join(decided_about(scope))}", beyond))
    return lines


def _named(name: str, text: list[str]) -> list[str]:
    if len(text) == 1:
        return [f"{name}: {text[0]}"]
    return [f"{name}, {len(text)} lines:", *(f"  {line}" for line in text)]


@dataclass(slots=True)
class Asker:
    """Asks by a `terminal`. Implements `Approver`. `stray` takes what was meant for the prompt."""

    terminal: TerminalPort
    stray: Callable[[str], object]
    calls: Callable[[], object] = lambda: None
    """Called before every question: the person may be elsewhere."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def asking(self) -> bool:
        """Whether a question is put now."""
        return self._asking.locked()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Put an approval. Cancelling the wait takes the question back; that is a no."""
        async with self._asking:
            self.calls()
            self.terminal.say(*approval_lines(call, decision))
            while True:
                typed = await self.terminal.answer(_APPROVAL)
                if typed is None:
                    self.terminal.say("Answered: no.")
                    return Answer("no")
                answer, reason = _parsed(typed)
                if answer is None:
                    self._again(typed, "Answer 1, 2, 3 or 4.")
                    continue
                if answer == "no" and not reason:
                    reason = await self.terminal.answer(
                        "Why not? The model is told. Or only Enter: "
                    )
                told = {"once": "once", "session": "for this session"}.get(answer, answer)
                self.terminal.say(f"Answered: {told}.")
                return Answer(answer, (reason or "").strip())

    async def choose(self, lines: Sequence[str], labels: Labels) -> str | None:
        """Say `lines` and the answers; the name of the chosen one, None for none of them."""
        numbers = {str(number): name for number, (name, _) in enumerate(labels, 1)}
        count = len(labels)
        which = "1" if count == 1 else f"1 to {count}"
        async with self._asking:
            self.calls()
            self.terminal.say(*lines, *numbered(label for _, label in labels))
            while True:
                typed = await self.terminal.answer(f"{which}, or only Enter for none: ")
                if typed is None or not typed.strip():
                    return None
                word = typed.strip().lower()
                if word in numbers:
                    return numbers[word]
                self._again(typed, f"Answer {which}.")

    async def setup(self, why: str, found: Sequence[LocalServer]) -> Setup | None:
        """How a model is reached; None where the person wants none. `found` are servers on this
        machine."""
        servers = {server.base_url: server for server in found}
        labels = [
            ("key", "paste an API key of Anthropic"),
            *(
                (
                    url,
                    f"{server.name} on this machine: {', '.join(server.models[:2]) or 'no models'}",
                )
                for url, server in servers.items()
            ),
            ("server", "another server: address and model"),
            ("practice", "the practice model: offline, without a key"),
        ]
        head = [sentence(why), "How shall it reach a model?"]
        while (way := await self.choose(head, labels)) is not None:
            known = servers.get(way)
            models = known.models if known else ()
            if setup := await self._setup_by(way, models[0] if models else ""):
                return setup
        return None

    async def _setup_by(self, way: str, usual: str) -> Setup | None:
        """What a way needs to know; None where it was not given."""
        if way == "practice":
            return PracticeSetup()
        if way == "key":
            key = await self.text("API key, not shown: ", hidden=True)
            return KeySetup(key) if key else None
        url = way if "://" in way else await self.text("Address, with http:// or https://: ")
        if not url.startswith(("http://", "https://")):
            self.terminal.say("The address must begin with http:// or https://.")
            return None
        hint = f", or only Enter for {usual}" if usual else ""
        model = await self.text(f"The model's name there{hint}: ") or usual
        if not model:
            self.terminal.say("Name the model that the server shall use.")
            return None
        key = await self.text("Key, if it needs one, not shown: ", hidden=True)
        return ServerSetup(url.rstrip("/"), model, key)

    async def text(self, question: str, *, hidden: bool = False) -> str:
        """A line of text, "" for none."""
        async with self._asking:
            return ((await self.terminal.answer(question, hidden=hidden)) or "").strip()

    def _again(self, typed: str, hint: str) -> None:
        """What is no answer: a slip of a key is dropped, a text goes to the prompt."""
        if len(typed.strip()) > _WORD_MAX or " " in typed.strip():
            self.stray(typed)
        self.terminal.say(hint)


def _parsed(typed: str) -> tuple[Literal["once", "session", "always", "no"] | None, str]:
    """An approval's answer as it was typed, and the reason behind a no."""
    word = typed.strip().lower()
    if answer := _ANSWERS.get(word):
        return answer, ""
    first, _, rest = typed.strip().partition(" ")
    if first.rstrip(",:").lower() in {"4", "no"} and rest.strip():
        return "no", rest.strip()
    return None, ""
