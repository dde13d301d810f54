"""The requests sent so far, from the record: the last to each model, and what extends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from tui.agent import answer_reports
from tui.agent.agent_context import AgentContext
from tui.context.record_index import RecordIndex
from tui.context.request_trail import Comparison, RequestTrail, Sent
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.provider.base import Completed, ModelInfo, Request
from tui.session.records import Record
from tui.session.request_numbers import REQUEST


class SentRequests:
    """The requests of one agent to its server.

    `hashes` are of those that were sent last, by their models.
    """

    def __init__(self, ctx: AgentContext) -> None:
        self.hashes: dict[str, str] = {}
        self._ctx = ctx
        self._trails: dict[str, RequestTrail] = {}
        self._requests, self._answers = RecordIndex({REQUEST}), RecordIndex({"assistant"})

    def all(self) -> Sequence[Record]:
        """The records of all of them, to any model."""
        return self._requests.of(self._ctx.records)

    def last(self, model: ModelInfo) -> Record | None:
        """The record of the request that was sent last to a model."""
        return next(self._newest(self._requests, model.id), None)

    def compare(
        self, made: Request, model: ModelInfo, checks: Callable[[str], bool]
    ) -> tuple[Comparison, Callable[[], None]]:
        """A request beside the last to the same model; what is returned takes it as sent.

        `checks` says whose thinking is refused where it does not are as it did.
        """
        trail = self._trails.setdefault(model.id, RequestTrail())
        found, candidate = trail.compare(made, self.last(model), self._ctx.records, checks)
        return found, lambda: trail.keep(candidate)

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
        for record in reversed(index.of(self._ctx.records)):
            data = record.data
            if data.get("model") == model and data.get("server") == self._ctx.link.server:
                yield record
