"""Third station: the request of a view, compared with the one before it.

A request beside the conversation, with a question of the program's own, is in
`tui.agent.request.side_requests`.
"""

from __future__ import annotations

from dataclasses import replace

from tui.agent.request.form import checks_of
from tui.agent.request.state import Built, Prepared, RequestState
from tui.context import request_assembly
from tui.context.compaction_block import with_block
from tui.context.notices import NoticeLifter
from tui.context.request_assembly import OUTPUT_TOKENS, Mark
from tui.provider.base import Request


def build(
    requests: RequestState,
    prepared: Prepared,
    *,
    prompt_follows: bool = False,
    upto: int | None = None,
    held: int | None = None,
) -> tuple[Request, list[Mark]]:
    """Build a request, or that of the first `upto` messages, and place its cache marks.

    `held` is the last message that it shares with the one before.
    """
    target, messages = prepared.target, prepared.view.messages
    model, frame = target.model, target.frame
    if target.form.system_messages:
        messages = requests.lifters.setdefault(model.id, NoticeLifter()).lifted(messages)
    messages = [*with_block(messages)][:upto]
    # The ends of the last request come back as marks: up to there it is in the cache.
    before = target.last
    marks = [(number, place) for number, place in (before.data["marks"] if before else ())]
    end = request_assembly.end_of_turn(messages, prompt_follows=prompt_follows)
    shared = [request_assembly.end_of(messages, held)] if held is not None else []
    made, placed = request_assembly.build(
        model=model,
        system=frame.system,
        messages=messages,
        tools=frame.tools,
        prompt_tokens=requests.meter.tokens_for(model.id),
        think=requests.frame.think and "thinking" not in target.off,
        display=target.display if "thinking" not in target.off else "",
        shows="display" not in target.off,
        effort=target.effort,
        life=target.mark_life,
        marks=[*shared, *marks[:1], *([end] if end else []), *marks[1:]],
        prompt_follows=prompt_follows,
        first=not requests.sent.all(),
        longest=requests.ctx.longest_answer(model.id) or OUTPUT_TOKENS,
    )
    # An effort that waits for a break takes the switch of thinking with it.
    if target.held is not None and "thinking" not in target.off:
        made = replace(made, thinking=target.held.data.get("thinking"))
    first_party = requests.ctx.link.at(model.id).first_party
    reported = first_party and "binding_reports" not in target.off
    made = replace(made, binding_reports=reported and model.binds)
    most = requests.most_output
    return (made if most is None else replace(made, max_tokens=min(most, made.max_tokens))), placed


def built(requests: RequestState, prepared: Prepared, *, prompt_follows: bool = False) -> Built:
    """The request of what is prepared, compared with the last one to the same model; one that an
    earlier station had to build is taken."""
    if prepared.built is not None:
        return prepared.built
    made, marks = build(requests, prepared, prompt_follows=prompt_follows)
    last, checks = prepared.target.last, checks_of(requests, prepared.target)
    return Built(made, marks, *requests.sent.compare(made, last, checks))
