"""What the model will be sent of a session: the view, measured, made a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tui.agent.context_meter import Measuring
from tui.agent.directives import THINK_PROMPT
from tui.agent.events import Event
from tui.agent.parts import Parts
from tui.context import request_assembly as request
from tui.context.binding import BREAK, Binding
from tui.context.level_view import LevelViewer
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.core.messages import text_of
from tui.provider.base import ModelInfo, Request
from tui.session.records import Record
from tui.tools.base import Tool
from tui.tools.limits.clamp import Room

_BROKEN = Record(BREAK, "", None, "")
"""Stands for the break that sending a request would record."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a session fits a model: the `tokens` of its next request, and the `window`."""

    tokens: int
    window: int
    ok: bool


class Preparing:
    """Makes the requests of one agent. `model` is asked from the next one on.

    `most_output` is the most output that is asked for, None for as much as there is room;
    `asked` is the request of the turn that is under way.
    """

    def __init__(self, parts: Parts) -> None:
        guard = parts.config.guard
        self.model = parts.model
        self.most_output: int | None = None
        self.asked: Request | None = None
        self._parts = parts
        self._room = Room(guard.clamp_bytes, guard.clamp_lines)
        self._viewer = LevelViewer(self._room, parts.config.prune)
        self._binding = Binding()
        self._hashes: dict[str, str] = {}
        self._tools = [tool.schema() for tool in parts.tools.values()]
        self._layers = list(parts.layers) or [("prompt", text_of(parts.system))]
        self._think = ""
        self._learning: asyncio.Task[None] | None = None
        self._measuring = Measuring(
            parts.model,
            layers=self._layers,
            tools=self._tools,
            records=parts.session.records,
            threshold=parts.config.compaction.threshold,
            cache=parts.cache,
        )

    @property
    def ledger(self) -> Ledger:
        """The items of the next request."""
        return self._measuring.ledger

    def think(self, on: bool) -> None:
        """Ask for reasoning with every request, or no longer."""
        self._think = THINK_PROMPT if on else ""
        self._measuring.carry(self._think)

    def offer(self, tool: Tool[Any]) -> None:
        """Tell the model of one more tool, from the next request on."""
        self._tools = [*self._tools, tool.schema()]
        self._measuring.offer(self._tools, self._think)

    def exchange(self, gone: Collection[str], tools: Iterable[Tool[Any]]) -> None:
        """Tell the model of other tools from the next request on; `gone` are names."""
        kept = [tool for tool in self._tools if tool["name"] not in gone]
        self._tools = [*kept, *(tool.schema() for tool in tools)]
        self._measuring.offer(self._tools, self._think)

    def use(self, info: ModelInfo) -> None:
        """Ask another model from the next request on."""
        self.model = info
        self._measuring.use(info)
        self.close()

    def look(self, *, prompt_follows: bool = False) -> View:
        """The view of the record now; the ledger takes from it how each record stands."""
        seen = self._viewer.build(
            self._parts.session.records, model=self.model.id, prompt_follows=prompt_follows
        )
        self._measuring.look(seen)
        return seen

    def measured(self) -> list[Event]:
        """How full the context is, as events."""
        self.model, facts = self._measuring.facts(self.model)
        return facts

    def request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        seen = self.look(prompt_follows=prompt_follows)
        made = self._built(seen, self.model, prompt_follows=prompt_follows)
        if self._binding.check(made, self._parts.session.records):
            return made
        fresh = LevelViewer(self._room, self._parts.config.prune)
        records = [*self._parts.session.records, _BROKEN]
        seen = fresh.build(records, model=self.model.id, prompt_follows=prompt_follows)
        return self._built(seen, self.model, prompt_follows=prompt_follows)

    def ask(self) -> tuple[Request, bool]:
        """The request to send now, and whether it may be: not where thinking in it stands behind
        what it was not made for. Then a break has to be recorded first."""
        made = self.asked = self._built(self.look(), self.model)
        return made, self._note(made)

    def hash_of(self, model: str) -> str:
        """The hash of the request that was sent to a model last; "" where there was none."""
        return self._hashes.get(model, "")

    def adapt(self, asked: Request, model: ModelInfo) -> tuple[Request | None, bool]:
        """A request made for another model, and whether it may be sent: see `ask`.

        Its thinking is its own: that of others is left out. None where its window is too small.
        """
        if asked is not self.asked:  # a question beside the conversation: it has no history
            most = min(asked.max_tokens, model.max_output)
            return replace(asked, model=model.id, max_tokens=most), True
        if not self.fits(model).ok:
            return None, True
        records = self._parts.session.records
        fresh = LevelViewer(self._room, self._parts.config.prune)
        made = self._built(fresh.build(records, model=model.id), model)
        return made, self._note(made)

    def fits(self, model: ModelInfo) -> Fit:
        """Whether the session as it stands fits into the window of a model."""
        tokens = self._measuring.tokens_for(model.id)
        return Fit(tokens, model.window, tokens + 2 * request.MARGIN_TOKENS <= model.window)

    def know_window(self, tokens: int) -> None:
        """A server said how large the window is; it is that large at most."""
        if tokens < self.model.window:
            self.model = replace(self.model, window=tokens, source="server")

    def _note(self, made: Request) -> bool:
        """Keep the hash of a request that may be sent; False where thinking in it may not."""
        found = self._hashes[made.model] = self._binding.check(made, self._parts.session.records)
        return bool(found)

    def _built(self, seen: View, model: ModelInfo, *, prompt_follows: bool = False) -> Request:
        made = request.build(
            model=model,
            system=self._parts.system,
            messages=seen.messages,
            tools=self._tools,
            prompt_tokens=self._measuring.tokens_for(model.id),
            think=self._think,
            anchors=seen.anchors,
            prompt_follows=prompt_follows,
        )
        most = self.most_output
        return made if most is None else replace(made, max_tokens=min(most, made.max_tokens))

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        layers = [*self._layers, *([("think", self._think)] if self._think else [])]
        texts = {f"system:{name}": text for name, text in layers}
        schemas = {f"tool:{tool['name']}": json.dumps(tool, indent=2) for tool in self._tools}
        return texts | schemas

    def learn(self) -> None:
        """Ask the server for the model's window, once, while a request is under way."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(), name="model info")

    async def keep(self) -> None:
        """Keep what the answers taught, for the next session with this model."""
        await self._measuring.keep()

    def close(self) -> None:
        """Ask the server no more."""
        if self._learning is not None:
            self._learning.cancel()
            self._learning = None

    async def _learn(self) -> None:
        info = await self._parts.provider.model_info(self.model.id)
        if info.id == self.model.id:
            self.model = info
