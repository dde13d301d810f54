"""Practice scripts: turns from a file, and what is said of a file that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.provider.practice_world import parts_of
from tests.support.clock import FakeClock
from tui.core.errors import ProviderError, UsageError
from tui.core.facts import TextDelta
from tui.core.messages import Message, Usage, text_block, text_of
from tui.provider.base import AttemptStarted, Completed, Request
from tui.provider.practice.provider import PracticeModel
from tui.provider.practice.script import read_script

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "script.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def request(text: str = "go") -> Request:
    messages = [Message(role="user", content=[text_block(text)])]
    return Request("practice", [], messages, [], 4096)


async def answer(model: PracticeModel) -> Completed:
    last = (await parts_of(model, request()))[-1]
    assert isinstance(last, Completed)
    return last


async def test_turns_are_played_one_per_request(write: Write):
    path = write("""
        [[turn]]
        thinking = "Hm."
        text = "I'll look."
        tools = [{name = "read_file", input = {path = "README.md"}}, {name = "no_such_tool"}]
        usage = {input_tokens = 1200, output_tokens = 30}
        [[turn]]
        text = "Done."
        stop_reason = "refusal"
        """)
    model = PracticeModel(FakeClock(), script=read_script(path))
    first = await answer(model)
    assert [b["type"] for b in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert first.content[2]["input"] == {"path": "README.md"}
    assert first.content[3]["input"] == {}
    assert first.content[2]["id"] != first.content[3]["id"]
    assert first.stop_reason == "tool_use"
    assert first.usage == Usage(input_tokens=1200, output_tokens=30)
    second = await answer(model)
    assert text_of(second.content) == "Done."
    assert second.stop_reason == "refusal"
    assert second.usage.input_tokens > 0


async def test_an_exhausted_script_is_an_error_that_says_so(write: Write):
    path = write('[[turn]]\ntext = "only"\n')
    model = PracticeModel(FakeClock(), script=read_script(path))
    await answer(model)
    for _ in range(2):
        with pytest.raises(ProviderError) as failed:
            await answer(model)
        assert failed.value.error_class == "unknown", "no repair of the request would help"
        assert "run out of turns" in failed.value.message
        assert str(path) in failed.value.message
        assert not failed.value.retryable


async def test_delays_are_on_the_clock(write: Write):
    clock = FakeClock()
    path = write('[[turn]]\ntext = "one two three"\ndelay_s = 2.5\n')
    model = PracticeModel(clock, script=read_script(path), delay_s=0.1)
    await answer(model)
    assert clock.slept == [2.5, 0.1, 0.1, 0.1]


async def test_a_long_text_is_not_cut(write: Write):
    path = write(f'[[turn]]\ntext = "{"0123456789abcdef " * 5000}"\n')
    found = await answer(PracticeModel(FakeClock(), script=read_script(path)))
    assert len(text_of(found.content)) == 17 * 5000
    assert found.stop_reason == "end_turn"


async def test_faults_take_an_attempt_each_and_then_the_turn_comes(write: Write):
    path = write("""
        [[turn]]
        text = "All of the answer."
        faults = [{status = 429, retry_after = 3}, {cut_after = 7}, {eof_after = 0}]
        [[turn]]
        text = "next"
        """)
    model = PracticeModel(FakeClock(), script=read_script(path))
    seen: list[tuple[str, str]] = []
    for _ in range(3):
        text = ""
        try:
            async for part in model.stream(request()):
                assert isinstance(part, AttemptStarted | TextDelta)
                text += part.text if isinstance(part, TextDelta) else ""
        except ProviderError as error:
            seen.append((error.error_class, text))
    assert seen == [("rate_limit", ""), ("stream_broken", "All of "), ("stream_broken", "")]
    assert text_of((await answer(model)).content) == "All of the answer."
    assert text_of((await answer(model)).content) == "next"


async def test_an_interrupted_turn_counts_as_played_and_an_interrupted_fault_does_not(write: Write):
    path = write("""
        [[turn]]
        text = "first of all"
        faults = [{stall_s = 60, after = 5}]
        [[turn]]
        text = "second"
        """)
    model = PracticeModel(FakeClock(), script=read_script(path))
    for _ in range(2):
        stream = model.stream(request())
        await anext(stream)
        await stream.aclose()
    assert text_of((await answer(model)).content) == "second"


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("[[turn]]\ntext = 5\n", ["turn 1, text", "`str`"]),
        ('[[turn]]\n[[turn]]\ntxet = "x"\n', ["turn 2", "txet"]),
        ("[[turn]]\ntools = [{input = {}}]\n", ["turn 1, tools[0]", "name"]),
        ('[[turn]]\ntools = [{name = "x", input = 3}]\n', ["turn 1, tools[0].input"]),
        ('[[turn]]\ntools = [{name = ""}]\n', ["turn 1, tools[0].name"]),
        ("[[turn]]\ndelay_s = -1\n", ["turn 1, delay_s"]),
        ("[[turn]]\nusage = {tokens = 1}\n", ["turn 1, usage", "tokens"]),
        ("[[turn]]\n[[turn]]\nfaults = [{status = 200}]\n", ["turn 2, faults[0]", "html"]),
        ("[[turn]]\nfaults = [{}]\n", ["turn 1, faults[0]", "exactly one"]),
        ("[[turn]]\nfaults = [{status = 429, overflow = true}]\n", ["faults[0]", "exactly one"]),
        ("[[turn]]\nfaults = [{stall_s = 1, retry_after = 1}]\n", ["faults[0]", "retry_after"]),
        ("[turn]\ntext = 'x'\n", ["turn"]),
        ("[[turns]]\ntext = 'x'\n", ["turns", "unknown"]),
        ("", ["no turn"]),
        ("not toml", ["not a TOML file"]),
    ],
)
def test_a_broken_script_names_file_turn_and_key(write: Write, source: str, where: list[str]):
    path = write(source)
    with pytest.raises(UsageError) as failed:
        read_script(path)
    for part in [str(path), *where]:
        assert part in str(failed.value)


def test_a_script_that_cannot_be_read_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_script(tmp_path / "gone.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(UsageError, match="not a TOML file"):
        read_script(tmp_path / "binary.toml")


async def test_dates_in_tool_inputs_become_text(write: Write):
    path = write('[[turn]]\ntools = [{name = "x", input = {day = 2026-11-21}}]\n')
    found = await answer(PracticeModel(FakeClock(), script=read_script(path)))
    assert found.content[0]["input"] == {"day": "2026-11-21"}
