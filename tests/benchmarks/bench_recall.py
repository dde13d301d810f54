"""recall: 100 facts in a compacted session of 1,000 messages, some in full outputs on the disk, are
asked for in a person's words; how many are not found, and how much of the session it takes.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.context.compaction_in_force import prefix_sha256
from tui.core.clock import SystemClock
from tui.core.messages import text_block
from tui.session.session import Session
from tui.tokens.tokenizer import count
from tui.tools.paging import PageLimits
from tui.tools.recall import RecallParams

MESSAGES, FACTS = 1_000, 100
_PAGE = PageLimits(2_000, 50_000, 2_000)
_THINGS = ("port", "owner", "timeout", "region", "version", "ticket", "password file", "replica")
_PROSE = """
the service starts after a migration and the worker reads its queue while a test waits for logs that
nobody wrote so we change the port the owner the timeout or the region of a version
"""
_WORDS = _PROSE.split()


@dataclass(frozen=True)
class Fact:
    """Something said once: where, what is asked, and what the answer must hold."""

    place: int
    said: str
    question: str
    answer: str


def run() -> list[tuple[str, float, float]]:
    with TemporaryDirectory() as folder:
        missed, share, slowest = asyncio.run(_asked(Path(folder)))
    return [
        (f"of {FACTS} facts, not found", missed, 2),
        ("tokens of one answer, beside the whole session", share, 0.10),
        ("seconds of the slowest search", slowest, 1.0),
    ]


async def _asked(root: Path) -> tuple[int, float, float]:
    chance = random.Random(2)
    facts = [_fact(chance, number) for number in range(FACTS)]
    session, size = _session(root, facts, chance)
    agent = make_agent(root, ScriptedProvider(), session=session)
    missed, used, slowest = 0, list[int](), 0.0
    for fact in facts:
        began = time.perf_counter()
        text, _ = await agent.context.recall(
            RecallParams(query=fact.question), _PAGE, for_person=False
        )
        slowest = max(slowest, time.perf_counter() - began)
        missed += fact.answer not in text
        used.append(count(text))
    await agent.close()
    print(f"      {size:,} tokens in the session, {sum(used) // FACTS:,} an answer on average")
    return missed, max(used) / size, slowest


def _fact(chance: random.Random, number: int) -> Fact:
    thing, name = chance.choice(_THINGS), f"{chance.choice(_WORDS)}-{number * 37 % 1000:03}"
    answer = f"{chance.randrange(10_000, 99_999)}"
    said = chance.choice(
        [
            f"We settled that the {thing} of {name} is {answer}.",
            f"note: {name} {thing} = {answer}",
            f"{name}: its {thing} was {answer} before and stays so",
        ]
    )
    question = chance.choice(
        [f"{name} {thing}", f"which {thing} did we give {name}", f"what was the {thing} of {name}?"]
    )
    return Fact(chance.randrange(10, MESSAGES - 40), said, question, answer)


def _session(root: Path, facts: list[Fact], chance: random.Random) -> tuple[Session, int]:
    """The session, and the tokens of all that was said in it."""
    session, size = Session.in_memory(root, clock=SystemClock()), 0
    outputs = root / ".holdfast" / "tool-results"
    outputs.mkdir(parents=True)
    for number in range(0, MESSAGES, 4):
        said = [_prose(chance, 60), _prose(chance, 250), _prose(chance, 400), _prose(chance, 120)]
        for fact in facts:
            if number <= fact.place < number + 4:
                words = said[fact.place - number].split(" ")
                words.insert(chance.randrange(len(words)), fact.said)
                said[fact.place - number] = " ".join(words)
        size += sum(map(count, said))
        session.append("user", content=[text_block(said[0])], text=said[0])
        use = call("run_command", f"c{number}", command="make")
        session.append("assistant", content=[*say(said[1]), use], model="test-model", usage={})
        session.append(
            "tool_result", **_result(outputs, number, said[2], cut=chance.random() < 0.5)
        )
        session.append("assistant", content=say(said[3]), model="test-model", usage={})
    covered = session.records[-20]
    session.append(
        "compaction",
        summary="They worked on services.",
        covers=covered.id,
        prefix_sha256=prefix_sha256(session.records[: session.records.index(covered) + 1]),
    )
    return session, size


def _result(outputs: Path, number: int, text: str, *, cut: bool) -> dict[str, Any]:
    shown = text
    receipt: dict[str, Any] = {}
    if cut:
        (outputs / f"c{number}.txt").write_text(text)
        shown, receipt = text[:200], {"path": str(outputs / f"c{number}.txt"), "stages": ["spill"]}
    about: dict[str, Any] = {"call_id": f"c{number}", "name": "run_command", "is_error": False}
    return about | {"content": [text_block(shown)], "receipt": receipt or None}


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))
