"""A model for the loopback server that makes conversations up, the same ones for the same seed.

    async with LoopbackServer(FuzzedModel(random=Random(7), priced=True)) as server:
        …

Its answers hold thinking (signed by the server, at times without a text), words, notes between
calls, and calls of tools that do no harm, several at a time, as far as the request declares them.
It goes on for any number of turns. `converse` plays the ideal client without the program: it only
ever appends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.support.direct import Direct
from tests.support.server_bodies import blocks_of
from tests.support.server_script import Json, Script
from tests.support.server_tools import Toolbox

_WORDS: Final = (
    "the file says what it should", "then I look at the next one", "this is what the test wants",
    "— naïve, 日本語, 🙂", "let me see", "a line\nand another", "no: the other way round",
)  # fmt: skip

HARMLESS: Final[dict[str, Callable[[Random], Json]]] = {
    "read_file": lambda random: {"path": random.choice(("README.md", "none.txt"))},
    "list_dir": lambda random: {"path": "."},
    "run_command": lambda random: {"command": f"printf '%s\\n' {random.randrange(1000)} done"},
}
"""The tools that it calls, with their arguments."""


@dataclass(slots=True)
class FuzzedModel(Script):
    """A script without an end. `most_rounds`: how many requests with calls one turn may have.

    `in_words`: requests that are answered without a call, such as those for a summary.
    """

    random: Random = field(default_factory=lambda: Random(0))
    most_rounds: int = 5
    in_words: Callable[[Json], bool] = lambda body: False
    _asked: int = 0
    _rounds: int = 0

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        """A turn of its own for each request."""
        self._asked += 1
        tools = sorted(Toolbox.at_end(body or {"messages": []}).available & HARMLESS.keys())
        worded = body is not None and self.in_words(body)
        if self._rounds == 0:
            self._rounds = self.random.randrange(self.most_rounds + 1)
        else:
            self._rounds -= 1
        if worded or not tools or self._rounds == 0:
            self._rounds = 0
            content = [*self._thought(0.8), self._said()]
        else:
            content = [*self._thought(0.8), *self._words(0.4), *self._calls(tools)]
        return {"content": content}, None, self._asked - 1

    def _calls(self, tools: list[str]) -> Iterator[Json]:
        for number in range(self.random.choice((1, 1, 1, 2, 3, 5))):
            if number:
                yield from self._thought(0.4)
            name = self.random.choice(tools)
            yield {"tool": {"name": name, "input": HARMLESS[name](self.random)}}

    def _thought(self, chance: float) -> list[Json]:
        if self.random.random() > chance:
            return []
        return [{"thinking": self._text() if self.random.random() < 0.8 else ""}]

    def _words(self, chance: float) -> list[Json]:
        return [self._said()] if self.random.random() < chance else []

    def _said(self) -> Json:
        return {"text": self._text()}

    def _text(self) -> str:
        return ". ".join(self.random.choices(_WORDS, k=self.random.randrange(1, 12)))


def converse(one: Direct, turns: int) -> Iterator[Json]:
    """The answers of so many turns, in which every call gets a result and nothing is changed."""
    for turn in range(turns):
        if turn or not one.messages:
            one.say(f"Do the next thing, number {turn}.")
        while True:
            answer = one.send()
            yield answer
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not calls:
                break
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call["id"],
                    "content": json.dumps(call["input"]),
                }
                for call in calls
            ]
            one.messages.append({"role": "user", "content": results})


def thoughts(one: Direct) -> list[tuple[int, int]]:
    """Where thinking stands."""
    return [
        (number, place)
        for number, message in enumerate(one.messages)
        for place, block in enumerate(blocks_of(message))
        if block["type"] == "thinking"
    ]
