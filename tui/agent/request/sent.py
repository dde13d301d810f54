"""The requests sent so far, from the record: the last to each model, what extends it, and what the
server does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from tui.agent import answer_reports
from tui.agent.agent_context import AgentContext
from tui.context.overrides import content_of
from tui.context.record_index import RecordIndex
from tui.context.request_assembly import Mark
from tui.context.request_trail import (
    Candidate,
    Comparison,
    RequestPrefixes,
    RequestTrail,
    Sent,
    has_thinking,
)
from tui.core.config import Prune, model_of
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.provider.base import Completed, ModelInfo, Request
from tui.session.records import BESIDE, Record, paid_by
from tui.session.request_numbers import REQUEST

if TYPE_CHECKING:
    from tui.context.cached_prefixes import CachedPrefixes


class SentRequests:
    """The requests of one agent to its server.

    `hashes` are of those that were sent last, by their models.
    """

    def __init__(self, ctx: AgentContext) -> None:
        self.hashes: dict[str, str] = {}
        self._ctx = ctx
        self._trails: dict[str, RequestTrail] = {}
        self._requests, self._answers = RecordIndex({REQUEST}), RecordIndex({"assistant"})
        self._beside = RecordIndex(BESIDE)
        self._cached: dict[str, tuple[object, CachedPrefixes]] = {}

    def supposed(self, ctx: AgentContext) -> SentRequests:
        """The same for a record that goes on in another way, without anything more that is sent."""
        other: SentRequests = copy(self)
        other._ctx = ctx
        other._trails = {model: trail.supposed() for model, trail in self._trails.items()}
        other._requests, other._answers = self._requests.copy(), self._answers.copy()
        other._beside = self._beside.copy()
        return other

    def all(self) -> Sequence[Record]:
        """The records of all of them, to any model."""
        return self._requests.of(self._ctx.records)

    def last(self, model: ModelInfo) -> Record | None:
        """The record of the request that was sent last to a model."""
        return next(self._newest(self._requests, model.id), None)

    def compare(
        self, made: Request, last: Record | None, checks: Callable[[str], bool]
    ) -> tuple[Comparison, Candidate]:
        """Compare a request with `last`, the last to the same model; also returns the argument for
        `keep`.

        `checks` says whose thinking is refused where it does not stand as it did.
        """
        trail = self._trails.setdefault(made.model, RequestTrail())
        return trail.compare(made, last, self._ctx.records, checks)

    def keep(self, model: ModelInfo, found: Comparison, candidate: Candidate) -> None:
        """Take a request as sent."""
        self._trails[model.id].keep(candidate)
        self.hashes[model.id] = found.sent.bound

    def prefixes(
        self, made: Request, marks: Sequence[Mark], candidate: Candidate
    ) -> RequestPrefixes:
        """The beginnings of a request that was compared, and not yet kept."""
        return RequestPrefixes(made, marks, self._trails[made.model], candidate)

    def cached(
        self, model: ModelInfo, server: str | None = None, profile: str | None = None
    ) -> CachedPrefixes:
        """Work out, once after each answer, what a server keeps of the requests to a model that a
        profile paid; None are those in use."""
        from tui.context.cached_prefixes import CachedPrefixes  # noqa: PLC0415 - on demand

        ctx, records = self._ctx, self._ctx.records
        indexes = self._requests, self._answers, self._beside
        last = [r.id for index in indexes for r in index.of(records)[-1:]]
        server = ctx.link.at(model.id).host if server is None else server
        profile = paid_by(model.id, ctx.config.profile) if profile is None else profile
        key = last, server, profile, ctx.ledger.ratio, model.cached_from
        known = self._cached.get(model.id)
        if known is None or known[0] != key:
            every = [*ctx.session.elsewhere, *records]
            found = CachedPrefixes.of(
                every,
                model_of(model.id),
                server,
                profile,
                ratio=ctx.ledger.ratio,
                cached_from=model.cached_from,
            )
            known = self._cached[model.id] = key, found
        return known[1]

    def goes_back(self, made: Request, model: ModelInfo) -> bool:
        """True if a request extends one that was sent before the last."""
        trail = RequestTrail()
        records = self._ctx.records
        return any(
            trail.compare(made, record, records)[0].extends
            for record in reversed(self._requests.of(records))
            if record.data.get("model") == model.id and Sent.of(record)
        )

    def last_answer(self, model: ModelInfo) -> str | None:
        """The server's id of the answer to the last request to a model."""
        answer = next(self._newest(self._answers, model.id), None)
        return answer.data.get("message_id") if answer else None

    def answered(self, model: ModelInfo) -> bool:
        """True if any request to a model was answered: what it was refused is in no cache."""
        return next(self._newest(self._answers, model.id), None) is not None

    def reports(self, answer: Completed, model: str) -> list[Fact]:
        """The server's report on the request that it answered; the answer is recorded."""
        found: list[Fact] = []
        sent = [*islice(self._newest(self._requests, model), 2)]
        if sent:
            answers = [*islice(self._newest(self._answers, model), 2)]
            last = Usage.from_json(answers[1].data.get("usage")) if answers[1:] else None
            before = sent[1] if sent[1:] else None
            found.append(answer_reports.extended(sent[0], before, last, answer))
        dropped = answer_reports.dropped(answer)
        return [*found, dropped] if dropped else found

    def _newest(self, index: RecordIndex, model: str) -> Iterator[Record]:
        """The records of an index that are of a model on this server, the newest first."""
        server = self._ctx.link.at(model).host
        for record in reversed(index.of(self._ctx.records)):
            data = record.data
            if data.get("model") == model and data.get("server") == server:
                yield record


@dataclass(slots=True)
class PruneRules:
    """Finds in the record of one agent how old results are pruned: `prune.when = "auto"` depends on
    what the server does, bind thinking, or cache."""

    ctx: AgentContext
    _answers: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}))
    _cached: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}, _is_cached))
    _signed: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}, _is_signed))

    def of(self, model: ModelInfo) -> Prune:
        """The rule in force for a model.

        Where a server neither binds thinking nor caches, a change costs nothing, and "auto" is
        "turns". As long as it has not answered it may do both.
        """
        rule = self.ctx.config.prune
        server = self.ctx.link.at(model.id)
        if rule.when != "auto" or server.first_party or model.binds:
            return rule
        indexes = self._cached, self._signed
        if any(self._any(index, server.host) for index in indexes):
            return rule
        if not self._any(self._answers, server.host):
            return rule
        return msgspec.structs.replace(rule, when="turns")

    def binds(self, model: ModelInfo) -> bool:
        """True if thinking is refused after something that was changed."""
        server = self.ctx.link.at(model.id)
        if model.binds or (server.first_party and model.source != "assumed"):
            return model.binds
        return self._any(self._signed, server.host)

    def _any(self, index: RecordIndex, server: str) -> bool:
        """True if an answer of an index is of a server."""
        answers = index.of(self.ctx.records)
        return any(answer.data.get("server", "") == server for answer in answers)


def _is_cached(answer: Record) -> bool:
    usage = Usage.from_json(answer.data.get("usage"))
    return bool(usage.cache_read_input_tokens or usage.cache_creation_input_tokens)


def _is_signed(answer: Record) -> bool:
    """True if it has thinking that a server will check again."""
    thinking = (block for block in content_of(answer) if has_thinking([block]))
    return any(block.get("signature") or block.get("data") for block in thinking)
