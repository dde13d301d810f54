"""The end of an answer: with words, with calls, with nothing, cut, or for a reason nobody knows.

An answer without anything is a failure, one that may not be whole is noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile, islice
from typing import Final

from tui.core.errors import ProviderError
from tui.core.messages import Block, blocks_of, object_of, string_of, text_of, tool_calls
from tui.provider.base import Completed
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

CUT: Final = frozenset({"max_tokens", "length"})
"""The reasons of an answer that was as long as it may be; one is OpenAI's, by way of gateways."""
_FULL: Final = "model_context_window_exceeded"
_KNOWN: Final = CUT | {
    *("end_turn", "stop_sequence", "tool_use", "pause_turn", "refusal", "compaction", _FULL),
    *("stop", "tool_calls"),  # OpenAI's
}
_SERVER: Final = frozenset({"server_tool_use", "compaction"})
_MORE: Final = "max_output under [provider] in config.toml allows longer answers"


def cut_call(records: Sequence[Record]) -> Mapping[str, str]:
    """The call that the last answer was cut in, by its id, with what its result says; {} for none.

    Only the last block can be: one whose input is no JSON, or whose input never began.
    """
    answer = next((r for r in reversed(records) if r.type == "assistant"), None)
    if answer is None or answer.data.get("stop_reason") not in CUT | {_FULL}:
        return {}
    last = blocks_of(answer.data.get("content"))[-1:]
    for call in tool_calls(last):
        if not (given := object_of(call.get("input"))) or given.keys() == {"raw_input"}:
            return {string_of(call.get("id")): _cut_in_words(records, answer)}
    return {}


def _cut_in_words(records: Sequence[Record], answer: Record) -> str:
    why = "the context window was full"
    if answer.data.get("stop_reason") != _FULL:
        why = f"your answer reached its limit{_tokens(records, answer)}"
    return (
        f"This call did not run: {why} before the call was complete. The same call would be cut"
        " off again. Make smaller calls: write a long file in parts, the first with one call and"
        " each further one with an edit, and say little before a call."
    )


def _tokens(records: Sequence[Record], answer: Record) -> str:
    """The limit that an answer's request had, as ` of 32,000 tokens`; "" if no record says."""
    before = dropwhile(lambda record: record is not answer, reversed(records))
    asked = next((record for record in before if record.type == REQUEST), None)
    most = asked.data.get("max_tokens") if asked else None
    return f" of {most:,} tokens" if isinstance(most, int) and most else ""


def cut_again(records: Sequence[Record]) -> str:
    """The notice for the person when a second answer in a row was cut in a call, else ""."""
    answers = [*islice((r for r in reversed(records) if r.type == "assistant"), 3)]
    if [bool(cut_call([answer])) for answer in answers] not in ([True, True], [True, True, False]):
        return ""
    most = _tokens(records, answers[0])
    return (
        f"Twice in a row, the model's answer reached its limit{most} in the middle of a call. The"
        f" model was told to make smaller calls. {_MORE}, if the model can write them."
    )


def check(answer: Completed, most: int = 0) -> str:
    """A note on an answer that may not be whole, "" for none; `most` is its limit in tokens, if
    that is known.

    Raises ProviderError for one without anything, or without the call that it announced.
    """
    reason, content = answer.stop_reason, answer.content
    if tool_calls(content):
        return _unknown(answer)
    if any(_by_server(block) for block in content):
        return "" if reason in _KNOWN else _unknown(answer)
    if not text_of(content).strip():
        raise _empty(answer, most)
    if reason in {"tool_use", "tool_calls"}:
        raise ProviderError(
            "stream_broken",
            "The model stopped to call a tool, but the call never came.",
            hint="/retry asks once more. If it happens again, the server loses calls: use another"
            " model or server (/model, /login).",
            request_id=answer.request_id,
        )
    if reason in CUT:
        return f"The answer was cut off at the output limit. Say “continue”; {_MORE}."
    return _unknown(answer)


def _by_server(block: Block) -> bool:
    kind = string_of(block.get("type"))
    return kind in _SERVER or kind.endswith("_tool_result")


def _unknown(answer: Completed) -> str:
    if not answer.says_why:
        what = "The server didn't say why the answer ended"
    elif answer.stop_reason not in _KNOWN:
        what = f"The answer ended for a reason that Holdfast doesn't know ({answer.stop_reason})"
    else:
        return ""
    return f"{what}, so it may be incomplete. If it is, say “continue”."


def _empty(answer: Completed, most: int) -> ProviderError:
    """The error of an answer that says nothing and calls nothing."""
    if answer.stop_reason in CUT:
        limit = f" of {most:,} tokens" if most else ""
        message = f"The answer reached its limit{limit} before it said anything."
        hint = f"{_MORE}; a lower /effort thinks less."
        return ProviderError("unknown", message, hint=hint, request_id=answer.request_id)
    why = f"stop reason {answer.stop_reason}" if answer.says_why else "without a stop reason"
    return ProviderError(
        "unknown",
        f"The model's answer was empty ({why}).",
        hint="Say what is missing, or “continue”; /retry asks the same again.",
        request_id=answer.request_id,
    )
