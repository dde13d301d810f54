"""Builds the next request: the view of a session, as a request that extends the last.

Before a request is sent it is compared with the one before it to the same model. Where it does not
extend that, this is a break: recorded with its reason and price, and what was thought after what
changed is left out from there on (see `tui.context.breaks`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.request.break_cost import broken, spoken_weight
from tui.agent.request.break_reasons import BreakReason, first_changed, reason_of, with_pending
from tui.agent.request.form import RequestForms
from tui.agent.request.frame_state import FrameState
from tui.agent.request.image_limits import image_records, keep_to_limits
from tui.agent.request.prune_rule import PruneRules
from tui.agent.request.sent import SentRequests
from tui.agent.request.token_meter import TokenMeter
from tui.agent.server_features import ServerFeatures
from tui.context import effort as context_effort
from tui.context import request_assembly
from tui.context.breaks import BREAK, in_turn, turn_start
from tui.context.compaction_block import COMPACTION, follows, is_sent, tools_in, with_block
from tui.context.compaction_cut import Cut, find_cut
from tui.context.effort import field_of
from tui.context.frame import Frame
from tui.context.history import Rendering
from tui.context.interrupted_calls import open_calls
from tui.context.level_view import LevelViewer
from tui.context.notices import NoticeLifter
from tui.context.overrides import Stand, pending
from tui.context.prune import rule_to_json
from tui.context.record_index import RecordIndex
from tui.context.request_trail import Comparison, place_of
from tui.context.view import View
from tui.core.facts import ContextBroken, Fact, RequestMade
from tui.core.messages import string_of, text_block
from tui.provider.base import ModelInfo, Request
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate
from tui.tools.base import Tool

_LEAST_ANSWER = 2000
"""Tokens: with less room a question within the conversation is not asked."""
_SHORT_PROMPT = "."
PROMPT_TOKENS = estimate.MESSAGE_TOKENS + 1
"""The approximate cost."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request for a server's own summary of what comes before a cut, and the hashes of what was
    sent there and of the frame."""

    request: Request
    cut: Cut
    bound: str
    frame: str


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a session into a model: the `tokens` of its next request, and the `window`."""

    tokens: int
    window: int
    ok: bool


class RequestBuilder:
    """Makes the requests of one agent.

    `most_output` is the most output that is asked for, None for as much as there is room;
    `asked` is the request of the turn that is under way; `sent` are the ones before it; `forms` say
    what a model takes; `with_images` finds the records that have some; `meter` says how full the
    context is; `frame` is what every request begins with; `features` are what the server was found
    not to know; `rules` say how old results are pruned.
    """

    def __init__(self, ctx: AgentContext) -> None:
        self.most_output: int | None = None
        self.asked: Request | None = None
        self.features = ServerFeatures(ctx)
        self.frame = FrameState(ctx, self.features)
        self.rules = PruneRules(ctx)
        self.sent = SentRequests(ctx)
        self.with_images = image_records()
        self.forms = RequestForms(ctx, self.features, self.frame, self.sent)
        self._ctx = ctx
        self._lifters: dict[str, NoticeLifter] = {}
        self._compactions = RecordIndex({COMPACTION})
        self._framed: Frame | None = None
        self._seen: Sequence[Record] = ()
        self._viewer, self._viewed = (
            self._fresh_viewer(ctx.link.model),
            self._rendering(ctx.link.model),
        )
        self._marks: list[request_assembly.Mark] = []
        self._learning: asyncio.Task[None] | None = None
        self.meter = TokenMeter(ctx)
        self._count_fixed()
        ctx.ledger.resume(ctx.records)

    def think(self, on: bool, effort: str) -> None:
        """Ask for more thinking from the next request on, or no longer, and for a level of effort;
        "" for the configured one."""
        self.frame.think = on
        self.frame.effort = effort

    def effort_cost(
        self, level: str | None = None, *, think: bool | None = None
    ) -> ContextBroken | None:
        """Return the cost of another level, or of /think, with the next request; None for no
        cost."""
        model, frame = self._ctx.link.model, self.frame
        before = self.sent.last(model)
        if before is None:
            return None
        think = frame.think if think is None else think
        chosen = frame.effort or self._ctx.config.effort if level is None else level
        wanted = field_of(model, context_effort.level(model, chosen, think=think))
        shown = request_assembly.thinking_of(model, think=think, display=self.forms.display(model))
        same = self.forms.form(model).turn_effort or wanted == before.data.get("effort")
        same = same and bool(shown) == bool(before.data.get("thinking"))
        return None if same else self._keys_cost("effort", "person")

    @property
    def effort(self) -> str:
        """The level in force; "" where the model has none."""
        model = self._ctx.link.model
        held = self.forms.held(model)
        if held is None:
            return self.frame.level(model)
        return string_of(held.data.get("effort")) or model.effort

    def exchange(self, gone: Collection[str], tools: Iterable[Tool[Any]]) -> None:
        """Other tools of servers are there from the next request on; `gone` are names."""
        self.frame.exchange(gone, tools)
        self._count_fixed()

    def use(self, info: ModelInfo) -> None:
        """Ask another model from the next request on."""
        self._ctx.link.model = info
        self.meter.use(info)
        self.close()

    async def settle(self) -> None:
        """Record what the next request needs before it is built: its frame, and what changed."""
        if self._compactions.of(self._ctx.records):
            self.view()  # what a summary covers is not said any more
        model = self._ctx.link.model
        started = self.forms.effort(model) or model.effort
        await self.frame.settle(self.forms.form(model), started)
        self._count_fixed()

    def view(self, *, prompt_follows: bool = False) -> View:
        """The view of the record now; the ledger takes from it how each record stands."""
        model = self._ctx.link.model
        if self._viewed != self._rendering(model):
            self._viewer, self._viewed = self._fresh_viewer(model), self._rendering(model)
        view = self._viewer.build(self._ctx.records, model=model.id, prompt_follows=prompt_follows)
        self.meter.update(view)
        if not prompt_follows:
            self._seen = self._ctx.records[-1:]
        self._tell_frame(view)
        return view

    def _tell_frame(self, view: View) -> None:
        """Return the facts about a summary in force that the frame depends on."""
        summary, records = view.summary, self._ctx.records
        covered: Sequence[Record] = records[: summary.end] if summary else ()
        self.frame.summary = summary.record if summary else None
        self.frame.covered = covered[-1].id if covered else ""
        pins = summary is not None and follows(summary.record)
        self.frame.pins = [r for r in covered if r.id in view.pinned] if pins else ()
        form = self.forms.form(self._ctx.link.model)
        sent = summary is not None and is_sent(summary.record, self._ctx.link.server, form)
        self.frame.joined = tools_in(summary.record) if summary and sent else frozenset()

    def measured(self) -> list[Fact]:
        """Return the size of the context, as facts."""
        return self.meter.events()

    @property
    def takes_tools(self) -> bool:
        """True if tools may join at the end of the conversation."""
        return self.forms.form(self._ctx.link.model).tool_additions

    def reload_cost(self) -> ContextBroken:
        """Return the cost of a new frame with the next request."""
        return broken(self._ctx, BreakReason("reload", "person"), self._ctx.ledger.tokens)

    def request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        return self._next(prompt_follows=prompt_follows)[0]

    def _next(self, *, prompt_follows: bool) -> tuple[Request, View]:
        """The request that the record makes, with the break that it needs, and its view.

        No thinking in it comes after anything but what it was made for.
        """
        view, model = self.view(prompt_follows=prompt_follows), self._ctx.link.model
        made = self._built(view, model, prompt_follows=prompt_follows)
        found, _ = self.sent.compare(made, model, self.forms.checks(model))
        if found.misplaced is None:
            return made, view
        for why in (self._reason(view, model), BreakReason("unexplained", "program")):
            records = [*self._ctx.records, Record(BREAK, "", None, "", why.to_json())]
            view = self._fresh_viewer(model).build(
                records, model=model.id, prompt_follows=prompt_follows
            )
            made = self._built(view, model, prompt_follows=prompt_follows)
            found, _ = self.sent.compare(made, model, self.forms.checks(model))
            if found.misplaced is None:
                break
        return made, view

    def for_summary(
        self, *, keep: int, room: float, running: float, fill: bool, max_tokens: int
    ) -> SummaryRequest | None:
        """A request for the server's own summary of the beginning (see `find_cut`).

        None where the server makes none, where nothing was sent yet or its frame cannot be
        replayed, where a call waits, or where there is nothing to cut off, or no room for the
        summary.
        """
        model, records = self._ctx.link.model, self._ctx.records
        offered = model.compacts and self.forms.form(model).compaction_blocks
        if not offered or not self._goes_on(model):
            return None
        made, view = self._next(prompt_follows=True)
        start = view.summary.end if view.summary else 0
        cut = find_cut(
            records, made.messages, start, keep=keep, room=room, running=running, fill=fill
        )
        if cut is None:
            return None
        ratio = self._ctx.ledger.ratio
        behind = self.meter.tokens_for(model.id) - round(cut.weight * ratio)
        free = model.window - behind - request_assembly.MARGIN_TOKENS
        most = min(max_tokens, model.max_output, free)
        if most < min(max_tokens, _LEAST_ANSWER):
            return None
        before = self._built(view, model, upto=cut.messages)
        bound, frame = place_of(before, records)
        request = replace(before, max_tokens=most, compaction={"type": "summarize"})
        return SummaryRequest(request, cut, bound, frame)

    def refuse_blocks(self, why: str) -> None:
        """The server does not take compaction blocks of this model; nor is it asked for one."""
        if self.forms.form(self._ctx.link.model).compaction_blocks:
            self.features.note("compaction_blocks", self._ctx.link.model.id, why)

    def with_question(self, question: str, max_tokens: int) -> Request | None:
        """The conversation as it was sent, with a question of the program's own at its end.

        None where nothing was sent yet or its frame cannot be replayed, where a call waits for its
        result, or where the answer would not fit into the window. It is no part of the
        conversation: nothing is recorded.
        """
        model = self._ctx.link.model
        if not self._goes_on(model):
            return None
        room = model.window - self.meter.tokens_for(model.id) - request_assembly.MARGIN_TOKENS
        most = min(max_tokens, model.max_output, room)
        if most < min(max_tokens, _LEAST_ANSWER):
            return None
        request = self.request(prompt_follows=True)
        return replace(_with_prompt(request, question), max_tokens=most)

    def for_count(self) -> Request | None:
        """The next request with a short prompt (`PROMPT_TOKENS`), for the server to count.

        None where that would show the server what it was not sent before: another server's
        conversation, prompts and results that no request has carried yet, or a frame instead of
        one that cannot be replayed. No prompt of the person's stands for that. None, too, where a
        call waits for its result.
        """
        records = self._ctx.records
        carried = {REQUEST, "user", "tool_result"}
        last = next((record for record in reversed(records) if record.type in carried), None)
        if last is None or last.type != REQUEST or last.data.get("server") != self._ctx.link.server:
            return None
        if not self.frame.replays or open_calls(records):
            return None
        return _with_prompt(self.request(prompt_follows=True), _SHORT_PROMPT)

    def _goes_on(self, model: ModelInfo) -> bool:
        """True if a question of the program's own would extend the last request to the model."""
        sent = self.sent.last(model) is not None
        return sent and self.frame.replays and not open_calls(self._ctx.records)

    def ask(self, view: View) -> tuple[Request, View]:
        """The request to send of a view, and the view that it is made of; both are recorded.

        What was recorded since the view was made is in it too: it comes before the request.
        """
        if self._ctx.records[-1:] != self._seen:
            view = self.view()
        made, view = self._checked(view, self._ctx.link.model, self.view)
        self.asked = made
        return made, view

    def next_break(self, view: View) -> int | None:
        """Return the number of the first record at which the request of a view would change what
        was sent.

        None where it would not, where only a compaction did (its undoing restores what was), and
        where nothing was sent yet.
        """
        model, records = self._ctx.link.model, self._ctx.records
        last = self.sent.last(model)
        found, _ = self.sent.compare(self._built(view, model), model, self.forms.checks(model))
        if last is None or (found.extends and found.misplaced is None):
            return None
        why = reason_of(records, last)
        if not why.reason or why.cause or why.recorded:  # recorded: its thinking went before
            return None
        return first_changed(records, last)

    def thoughtless_from(self, place: int | None) -> int:
        """From which record on a break at `place` takes the thinking; None is no break."""
        records = self._ctx.records
        if place is None:
            return len(records)
        return 0 if in_turn(records) else turn_start(records, place)

    def adapt(self, asked: Request, model: ModelInfo) -> Request | None:
        """A request made for another model (`tui.provider.failover.Adapt`).

        None where its window is too small.
        """
        if asked.compaction is not None:  # another model's block is nothing to wait for
            return None
        if asked is not self.asked:  # a question beside the conversation: it has no history
            most = min(asked.max_tokens, model.max_output)
            return replace(asked, model=model.id, max_tokens=most)
        if not self.fits(model).ok:
            return None

        def view() -> View:
            return self._fresh_viewer(model).build(self._ctx.records, model=model.id)

        first = view()
        if self.leave_out_images(first, model):
            first = view()
        return self._checked(first, model, view)[0]

    def leave_out_images(self, view: View, model: ModelInfo) -> bool:
        """Record which images and documents the next request to a model does without. Whether there
        is one."""
        documents = "documents" not in self.features.off(model.id)
        return keep_to_limits(self._ctx, view, model, self.with_images, documents=documents)

    def fits(self, model: ModelInfo) -> Fit:
        """Say whether the session as it stands fits into the window of a model."""
        tokens = self.meter.tokens_for(model.id)
        needed = tokens + 2 * request_assembly.MARGIN_TOKENS
        return Fit(tokens, model.window, needed <= model.window)

    def know_window(self, tokens: int) -> None:
        """A server said how large the window is; it is that large at most."""
        if tokens < self._ctx.link.model.window:
            self._ctx.link.model = replace(self._ctx.link.model, window=tokens, source="server")

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        frame = self.frame.current
        texts = {f"system:{name}": text for name, text in frame.layers}
        schemas = {f"tool:{tool['name']}": json.dumps(tool, indent=2) for tool in frame.tools}
        return texts | schemas

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

    def _rendering(self, model: ModelInfo) -> tuple[Rendering, object, object]:
        """Return everything that a view depends on besides the record and the model's name."""
        ctx = self._ctx
        form, frame = self.forms.form(model), self.frame
        rendering = Rendering(
            ctx.link.server, form, ctx.link.first_party, frame.untrusted, frame.record
        )
        return rendering, frame.current.room, self.rules.of(model)

    def _fresh_viewer(self, model: ModelInfo) -> LevelViewer:
        rendering, *_ = self._rendering(model)
        return LevelViewer(self.frame.current.room, self.rules.of(model), rendering)

    def _count_fixed(self) -> None:
        """Count what every request carries now."""
        frame = self.frame.current
        if frame is not self._framed:
            self._framed = frame
            self._ctx.ledger.fixed(frame.layers, frame.tools)

    def _keys_cost(self, reason: str, by: str) -> ContextBroken:
        """Return the cost of a restart of the cache; thinking stays valid."""
        whole = broken(self._ctx, BreakReason(reason, by), self._ctx.ledger.tokens)
        return structs.replace(whole, thoughts=0)

    def _checked(
        self, view: View, model: ModelInfo, again: Callable[[], View]
    ) -> tuple[Request, View]:
        """A request that may be sent, recorded. A break that it needs is recorded before it."""
        made = self._built(view, model)
        found, keep = self.sent.compare(made, model, self.forms.checks(model))
        why: BreakReason | None = None
        if not found.extends or found.misplaced is not None or self._summarized(model, found):
            why = self._reason(view, model)
            if not why.reason:  # a compaction was undone
                back = self.sent.goes_back(made, model) and found.misplaced is None
                why = None if back else BreakReason("reload", "program")
            if why is not None and self._stays(why, found):
                why = replace(why, start=why.cause)
            if why is None:
                pass
            elif not why.recorded:
                why, made, found = self._with_pending(view, why, made, found, model)
                self._record_break(why, made, found)
            view = again()
            made = self._built(view, model)
            found, keep = self.sent.compare(made, model, self.forms.checks(model))
            if found.misplaced is not None:
                everything = BreakReason("unexplained", "program")
                self._record_break(everything, made, found)
                view = again()
                made = self._built(view, model)
                found, keep = self.sent.compare(made, model, self.forms.checks(model))
        masked = why is not None and why.reason in {"mask", "unmask", "prune"}
        masked = masked and self.rules.of(model).when != "turns"
        if masked and found.changed and found.changed > 0:  # what stands before it is in the cache
            made = self._built(view, model, held=found.changed - 1)
            found, keep = self.sent.compare(made, model, self.forms.checks(model))
        keep()
        if self._ctx.link.first_party and "diagnostics" not in self.features.off(model.id):
            previous = {"previous_message_id": self.sent.last_answer(model)}
            made = replace(made, diagnostics=previous)
        self._record_request(made, model, found, why)
        return made, view

    def _with_pending(
        self, view: View, why: BreakReason, made: Request, found: Comparison, model: ModelInfo
    ) -> tuple[BreakReason, Request, Comparison]:
        """A break with what waited for it: the reason, and the request as it will be then."""
        end = view.summary.end if view.summary else 0
        records = self._ctx.records
        ahead = {record.id for record in records[end:]}
        targets = [target for target in pending(records) if target in ahead]
        if not targets:
            return why, made, found
        why = with_pending(records, why, targets)
        then = [*records, Record(BREAK, "", None, "", why.to_json())]
        made = self._built(self._fresh_viewer(model).build(then, model=model.id), model)
        return why, made, self.sent.compare(made, model, self.forms.checks(model))[0]

    def _summarized(self, model: ModelInfo, found: Comparison) -> bool:
        """True if the first request to a model is the first to any after a summary.

        It breaks with what the others were sent: recorded later, that would take the thinking of
        this one's answer, too.
        """
        sent = self.sent.all()
        if not sent or self.sent.last(model) is not None:
            return False
        why = reason_of(self._ctx.records, sent[-1])
        return why.reason == "compaction" and not why.recorded and not self._stays(why, found)

    def _stays(self, why: BreakReason, found: Comparison) -> bool:
        """True if all thinking after a server's own summary is where it stood before it."""
        if found.misplaced is not None or not why.cause:
            return False
        return any(r.id == why.cause and follows(r) for r in reversed(self._ctx.records))

    def _reason(self, view: View, model: ModelInfo) -> BreakReason:
        """Return the reason why the request of a view does not extend the last to a model."""
        pruned = self._newly_pruned(view, model)
        return reason_of(self._ctx.records, self.sent.last(model), pruned)

    def _newly_pruned(self, view: View, model: ModelInfo) -> Collection[str]:
        """The records that the rule prunes in another way than in the last request to a model.

        What a later break covers is left out: one from a record on covers what follows that.
        """
        if self.rules.of(model).when != "turns":
            return ()
        records, last = self._ctx.records, self.sent.last(model)
        since = next((n for n, record in enumerate(records) if record is last), 0)
        breaks = [n for n in range(since, len(records)) if records[n].type == BREAK]
        places = {record.id: place for place, record in enumerate(records)}
        now, floor, found = _pruned(view), len(records), set[str]()
        for end in [*reversed(breaks), since]:
            before = _pruned(self._fresh_viewer(model).build(records[:end], model=model.id))
            changed = (id_ for id_ in before.keys() | now.keys() if before.get(id_) != now.get(id_))
            found |= {id_ for id_ in changed if places[id_] < floor}
            start = records[end].data.get("from")
            if end in breaks and not isinstance(start, str):
                break
            now, floor = before, min(floor, places.get(str(start), floor))
        return found

    def _record_break(self, why: BreakReason, made: Request, found: Comparison) -> None:
        """Record a break and say what it costs."""
        ctx = self._ctx
        changed = found.changed if found.changed is not None else -1
        behind = made.messages[max(changed, 0) :]
        tokens = round(ctx.ledger.share * sum(spoken_weight(one["content"]) for one in behind))
        event = broken(ctx, why, tokens if changed >= 0 else ctx.ledger.tokens)
        if why.reason == "unexplained":
            log.error("a request changed what was sent before at message %s", changed)
        ctx.record(structs.replace(event, start=why.start, cause=why.cause, message=changed))

    def _record_request(
        self, made: Request, model: ModelInfo, found: Comparison, why: BreakReason | None
    ) -> None:
        ctx = self._ctx
        self.sent.hashes[made.model] = found.sent.bound
        rendering, *_ = self._rendering(model)
        reason = why.reason if why else ""
        before = None if reason else self.sent.last(model)
        same = before is None or (
            before.data.get("effort") == made.effort
            and bool(before.data.get("thinking")) == bool(made.thinking)
        )
        if not same:
            reason = "effort"
            ctx.publish(self._keys_cost(reason, "person"))
        ctx.record(
            RequestMade(
                n=ctx.session.requests + 1,
                model=made.model,
                server=ctx.link.server,
                **found.sent.to_json(),
                max_tokens=made.max_tokens,
                thinking=made.thinking,
                effort=made.effort,
                marks=self._marks,
                form=list(astuple(rendering.form)),
                shared_thinking=rendering.shared_thinking,
                prune=rule_to_json(self.rules.of(model)),
                diagnostics=made.diagnostics,
                cache_life=self.forms.life(model),
                untrusted=sorted(rendering.untrusted),
                breaks=reason,
            )
        )

    def _built(
        self,
        view: View,
        model: ModelInfo,
        *,
        prompt_follows: bool = False,
        upto: int | None = None,
        held: int | None = None,
    ) -> Request:
        """The request of a view, or of its first `upto` messages; `held` is the last message that
        it shares with the one before."""
        frame = self.frame.current
        messages = view.messages
        if self.forms.form(model).system_messages:
            messages = self._lifters.setdefault(model.id, NoticeLifter()).lifted(messages)
        messages = [*with_block(messages)][:upto]
        before = self.sent.last(model)
        marks = [(number, place) for number, place in (before.data["marks"] if before else ())]
        end = request_assembly.end_of_turn(messages, prompt_follows=prompt_follows)
        shared = [request_assembly.end_of(messages, held)] if held is not None else []
        made, self._marks = request_assembly.build(
            model=model,
            system=frame.system,
            messages=messages,
            tools=frame.tools,
            prompt_tokens=self.meter.tokens_for(model.id),
            think=self.frame.think,
            display=self.forms.display(model),
            effort=self.forms.effort(model),
            life=self.forms.life(model),
            marks=[*shared, *marks[:1], *([end] if end else []), *marks[1:]],
            prompt_follows=prompt_follows,
        )
        reported = "binding_reports" not in self.features.off(model.id)
        if (waiting := self.forms.held(model)) is not None:
            made = replace(made, thinking=waiting.data.get("thinking"))
        made = replace(
            made, binding_reports=self._ctx.link.first_party and model.binds and reported
        )
        most = self.most_output
        return made if most is None else replace(made, max_tokens=min(most, made.max_tokens))

    async def _learn(self) -> None:
        info = await self._ctx.link.provider.model_info(self._ctx.link.model.id)
        if info.id == self._ctx.link.model.id:
            self._ctx.link.model = info


def _with_prompt(request: Request, text: str) -> Request:
    """A request that ends with this text of the person's side."""
    messages, asked = [*request.messages], text_block(text)
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": [*messages[-1]["content"], asked]}
    else:
        messages.append({"role": "user", "content": [asked]})
    return replace(request, messages=messages)


def _pruned(view: View) -> dict[str, Stand]:
    """Return the states of the pruned records of a view, by id."""
    return {id_: stand for id_, stand in view.stands.items() if stand.state == "pruned"}
