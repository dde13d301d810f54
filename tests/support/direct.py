"""A conversation with the rules of the loopback server, without a connection and without the SDK.

It sends what stands in it, as it stands: a test changes what it likes between two requests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.server_api import MessagesApi
from tests.support.server_errors import Rejection
from tests.support.server_script import Json, Script

SONNET = "claude-sonnet-5-5"
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


def simple_script(**more: Any) -> Script:
    """Twenty answers of a thought and a text each, by models of today."""
    turns = [{"thinking": f"t{n}", "text": f"answer {n}"} for n in range(20)]
    return Script.of({"turns": turns, "catalogue": True, **more})


@dataclass
class Direct:
    """One growing conversation. `now` is the time of its next request, in seconds."""

    api: MessagesApi
    body: Json = field(default_factory=dict[str, Any])
    betas: Sequence[str] = ()
    key: str = "k"
    now: float = 0.0

    @classmethod
    def begun(cls, model: str = SONNET, **script: Any) -> Direct:
        """One in which the person said something, and a tool is at hand."""
        made = cls(MessagesApi(simple_script(**script)))
        system = [{"type": "text", "text": "You are a test."}]
        made.body = {"model": model, "max_tokens": 1000, "system": system, "tools": [LOOK]}
        made.body["messages"] = []
        made.say("hello")
        return made

    @property
    def messages(self) -> list[Json]:
        return self.body["messages"]

    @messages.setter
    def messages(self, messages: list[Json]) -> None:
        self.body["messages"] = messages

    def say(self, text: str = "again", **more: Any) -> None:
        """Something the person says."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text, **more}]})

    def state(self, *content: Json | str, **more: Any) -> None:
        """What the program says in the middle of a conversation."""
        blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
        self.messages.append({"role": "system", "content": blocks, **more})

    def post(self, **more: Any) -> Json | Rejection:
        """The answer to what stands here; nothing is added."""
        raw = json.dumps({**self.body, **more}).encode()
        reply = self.api.answer(raw, self._headers, self.now)
        return reply if isinstance(reply, Rejection) else reply.message

    def send(self, **more: Any) -> Json:
        """The answer, which then stands at the end."""
        answer = self.post(**more)
        assert not isinstance(answer, Rejection), answer
        self.messages.append({"role": "assistant", "content": answer["content"]})
        return answer

    def refused(self, **more: Any) -> Rejection:
        """A refusal."""
        answer = self.post(**more)
        assert isinstance(answer, Rejection), answer
        return answer

    def count(self, **more: Any) -> Json | Rejection:
        """What the server counts."""
        body = {name: value for name, value in self.body.items() if name != "max_tokens"}
        return self.api.count(json.dumps({**body, **more}).encode(), self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self.key, "anthropic-beta": ",".join(self.betas)}
