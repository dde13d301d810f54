"""Reports of an answer about its request: how it extends the last, and what became of thinking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tui.core.fact_words import break_reason
from tui.core.facts import RequestExtended, ThinkingDropped
from tui.core.formatting import tokens
from tui.core.messages import Usage, string_of
from tui.provider.base import Completed
from tui.session.records import Record, is_answer
from tui.session.request_numbers import REQUEST

DROPPED: Final = "thinking_dropped"
ALLOWED: Final = "thinking_mismatch_allowed"

_CATEGORIES: Final = {
    "cyber": "it may help to attack computers",
    "bio": "it may help to do biological harm",
    "frontier_llm": "it is about building large language models",
    "reasoning_extraction": "it asks for internal reasoning in the answer",
    "general_harms": "it may do harm",
}


def extended(
    request: Record, before: Record | None, last: Usage | None, answer: Completed
) -> RequestExtended:
    """Compare a request with the one `before` it to the same model, with its answer's report.

    `last` is the usage of the answer before.
    """
    usage = answer.usage
    return RequestExtended(
        _number(request.data),
        _number(before.data) if before else None,
        str(request.data.get("break", "")),
        usage.prompt_tokens,
        usage.prompt_tokens - last.prompt_tokens if last else None,
        usage.cache_read_input_tokens,
        answer.cache_miss,
        answer.missed_tokens,
        usage.thinking_tokens,
        usage.output_tokens,
    )


def dropped(answer: Completed) -> ThinkingDropped | None:
    """Return what the server did with earlier thinking; None where it took all of it."""
    kinds: dict[str, Counter[str]] = {DROPPED: Counter(), ALLOWED: Counter()}
    for one in answer.transformations:
        if (kind := string_of(one.get("type"))) in kinds:
            kinds[kind][string_of(one.get("reason"))] += 1
    if not any(kinds.values()):
        return None
    return ThinkingDropped(dict(kinds[DROPPED]), dict(kinds[ALLOWED]))


def refusal(details: Mapping[str, Any]) -> str:
    """Say why the model declined, in a sentence or two."""
    category, explanation = (string_of(details.get(n)) for n in ("category", "explanation"))
    why = _CATEGORIES.get(category, category)
    sentence = f"The model declined to answer{f' ({category}: {why})' if category else ''}."
    return " ".join([sentence, explanation]).strip()


def past(records: Sequence[Record]) -> list[str]:
    """Describe the last request, and the last break with its reason, a line each.

    Nothing is known of the requests of an older version or another program.
    """
    answer = next((r for r in reversed(records) if is_answer(r)), None)
    if answer is None:
        return ["Nothing sent yet."]
    sent = [record for record in records if record.type == REQUEST]
    if not sent:
        return []
    usage = Usage.from_json(answer.data.get("usage"))
    whole, cached = usage.prompt_tokens, usage.cache_read_input_tokens
    share = f", {round(100 * cached / whole)} % from the cache" if whole else ""
    last = f"The last request, number {_number(sent[-1].data)}, had {tokens(whole)} tokens{share}."
    broken = next((r for r in reversed(sent) if r.data.get("break")), None)
    if broken is None:
        return [last, "Every request so far extends the one before."]
    reason = break_reason(string_of(broken.data.get("break")))
    return [last, f"The cache last restarted at request {_number(broken.data)} ({reason})."]


def _number(data: Mapping[str, Any]) -> int:
    number = data.get("n")
    return number if isinstance(number, int) else 0
