"""The loop breaker: a model that makes the same call and gets the same result, again and again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from tui.core.messages import Block, blocks_of, text_of
from tui.session.records import Record

MOST = 5
"""So many equal pairs in a row end the turn (decision 29)."""

_WAITS = frozenset({"command_status"})
_SECONDS = re.compile(r" · \d+\.\d s(?=\])")


@dataclass(slots=True)
class Repeats:
    """Counts, over the answers of one turn, in how many in a row a (call, result) pair came.

    Looking after a running command does not count: that is how one waits.
    """

    _times: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def see(self, calls: Sequence[Block], records: Iterable[Record]) -> Block | None:
        """Count the calls of an answer; `records` hold their results. The call that is too much."""
        counted = [call for call in calls if call.get("name") not in _WAITS]
        if not counted:
            return None
        results = {str(r.data.get("call_id")): r for r in records if r.type == "tool_result"}
        now: dict[bytes, int] = {}
        found: Block | None = None
        for call in counted:
            pair = _pair(call, results.get(str(call.get("id"))))
            now[pair] = self._times.get(pair, 0) + 1
            if now[pair] >= MOST:
                found = call
        self._times = now
        return found


def _pair(call: Block, result: Record | None) -> bytes:
    """What makes two calls with their results the same; not their ids, nor how long they took."""
    said: object = None
    if result is not None:
        id_ = str(call.get("id"))
        text = text_of(blocks_of(result.data.get("content"))).replace(id_, "")
        said = [result.data.get("is_error"), _SECONDS.sub("", text)]
    value = [call.get("name"), call.get("input"), said]
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()
