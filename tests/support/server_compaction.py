"""Compaction on demand: a request for a summary, its block, and the requests that begin with one.

The signature of a block says whose and where the conversation was that it stands for, and seals
its text and its changes of tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.support.server_bodies import blocks_of, compaction_of, hash_of, placed
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_models import ModelFacts
from tests.support.server_script import Json, part
from tests.support.server_tools import MOST_TOOLS, net_changes

COMPACTION: Final = "compact-2026-09-04"
LONGEST_INSTRUCTIONS: Final = 16_384
_FIELDS: Final = {"type", "content", "signature", "tool_changes", "cache_control"}


class Compacted(NamedTuple):
    """What a block's signature says: the role of the last message before it, and their hash."""

    role: str
    messages: str
    text: str
    tools: str


def compaction_block(body: Json, messages: str, summary: str) -> Json:
    """The block for the messages of a request. `messages` is their hash where thinking is bound."""
    changes = net_changes(body)
    role = [m["role"] for m in body["messages"] if m["role"] != "system"][-1]
    words = (role, messages or "-", hash_of(summary), hash_of(changes))
    block: Json = {"type": "compaction", "content": summary, "signature": _sealed(words)}
    return block | ({"tool_changes": changes} if changes else {})


def compacted(block: Json) -> Compacted | None:
    """What the signature of a block says; None if this server did not make it."""
    words = str(block.get("signature")).split(".")[1:-1]
    if len(words) != len(Compacted._fields) or _sealed(words) != block.get("signature"):
        return None
    return Compacted(*words)


def compaction_request_violations(
    body: Json, facts: ModelFacts, betas: frozenset[str]
) -> Iterator[Rejection]:
    """What is wrong with a request for a summary."""
    asked = part(body, "compaction")
    if COMPACTION not in betas:
        yield invalid(f"compaction: {EXTRA}")
    elif not facts.compacts:
        yield invalid("compaction: this model does not support compaction")
    if asked.get("type") != "summarize":
        yield invalid("compaction.type: Input should be 'summarize'")
    for extra in sorted(asked.keys() - {"type", "instructions"}):
        yield invalid(f"compaction.{extra}: {EXTRA}")
    if len(asked.get("instructions") or "") > LONGEST_INSTRUCTIONS:
        most = f"at most {LONGEST_INSTRUCTIONS} characters"
        yield invalid(f"compaction.instructions: String should have {most}")
    for name, given in (
        ("context_management", "context_management" in body),
        ("stop_sequences", "stop_sequences" in body),
        ("output_config.format", "format" in part(body, "output_config")),
        ("a forced tool_choice", part(body, "tool_choice").get("type") in {"any", "tool"}),
    ):
        if given:
            yield invalid(f"compaction: cannot be combined with {name}")
    yield from _range(body)


def _range(body: Json) -> Iterator[Rejection]:
    """What is wrong with the messages that a summary is to stand for."""
    said = [p for p in placed(body) if p.role != "system" and p.block["type"] != "compaction"]
    if not said:
        yield _refused("nothing_to_summarize", "messages: there is nothing to summarize")
        return
    spoken = [message for message in body["messages"] if message["role"] != "system"]
    last = blocks_of(spoken[-1])
    calls = {"tool_use", "server_tool_use"}
    if spoken[-1]["role"] == "assistant" and any(b["type"] in calls for b in last):
        yield _refused("incomplete_turn", "messages: a tool call has no result yet")
    if len(net_changes(body)) > MOST_TOOLS:
        yield _refused("too_many_tool_references", "messages: too many changes of tools")


def compaction_block_violations(body: Json, betas: frozenset[str]) -> Iterator[Rejection]:
    """What is wrong with the compaction block that a request begins with."""
    found = [one for one in placed(body) if one.block.get("type") == "compaction"]
    if not found:
        return
    at, block = found[0].at, found[0].block
    if COMPACTION not in betas:
        yield invalid(f"{at}.type: Input tag 'compaction' is not expected")
    elif len(found) > 1:
        yield _refused("block_ambiguous", f"{found[1].at}: only one compaction block is allowed")
    elif compaction_of(body) is None or found[0].role == "system":
        yield _refused("block_misplaced", f"{at}: a compaction block must be the first block")
    else:
        for extra in sorted(block.keys() - _FIELDS):
            yield invalid(f"{at}.compaction.{extra}: {EXTRA}")
        yield from _altered(block, at)


def _altered(block: Json, at: str) -> Iterator[Rejection]:
    made = compacted(block)
    if made is None:
        yield _refused("signature_invalid", f"{at}: Invalid `signature` in `compaction` block")
    elif hash_of(block.get("content")) != made.text:
        yield _refused("content_mismatch", f"{at}: the content is not that which was returned")
    elif hash_of(block.get("tool_changes") or []) != made.tools:
        text = f"{at}: the tool changes are not those which were returned"
        yield _refused("tool_changes_mismatch", text)


def _refused(code: str, text: str) -> Rejection:
    return invalid(text, f"compaction_{code}")


def _sealed(words: Sequence[str]) -> str:
    return ".".join(("compaction", *words, hash_of(["loopback", *words])))
