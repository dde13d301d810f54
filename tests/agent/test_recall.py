"""recall: the one index of all that is not in the window, for the model and for the person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.test_compaction import SMALL, by_kind, drain, told
from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.context.recall import passages
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config
from tui.core.errors import ToolError
from tui.core.facts import Overlay
from tui.core.messages import blocks_of, text_block, text_of
from tui.core.paths import folders
from tui.session.session import Session
from tui.tools.paging import PageLimits
from tui.tools.recall import RecallParams

QUIET = Config(compaction=Compaction(memory_flush=False))
OFFSET = (
    len("--- message 3 · cut ---\nResult: ")
    + sum(len(f"line {n} of the build log\n") for n in range(1, 9000))
    + len("line ")
)
PAGE = PageLimits(2_000, 50_000, 2_000)


async def result(agent: Agent, prompt: str) -> str:
    """What the model got from the one call of a turn."""
    await events_of(agent, prompt)
    (record,) = [r for r in agent.session.records if r.type == "tool_result"][-1:]
    assert not record.data.get("receipt") or record.data["name"] == "run_command"
    return text_of(blocks_of(record.data["content"]))


async def asked(agent: Agent, query: str = "", *, person: bool = True, **more: Any) -> str:
    text, _ = await agent.context.recall(RecallParams(query=query, **more), PAGE, for_person=person)
    return text


def of_results(root: Path, *texts: str) -> Session:
    """A session with a command for each of these outputs."""
    session = Session.in_memory(root, clock=SystemClock())
    for number, text in enumerate(texts):
        session.append("user", content=[text_block(f"ask {number}")], text=f"ask {number}")
        use = call("run_command", f"c{number}", command="make")
        session.append("assistant", content=[use], model="test-model", usage={})
        session.append(
            "tool_result",
            call_id=f"c{number}",
            name="run_command",
            content=[text_block(text)],
            is_error=False,
        )
        session.append("assistant", content=say("ok"), model="test-model", usage={})
    return session


async def test_a_whole_output_that_was_cut_is_found_and_read_in_pages(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("x" * 40 + "\n")
    lines = "for n in $(seq 9000); do echo line $n of the build log; done; echo 'the needle is: 42'"
    more = "seq 200000"
    provider = ScriptedProvider(
        [call("run_command", "a", command=f"{lines}; {more}")],
        say("done"),
        [call("recall", "b", query="needle build")],
        say("found"),
        [call("recall", "c", message="3", offset=OFFSET)],
        say("read"),
    )
    agent = make_agent(tmp_path, provider, approver=Yes(), config=QUIET)
    assert "needle" not in await result(agent, "go")
    seen = await result(agent, "where was it?")
    assert seen.startswith("1 message outside the window with “needle build”")
    assert "--- message 3 · cut ---" in seen
    assert "the needle is: 42" in seen
    page = await result(agent, "read it")
    assert page.startswith("9000 of the build log\nthe needle is: 42\n1\n2\n")
    assert "continue with offset=" in page.splitlines()[-1]
    await agent.close()


async def test_what_was_pruned_is_found_and_what_the_person_masked_is_the_persons(
    tmp_path: Path,
) -> None:
    session = of_results(tmp_path, "the first secret", "the second answer", "the third answer")
    second = [r.id for r in session.records if r.type == "tool_result"]
    agent = make_agent(tmp_path, ScriptedProvider(), session=session)
    assert await asked(agent, "answer") == "Nothing outside the window holds “answer”."
    await agent.context.overlay([Overlay(second[1], "pruned", by="test", age=2)])
    await agent.context.overlay([Overlay(second[0], "masked")])
    for_model = await asked(agent, "the", person=False)
    assert "--- message 7 · pruned ---\nResult: the second answer" in for_model
    assert "secret" not in for_model
    with pytest.raises(ToolError, match="nothing to read in message 3"):
        await asked(agent, message="3", person=False)
    assert "Result: the first secret" in await asked(agent, message="3")
    assert "--- message 3 · masked ---" in await asked(agent, "first secret")
    await agent.close()


async def test_without_a_message_that_holds_all_words_the_best_are_named(tmp_path: Path) -> None:
    session = told(tmp_path, 20)
    provider = ScriptedProvider(*by_kind(say("Short.")))
    agent = make_agent(tmp_path, provider, session=session, model=SMALL, config=QUIET)
    await drain(agent.context.compact())
    text = await asked(agent, "elephants question 7")
    assert text.startswith("No message holds all of “elephants question 7”.")
    assert text.splitlines()[1] == "--- message 15 · summarized ---"
    assert await asked(agent, "elephants") == "Nothing outside the window holds “elephants”."
    await agent.close()


def saved(root: Path, *said: str) -> Session:
    session = Session.create(root, folders=folders(), clock=SystemClock())
    for text in said:
        session.append("user", content=[text_block(text)], text=text)
    return session


async def test_earlier_sessions_of_the_folder_are_found_and_no_others(
    tmp_path: Path, own_folders: Path
) -> None:
    del own_folders
    here, other = tmp_path / "here", tmp_path / "other"
    for place in (here, other):
        place.mkdir()
    before = saved(here, "fix the walrus", "it bites")
    strange = saved(other, "another walrus")
    for session in (before, strange):
        await session.close()
    mine = saved(here, "hi")
    child = Session.create_child(mine, "c1", clock=SystemClock())
    child.append("user", content=[text_block("count the walruses")], text="count the walruses")
    await child.close()
    agent = make_agent(here, ScriptedProvider(), session=mine, folders=folders())
    found = await asked(agent, "walrus", person=False)
    assert f"--- message {child.id}:1 ---" in found
    assert f"--- message {before.id}:1 ---\nPerson: fix" in found
    assert "another" not in found
    read = await asked(agent, message=f"{before.id}:1-9")
    assert read == "--- message 1 ---\nPerson: fix the walrus\n--- message 2 ---\nPerson: it bites"
    for wrong in (strange.id, "0" * 12):
        with pytest.raises(ToolError, match="There is no session"):
            await asked(agent, message=f"{wrong}:1")
    for wrong in (str(strange.path), "../x:1", "nothing", "12-", "-3", "1 2"):
        with pytest.raises(ToolError, match="is no address"):
            await asked(agent, message=wrong)
    with pytest.raises(ToolError, match="empty"):
        await asked(agent, message="5-2")
    await agent.close()


async def test_a_copy_outside_the_folder_of_results_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not tell")
    session = of_results(tmp_path)
    session.append("user", content=[text_block("go")], text="go")
    session.append("assistant", content=[call("x", "c")], model="test-model", usage={})
    session.append(
        "tool_result",
        call_id="c",
        name="x",
        content=[text_block("cut")],
        is_error=False,
        receipt={"path": str(secret), "stages": ["spill"]},
    )
    agent = make_agent(tmp_path, ScriptedProvider(), session=session)
    assert await asked(agent, "tell") == "Nothing outside the window holds “tell”."
    assert await asked(agent, message="3") == "--- message 3 · cut ---\nResult: cut"
    copy = agent.session.records[-1].data["receipt"]
    copy["path"] = str(tmp_path / ".holdfast/tool-results/gone.txt")
    assert "is not there any more: gone.txt" in await asked(agent, message="3")
    await agent.close()


@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.sampled_from(["pruned", "masked", "full", "clamped"])),
        max_size=12,
    )
)
async def test_every_address_that_is_named_can_be_read(marks: list[tuple[int, Any]]) -> None:
    root = Path("/nonexistent")
    session = of_results(root, *(f"output {number} needle" for number in range(6)))
    agent = make_agent(root, ScriptedProvider(say("Short.")), session=session, config=QUIET)
    targets = [r.id for r in session.records if r.type in {"tool_result", "user"}]
    for number, view in marks:
        await agent.context.overlay([Overlay(targets[number], view, by="test", age=1)])
    view = agent.context.view()
    named = passages(agent.session.records, view.states)
    for passage in named:
        read = await asked(agent, message=str(passage.number), person=False)
        assert read == f"--- message {passage.number} · {passage.absence} ---\n{passage.text}"
    everything = passages(agent.session.records)
    absent = {passage.number for passage in named}
    for passage in everything:
        if passage.who == "tool_result" and passage.number not in absent:
            assert passage.text.removeprefix("Result: ") in str(view.messages)
