"""K, L and O on the way of a real result: from the tool, through the dispatcher, to the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.clock import FakeClock
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.calls import finish as made
from tui.core import facts
from tui.core.config import Compaction, Config, Guard, Retry
from tui.core.errors import ProviderError
from tui.core.messages import Block, ToolOutput, text_block, text_of
from tui.provider.base import ModelInfo, Request
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.records import Record
from tui.tools.base import Effect, Params, Tool, ToolContext
from tui.tools.limits.clamp import byte_length
from tui.tools.limits.pipeline import GuardedOutput
from tui.tools.limits.receipt import Keep
from tui.tools.paging import without_numbers
from tui.tools.registry import builtin_tools

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
    "AABJRU5ErkJggg=="
)
IMAGE: Block = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
}


class Gives(Tool[Params]):
    """A tool from elsewhere: hands back, or raises, what it was made with."""

    name: ClassVar[str] = "elsewhere"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = Params
    keep: ClassVar[Keep] = "head"

    def __init__(self, *outputs: ToolOutput | Exception, says: str = "") -> None:
        self.outputs = list(outputs)
        self.says = says
        self.runs = 0

    @property
    def description(self) -> str:
        return "A test."

    async def run(self, params: Params, ctx: ToolContext) -> ToolOutput:
        self.runs += 1
        if self.says:
            ctx.host.emit(self.says)
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output


def results(agent: Agent) -> list[Record]:
    return [record for record in agent.session.records if record.type == "tool_result"]


def sent(request: Request) -> list[Block]:
    """The content of the last result of a request."""
    (*_, block) = [b for b in request.messages[-1]["content"] if b["type"] == "tool_result"]
    content: list[Block] = block["content"]
    return content


async def give(
    root: Path, *outputs: ToolOutput | Exception, says: str = "", guard: Guard | None = None
) -> tuple[Agent, ScriptedProvider, list[facts.Fact]]:
    """One turn in which a foreign tool is called once for each output."""
    calls = [[call("elsewhere", f"call_{n}")] for n, _ in enumerate(outputs)]
    provider = ScriptedProvider(*calls, say("ok"))
    tools: dict[str, Tool[Any]] = {**builtin_tools(), "elsewhere": Gives(*outputs, says=says)}
    agent = make_agent(root, provider, tools=tools, config=Config(guard=guard or Guard()))
    return agent, provider, await events_of(agent, "go")


async def test_K20_L13_O1_every_result_passes_the_guards_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[str] = []
    real = made.guard

    async def counting(output: ToolOutput, *, tool: str, **rest: Any) -> GuardedOutput:
        passed.append(tool)
        return await real(output, tool=tool, **rest)

    monkeypatch.setattr(made, "guard", counting)
    (tmp_path / "a.txt").write_text("alpha")
    provider = ScriptedProvider(
        [
            call("read_file", "1", path="a.txt"),
            call("elsewhere", "2"),
            call("elsewhere", "3"),
            call("read_file", "4", path="missing"),
            call("read_file", "5", wrong="argument"),
            call("nothing_of_this_name", "6"),
            call("run_command", "7", command="rm -rf /"),
        ],
        say("ok"),
    )
    tool = Gives(ToolOutput.text("fine"), RuntimeError("broken"))
    agent = make_agent(tmp_path, provider, tools={**builtin_tools(), "elsewhere": tool})
    await events_of(agent, "go")
    assert sorted(passed) == sorted(record.data["name"] for record in results(agent))
    assert len(passed) == 7
    assert tool.runs == 2


WINDOWS = {"small": 10_000, "test-model": 200_000, "huge": 10_000_000}


class ByName(ScriptedProvider):
    """A server that knows models of several windows."""

    async def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, WINDOWS[model], 4096, "server")


async def test_K21_switching_the_model_changes_the_share_of_later_results(tmp_path: Path) -> None:
    words = ToolOutput.text("word " * 9000)
    provider = ByName([call("elsewhere", "1")], say("ok"), [call("elsewhere", "2")], say("ok"))
    config = Config(compaction=Compaction(keep_tokens=9_000))
    agent = make_agent(tmp_path, provider, tools={"elsewhere": Gives(words, words)}, config=config)
    await events_of(agent, "with the large one")
    agent.models.use(ModelInfo("small", 10_000, 4096, "server"))
    await events_of(agent, "with the small one")
    before, after = results(agent)
    assert before.data["receipt"] is None
    assert after.data["receipt"]["stages"] == ["share"]
    assert "exceeds limit of 3000. Showing first 2400 tokens." in text_of(after.data["content"])


@pytest.mark.parametrize(("other", "stages"), [("small", ["share"]), ("huge", None)])
async def test_K21_a_result_fits_the_model_that_answers_after_a_failover(
    tmp_path: Path, other: str, stages: list[str] | None
) -> None:
    words = ToolOutput.text("word " * 9000)
    overloaded = ProviderError("overloaded", "Overloaded.", status=529, retryable=True)
    asked = call("elsewhere", "1"), call("elsewhere", "2")
    provider = ByName(overloaded, [asked[0]], say("ok"), [asked[1]], say("ok"))
    clock, control = FakeClock(), RetryControl()
    retrying = RetryProvider(provider, retry=Retry(max_attempts=0), clock=clock, control=control)
    agent = make_agent(
        tmp_path,
        retrying,
        tools={"elsewhere": Gives(words, words)},
        config=Config(compaction=Compaction(keep_tokens=9_000)),
        clock=clock,
        control=control,
        fallbacks=(other,),
    )
    await events_of(agent, "go")
    clock.elapsed += 600
    await events_of(agent, "and with the first again")
    assert [r.model for r in provider.requests] == ["test-model", other, other, *2 * ["test-model"]]
    receipts = [record.data["receipt"] for record in results(agent)]
    assert [receipt and receipt["stages"] for receipt in receipts] == [stages, None]


async def test_L13_L14_what_the_model_says_passes_untouched(tmp_path: Path) -> None:
    long = "x\n" * 100_000
    provider = ScriptedProvider(say(long), say("ok"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "go")
    await events_of(agent, "on")
    said = provider.requests[-1].messages[1]
    assert said["role"] == "assistant"
    assert said["content"][0]["text"] == long
    assert not (tmp_path / ".holdfast").exists()


async def test_L1_L14_a_result_without_text_passes_untouched(tmp_path: Path) -> None:
    odd: Block = {"type": "resource", "data": "y" * 300_000}
    content = [IMAGE | {"extra": "x" * 200_000}, odd]
    agent, _, _ = await give(tmp_path, ToolOutput(list(content)))
    (record,) = results(agent)
    assert record.data["content"] == content
    assert record.data["receipt"] is None
    assert not (tmp_path / ".holdfast").exists()


class GivesInThread(Gives):
    async def run(self, params: Params, ctx: ToolContext) -> ToolOutput:
        import asyncio  # noqa: PLC0415

        return await asyncio.to_thread(asyncio.run, super().run(params, ctx))


@pytest.mark.parametrize("kind", [Gives, GivesInThread])
async def test_L15_a_tool_runs_once_and_a_thread_makes_no_difference(
    tmp_path: Path, kind: type[Gives]
) -> None:
    tool = kind(ToolOutput.text("line\n" * 20_000))
    provider = ScriptedProvider([call("elsewhere", "tc")], say("ok"))
    await events_of(make_agent(tmp_path, provider, tools={"elsewhere": tool}), "go")
    assert tool.runs == 1
    kept = tmp_path / ".holdfast" / "tool-results" / "tc.txt"
    preview = ("line\n" * 20_000)[:2048]
    assert text_of(sent(provider.requests[-1])) == (
        f"Output too large (97.7 KB). Full output saved to: {kept}\n\n"
        "Use read_file to view specific sections with offset and limit parameters.\n\n"
        f"Preview (first 2048 bytes):\n{preview}\n..."
    )


async def test_L17_O2_everything_else_of_a_result_stays(tmp_path: Path) -> None:
    output = ToolOutput(
        [text_block("x" * 90_000) | {"cache": "kept"}],
        is_error=True,
        summary="went wrong",
        display="--- a\n+++ b",
        details={"artifact": [1, 2]},
    )
    agent, provider, seen = await give(tmp_path, output)
    (record,) = results(agent)
    assert record.data["call_id"] == "call_0"
    assert record.data["name"] == "elsewhere"
    assert record.data["is_error"] is True
    assert record.data["summary"] == "went wrong"
    assert record.data["display"] == "--- a\n+++ b"
    assert record.data["details"] == {
        "artifact": [1, 2],
        "limits": ["spill"],
        "path": record.data["receipt"]["path"],
    }
    assert record.data["content"][0]["cache"] == "kept"
    result = provider.requests[-1].messages[-1]["content"][0]
    assert (result["tool_use_id"], result["is_error"]) == ("call_0", True)
    (finished,) = [e for e in seen if isinstance(e, facts.ToolFinished)]
    assert (finished.id, finished.is_error) == ("call_0", True)
    assert finished.receipt == record.data["receipt"]


def forty() -> list[Block]:
    """What an MCP server may send: texts and images by turns."""
    return [block for n in range(40) for block in (text_block(f"{n}: " + "y" * 1996), IMAGE)]


async def test_L2_forty_texts_are_measured_together_and_images_stay(tmp_path: Path) -> None:
    content = forty()
    agent, _, _ = await give(tmp_path, ToolOutput(content))
    (record,) = results(agent)
    receipt = record.data["receipt"]
    assert receipt["stages"] == ["spill"]
    assert receipt["bytes_total"] == sum(byte_length(b.get("text", "")) for b in content)
    kinds = [block["type"] for block in record.data["content"]]
    assert kinds == ["text", *["image"] * 40]
    kept = Path(receipt["path"]).read_text()
    assert kept.startswith("--- block 1 ---\n0: yyy")
    assert kept.count("\n--- block ") == 39
    assert kept.endswith(f"--- block 40 ---\n{content[-2]['text']}")
    assert all(block == IMAGE for block in record.data["content"][1:])


async def read_all(root: Path, output: ToolOutput, guard: Guard) -> list[str]:
    """What reading a spilled output page by page gives, nobody being there to be asked."""
    pages: list[str] = []

    def next_page(request: Request) -> list[Block]:
        text = text_of(sent(request))
        pages.append(text)
        where: dict[str, int] = {}
        if len(pages) > 1:
            last = text.rsplit("\n", 1)[-1]
            if "continue with " not in last:
                return say("done")
            name, at = last.split("continue with ")[1].strip("]").split(";")[0].split("=")
            where = {name: int(at)}
        path = str(root / ".holdfast" / "tool-results" / "call_0.txt")
        return [call("read_file", f"read_{len(pages)}", path=path, **where)]

    provider = ScriptedProvider([call("elsewhere", "call_0")], *[next_page] * 400)
    tools: dict[str, Tool[Any]] = {**builtin_tools(), "elsewhere": Gives(output)}
    agent = make_agent(root, provider, tools=tools, config=Config(guard=guard))
    await events_of(agent, "go")
    first, *others = results(agent)
    assert first.data["receipt"]["stages"] == ["spill"]
    assert len(others) == len(pages) - 1
    for record in others:
        assert record.data["is_error"] is False
        assert record.data["receipt"] is None
    kept = root / ".holdfast" / "tool-results"
    assert sorted(p.name for p in kept.iterdir()) == ["call_0.txt"]
    return pages[1:]


@pytest.mark.parametrize(
    "guard",
    [Guard(), Guard(bytes={"read_file": 3000}), Guard(clamp_bytes=4000), Guard(token_share=0.01)],
)
async def test_L20_L21_a_spill_is_read_in_pages_that_nothing_cuts(
    tmp_path: Path, guard: Guard
) -> None:
    text = "".join(f"{n} é漢 line\n" for n in range(5000))
    pages = await read_all(tmp_path, ToolOutput.text(text), guard)
    read = [page.rsplit("\n", 1)[0] + "\n" if "continue with" in page else page for page in pages]
    assert "".join(without_numbers(page) or "" for page in read) == text
    assert len(pages) > 1


async def test_L25_too_many_matches_are_previewed_and_readable(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").write_text("TODO not ours\n")
    (tmp_path / "ours.py").write_text("".join(f"# TODO number {n}\n" for n in range(1500)))
    provider = ScriptedProvider([call("grep_search", "g", pattern="TODO")], say("ok"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "go")
    (record,) = results(agent)
    text = text_of(record.data["content"])
    assert text.startswith("Output too large (")
    assert "node_modules" not in text
    kept = Path(record.data["receipt"]["path"]).read_text()
    assert kept.count("TODO number") >= 900
    assert "not ours" not in kept


async def test_L28_surrogates_and_nul_do_no_harm(tmp_path: Path) -> None:
    hostile = "a\ud800\x00\x1b[31m\udfff漢\n" * 8000
    agent, provider, seen = await give(
        tmp_path, ToolOutput.text(hostile), ToolOutput.text("\ud83d")
    )
    first, second = results(agent)
    assert Path(first.data["receipt"]["path"]).read_bytes() == hostile.encode(
        "utf-8", "surrogatepass"
    )
    assert second.data["receipt"] is None
    for event in seen:
        json.dumps(event.to_json()).encode()
    json.dumps([r.messages for r in provider.requests], ensure_ascii=False).encode()


async def test_O19_long_paths_and_labels_hold_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "build").write_text("hello\n")
    long = "d/" * 100_000
    calls = [
        call("list_dir", "a", path=long),
        call("grep_search", "b", pattern="x", path=long),
        call("find_by_name", "c", pattern="x" * 90_000),
        call("find_by_name", "d", pattern="build"),
        call("grep_search", "e", pattern="hello"),
    ]
    agent = make_agent(tmp_path, ScriptedProvider(*([one] for one in calls), say("ok")))
    seen = await events_of(agent, "go")
    labels = [event.label for event in seen if isinstance(event, facts.ToolStarted)]
    assert max(map(len, labels)) == 1000
    said = [text_of(record.data["content"]) for record in results(agent)]
    assert said[0] == "Not allowed, not run: The path has 200,000 characters; the limit is 4,096."
    assert said[1] == said[0]
    assert said[3].startswith("build")
    assert said[4].startswith("build:1:hello")
