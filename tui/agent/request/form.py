"""The form in which this server's model takes a request: its features, how hard it thinks."""

from __future__ import annotations

from collections.abc import Callable

from tui.agent.agent_context import AgentContext
from tui.agent.request.frame_state import form_of
from tui.agent.request.state import RequestState, Target
from tui.context import effort as context_effort
from tui.context.effort import field_of
from tui.context.history import Rendering
from tui.context.notices import Form
from tui.core.messages import string_of
from tui.provider import catalogue
from tui.provider.base import ModelInfo
from tui.session.records import Record


def target_of(requests: RequestState, model: ModelInfo) -> Target:
    """Look up what holds for a model now; a record may change it."""
    frame, off = requests.frame, requests.features.off(model.id)
    server = requests.ctx.link.at(model.id)
    form, last = _form(model, off, first_party=server.first_party), requests.sent.last(model)
    held = None
    if last is not None and not form.turn_effort and effort_waits(requests):
        held = last
    current = frame.current
    return Target(
        model=model,
        off=off,
        form=form,
        frame=current,
        life="5m" if "cache_life" in off else current.life,
        display=_display(requests.ctx, off, first_party=server.first_party),
        prune=requests.rules.of(model),
        rendering=Rendering(server.host, form, server.first_party, frame.untrusted, frame.record),
        last=last,
        held=held,
        effort=None if "effort" in off else _effort(requests, model, form, last, held),
    )


def _form(model: ModelInfo, off: frozenset[str], *, first_party: bool) -> Form:
    """The ways in which a model is told what others are not."""
    known = form_of(model, first_party=first_party)
    system_messages = known.system_messages and "system_messages" not in off
    return Form(
        system_messages,
        known.tool_additions and system_messages and "tool_additions" not in off,
        known.turn_effort and system_messages and "turn_effort" not in off,
        known.compaction_blocks and "compaction_blocks" not in off,
    )


def _display(ctx: AgentContext, off: frozenset[str], *, first_party: bool) -> str:
    wanted = ctx.config.thinking.display
    if not first_party or "display" in off:
        return ""
    if wanted == "updates" and "updates" in off:
        return "summarized"
    return {"hidden": "omitted"}.get(wanted, wanted)


def _effort(
    requests: RequestState, model: ModelInfo, form: Form, last: Record | None, held: Record | None
) -> str | None:
    """The level that a request asks for. Where another one can be said at the end it stays what it
    was in the first request."""
    if stays := last if form.turn_effort else held:
        return string_of(stays.data.get("effort")) or None
    if form.turn_effort and (told := requests.frame.last_effort()):
        return field_of(model, told)
    return field_of(model, requests.frame.level(model))


def effort_waits(requests: RequestState) -> bool:
    """True if the level of effort that was chosen last waits for a break."""
    return context_effort.waits(requests.choices.of(requests.ctx.records))


def effort_in_force(requests: RequestState) -> str:
    """The level of the model that is asked; "" where it has none."""
    model = requests.ctx.link.model
    held = target_of(requests, model).held
    if held is None:
        return requests.frame.level(model)
    return string_of(held.data.get("effort")) or model.effort


def refuse_blocks(requests: RequestState, why: str) -> None:
    """The server does not take compaction blocks of this model; nor is it asked for one."""
    model = requests.ctx.link.model
    if target_of(requests, model).form.compaction_blocks:
        requests.features.note("compaction_blocks", model.id, why)


def checks_of(requests: RequestState, target: Target) -> Callable[[str], bool]:
    """True if a model's thinking is refused by the target after anything that was rendered in
    another way.

    A server of its own kind may bind every signature. Of the API's models it is known which do,
    and that those which do are sent notices in one form.
    """
    server = requests.ctx.link.at(target.model.id)
    if not server.first_party:
        return lambda _author: True

    def checks(author: str) -> bool:
        info = catalogue.model_info(author)
        if info.source == "assumed" or info.binds:
            return True
        return _form(info, requests.features.off(info.id), first_party=True) == target.form

    strict = target.model.binds or target.model.source == "assumed"
    return checks if strict else lambda _author: False
