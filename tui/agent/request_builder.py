"""What the model will be sent of a session: the view, measured, made a request."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.events import ContextMeasured, Event, Notice
from tui.agent.prompts import THINK_PROMPT
from tui.context import request_assembly
from tui.context.binding import BREAK, Binding
from tui.context.history import same_model
from tui.context.level_view import LevelViewer
from tui.context.view import View
from tui.core.errors import StorageError
from tui.core.messages import text_of
from tui.provider.base import ModelInfo, Request
from tui.session.records import Record
from tui.tokens import estimate
from tui.tools.base import Tool
from tui.tools.limits.clamp import Room

log = logging.getLogger(__name__)

_BREAK = Record(BREAK, "", None, "")
"""Stands for the break that sending a request would record."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a session fits a model: the `tokens` of its next request, and the `window`."""

    tokens: int
    window: int
    ok: bool


class RequestBuilder:
    """Makes the requests of one agent.

    `most_output` is the most output that is asked for, None for as much as there is room;
    `asked` is the request of the turn that is under way; `hashes` are of the requests that were
    sent last, by their models; `meter` says how full the context is.
    """

    def __init__(self, ctx: AgentContext) -> None:
        guard = ctx.config.guard
        self.most_output: int | None = None
        self.asked: Request | None = None
        self._ctx = ctx
        self._room = Room(guard.clamp_bytes, guard.clamp_lines)
        self._viewer = self._fresh_viewer()
        self._binding = Binding()
        self.hashes: dict[str, str] = {}
        self._tools = [tool.schema() for tool in ctx.tools.values()]
        self._layers = list(ctx.layers) or [("prompt", text_of(ctx.system))]
        self._think = ""
        self._learning: asyncio.Task[None] | None = None
        self.meter = TokenMeter(ctx)
        self._count_fixed()
        ctx.ledger.resume(ctx.records)

    def think(self, on: bool) -> None:
        """Ask for reasoning with every request, or no longer."""
        self._think = THINK_PROMPT if on else ""
        self._count_fixed()

    def exchange(self, gone: Collection[str], tools: Iterable[Tool[Any]]) -> None:
        """Tell the model of other tools from the next request on; `gone` are names."""
        staying = [tool for tool in self._tools if tool["name"] not in gone]
        self._tools = [*staying, *(tool.schema() for tool in tools)]
        self._count_fixed()

    def use(self, info: ModelInfo) -> None:
        """Ask another model from the next request on."""
        self._ctx.model = info
        self.meter.use(info)
        self.close()

    def view(self, *, prompt_follows: bool = False) -> View:
        """The view of the record now; the ledger takes from it how each record stands."""
        view = self._viewer.build(
            self._ctx.records, model=self._ctx.model.id, prompt_follows=prompt_follows
        )
        self.meter.update(view)
        return view

    def measured(self) -> list[Event]:
        """How full the context is, as events."""
        return self.meter.events()

    def request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        view = self.view(prompt_follows=prompt_follows)
        made = self._built(view, self._ctx.model, prompt_follows=prompt_follows)
        if self._binding.check(made, self._ctx.records):
            return made
        return self._without_thinking(self._ctx.model, prompt_follows=prompt_follows)

    def ask(self, view: View) -> tuple[Request, View]:
        """The request to send of a view, and the view that it is made of.

        Where thinking in it stands behind what it was not made for, a break is recorded, which
        leaves that thinking out.
        """
        made = self.asked = self._built(view, self._ctx.model)
        if not self._note(made):
            self._ctx.recorder.append(BREAK, reason="changed", by="program")
            view = self.view()
            made = self.asked = self._built(view, self._ctx.model)
            self._note(made)
        return made, view

    def adapt(self, asked: Request, model: ModelInfo) -> Request | None:
        """A request made for another model (`tui.provider.failover.Adapt`).

        Its thinking is its own: that of others is left out. None where its window is too small.
        """
        if asked is not self.asked:  # a question beside the conversation: it has no history
            most = min(asked.max_tokens, model.max_output)
            return replace(asked, model=model.id, max_tokens=most)
        if not self.fits(model).ok:
            return None
        made = self._made_for(model)
        if not self._note(made):
            self._ctx.recorder.append(BREAK, reason="changed", by="program")
            made = self._made_for(model)
            self._note(made)
        return made

    def fits(self, model: ModelInfo) -> Fit:
        """Whether the session as it stands fits into the window of a model."""
        tokens = self.meter.tokens_for(model.id)
        needed = tokens + 2 * request_assembly.MARGIN_TOKENS
        return Fit(tokens, model.window, needed <= model.window)

    def know_window(self, tokens: int) -> None:
        """A server said how large the window is; it is that large at most."""
        if tokens < self._ctx.model.window:
            self._ctx.model = replace(self._ctx.model, window=tokens, source="server")

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        texts = {f"system:{name}": text for name, text in self._fixed_layers()}
        schemas = {f"tool:{tool['name']}": json.dumps(tool, indent=2) for tool in self._tools}
        return texts | schemas

    def learn(self) -> None:
        """Ask the server for the model's window, once, while a request is under way."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(), name="model info")

    def close(self) -> None:
        """Ask the server no more."""
        if self._learning is not None:
            self._learning.cancel()
            self._learning = None

    def _made_for(self, model: ModelInfo) -> Request:
        view = self._fresh_viewer().build(self._ctx.records, model=model.id)
        return self._built(view, model)

    def _fresh_viewer(self) -> LevelViewer:
        return LevelViewer(self._room, self._ctx.config.prune)

    def _fixed_layers(self) -> list[tuple[str, str]]:
        return [*self._layers, *([("think", self._think)] if self._think else [])]

    def _count_fixed(self) -> None:
        """Count what every request carries now."""
        self._ctx.ledger.fixed(self._fixed_layers(), self._tools)

    def _note(self, made: Request) -> bool:
        """Keep the hash of a request that may be sent; False where thinking in it may not."""
        found = self.hashes[made.model] = self._binding.check(made, self._ctx.records)
        return bool(found)

    def _without_thinking(self, model: ModelInfo, *, prompt_follows: bool = False) -> Request:
        """The request as it is behind a break."""
        records = [*self._ctx.records, _BREAK]
        view = self._fresh_viewer().build(records, model=model.id, prompt_follows=prompt_follows)
        return self._built(view, model, prompt_follows=prompt_follows)

    def _built(self, view: View, model: ModelInfo, *, prompt_follows: bool = False) -> Request:
        made = request_assembly.build(
            model=model,
            system=self._ctx.system,
            messages=view.messages,
            tools=self._tools,
            prompt_tokens=self.meter.tokens_for(model.id),
            think=self._think,
            anchors=view.anchors,
            prompt_follows=prompt_follows,
        )
        most = self.most_output
        return made if most is None else replace(made, max_tokens=min(most, made.max_tokens))

    async def _learn(self) -> None:
        info = await self._ctx.provider.model_info(self._ctx.model.id)
        if info.id == self._ctx.model.id:
            self._ctx.model = info


class TokenMeter:
    """How full the context is: feeds the ledger, and keeps the token ratio of the model asked."""

    def __init__(self, ctx: AgentContext) -> None:
        self._ctx = ctx
        self._saved_ratio = estimate.UNKNOWN
        self._updated = False
        self.use(ctx.model)

    def use(self, model: ModelInfo) -> None:
        """Reckon for a model, with the ratio that earlier sessions found."""
        self._saved_ratio = self._ratio(model.id) or estimate.UNKNOWN
        self._ctx.ledger.use(model.id, self._saved_ratio)

    def tokens_for(self, model: str) -> int:
        """The tokens of the next request to a model, by the ratio that earlier sessions found.

        Where they found none, those of the model that is asked now.
        """
        ledger = self._ctx.ledger
        other = None if same_model(model, ledger.model) else self._ratio(model)
        return ledger.under(other) if other else ledger.tokens

    def update(self, view: View) -> None:
        """Take from a view how each record stands.

        What a resumed session masked or cut was so before its last answer was measured.
        """
        self._ctx.ledger.stand(
            view.states,
            view.stands,
            view.pinned,
            summary=view.summary.record if view.summary else None,
            measured=not self._updated,
        )
        self._updated = True

    def events(self) -> list[Event]:
        """How full the context is, and before that a word where the window was wrong.

        The model of the agent has the right window then.
        """
        model, held = self._ctx.model, self._ctx.ledger.measure().measured
        self._ctx.model = wide_enough(model, held)
        now = self._measured()
        if self._ctx.model.window == model.window:
            return [now]
        text = (
            f"The context holds {held:,} tokens, more than the window of {model.window:,} that was "
            f"known. {self._ctx.model.window:,} is assumed from here."
        )
        return [Notice(text), now]

    async def save_ratio(self) -> None:
        """Keep the ratio for the next session with this model."""
        model, ratio = self._ctx.ledger.model, self._ctx.ledger.ratio
        if self._ctx.cache is None or ratio == self._saved_ratio:
            return
        self._saved_ratio = ratio
        try:
            await asyncio.to_thread(estimate.save_ratio, self._ctx.cache, model, ratio)
        except StorageError as error:
            log.warning("%s", error)

    def _ratio(self, model: str) -> float | None:
        return estimate.load_ratio(self._ctx.cache, model) if self._ctx.cache else None

    def _measured(self) -> ContextMeasured:
        ledger, model = self._ctx.ledger, self._ctx.model
        threshold = self._ctx.config.compaction.threshold
        now = ledger.measure()
        return ContextMeasured(
            now.tokens,
            now.measured,
            now.estimated,
            model.window,
            {str(part): size for part, size in now.parts.items()},
            model.source,
            reserve=request_assembly.output_room(model, now.tokens),
            drift=now.drift,
            forecast=ledger.forecast(threshold * model.window),
            saved=now.saved,
            threshold=threshold,
        )


def wide_enough(model: ModelInfo, held: int) -> ModelInfo:
    """The model with a window that holds what it has held already.

    Where more was measured than the window that was known, that was wrong: it is doubled until
    it fits, and assumed. A window that the person or the server named stays: more than that is an
    overflow that nobody told of.
    """
    if held <= model.window or model.source in {"config", "server"}:
        return model
    window = max(1, model.window)
    while window < held:
        window *= 2
    return replace(model, window=window, source="assumed")
