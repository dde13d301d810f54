"""The state that the requests of one agent share, and what is handed from station to station."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.request.frame_state import FrameState
from tui.agent.request.image_limits import image_records
from tui.agent.request.sent import PruneRules, SentRequests
from tui.agent.request.token_meter import TokenMeter
from tui.agent.server_features import ServerFeatures
from tui.context.breaks import BREAK
from tui.context.compaction_block import COMPACTION
from tui.context.frame import Frame
from tui.context.history import Rendering
from tui.context.level_view import LevelViewer
from tui.context.notices import Form, NoticeLifter
from tui.context.record_index import RecordIndex
from tui.context.request_assembly import MARGIN_TOKENS, Mark, MarkLife
from tui.context.request_trail import Candidate, Comparison
from tui.context.view import View
from tui.core.config import Prune
from tui.core.dataclass import dataclass, replace
from tui.core.errors import ProviderError
from tui.provider.base import ModelInfo, Request
from tui.provider.prices import CacheLife
from tui.session.records import Record
from tui.tools.base import Tool


@dataclass(frozen=True, slots=True)
class Target:
    """The model that a request is for, and what its requests may hold as the record is now: looked
    up once, until something is recorded (`tui.agent.request.form`)."""

    model: ModelInfo
    off: frozenset[str]
    """The features that its server turned out to lack."""
    form: Form
    frame: Frame
    life: CacheLife
    display: str
    """The form in which thinking comes, where the server leaves the choice."""
    prune: Prune
    rendering: Rendering
    last: Record | None
    """The request that was sent to it last."""
    held: Record | None
    """The same, if its effort holds on because another one waits for a break."""
    effort: str | None
    """The level that a request itself asks for, None for the model's own."""

    @property
    def view_key(self) -> tuple[object, ...]:
        """All that a view depends on besides the record and the model's name."""
        return self.rendering, self.frame.room, self.prune

    @property
    def mark_life(self) -> MarkLife:
        """The life of its cache marks; none where the server takes no marks."""
        return "none" if "cache_marks" in self.off else self.life

    def viewer(self) -> LevelViewer:
        """Make a viewer that has seen nothing yet."""
        return LevelViewer(self.frame.room, self.prune, self.rendering)


@dataclass(frozen=True, slots=True)
class Built:
    """A request with its cache marks, compared with the last one to the same model."""

    request: Request
    marks: Sequence[Mark]
    found: Comparison
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Prepared:
    """The next request on its way: each station adds what it makes, and no other makes it again."""

    target: Target
    view: View
    """With what is due in it."""
    seen: Sequence[Record]
    """The last record that the view was made of, if any."""
    built: Built | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a session into a model: the `tokens` of its next request, and the `window`."""

    tokens: int
    window: int
    ok: bool


class RequestState:
    """The state that the requests of one agent share.

    `most_output` is the most output that is asked for, None for as much as there is room; `asked`
    is the request of the turn that is under way; `sent` are the ones before it; `frame` is what
    every request begins with; `features` are what the server was found not to know; `rules` say how
    old results are pruned; `meter` says how full the context is; `viewer` makes the views, by
    `view_key`.
    """

    def __init__(self, ctx: AgentContext) -> None:
        self.ctx = ctx
        self.most_output: int | None = None
        self.asked: Request | None = None
        self.features = ServerFeatures(ctx)
        self.frame = FrameState(ctx, self.features)
        self.rules = PruneRules(ctx)
        self.sent = SentRequests(ctx)
        self.choices = RecordIndex({"directive", BREAK})
        self.with_images = image_records()
        self.compactions = RecordIndex({COMPACTION})
        self.lifters: dict[str, NoticeLifter] = {}
        self.viewer: LevelViewer | None = None
        self.view_key: tuple[object, ...] = ()
        self.meter = TokenMeter(ctx)
        self._framed: Frame | None = None
        self._learning: asyncio.Task[None] | None = None
        self.count_fixed(self.frame.current)
        ctx.ledger.resume(ctx.records)
        ctx.link.model = self.features.limited(ctx.link.model)

    def exchange(self, gone: Collection[str], tools: Iterable[Tool[Any]]) -> None:
        """Other tools of servers are there from the next request on; `gone` are names."""
        self.frame.exchange(gone, tools)
        self.count_fixed(self.frame.current)

    def count_fixed(self, frame: Frame) -> None:
        """Count what every request carries: a frame in force."""
        if frame is not self._framed:
            self._framed = frame
            self.ctx.ledger.fixed(frame.layers, frame.tools)

    def use(self, info: ModelInfo) -> None:
        """Ask another model from the next request on."""
        self.ctx.link.model = self.features.limited(info)
        self.meter.use(info)
        self.close()

    def fits(self, model: ModelInfo) -> Fit:
        """Say whether the session as it stands fits into the window of a model."""
        tokens = self.meter.tokens_for(model.id)
        return Fit(tokens, model.window, tokens + 2 * MARGIN_TOKENS <= model.window)

    def know_window(self, tokens: int) -> None:
        """A server said how large the window is; it is that large at most."""
        if tokens < self.ctx.link.model.window:
            self.ctx.link.model = replace(self.ctx.link.model, window=tokens, source="server")

    def shorten_answers(self, error: ProviderError, sent: Request) -> bool:
        """Ask for shorter answers where a server refused one of that length; False where it did
        not, or where nothing shorter is left."""
        if not self.features.shorten(error, sent):
            return False
        self.ctx.link.model = self.features.limited(self.ctx.link.model)
        return True

    def learn(self) -> None:
        """Ask the server for the model's window, once, while a request is under way."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(), name="model info")

    async def learned(self) -> None:
        """Wait for the answer of the server, which the provider bounds (5 s)."""
        if self._learning is not None:
            await asyncio.wait({self._learning})

    def close(self) -> None:
        """Ask the server no more."""
        if self._learning is not None:
            self._learning.cancel()
            self._learning = None

    async def _learn(self) -> None:
        info = await self.ctx.link.provider.model_info(self.ctx.link.model.id)
        if info.id == self.ctx.link.model.id:
            self.ctx.link.model = self.features.limited(info)
