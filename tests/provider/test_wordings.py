"""What servers and gateways really said, replayed: `wordings/README.md` has the sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.provider.conversation import MODEL, a_request, user
from tests.support.clock import FakeClock
from tui.core.messages import Block, Message
from tui.provider.anthropic import convert
from tui.provider.anthropic.classify import RequestAttempt, from_answer
from tui.provider.base import Request

_FOLDER = Path(__file__).parent / "wordings"
WORDINGS: list[dict[str, Any]] = [
    json.loads(line) for line in (_FOLDER / "wordings.jsonl").read_text("utf-8").splitlines()
]
_AT = RequestAttempt("https://host", MODEL, FakeClock().now())
_MARKED: Block = {
    "type": "text",
    "text": "x",
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
}
_NOTICE: Message = {"role": "system", "content": [{"type": "text", "text": "It is Monday."}]}


def everything() -> Request:
    """A request with all that may be left out."""
    return a_request(
        user("hi"),
        _NOTICE,
        system=[_MARKED],
        thinking={"type": "adaptive", "display": "summarized"},
        effort="high",
        diagnostics={"previous_message_id": None},
        binding_reports=True,
    )


@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: f"{row['server']}: {row['source']}")
def test_each_wording_is_understood(row: dict[str, Any]) -> None:
    error = from_answer(row["status"], {}, row["body"], _AT)
    assert (error.error_class, error.retryable) == (row["error_class"], row["again"])
    assert error.hint
    assert row.get("text", "") in error.message
    assert (error.answer is not None) == (row["kind"] == "answer")
    if error.answer is not None:
        assert error.answer.tokens == row["limit"]
    if "sizes" in row:
        sizes = error.overflow
        assert sizes is not None
        assert [sizes.input_tokens, sizes.max_tokens, sizes.limit] == row["sizes"]
    images = error.images and [error.images.longest, list(error.images.paths)]
    assert images == row.get("images")
    named = convert.refused_feature(error.message, everything())
    if row.get("feature") == "*beta":
        assert named == "binding_reports"
    else:
        assert named == row.get("feature", "")


def test_there_are_many_and_each_has_its_source() -> None:
    assert len(WORDINGS) >= 60
    table = (_FOLDER / "README.md").read_text("utf-8")
    for number, row in enumerate(WORDINGS, 1):
        assert f"| {number} |" in table
        assert f"| {row['server']} | {row['source']} | {row['seen']} |" in table


@pytest.mark.parametrize("name", ["system", "messages", "tools", "model", "max_tokens"])
@pytest.mark.parametrize(
    "text", ["{}: Extra inputs are not permitted", "Unsupported parameter: {}"]
)
def test_what_makes_a_request_is_never_left_out(name: str, text: str) -> None:
    assert convert.refused_feature(text.format(name), everything()) == ""
