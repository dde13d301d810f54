"""What a prompt names with `@` is read by calls of the tools before the model is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import Hang, ScriptedProvider, call, say
from tests.tools.pdf_files import numbered, pdf
from tui.agent.mentions import READS
from tui.agent.prompts import parse
from tui.context.validate import check
from tui.core import facts
from tui.core.messages import Block, text_of, tool_calls
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.session.records import MENTIONED, Record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src/store.py").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    (folder / "a b.md").write_text("# Notes\n")
    return folder


def inputs(provider: ScriptedProvider) -> list[tuple[str, dict[str, object]]]:
    """The calls of the first request, by tool and arguments."""
    made = [tool_calls(message["content"]) for message in provider.requests[0].messages]
    return [(call["name"], call["input"]) for calls in made for call in calls]


def results(provider: ScriptedProvider) -> list[str]:
    last = provider.requests[0].messages[-1]["content"]
    return [text_of(block["content"]) for block in last if block["type"] == "tool_result"]


async def test_a_named_file_is_read_before_the_model_is_asked(root: Path) -> None:
    provider = ScriptedProvider(say("It has a hundred lines."))
    agent = make_agent(root, provider)
    told = await events_of(agent, "how long is @src/store.py?")
    request = provider.requests[0]
    assert [message["role"] for message in request.messages] == ["user", "assistant", "user"]
    assert text_of(request.messages[0]["content"]) == "how long is @src/store.py?"
    assert inputs(provider) == [("read_file", {"path": "src/store.py"})]
    assert "line 100" in results(provider)[0]
    assert check(request.messages) == []
    kinds = [type(event) for event in told]
    order = [facts.UserMessage, facts.ToolStarted, facts.ToolFinished, facts.RequestSent]
    assert [kind for kind in kinds if kind in order] == order


async def test_the_record_says_that_the_prompt_made_the_calls(root: Path) -> None:
    agent = make_agent(root, ScriptedProvider(say("Yes.")))
    await events_of(agent, "see @src/store.py")
    made = [record for record in agent.session.records if record.type == "assistant"]
    assert [record.data.get("by") for record in made] == [MENTIONED, None]
    assert "usage" not in made[0].data


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("@src/store.py:10-40", {"path": "src/store.py", "offset": 10, "limit": 31}),
        ("(@src/store.py:40-10).", {"path": "src/store.py", "offset": 10, "limit": 31}),
        ("@src/store.py:7", {"path": "src/store.py", "offset": 7}),
        ("@src/store.py:0", {"path": "src/store.py", "offset": 1}),
        ("@src/store.py#L7-L9", {"path": "src/store.py", "offset": 7, "limit": 3}),
        ("@src/store.py#L7-9,", {"path": "src/store.py", "offset": 7, "limit": 3}),
        ('@"a b.md":1-1', {"path": "a b.md", "offset": 1, "limit": 1}),
        (r"@a\ b.md", {"path": "a b.md"}),
        ("@src/../src/store.py", {"path": "src/../src/store.py"}),
    ],
)
async def test_a_range_of_lines(root: Path, typed: str, arguments: dict[str, object]) -> None:
    provider = ScriptedProvider(say("Yes."))
    await events_of(make_agent(root, provider), f"look at {typed}")
    assert inputs(provider) == [("read_file", arguments)]


async def test_pages_of_a_pdf(root: Path) -> None:
    (root / "paper.pdf").write_bytes(pdf(*numbered(9)))
    provider = ScriptedProvider(say("Yes."))
    await events_of(make_agent(root, provider), "see @paper.pdf:3-4 and @paper.pdf:9")
    assert [arguments.get("pages") for _, arguments in inputs(provider)] == ["3-4", "9-"]
    assert "page 4 line 1" in results(provider)[0]
    assert "page 5 line 1" not in results(provider)[0]
    assert "page 9 line 1" in results(provider)[1]


async def test_a_file_whose_name_ends_like_a_range_is_that_file(root: Path) -> None:
    (root / "notes:3").write_text("three")
    provider = ScriptedProvider(say("Yes."))
    await events_of(make_agent(root, provider), "see @notes:3")
    assert inputs(provider) == [("read_file", {"path": "notes:3"})]


async def test_a_folder_is_listed(root: Path) -> None:
    provider = ScriptedProvider(say("Yes."))
    await events_of(make_agent(root, provider), "what is in @src/ and in @src?")
    assert inputs(provider)[0] == ("list_dir", {"path": "src/"})
    assert "store.py" in results(provider)[0]


async def test_a_folder_whose_quote_was_left_open_is_listed(root: Path) -> None:
    (root / "my docs").mkdir()
    provider = ScriptedProvider(say("Yes."))
    await events_of(make_agent(root, provider), 'what is in @"my docs/')
    assert inputs(provider) == [("list_dir", {"path": "my docs/"})]


async def test_what_names_nothing_stays_as_it_was_typed(root: Path) -> None:
    provider = ScriptedProvider(say("Yes."))
    told = await events_of(make_agent(root, provider), "@nobody mail me@store.py about @dataclass")
    assert len(provider.requests[0].messages) == 1
    assert not [event for event in told if isinstance(event, facts.Notice)]


async def test_a_file_outside_the_workspace_is_refused_in_words(root: Path) -> None:
    (root.parent / "secret.txt").write_text("secret")
    provider = ScriptedProvider(say("Yes."))
    told = await events_of(make_agent(root, provider), "see @../secret.txt")
    (notice,) = [event.text for event in told if isinstance(event, facts.Notice)]
    assert "is outside the workspace" in notice
    assert len(provider.requests[0].messages) == 1


async def test_a_denied_file_is_not_read(root: Path) -> None:
    provider = ScriptedProvider(say("All right."))
    gate = Gate(Policy.of(deny=["read_file(src/*)"]))
    agent = make_agent(root, provider, gate=gate)
    told = await events_of(agent, "see @src/store.py")
    (finished,) = [event for event in told if isinstance(event, facts.ToolFinished)]
    assert finished.is_error
    assert "line 100" not in results(provider)[0]
    assert check(provider.requests[0].messages) == []


async def test_no_more_are_read_than_a_prompt_takes(root: Path) -> None:
    for n in range(READS + 3):
        (root / f"{n}.txt").write_text(str(n))
    provider = ScriptedProvider(say("Yes."))
    told = await events_of(make_agent(root, provider), " ".join(f"@{n}.txt" for n in range(23)))
    assert len(inputs(provider)) == READS
    (notice,) = [event.text for event in told if isinstance(event, facts.Notice)]
    assert "the other 3" in notice


async def test_a_prompt_that_joins_a_turn_brings_its_files(root: Path) -> None:
    provider = ScriptedProvider([call("list_dir", path=".")], say("Both."))
    agent = make_agent(root, provider)
    async for event in agent.send(parse("go")):
        if isinstance(event, facts.ToolStarted) and event.name == "list_dir":
            agent.steer(parse("and see @src/store.py"))
    messages = provider.requests[-1].messages
    assert check(messages) == []
    assert "line 100" in str(messages[-1]["content"])


async def test_what_is_interrupted_while_it_is_read_is_closed(root: Path) -> None:
    provider = ScriptedProvider(Hang())
    agent = make_agent(root, provider)
    async for event in agent.send(parse("see @src/store.py")):
        if isinstance(event, facts.ToolStarted):
            agent.cancel()
    calls = [id_ for record in agent.session.records for id_ in _ids(record)]
    closed = [r.data["call_id"] for r in agent.session.records if r.type == "tool_result"]
    assert closed == calls


async def test_two_prompts_name_the_same_file_by_calls_of_their_own(root: Path) -> None:
    provider = ScriptedProvider(say("One."), say("Two."))
    agent = make_agent(root, provider)
    await events_of(agent, "see @src/store.py")
    await events_of(agent, "again @src/store.py")
    ids = [id_ for record in agent.session.records for id_ in _ids(record)]
    assert len(set(ids)) == len(ids) == 2
    assert check(provider.requests[-1].messages) == []


def _ids(record: Record) -> list[str]:
    content: list[Block] = record.data.get("content", []) if record.type == "assistant" else []
    return [block["id"] for block in tool_calls(content)]
