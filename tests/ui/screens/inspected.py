"""A session with a real ledger and view behind it, for the context inspector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.context.sessions import MODEL, Told, answer, output, prompt
from tests.context.wild import call
from tests.support.clock import FakeClock
from tui.agent.request.break_cost import ChangePrice
from tui.agent.request.pruning import Waiting
from tui.context import request_assembly
from tui.context.overrides import pending
from tui.context.token_ledger import Ledger
from tui.context.view import View, Viewer
from tui.core import facts
from tui.core.facts import ContextBroken, ContextMeasured, Fact, Overlay
from tui.core.messages import text_block
from tui.provider.base import ModelInfo, Request
from tui.session.session import Session


class Inspected:
    """What the inspector asks of an agent, over a session in memory."""

    window = 200_000
    models = SimpleNamespace(window=window)
    full_outputs = Path("/w/.holdfast/tool-results")

    def __init__(self, *told: Told) -> None:
        self.session = Session.in_memory(Path("/w"), clock=FakeClock())
        for type_, data in told:
            self.session.append(type_, **data)
        self.stale = set[str]()
        """Records that show files as they are no longer."""
        self.ledger = Ledger(MODEL)
        self.ledger.fixed([("identity", "You are a test. " * 200)], [{"name": "read_file"}])
        self.ledger.resume(self.session.records)
        self._viewer = Viewer()
        self.view()

    def say(self, told: Told) -> None:
        """What a turn adds meanwhile."""
        self.ledger.add(self.session.append(told[0], **told[1]))

    @property
    def context(self) -> Inspected:
        return self

    @property
    def pending(self) -> Mapping[str, Overlay]:
        return pending(self.session.records)

    def measure(self) -> ContextMeasured:
        parts = {str(part): size for part, size in self.ledger.measure().parts.items()}
        return ContextMeasured(self.ledger.tokens, 0, self.ledger.tokens, self.window, parts)

    def waiting(self) -> Waiting:
        return Waiting()

    def view(self) -> View:
        seen = self._viewer.build(self.session.records, model=MODEL, prompt_follows=True)
        self.ledger.stand(seen.states, seen.stands, seen.pinned)
        return seen

    def fixed_texts(self) -> Mapping[str, str]:
        return {"system:identity": "You are a test."}

    def next_request(self, *, prompt_follows: bool = False) -> Request:
        request, _ = request_assembly.build(
            model=ModelInfo(MODEL, self.window, 8192, "server"),
            system=[text_block("You are a test.\nBe brief.")],
            messages=self.view().messages,
            tools=[{"name": "read_file"}],
            prompt_tokens=self.ledger.tokens,
        )
        return request

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Fact]:
        return self._change("overlay", [change.to_record() for change in changes])

    async def next_break(self) -> ContextBroken | None:
        return None  # nothing was sent

    async def price_of_changes(self, changes: Sequence[Overlay], saved: int) -> ChangePrice:
        return ChangePrice(saved, 41_000, 7, 0.0984, 88)

    async def outdated(self) -> set[str]:
        return self.stale

    async def show_difference(self, record: str) -> str:
        return "src/m0.py"

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Fact]:
        changes = [{"target": target, "pinned": pinned} for target, pinned in pins.items()]
        return self._change("pin", changes)

    def _change(self, type_: str, changes: Sequence[dict[str, Any]]) -> Sequence[Fact]:
        for change in changes:
            self.session.append(type_, **change)
        self.view()
        return (facts.ContextChanged(tuple(changes)),)

    def state_of(self, number: int) -> str:
        """How the record of a number stands."""
        return self.view().states[self.session.records[number].id]


def worked(copy: str | None = None) -> Inspected:
    """Eight turns of reading and running; `copy` is the file of one full copy."""
    told: list[Told] = []
    for turn in range(8):
        told.append(prompt(f"look at module {turn} [bold]now[/bold] 日本語"))
        id_ = f"t{turn}"
        if turn % 2:
            told += [
                answer("I'll run it.", call(id_, "run_command", {"command": f"pytest -q {turn}"})),
                output(id_, f"{turn} \x1b[31mred\x1b[0m\n" + "passed [link]\n" * 900 * turn),
            ]
        else:
            told += [
                answer("I'll read it.", call(id_, "read_file", {"path": f"src/m{turn}.py"})),
                output(id_, "def f(): ...\n" * 300 * (turn + 1), name="read_file"),
            ]
        told.append(answer("It does what it should."))
    if copy:
        receipt = {
            "stages": ["spill"], "bytes_total": 480_000, "bytes_shown": 3_100,
            "lines_total": 12_000, "lines_shown": 40, "kept": "ends", "path": copy, "sha256": "d",
        }  # fmt: skip
        told += [
            prompt("and build it"),
            answer(call("big", "run_command", {"command": "make"})),
            output("big", "Output too large (468.8 KB).", receipt=receipt),
            answer("It fails."),
        ]
    return Inspected(*told)
