"""O on the way of a real result: the clamp over many blocks, errors, partial updates, events."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_guards import (
    IMAGE,
    PIXEL,
    WINDOWS,
    ByName,
    Gives,
    forty,
    give,
    results,
    sent,
)
from tests.support.agents import Yes, events_of, make_agent, record_types
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.config import Config, Guard
from tui.core.errors import ProviderError, ToolError
from tui.core.messages import Block, ToolOutput, text_block, text_of
from tui.provider.base import ModelInfo
from tui.tools.base import Tool
from tui.tools.limits.clamp import PLACEHOLDER, SUFFIX, byte_length, line_count
from tui.tools.registry import builtin_tools


def named(receipt: dict[str, Any]) -> str:
    """The line that names the full copy."""
    return f"\n[Full output saved to: {receipt['path']}]"


async def test_O9_O10_O11_forty_texts_share_the_clamp_and_keep_their_places(
    tmp_path: Path,
) -> None:
    content = forty()
    guard = Guard(default_bytes=10**6)
    agent, provider, _ = await give(tmp_path, ToolOutput(content), guard=guard)
    (record,) = results(agent)
    shown: list[Block] = record.data["content"]
    assert [b["type"] for b in shown] == [b["type"] for b in content]
    texts = [b["text"] for b in shown if b["type"] == "text"]
    assert sum(map(byte_length, texts)) == 51_200  # one more character would not fit
    texts[-1] = texts[-1].removesuffix(named(record.data["receipt"]))
    whole = [b["text"] for b in content if b["type"] == "text"]
    cut = next(n for n, text in enumerate(texts) if text != whole[n])
    assert texts[:cut] == whole[:cut]
    assert texts[cut].endswith(SUFFIX)
    assert whole[cut].startswith(texts[cut].removesuffix(SUFFIX))
    assert texts[cut + 1 :] == [PLACEHOLDER] * (39 - cut)
    assert [b for b in shown if b["type"] == "image"] == [IMAGE] * 40
    assert record.data["receipt"]["stages"] == ["clamp"]
    assert [b["type"] for b in sent(provider.requests[-1])] == [b["type"] for b in content]


async def test_O10_so_many_texts_that_placeholders_do_not_fit_become_one_line(
    tmp_path: Path,
) -> None:
    content = [text_block(f"{n}\n") for n in range(3000)]
    agent, _, _ = await give(tmp_path, ToolOutput([*content, IMAGE]))
    (record,) = results(agent)
    texts = [b["text"] for b in record.data["content"] if b["type"] == "text"]
    assert texts[:-1] == [b["text"] for b in content[: len(texts) - 1]]
    more = f"[tool output truncated: {3000 - len(texts) + 1} more blocks]"
    assert texts[-1] == more + named(record.data["receipt"])
    assert record.data["content"][-1] == IMAGE


async def test_O13_a_huge_error_is_cut_and_has_no_stack(tmp_path: Path) -> None:
    agent, provider, seen = await give(
        tmp_path, ValueError("bad\n" + "e" * 40_000 + "\n" * 3000), ToolError("t" * 70_000)
    )
    first, second = results(agent)
    text = text_of(first.data["content"])
    assert text.startswith("elsewhere failed: ValueError: bad\neee")
    assert "Traceback" not in text
    assert first.data["is_error"] is True
    assert first.data["receipt"]["stages"] == ["clamp"]
    assert line_count(text) <= 2000
    assert second.data["receipt"]["stages"] == ["spill"]
    assert Path(second.data["receipt"]["path"]).read_text() == "t" * 70_000
    assert byte_length(text_of(sent(provider.requests[-1]))) < 3000
    summaries = [e.summary for e in seen if isinstance(e, facts.ToolFinished)]
    assert summaries == ["ValueError: bad", "t" * 400]  # O19


@pytest.mark.parametrize(
    "says",
    ["p\n" * 500_000, "é" * 400_000, "x" * 1_000_000],
    ids=["many lines", "many bytes", "one line"],
)
async def test_O15_partial_updates_are_clamped_and_never_kept(tmp_path: Path, says: str) -> None:
    agent, _, seen = await give(tmp_path, ToolOutput.text("done"), says=says)
    pieces = [e.text for e in seen if isinstance(e, facts.ToolOutputChunk)]
    assert max(map(len, pieces)) <= 8000
    assert byte_length("".join(pieces)) <= 51_200
    assert line_count("".join(pieces)) <= 2000
    assert "".join(pieces).count(SUFFIX) == 1
    assert not (tmp_path / ".holdfast").exists()
    assert [r.data["receipt"] for r in results(agent)] == [None]


async def test_O16_above_the_clamp_there_is_a_ceiling_of_characters(tmp_path: Path) -> None:
    up = Guard(default_bytes=10**8, clamp_bytes=10**8, clamp_lines=10**6, token_share=1.0)
    lengths = [900_000, 100_000, 1000, 500]
    content = [text_block("z " * (n // 2)) for n in lengths]
    agent = make_agent(
        tmp_path,
        ByName([call("elsewhere", "1")], say("ok")),
        tools={"elsewhere": Gives(ToolOutput(content))},
        config=Config(guard=up),
    )
    agent.models.use(ModelInfo("huge", WINDOWS["huge"], 4096, "server"))
    await events_of(agent, "go")
    (record,) = results(agent)
    kept = [len(block["text"]) for block in record.data["content"]]
    line = len(named(record.data["receipt"]))
    assert kept[:2] == [n * (400_000 - line) // sum(lengths) for n in lengths[:2]]
    assert kept[2:] == [1000, 500 + line]  # under the floor of 2,000
    assert record.data["receipt"]["stages"] == ["clamp"]
    assert record.data["content"][0]["text"].endswith(SUFFIX)


async def test_O18_pending_calls_are_closed_before_anything_else_is_recorded(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(
        [call("run_command", "1", command="echo begun; sleep 1000"), call("elsewhere", "2")],
        ProviderError("server", "It broke.", hint=""),
        say("ok"),
    )
    tools: dict[str, Tool[Any]] = {**builtin_tools(), "elsewhere": Gives()}
    agent = make_agent(tmp_path, provider, tools=tools, approver=Yes())
    async for event in agent.send(parse("go")):
        if isinstance(event, facts.ToolOutputChunk):
            agent.cancel()
    await events_of(agent, "continue")  # fails: it leaves nothing pending
    await events_of(agent, "and on")
    others = {"intent", "permission", "job"}
    types = [type_ for type_ in record_types(agent) if type_ not in others]
    assert types == [
        *["user", "assistant", "tool_result", "tool_result", "interrupt"],
        *["user", "error", "user", "assistant"],
    ]
    for record in results(agent):
        assert text_of(record.data["content"]) == (
            "Session was interrupted before tool execution completed"
        )


async def test_O19_O20_events_carry_little(tmp_path: Path) -> None:
    content = [text_block("a" * 30_000), IMAGE]
    agent, _, seen = await give(tmp_path, ToolOutput(content, display="d" * 20_000))
    (finished,) = [e for e in seen if isinstance(e, facts.ToolFinished)]
    assert len(finished.text) == 8000
    assert len(finished.display) == 8000
    assert finished.images == (
        {
            "type": "image",
            "media_type": "image/png",
            "bytes": len(b64decode(PIXEL)),
            "omitted": True,
        },
    )
    assert PIXEL not in json.dumps(finished.to_json())
    (record,) = results(agent)
    assert record.data["content"] == content
