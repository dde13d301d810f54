"""What the Messages API answers to requests that it rejects: the texts by their B numbers."""

from __future__ import annotations

from typing import Final

REJECTIONS: Final = {
    "B01": (
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_practice_1. Each `tool_use` block must have a corresponding `tool_result` block in "
        "the next message."
    ),
    "B02": (
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
        "toolu_practice_1. Each `tool_result` block must have a corresponding `tool_use` block in "
        "the previous message."
    ),
    "B03": "messages.1.content.1: `tool_use` ids must be unique",
    "B04": (
        "messages.2.content.1: each tool_use must have a single result. Found multiple "
        "`tool_result` blocks with id: toolu_practice_1"
    ),
    "B07": "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    "B10": "messages: text content blocks must be non-empty",
    "B11": "messages: text content blocks must contain non-whitespace text",
    "B13": (
        "messages.1: all messages must have non-empty content except for the optional final "
        "assistant message"
    ),
    "B15": (
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message."
    ),
    "B16": "messages.1: The final block in an assistant message cannot be `thinking`.",
    "B17": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "B19": (
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response."
    ),
    "B20": (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block."
    ),
    "B26": "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    "B27": "messages.1.content.0.tool_use.index: Extra inputs are not permitted",
    "B30": (
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size: 8000 pixels"
    ),
    "B31": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > "
    "5242880 bytes",
    "B32": "messages.0.content.1: Could not process image",
    "B38": (
        "The request body is not valid JSON: no low surrogate in string: line 1 column 212 "
        "(char 211)"
    ),
    "B39": 'messages: first message must use the "user" role',
}
