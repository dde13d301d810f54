"""A question beside the conversation, as another server than the one before takes it."""

from __future__ import annotations

from typing import Any

from tui.agent.request.any_server import for_any_server
from tui.provider.base import Request

MARK = {"type": "ephemeral", "ttl": "1h"}


def test_what_only_the_first_server_knows_is_left_out() -> None:
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "compaction", "content": "So far.", "x": 1}]},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        {"role": "system", "content": [{"type": "text", "text": "Mode: plan."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "cache_control": MARK}],
        },
        {"role": "system", "content": [{"type": "tool_addition", "tool": {}}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}]},
    ]
    asked = Request(
        "claude-opus-5-5",
        [{"type": "text", "text": "You help.", "cache_control": MARK}],
        messages,
        [{"name": "look", "cache_control": MARK}],
        1000,
        thinking={"type": "adaptive"},
        effort="high",
        diagnostics={"previous_message_id": "m"},
        binding_reports=True,
    )
    made = for_any_server(asked)
    assert made == Request(
        "claude-opus-5-5",
        [{"type": "text", "text": "You help."}],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "So far."},
                    {"type": "text", "text": "Go on."},
                    {"type": "text", "text": "Mode: plan."},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
        ],
        [{"name": "look"}],
        1000,
    )
