"""The exam of a summary, through the agent: what it lacks is sent with it, word for word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_compaction import LONG, SMALL, drain, of, sent_text
from tests.support.agents import events_of, make_agent, record_types
from tests.support.provider import Hang, ScriptedProvider, last_user_text, say
from tui.agent.agent import Agent
from tui.agent.limits import Limits, spent_by_model
from tui.context import exam
from tui.context.validate import check
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config, ExamMode
from tui.core.errors import ProviderError
from tui.core.fact_words import words
from tui.core.facts import Fact
from tui.core.messages import Block, text_block
from tui.provider import catalogue
from tui.provider.base import Request
from tui.session.session import Session

HAIKU = catalogue.model_info("claude-haiku-5-5")
FACT = re.compile(r"Rule (\d+) is (\w+)\.")
RULES = 9
WORDS = ("heron", "osprey", "magpie", "kestrel", "wren", "dunnock", "linnet", "siskin", "merlin")


def in_words(fact: Fact) -> str:
    sentence = words(fact)
    return sentence.text if sentence else ""


def talked(root: Path) -> Session:
    """A session of twelve turns, with a rule in each of the first nine prompts."""
    made = Session.in_memory(root, clock=SystemClock())
    for number in range(12):
        rule = f" Rule {number} is {WORDS[number]}." if number < RULES else ""
        asked = f"question {number}.{rule}"
        made.append("user", content=[text_block(asked)], text=asked)
        content = [text_block(f"answer {number} {LONG}")]
        made.append("assistant", content=content, model="test-model", usage={})
    return made


class Examining(ScriptedProvider):
    """Writes a summary that holds some of the rules, and does what an exam asks of it honestly.

    `failing` are errors by what is asked; `quote` is how the rules are quoted.
    """

    def __init__(self, *held: int, quote: str = "Rule {0} is {1}.") -> None:
        super().__init__(*[self._answered] * 40)
        self.held, self.quote, self.window = held, quote, SMALL.window
        self.failing: dict[str, ProviderError] = {}
        self.kinds: list[str] = []

    def _answered(self, request: Request) -> list[Block]:
        text = last_user_text(request)
        kind = next((k for start, k in OPENINGS.items() if text.startswith(start)), "turn")
        self.kinds.append(kind)
        if kind in self.failing:
            raise self.failing[kind]
        return say(self._said(kind, text))

    def _said(self, kind: str, text: str) -> str:
        match kind:
            case "questions":
                return "\n\n".join(
                    f"Q: What is rule {n}?\nA: {word}\nQUOTE: {self.quote.format(n, word)}"
                    for n, word in FACT.findall(text)
                )
            case "answers":
                known = dict(FACT.findall(text))
                asked = re.findall(r"(\d+): What is rule (\d+)\?", text)
                return "\n".join(f"{n}: {known.get(r, 'not in the summary')}" for n, r in asked)
            case "verdicts":
                return "\n".join(f"{n}: no" for n in re.findall(r"^(\d+):", text, re.MULTILINE))
            case "summary":
                return "They talked. " + " ".join(f"Rule {n} is {WORDS[n]}." for n in self.held)
            case _:
                return "fine"


OPENINGS = {
    "A summary is about to replace": "questions",
    "Below are the summary": "answers",
    "Each line below": "verdicts",
    "Summarize the work": "summary",
}


def examined(
    root: Path, provider: ScriptedProvider, mode: ExamMode = "small", **more: Any
) -> Agent:
    config = Config(compaction=Compaction(memory_flush=False, exam=mode))
    more = {"session": talked(root), "model": SMALL, "small_model": HAIKU} | more
    return make_agent(root, provider, config=config, **more)


async def compacted(agent: Agent) -> list[Fact]:
    return await drain(agent.context.compact())


async def test_what_the_summary_lacks_is_sent_with_it_word_for_word(tmp_path: Path) -> None:
    provider = Examining(0, 2, 4, 5, 6, 7, 8)
    agent = examined(tmp_path, provider)
    seen = await compacted(agent)
    (end,) = of(seen, facts.ExamFinished)
    assert (len(end.facts), end.held, end.verbatim, end.problem) == (9, 7, 2, "")
    assert in_words(end) == "Summary checked: 7 of 9 facts kept, 2 more sent in full ($0.0000)."
    sentence = words(end)
    assert sentence
    assert sentence.detail.splitlines()[:4] == [
        "✗ What is rule 1? — osprey", "  “Rule 1 is osprey.”",
        "✗ What is rule 3? — kestrel", "  “Rule 3 is kestrel.”",
    ]  # fmt: skip
    assert of(seen, facts.CompactionFinished)[0].problem == ""
    await events_of(agent, "and now?")
    request = provider.requests[-1]
    assert check(request.messages) == []
    for number, word in enumerate(WORDS):
        assert sent_text(request).count(f"Rule {number} is {word}.") == 1
    await events_of(agent, "and then?")
    for number, word in enumerate(WORDS):  # once, and from then on
        assert sent_text(provider.requests[-1]).count(f"Rule {number} is {word}.") == 1


async def test_the_small_model_examines_before_the_compaction_is_recorded(tmp_path: Path) -> None:
    provider = Examining(*range(RULES))
    agent = examined(tmp_path, provider)
    seen = await compacted(agent)
    assert provider.kinds == ["summary", "questions", "answers"]
    assert [request.model for request in provider.requests[1:]] == [HAIKU.id] * 2
    assert all(not request.tools and not request.system for request in provider.requests[1:])
    kinds = [event.type for event in seen]
    assert kinds.index("exam_started") < kinds.index("compaction_finished")
    assert in_words(of(seen, facts.ExamFinished)[0]).startswith(
        "Summary checked: 9 of 9 facts kept ("
    )
    assert record_types(agent)[-2:] == ["compaction", "exam"]
    await events_of(agent, "and now?")
    assert "leaves this out" not in sent_text(provider.requests[-1])


async def test_the_exam_is_part_of_the_cost(tmp_path: Path) -> None:
    agent = examined(tmp_path, Examining(0))
    await compacted(agent)
    models = {one["model"]: one for one in spent_by_model(agent.session.records)}
    assert models[HAIKU.id]["requests"] == 1  # one exam
    assert models[HAIKU.id]["usage"]["input_tokens"] == 200


async def test_without_an_exam_nothing_is_asked(tmp_path: Path) -> None:
    provider = Examining(0)
    agent = examined(tmp_path, provider, "off")
    seen = await compacted(agent)
    assert provider.kinds == ["summary"]
    assert not of(seen, facts.ExamStarted) + of(seen, facts.ExamFinished)


async def test_a_full_exam_asks_about_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exam, "PART_TOKENS", 1500)
    provider = Examining(0)
    agent = examined(tmp_path, provider, "full")
    (end,) = of(await compacted(agent), facts.ExamFinished)
    assert provider.kinds.count("questions") > 2
    assert (len(end.facts), end.held, end.verbatim) == (9, 1, 8)
    assert provider.kinds.count("answers") == 1


@pytest.mark.parametrize("kind", ["questions", "answers"])
async def test_a_failing_exam_is_said_and_the_summary_accepted(tmp_path: Path, kind: str) -> None:
    provider = Examining(0)
    provider.failing[kind] = ProviderError("overloaded", "The server is busy.")
    agent = examined(tmp_path, provider)
    seen = await compacted(agent)
    (end,) = of(seen, facts.ExamFinished)
    assert in_words(end) == "The summary wasn't checked: The server is busy."
    assert of(seen, facts.CompactionFinished)[0].problem == ""
    assert agent.context.view().summary is not None
    await events_of(agent, "and now?")
    assert "leaves this out" not in sent_text(provider.requests[-1])


async def test_quotes_that_are_not_there_are_no_facts(tmp_path: Path) -> None:
    agent = examined(tmp_path, Examining(0, quote="Rule {0} was always {1}."))
    (end,) = of(await compacted(agent), facts.ExamFinished)
    assert in_words(end) == "The summary wasn't checked: the model found nothing to ask about."


async def test_another_wording_is_judged(tmp_path: Path) -> None:
    class Rewording(Examining):
        def _said(self, kind: str, text: str) -> str:
            if kind == "answers":
                return "\n".join(f"{n}: some bird" for n in range(1, 10))
            if kind == "verdicts":
                assert "right: osprey | given: some bird" in text
                return "1: yes\n2: no\n3: Yes.\n"
            return super()._said(kind, text)

    agent = examined(tmp_path, Rewording(0))
    (end,) = of(await compacted(agent), facts.ExamFinished)
    assert [n for n, fact in enumerate(end.facts) if fact["held"]] == [0, 2]
    assert end.verbatim == 7


async def test_no_room_for_all_that_is_lacking_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exam, "VERBATIM_TOKENS", 20)
    agent = examined(tmp_path, Examining())
    (end,) = of(await compacted(agent), facts.ExamFinished)
    assert end.held == 0
    assert 0 < end.verbatim < 9
    assert f"{9 - end.verbatim} lost for lack of room" in in_words(end)


async def test_esc_during_the_exam_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("They talked."), Hang("Q: "))
    agent = examined(tmp_path, provider)
    seen: list[Fact] = []
    async for event in agent.context.compact():
        seen.append(event)
        if event.type == "exam_started":
            await provider.waiting.wait()
            agent.cancel()
    assert of(seen, facts.CompactionFinished)[0].problem == "it was interrupted"
    assert not {"exam", "compaction"} & set(record_types(agent))


async def test_undo_leaves_out_what_was_not_sent_yet(tmp_path: Path) -> None:
    provider = Examining(0)
    agent = examined(tmp_path, provider)
    full = agent.context.next_request(prompt_follows=True).messages
    await compacted(agent)
    await agent.context.uncompact()
    assert agent.context.next_request(prompt_follows=True).messages == full


async def test_the_next_summary_is_asked_about_what_the_last_one_lacked(tmp_path: Path) -> None:
    provider = Examining(0)
    session = talked(tmp_path)
    agent = examined(tmp_path, provider, session=session)
    await compacted(agent)
    await events_of(agent, "and now?")
    for n in range(12):
        session.append("user", content=[text_block(f"more {n}")], text=f"more {n}")
        content = [text_block(f"answer {n} {LONG}")]
        session.append("assistant", content=content, model="test-model", usage={})
    (end,) = of(await compacted(agent), facts.ExamFinished)
    assert {fact["answer"] for fact in end.facts} == set(WORDS)
    assert (end.held, end.verbatim) == (1, 8)


async def test_a_cost_limit_ends_the_exam_not_the_compaction(tmp_path: Path) -> None:
    provider = Examining(0)
    agent = examined(tmp_path, provider, limits=Limits(max_turns=1))
    seen = await compacted(agent)
    (end,) = of(seen, facts.ExamFinished)
    assert in_words(end) == "The summary wasn't checked: Reached the limit of 1 request."
    assert agent.context.view().summary is not None


async def test_the_preview_says_what_the_exam_costs(tmp_path: Path) -> None:
    modes: dict[ExamMode, str] = {"off": "", "small": "small, by claude-haiku-5-5, at most $0.00"}
    for mode, said in modes.items():
        planned = await examined(tmp_path, Examining(), mode).context.plan_compaction()
        assert planned is not None
        assert planned.exam.startswith(said)
        assert bool(planned.exam) is bool(said)
