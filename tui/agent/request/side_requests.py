"""Requests beside the conversation: shown, counted, or with a question of the program's own.

Nothing of them is recorded. They extend what was sent, so that the cache holds most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tui.agent.request.break_reasons import BreakReason
from tui.agent.request.build import build, built
from tui.agent.request.check import reason, with_break
from tui.agent.request.form import target_of
from tui.agent.request.frame_state import server_waits
from tui.agent.request.state import Prepared, RequestState
from tui.agent.request.view import prepare
from tui.context.compaction_cut import Cut, find_cut
from tui.context.interrupted_calls import open_calls
from tui.context.request_assembly import MARGIN_TOKENS
from tui.context.request_trail import Prefix, place_of
from tui.context.summary_prompts import WARM_TOKENS
from tui.core.dataclass import dataclass, replace
from tui.core.messages import Message, string_of, text_block
from tui.provider.base import Request
from tui.provider.prices import CacheLife
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

if TYPE_CHECKING:
    from tui.context.cached_prefixes import Forecast

_LEAST_ANSWER = 2000
"""Tokens: with less room a question within the conversation is not asked."""
_SHORT_PROMPT = "."
PROMPT_TOKENS = estimate.MESSAGE_TOKENS + 1
"""The approximate cost."""


_STILL_RUNS = "(This call is still running: it has no result yet.)"


@dataclass(frozen=True, slots=True)
class AsideRequest:
    """The conversation with a person's side question at its end; what of it the server is expected
    to read from its cache and to write there, and the beginnings that the cache has afterwards."""

    request: Request
    forecast: Forecast
    kept: Sequence[Prefix]
    life: CacheLife


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request for a server's own summary of what comes before a cut, and the hashes of what was
    sent there and of the frame."""

    request: Request
    cut: Cut
    bound: str
    frame: str


def next_request(requests: RequestState, *, prompt_follows: bool = False) -> Request:
    """The request that the record makes; with `prompt_follows`, less the prompt."""
    prepared = _next(requests, prompt_follows=prompt_follows)
    return built(requests, prepared).request


def _next(requests: RequestState, *, prompt_follows: bool) -> Prepared:
    """The request that the record makes, with the break that it needs.

    No thinking in it comes after anything but what it was made for.
    """
    before = prepared = prepare(requests, prompt_follows=prompt_follows)
    now = built(requests, prepared, prompt_follows=prompt_follows)
    if now.found.misplaced is not None:
        # the break is tried, not recorded: first for the reason that is known
        for why in (reason(requests, before), BreakReason("unexplained", "program")):
            prepared = with_break(requests, before, why, prompt_follows=prompt_follows)
            now = built(requests, prepared, prompt_follows=prompt_follows)
            if now.found.misplaced is None:
                break
    return replace(prepared, built=now)


def summary_request(
    requests: RequestState, *, keep: int, room: float, running: float, fill: bool
) -> SummaryRequest | None:
    """A request for the server's own summary of the beginning (see `find_cut`).

    None where the server makes none, where nothing was sent yet or its frame cannot be replayed,
    where a call waits, or where there is nothing to cut off, or no room for the summary.
    """
    ctx, model = requests.ctx, requests.ctx.link.model
    offered = model.compacts and target_of(requests, model).form.compaction_blocks
    if not offered or not _goes_on(requests):
        return None
    prepared = _next(requests, prompt_follows=True)
    messages, summary = built(requests, prepared).request.messages, prepared.view.summary
    start = summary.end if summary else 0
    cut = find_cut(ctx.records, messages, start, keep=keep, room=room, running=running, fill=fill)
    if cut is None:
        return None
    most = _room(requests, WARM_TOKENS, behind=round(cut.weight * ctx.ledger.ratio))
    if not most:
        return None
    # Its marks are those of a request that ends at the cut.
    before, _ = build(requests, prepared, upto=cut.messages)
    bound, frame = place_of(before, ctx.records)
    request = replace(before, max_tokens=most, compaction={"type": "summarize"})
    return SummaryRequest(request, cut, bound, frame)


def room_for_question(requests: RequestState, max_tokens: int) -> int:
    """The most tokens that the answer to a question in the conversation may have.

    0 where nothing was sent yet or its frame cannot be replayed, where a call waits for its result,
    or where the answer would not fit into the window.
    """
    return _room(requests, max_tokens) if _goes_on(requests) else 0


def with_question(requests: RequestState, question: str, max_tokens: int) -> Request | None:
    """The conversation as it was sent, with a question of the program's own at its end; None where
    there is no room for one."""
    most = room_for_question(requests, max_tokens)
    if not most:
        return None
    request = next_request(requests, prompt_follows=True)
    return replace(_with_prompt(request, question), max_tokens=most)


def aside_request(
    requests: RequestState, said: Sequence[tuple[str, str]], question: str, max_tokens: int
) -> AsideRequest | None:
    """The conversation as the server has it, with a question of the person's at its end, behind
    those that were `said` before it: earlier questions with their answers.

    A turn may run: what it has been sent, what it answered and the results so far are in it. None
    where nothing was sent yet, where its frame can't be replayed, or where the answer has no room.
    """
    ctx = requests.ctx
    if not requests.sent.all() or not requests.frame.replays:
        return None
    most = _room(requests, max_tokens)
    if not most:
        return None
    prepared = _next(requests, prompt_follows=True)
    now = built(requests, prepared)
    prefixes = requests.sent.prefixes(now.request, now.marks, now.candidate)
    life = prepared.target.life
    due = requests.sent.cached(prepared.target.model)
    forecast = due.forecast(prefixes, ctx.clock.now().timestamp())
    added = sum(map(estimate.weight, (*chain(*said), question)))
    forecast = replace(forecast, prompt=forecast.prompt + round(added * ctx.ledger.ratio))
    messages = _answerable(now.request.messages, ctx.records)
    for asked, answered in said:
        messages = _with_text(messages, asked)
        messages.append({"role": "assistant", "content": [text_block(answered)]})
    request = replace(now.request, messages=_with_text(messages, question), max_tokens=most)
    return AsideRequest(request, forecast, prefixes.marked(), life)


def _answerable(messages: Sequence[Message], records: Sequence[Record]) -> list[Message]:
    """The messages so that a text may follow: calls that run have a stand-in for their result, and
    an answer whose server tool still runs is left out, since nothing else may follow it."""
    messages = [*messages]
    if server_waits(records):
        last = max((n for n, one in enumerate(messages) if one["role"] == "assistant"), default=0)
        return messages[:last]
    open_ids = {string_of(call.get("id")) for call in open_calls(records)}
    if not open_ids or not messages:
        return messages
    last = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=0)
    content = [
        {**block, "content": [text_block(_STILL_RUNS)], "is_error": False}
        if block.get("type") == "tool_result" and block.get("tool_use_id") in open_ids
        else block
        for block in messages[last]["content"]
    ]
    messages[last] = {"role": "user", "content": content}
    return messages


def _with_text(messages: Sequence[Message], text: str) -> list[Message]:
    """Messages with a text of the person's side at their end. What the program says there itself
    stays behind it, as behind every prompt."""
    end = len(messages)
    while end and str(messages[end - 1]["role"]) == "system":
        end -= 1
    before, notices = messages[:end], messages[end:]
    return [*_ending_with(before, text), *notices]


def count_request(requests: RequestState) -> Request | None:
    """The next request with a short prompt (`PROMPT_TOKENS`), for the server to count.

    None where that would show the server what it was not sent before: another server's
    conversation, prompts and results that no request has carried yet, or a frame instead of one
    that cannot be replayed. No prompt of the person's stands for that. None, too, where a call
    waits for its result.
    """
    records = requests.ctx.records
    carried = {REQUEST, "user", "tool_result"}
    last = next((record for record in reversed(records) if record.type in carried), None)
    if last is None or last.type != REQUEST:
        return None
    if last.data.get("server") != requests.ctx.link.server:
        return None
    if not requests.frame.replays or open_calls(records):
        return None
    return _with_prompt(next_request(requests, prompt_follows=True), _SHORT_PROMPT)


def _goes_on(requests: RequestState) -> bool:
    """True if a question of the program's own would extend the last request to the model."""
    sent = requests.sent.last(requests.ctx.link.model) is not None
    return sent and requests.frame.replays and not open_calls(requests.ctx.records)


def _room(requests: RequestState, max_tokens: int, *, behind: int = 0) -> int:
    """The tokens that an answer may have, if those `behind` are left out; 0 for too few."""
    model = requests.ctx.link.model
    free = model.window - (requests.meter.tokens_for(model.id) - behind) - MARGIN_TOKENS
    most = min(max_tokens, model.max_output, free)
    return 0 if most < min(max_tokens, _LEAST_ANSWER) else most


def _with_prompt(request: Request, text: str) -> Request:
    """A request that ends with this text of the person's side."""
    return replace(request, messages=_ending_with(request.messages, text))


def _ending_with(before: Sequence[Message], text: str) -> list[Message]:
    messages, asked = [*before], text_block(text)
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": [*messages[-1]["content"], asked]}
    else:
        messages.append({"role": "user", "content": [asked]})
    return messages
