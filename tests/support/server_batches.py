"""Message batches of the loopback server: each of its requests plays a turn of the script.

What the API checks at once is refused at once: the shape of the list and the custom ids. What is
wrong with the parameters of one request is that request's result, as what a turn's fault says.
A batch ends after `batch_polls` descriptions of it; its results come in the reverse order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.support.server_catalogue import page
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_rules import parsed
from tests.support.server_script import Json, part
from tui.core.messages import list_of, object_of

REQUESTS_MAX: Final = 100_000
BYTES_MAX: Final = 256 * 1024**2
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_RESULTS: Final = ("succeeded", "errored", "canceled", "expired")
_NOT_IN_BATCHES: Final = ("stream", "fallbacks", "speed")


@dataclass(slots=True)
class Batch:
    """One batch: its results by custom id, and after how many descriptions it has ended."""

    id: str
    made: datetime
    results: dict[str, Json]
    polls: int

    @property
    def described(self) -> Json:
        ended = self.polls <= 0
        counts = dict.fromkeys(("processing", *_RESULTS), 0)
        for result in self.results.values():
            kind = result["type"] if ended else "processing"
            counts[kind if kind in counts else "errored"] += 1
        place = f"https://loopback/v1/messages/batches/{self.id}/results"
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": self.made.isoformat().replace("+00:00", "Z"),
            "expires_at": (self.made + timedelta(hours=24)).isoformat(),
            "ended_at": self.made.isoformat() if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": place if ended else None,
        }


@dataclass(slots=True)
class ServerBatches:
    """The batches of one server. `answer` is what it makes of the parameters of one request: the
    message, or why there is none. `strangers` are custom ids that its results have, too; `lost` are
    results that are not there."""

    answer: Callable[[bytes, Mapping[str, str]], Json | Rejection]
    made: list[Batch] = field(default_factory=list[Batch])
    polls: int = 1
    strangers: tuple[str, ...] = ()
    lost: int = 0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def create(self, raw: bytes, headers: Mapping[str, str]) -> Json | Rejection:
        if len(raw) > BYTES_MAX:
            return Rejection(413, "request_too_large", "Request exceeds the maximum size")
        body, problem = parsed(raw)
        if body is None:
            return invalid(f"The request body is not valid JSON: {problem}")
        if extra := body.keys() - {"requests"}:
            return invalid(f"{min(extra)}: {EXTRA}")
        items = [object_of(one) for one in list_of(body.get("requests"))]
        if not 1 <= len(items) <= REQUESTS_MAX:
            return invalid(f"requests: List should have 1 to {REQUESTS_MAX} items")
        for number, one in enumerate(items):
            if one.keys() != {"custom_id", "params"} or not isinstance(one["params"], dict):
                return invalid(f"requests.{number}: custom_id and params: Field required")
            if not _CUSTOM_ID.fullmatch(str(one["custom_id"])):
                return invalid(f"requests.{number}.custom_id: should match '{_CUSTOM_ID.pattern}'")
        ids = [str(one["custom_id"]) for one in items]
        if len(set(ids)) < len(ids):
            return invalid("requests: custom_id must be unique within a batch")
        results = {one["custom_id"]: self._result(one["params"], headers) for one in items}
        batch = Batch(f"msgbatch_{len(self.made) + 1:04}", self.now(), results, self.polls)
        self.made.append(batch)
        return batch.described

    def describe(self, id_: str) -> Json | Rejection:
        batch = self._find(id_)
        if batch is None:
            return _unknown(id_)
        batch.polls -= 1
        return batch.described

    def cancel(self, id_: str) -> Json | Rejection:
        """Ends a batch with the next description; only its first request was answered."""
        batch = self._find(id_)
        if batch is None:
            return _unknown(id_)
        if batch.polls <= 0:
            return invalid(f"{id_}: processing has ended")
        _first, *rest = batch.results
        batch.results |= {other: {"type": "canceled"} for other in rest}
        batch.polls = 1
        return batch.described | {"processing_status": "canceling"}

    def list(self, query: Mapping[str, str]) -> Json | Rejection:
        return page([batch.described for batch in reversed(self.made)], query)

    def results(self, id_: str) -> list[bytes] | Rejection:
        """The lines of the results."""
        batch = self._find(id_)
        if batch is None:
            return _unknown(id_)
        if batch.polls > 0:
            return invalid(f"{id_}: results are available once the batch has ended")
        found = dict([*reversed(batch.results.items())][self.lost :])
        found |= {stranger: {"type": "canceled"} for stranger in self.strangers}
        lines = [{"custom_id": id_, "result": result} for id_, result in found.items()]
        return [json.dumps(line).encode() + b"\n" for line in lines]

    def _result(self, params: Json, headers: Mapping[str, str]) -> Json:
        if named := next((name for name in _NOT_IN_BATCHES if name in params), ""):
            return _errored(invalid(f"{named}: not supported in batches"))
        if params.get("max_tokens") == 0:
            return _errored(invalid("max_tokens: 0 is not supported in batches"))
        said = self.answer(json.dumps(params).encode(), headers)
        if isinstance(said, Rejection):
            return _errored(said)
        if (kind := said.get("result")) is not None:
            return {"type": kind}
        usage = part(said, "usage") | {"service_tier": "batch"}
        return {"type": "succeeded", "message": said | {"usage": usage}}

    def _find(self, id_: str) -> Batch | None:
        return next((batch for batch in self.made if batch.id == id_), None)


def _errored(refusal: Rejection) -> Json:
    error = {"type": refusal.type, "message": refusal.message}
    return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}


def _unknown(id_: str) -> Rejection:
    return Rejection(404, "not_found_error", f"message batch: {id_}")
