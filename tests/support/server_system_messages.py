"""System messages in the middle of a conversation: where they stand, and what they may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.support.server_bodies import TOOL_CHANGES, blocks_of
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_models import ModelFacts
from tests.support.server_script import Json, part

TURN_EFFORT: Final = "mid-conversation-output-config-2026-07-01"
CLEAR_AT: Final = "mid-conversation-system-clear-at-2026-08-21"
_FIELDS: Final = {"role", "content", "clear_at", "output_config"}


def system_message_violations(
    body: Json, facts: ModelFacts, betas: frozenset[str]
) -> Iterator[Rejection]:
    """What is wrong with the system messages of a request. Not of changes of tools."""
    messages: list[Json] = body["messages"]
    effort = part(body, "output_config").get("effort", facts.effort)
    for number, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if not facts.system_messages:
            yield invalid("role 'system' is not supported on this model")
            return
        at, content = f"messages.{number}", blocks_of(message)
        for extra in sorted(message.keys() - _FIELDS):
            yield invalid(f"{at}.{extra}: {EXTRA}")
        if "output_config" in message:
            yield from _effort(message, at, body, facts, betas, effort)
        elif not content:
            yield invalid(f"{at}.content: at least one block is required")
        yield from _blocks(message, at)
        if "clear_at" in message:
            yield from _turn_scoped(message, at, betas)
        if content and not _well_placed(messages, number):
            yield invalid(
                f"{at}: a system message must follow a user message, and be the last or be "
                "followed by an assistant message"
            )


def _effort(
    message: Json, at: str, body: Json, facts: ModelFacts, betas: frozenset[str], effort: str
) -> Iterator[Rejection]:
    given = part(message, "output_config")
    level = given.get("effort")
    if TURN_EFFORT not in betas:
        yield invalid(f"{at}.output_config: {EXTRA}")
    elif not facts.turn_effort:
        yield invalid(
            "output_config.effort requires a model that supports per-turn effort; this model does "
            "not"
        )
    elif extra := given.keys() - {"effort"}:
        yield invalid(f"{at}.output_config.{min(extra)}: {EXTRA}")
    elif level not in facts.efforts:
        yield invalid(f"{at}.output_config.effort: Input should be one of the model's: {level!r}")
    elif _off(body) and level != effort:
        yield invalid(
            f"{at}: output_config.effort '{level}' differs from the '{effort}' in effect before "
            "it; effort cannot change when thinking is disabled"
        )


def _blocks(message: Json, at: str) -> Iterator[Rejection]:
    for index, block in enumerate(blocks_of(message)):
        kind = block.get("type")
        if kind == "text" and not str(block.get("text", "")).strip():
            yield invalid(f"{at}.content.{index}.text: text content blocks must be non-empty")
        elif kind != "text" and kind not in TOOL_CHANGES:
            yield invalid(
                f"{at}.content.{index}: system messages support text blocks and tool changes"
            )


def _turn_scoped(message: Json, at: str, betas: frozenset[str]) -> Iterator[Rejection]:
    if CLEAR_AT not in betas:
        yield invalid(f"{at}.clear_at: {EXTRA}")
    elif message["clear_at"] not in {"never", "next_user_message"}:
        yield invalid(f"{at}.clear_at: Input should be 'never' or 'next_user_message'")
    if message["clear_at"] == "never":
        return
    for block in blocks_of(message):
        if block.get("type") in TOOL_CHANGES:
            yield invalid(f"{at}: a turn-scoped system message supports text blocks only")
        if "cache_control" in block:
            yield invalid(f"{at}: cache_control is not permitted on a turn-scoped system message")
    if "output_config" in message:
        yield invalid(f"{at}: output_config is not permitted on a turn-scoped system message")


def _well_placed(messages: list[Json], number: int) -> bool:
    """Several in a row count as one."""
    before = [message for message in messages[:number] if message["role"] != "system"][-1:]
    after = [m["role"] for m in messages[number + 1 :] if m["role"] != "system"][:1]
    return any(map(_may_be_followed, before)) and after in ([], ["assistant"])


def _may_be_followed(message: Json) -> bool:
    if message["role"] == "user":
        return True
    last = str((blocks_of(message) or [{}])[-1].get("type"))
    return last.endswith("_tool_result")


def _off(body: Json) -> bool:
    return part(body, "thinking").get("type") in {"disabled", "between_tools"}
