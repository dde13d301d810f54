"""The faults of a model's server, where they may strike, and how a turn then ends.

The table is for every way of running the program: `cases()` are its cells, `script_of` the
practice script of a cell, `check_cell` what must be true of a session afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from tui.context import view
from tui.context.validate import check
from tui.core import facts
from tui.core.facts import Fact
from tui.core.messages import Usage, blocks_of, text_block, text_of, tool_calls
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Provider, Request, StreamPart
from tui.provider.practice.script import Fault, Script, ScriptedTurn, ToolUse
from tui.session.reader import read
from tui.session.session import Session

Place: TypeAlias = Literal["before the first byte", "mid text", "mid tool input", "after a tool"]
PLACES: Final[tuple[Place, ...]] = (
    "before the first byte",
    "mid text",
    "mid tool input",
    "after a tool",
)

FAULTS: Final[dict[str, tuple[Fault, str]]] = {
    "429": (Fault(status=429, retry_after=2), "done"),
    "429 for hours": (Fault(status=429, retry_after=7200), "done"),
    "529": (Fault(status=529), "done"),
    "500": (Fault(status=500), "done"),
    "cut": (Fault(cut_after=0), "done"),
    "eof": (Fault(eof_after=0), "done"),
    "stall": (Fault(stall_s=8), "done"),
    "slow": (Fault(slow_s=8), "done"),
    "badjson": (Fault(bad_json=True), "done"),
    "html": (Fault(status=502, html="Bad gateway"), "done"),
    "overflow": (Fault(overflow="until_smaller"), "done"),
    "413": (Fault(status=413), "done"),
    "400": (Fault(status=400), "invalid_request"),
    "auth": (Fault(status=401), "auth"),
}
"""Each fault, and how the turn ends: done, or the class of its error."""

PROMPT: Final = "Write the note, please."
TEXT: Final = "I will write the note now, as you asked."
COMMAND: Final = "echo ran >> ran.txt"
END: Final = "The note is written."


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix. `ends` is done, or the class of the error."""

    name: str
    place: Place
    ends: str

    def __str__(self) -> str:
        return f"{self.name} {self.place}"


_LONG: Final = "We talked about the garden, and about what is to be planted where. " * 40


def earlier(session: Session) -> None:
    """Record so much of a conversation that there is something to make smaller."""
    for number in range(6):
        text = f"{number}: {_LONG}"
        session.append("user", content=[text_block(text)], text=text)
        session.append("assistant", content=[text_block(_LONG)], model="practice", usage={})


def cases() -> list[Cell]:
    """All cells, the first place for every fault first."""
    return [Cell(name, place, ends) for place in PLACES for name, (_, ends) in FAULTS.items()]


def script_of(cell: Cell) -> Script:
    """A turn that runs one command, with the fault in its place."""
    call = ToolUse(name="run_command", input={"command": COMMAND})
    text = "" if cell.place == "mid tool input" else TEXT
    first, last = ScriptedTurn(text=text, tools=(call,)), ScriptedTurn(text=END)
    fault = _placed(FAULTS[cell.name][0], cell.place)
    if cell.place == "after a tool":
        last = msgspec.structs.replace(last, faults=(fault,))
    else:
        first = msgspec.structs.replace(first, faults=(fault,))
    return Script(turn=(first, last))


def _placed(fault: Fault, place: Place) -> Fault:
    chars = {"mid text": 20, "mid tool input": 12}.get(place, 0)
    for name in ("cut_after", "eof_after"):
        if getattr(fault, name) is not None:
            return msgspec.structs.replace(fault, **{name: chars})
    if fault.slow_s is not None or fault.bad_json or fault.html is not None:
        return fault
    return msgspec.structs.replace(fault, after=chars)


@dataclass(slots=True)
class WithSummaries:
    """A provider that answers questions beside the conversation itself; a script has no turn for
    them. `asked` counts them."""

    model: Provider
    asked: int = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        if request.tools:
            async with aclosing(self.model.stream(request)) as parts:
                async for part in parts:
                    yield part
            return
        self.asked += 1
        yield AttemptStarted(1, request.model)
        usage = Usage(input_tokens=10, output_tokens=5)
        yield Completed([text_block("They talked.")], request.model, "end_turn", usage)

    async def count_tokens(self, request: Request) -> int:
        return await self.model.count_tokens(request)

    async def load(self) -> None:
        await self.model.load()

    async def model_info(self, model: str) -> ModelInfo:
        return await self.model.model_info(model)

    async def aclose(self) -> None:
        await self.model.aclose()


def shown_text(seen: Sequence[Fact]) -> list[str]:
    """The answers as somebody sees them who takes what is void away again."""
    shown: list[str] = []
    streamed = ""
    for event in seen:
        match event:
            case facts.RequestSent():
                streamed = ""
            case facts.TextDelta(text):
                streamed += text
            case facts.AssistantMessage(text=text):
                assert streamed == text
                shown.append(text)
            case _:
                pass
    return shown


def check_cell(cell: Cell, path: Path, root: Path, seen: Sequence[Fact]) -> None:
    """What must be true after every cell, whatever ran it."""
    finished = [event for event in seen if isinstance(event, facts.TurnFinished)]
    errors = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert len(finished) == 1
    if cell.ends == "done":
        assert not errors, errors
        assert finished[0].outcome == "done"
    else:
        assert finished[0].outcome == "failed"
        assert [error.error_class for error in errors] == [cell.ends]

    ran = root / "ran.txt"
    times = len(ran.read_text().splitlines()) if ran.exists() else 0
    assert times == (1 if cell.ends == "done" or cell.place == "after a tool" else 0)

    loaded = read(path)
    assert loaded.findings == ()
    prompts = [r for r in loaded.branch if r.type == "user" and r.data.get("text") == PROMPT]
    assert len(prompts) == 1
    built = view.build(loaded.branch, model="practice")
    assert built.findings == ()
    assert check(built.messages) == []
    answers = [r for r in loaded.branch if r.type == "assistant" and r.id > prompts[0].id]
    texts = [text_of(blocks_of(r.data["content"])) for r in answers]
    assert shown_text(seen) == texts
    calls = [c for r in answers for c in tool_calls(blocks_of(r.data["content"]))]
    results = [r for r in loaded.branch if r.type == "tool_result" and r.id > prompts[0].id]
    assert sorted(str(c["id"]) for c in calls) == sorted(r.data["call_id"] for r in results)
