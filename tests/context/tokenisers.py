"""Sessions and servers that count: seeded content of every kind, and tokenisers that differ."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tui.core.messages import Block, text_block
from tui.tokens.cl100k import Encoding, build_cl100k

_WORDS = """
the of and to a in that is was for it with as his on be at by had not are but from or have an they
which one you were all her she there would their we him been has when who will no more if out so up
said what its about than into them can only other time new some could these two may first then do
any like my now over such our man me even most made after also did many off session context request
message history window answer tokens result measured estimate
"""
WORDS = _WORDS.split()
HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过"
KANA = "これは日本語の文章です。ファイルを読み込み、結果を確認してください。テストは失敗しました。"
NAMES = ("index", "value", "self._items", "path", "record.data", "count_of", "Message", "MAX_SIZE")


def prose(rnd: random.Random, size: int) -> str:
    sentences: list[str] = []
    while sum(map(len, sentences)) < size:
        words = rnd.choices(WORDS, k=rnd.randrange(6, 20))
        sentences.append(" ".join(words).capitalize() + rnd.choice([". ", ", ", "? ", ".\n\n"]))
    return "".join(sentences)[:size]


def code(rnd: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        one, two = rnd.sample(NAMES, 2)
        lines.append(
            rnd.choice(
                [
                    f"def {rnd.choice(WORDS)}_{rnd.choice(WORDS)}({one}: int, key: str) -> bool:\n",
                    f"    if {one} is None or {two}[{rnd.randrange(99)}] >= {rnd.randrange(9)}:\n",
                    f"        return {one}.get({two!r}, {rnd.random():.2f})\n",
                    f"    for {rnd.choice('ijkn')} in range(len({two})):  # {rnd.choice(WORDS)}\n",
                    f'        raise ValueError(f"{rnd.choice(WORDS)} {{{one}}}")\n\n',
                ]
            )
        )
    return "".join(lines)[:size]


def cjk(rnd: random.Random, size: int) -> str:
    pieces: list[str] = []
    while sum(map(len, pieces)) * 3 < size:
        pieces.append(
            rnd.choice(["".join(rnd.choices(HAN, k=18)) + "。", KANA[: rnd.randrange(9, 44)]])
        )
    return "".join(pieces)[: size // 3]


def structured(rnd: random.Random, size: int) -> str:
    rows: list[dict[str, Any]] = []
    while len(rows) * 90 < size:
        rows.append(
            {
                "id": rnd.randrange(10**6),
                "name": f"{rnd.choice(WORDS)} {rnd.choice(WORDS)}",
                "ok": rnd.random() < 0.5,
                "score": round(rnd.random(), 4),
                "tags": rnd.sample(WORDS, 2),
            }
        )
    return json.dumps(rows, indent=rnd.choice([None, 2]))[:size]


def packed(rnd: random.Random, size: int) -> str:
    return base64.b64encode(rnd.randbytes(size * 3 // 4)).decode()


def log(rnd: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(
            f"2026-11-{rnd.randrange(10, 30)}T{rnd.randrange(10, 24)}:{rnd.randrange(10, 60)}:07Z "
            f"{rnd.choice(['INFO', 'WARN'])} worker[{rnd.randrange(9999)}]: GET /api/v1/items/"
            f"{rnd.randrange(9999)} {rnd.choice([200, 404, 500])} in {rnd.random() * 90:.1f} ms\n"
        )
    return "".join(lines)[:size]


CONTENT: tuple[Callable[[random.Random, int], str], ...] = (
    prose, code, cjk, structured, packed, log,
)  # fmt: skip


@cache
def encoding() -> Encoding:
    """The real encoding: built once, and only in a process whose tests count with it."""
    return build_cl100k()


def by_cl100k(ratio: float) -> Callable[[str], float]:
    """A tokeniser that makes `ratio` times as many tokens as cl100k_base."""
    return lambda text: ratio * len(encoding().encode_ordinary(text))


def by_bytes(ratio: float) -> Callable[[str], float]:
    """A tokeniser that makes `ratio` tokens of four bytes, whatever they are."""
    return lambda text: ratio * len(text.encode()) / 4


@dataclass
class Server:
    """Counts what it is sent, as a server does: with frames of its own, and a prompt for tools.

    `forgets`: thinking of turns that are over is not read again.
    """

    measure: Callable[[str], float]
    tool_prompt: int = 346
    frame: int = 3
    forgets: bool = False
    sizes: dict[str, float] = field(default_factory=dict[str, float])

    def text(self, text: str) -> float:
        if text not in self.sizes:
            self.sizes[text] = self.measure(text)
        return self.sizes[text]

    def block(self, block: Block) -> float:
        match block:
            case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
                return self.text(text)
            case {"type": "tool_use"}:
                return self.text(json.dumps(block["input"])) + self.text(block["name"]) + 11
            case {"type": "tool_result"}:
                return 9 + sum(self.block(each) for each in block["content"])
            case _:
                return self.text(json.dumps(block))

    def request(self, system: str, tools: list[dict[str, Any]], messages: list[list[Block]]) -> int:
        """The prompt tokens. Messages are content lists, from the user and the model by turns."""
        fixed = self.text(system) + sum(self.text(json.dumps(tool)) for tool in tools)
        last = max((n for n in range(0, len(messages), 2) if _typed(messages[n])), default=0)
        said = 0.0
        for place, content in enumerate(messages):
            said += self.frame
            for block in content:
                if self.forgets and block["type"] == "thinking" and place < last:
                    continue
                said += self.block(block)
        return round(self.tool_prompt + fixed + said)


def _typed(content: list[Block]) -> bool:
    return any(block["type"] == "text" for block in content)


@dataclass(frozen=True)
class Exchange:
    """What is added before a request (a prompt, or the results of calls), and the answer to it."""

    said: list[Block]
    answer: list[Block]


def session(seed: int, turns: int, *, thinking: bool = False) -> Iterator[Exchange]:
    """Turns of one or more requests: prompts, answers, calls, and results of every kind."""
    rnd = random.Random(seed)
    said: list[Block] = []
    for turn in range(turns):
        said = [text_block(prose(rnd, rnd.randrange(30, 600)))]
        for step in range(rnd.randrange(1, 4)):
            answer = [text_block(rnd.choice([prose, code])(rnd, rnd.randrange(100, 2500)))]
            if thinking:
                thought = prose(rnd, rnd.randrange(400, 3000))
                answer.insert(0, {"type": "thinking", "thinking": thought, "signature": "s"})
            calls: list[Block] = [
                {
                    "type": "tool_use",
                    "id": f"call_{turn}_{step}_{n}",
                    "name": "read_file",
                    "input": {"path": f"src/{rnd.choice(WORDS)}.py", "offset": rnd.randrange(900)},
                }
                for n in range(rnd.randrange(1, 3))
            ]
            yield Exchange(said, [*answer, *calls])
            said = [
                {
                    "type": "tool_result",
                    "tool_use_id": made["id"],
                    "content": [
                        text_block(rnd.choice(CONTENT)(rnd, int(rnd.lognormvariate(7.4, 1.0)) + 60))
                    ],
                }
                for made in calls
            ]
        yield Exchange(said, [text_block(prose(rnd, rnd.randrange(80, 1500)))])
