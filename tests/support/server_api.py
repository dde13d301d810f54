"""The decisions of the API, without a connection: what it refuses, answers, and charges.

`tests.support.server` puts them behind HTTP; what tries many requests may ask here directly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.server_batches import ServerBatches
from tests.support.server_binding import BINDING, Bindings, behavior_of
from tests.support.server_cache import CHARACTERS_PER_TOKEN, ServerCache, tokens_of
from tests.support.server_catalogue import described, listed, page
from tests.support.server_compaction import compaction_block
from tests.support.server_diagnostics import Diagnostics
from tests.support.server_errors import Rejection, invalid
from tests.support.server_gateway import without
from tests.support.server_model_rules import betas_of
from tests.support.server_models import MODELS
from tests.support.server_rules import malformed, prompt_tokens, refusals
from tests.support.server_script import Json, Script, message_of
from tests.support.server_tools import Toolbox
from tests.support.server_view import shown


class Reply(NamedTuple):
    """A turn to play, in answer to a body. `fault` comes in its place, or in its midst."""

    turn: Json
    number: int
    body: Json
    fault: Json

    @property
    def message(self) -> Json:
        return message_of(self.turn, self.number, self.body["model"])


class Exchange(NamedTuple):
    """A request that was priced, when it began, and its answer."""

    body: Json
    message: Json
    begun: float


@dataclass(slots=True)
class MessagesApi:
    """The state of one server: its script, its cache, and what it keeps for diagnostics.

    `priced` are the exchanges whose cost the cache adds up, in their order; `exchanges` are these
    and the server's own summaries.
    """

    script: Script
    cache: ServerCache = field(default_factory=ServerCache)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    priced: list[Exchange] = field(default_factory=list[Exchange])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    _summaries: int = 0
    batches: ServerBatches = field(init=False)

    def __post_init__(self) -> None:
        self.batches = ServerBatches(self._in_batch)

    def _in_batch(self, raw: bytes, headers: Mapping[str, str]) -> Json | Rejection:
        """What becomes of one request of a message batch."""
        made = self.answer(raw, headers, 0.0)
        if isinstance(made, Rejection):
            return made
        if "status" in made.fault:
            kind, text = made.fault.get("type", "api_error"), made.fault.get("message", "Error")
            return Rejection(made.fault["status"], kind, text)
        return {"result": made.turn["result"]} if "result" in made.turn else made.message

    def credentials(self, headers: Mapping[str, str]) -> Rejection | None:
        """What is wrong with the key or the version of a request."""
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = {key for key in (bearer, headers.get("x-api-key", "")) if key}
        if not given:
            return Rejection(401, "authentication_error", "x-api-key header is required")
        if self.script.keys is not None and not given & set(self.script.keys):
            return Rejection(401, "authentication_error", "invalid x-api-key")
        if "anthropic-version" not in headers:
            return invalid("anthropic-version: header is required")
        return None

    def model(self, name: str, betas: frozenset[str]) -> Json | Rejection:
        """What is known of one model."""
        facts = self.script.model(name)
        if facts is None:
            return Rejection(404, "not_found_error", f"model: {name}")
        return described(name, listed(name, betas) if self.script.catalogue else facts)

    def models(self, query: Mapping[str, str], betas: frozenset[str]) -> Json | Rejection:
        """A page of the list of models."""
        names = MODELS if self.script.catalogue else self.script.models or ()
        every = [self.model(name, betas) for name in names]
        return page([one for one in every if not isinstance(one, Rejection)], query)

    def count(self, raw: bytes, headers: Mapping[str, str]) -> Json | Rejection:
        """How many tokens a request has, if it would be taken as a message: as many as it would
        be charged for, where that is reckoned."""
        raw, headers = without(raw, headers, self.script.drops)
        body = malformed(raw, self.script, counted=True)
        if isinstance(body, Rejection):
            return body
        bindings = self._bindings(body, headers)
        for refusal in refusals(body, self.script, betas_of(headers), bindings):
            return refusal
        if self.script.priced:
            seen = shown(body, bindings.dropped if bindings else ())
            return {"input_tokens": tokens_of(seen)}
        return {"input_tokens": prompt_tokens(body)}

    def answer(self, raw: bytes, headers: Mapping[str, str], now: float) -> Reply | Rejection:
        """What comes of a request that begins at `now`, in seconds."""
        raw, headers = without(raw, headers, self.script.drops)
        betas = betas_of(headers)
        body = malformed(raw, self.script) if self.script.check else json.loads(raw)
        if isinstance(body, Rejection):
            return body
        bindings = self._bindings(body, headers)
        if self.script.check:
            for refusal in refusals(body, self.script, betas, bindings):
                return refusal
        if "compaction" in body:
            return self._compaction(body, bindings, now)
        turn, fault, number = self.script.next(body)
        if turn is None:
            return invalid(f"the script has {number} turns and no more")
        if fault:
            return Reply(turn, number, body, fault)
        if unknown := self._unknown_call(turn, number, body):
            return unknown
        reports: Json = {"diagnostics": self.diagnostics.of(body, betas, f"msg_{number:04}")}
        if bindings is not None and BINDING in betas:
            reports["input_transformations"] = bindings.transformations()
        if bindings is not None and self.script.binding:
            turn = bindings.sign(turn, number)
        if self.script.priced and body["model"] in MODELS:
            turn = turn | {"usage": self._charged(turn, body, bindings, now)}
            self.priced.append(Exchange(body, message_of(turn, number, body["model"]), now))
            self.exchanges.append(self.priced[-1])
        return Reply(turn | {"reports": reports}, number, body, {})

    def _bindings(self, body: Json, headers: Mapping[str, str]) -> Bindings | None:
        if body.get("model") not in MODELS:
            return None
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        key = headers.get("x-api-key", bearer)
        organization = self.script.organizations.get(key, "home")
        return Bindings(body, behavior_of(body, self.script), organization)

    def _unknown_call(self, turn: Json, number: int, body: Json) -> Rejection | None:
        """A call of a tool that is not there. It is the script's mistake."""
        if self.script.any_calls or not body.get("tools"):
            return None
        content = message_of(turn, number, body["model"])["content"]
        called = {block["name"] for block in content if block["type"] == "tool_use"}
        if unknown := called - Toolbox.at_end(body).available:
            return invalid(f"the script calls {min(unknown)!r}, which is no tool of the request")
        return None

    def _charged(self, turn: Json, body: Json, bindings: Bindings | None, now: float) -> Json:
        content = message_of(turn, 0, body["model"])["content"]
        thinking = sum(len(str(block.get("thinking", ""))) for block in content)
        usage = self._read(body, bindings, now, turn.get("delay_s", 0.0)) | {
            "output_tokens": len(json.dumps(content)) // CHARACTERS_PER_TOKEN,
            "output_tokens_details": {"thinking_tokens": thinking // CHARACTERS_PER_TOKEN},
        }
        self.cache.charge(body["model"], usage)
        return usage | turn.get("usage", {})

    def _read(self, body: Json, bindings: Bindings | None, now: float, delay: float = 0.0) -> Json:
        seen = shown(body, bindings.dropped if bindings else ())
        return self.cache.read(seen, now, delay)

    def _compaction(self, body: Json, bindings: Bindings | None, now: float) -> Reply | Rejection:
        """One block that stands for the conversation so far; its bill is that of an iteration."""
        self._summaries += 1
        planned = self.script.compactions.pop(0) if self.script.compactions else {}
        if "status" in planned:
            return Reply({}, self._summaries, body, planned)
        summary = planned.get("summary", self.script.summary)
        binds = bindings is not None and MODELS[body["model"]].binds
        place = bindings.messages if bindings and binds else "unbound"
        stop = planned.get("stop_reason", "compaction")
        blocks = [compaction_block(body, place, summary)] if stop == "compaction" else []
        output = {"output_tokens": len(summary) // CHARACTERS_PER_TOKEN}
        bill = self._read(body, bindings, now) | output | planned.get("usage", {})
        self.cache.charge(body["model"], bill)
        self.exchanges.append(Exchange(body, {"usage": bill, "content": blocks}, now))
        none = dict.fromkeys(bill.keys() - {"cache_creation"}, 0)
        turn: Json = {
            "blocks": blocks,
            "stop_reason": stop,
            "usage": none | {"iterations": [{"type": "compaction", **bill}]},
            "reports": {"id": f"msg_compaction_{self._summaries:04}"},
            "burst": True,
        }
        return Reply(turn, self._summaries, body, {})
