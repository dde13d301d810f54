"""How records stand in what the model sees, changed by one more record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tui.agent.events import ContextChanged, Event
from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.context.overrides import SPEAKING, Overlay
from tui.core.errors import HoldfastError
from tui.session.session import Session


@dataclass(frozen=True, slots=True)
class Standing:
    """Masks, cuts and pins. `told`: the events go to the turn that runs, else they are returned."""

    session: Session
    recorder: Recorder
    preparing: Preparing

    async def overlay(self, changes: Sequence[Overlay], *, told: bool) -> Sequence[Event]:
        """Raises HoldfastError where a target is no record that the model sees."""
        return await self._change("overlay", [change.to_json() for change in changes], told)

    async def pin(self, pins: Mapping[str, bool], *, told: bool) -> Sequence[Event]:
        """Raises as `overlay` does."""
        changes = [{"target": target, "pinned": pinned} for target, pinned in pins.items()]
        return await self._change("pin", changes, told)

    async def _change(
        self, type_: str, changes: Sequence[dict[str, Any]], told: bool
    ) -> Sequence[Event]:
        known = {
            record.id: {"call_id": record.data.get("call_id")}
            if record.type == "tool_result"
            else {}
            for record in self.session.records
            if record.type in SPEAKING
        }
        if unknown := [change["target"] for change in changes if change["target"] not in known]:
            raise HoldfastError(f"There is nothing of the id {unknown[0]} in this session.")
        for change in changes:
            self.recorder.append(type_, **change)
        self.preparing.look()
        said = tuple(change | known[change["target"]] for change in changes)
        facts = (ContextChanged(said), *self.preparing.measured())
        if told:
            await self.recorder.show(*facts)
            return ()
        await self.recorder.sync()
        return facts
