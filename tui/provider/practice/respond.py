"""From a request to an answer: replay the plan over what was done, up to what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui.messages import text_of
from tui.provider.base import Request
from tui.provider.practice import summary, words
from tui.provider.practice.answer import Answer, Call
from tui.provider.practice.dialogue import (
    Exchange,
    Outcome,
    Plan,
    Turn,
    last_todos,
    plan_of,
    turns,
)
from tui.provider.practice.steps import Step, Talk, Think, Unknown, code, describe
from tui.provider.practice.work import Surroundings, perform

_SUBJECT = {
    "read_file": ("path", "offset"),
    "write_file": ("path",),
    "edit_file": ("path",),
    "list_dir": ("path",),
    "find_by_name": ("pattern", "path"),
    "grep_search": ("pattern", "path", "case_insensitive"),
    "run_command": ("command",),
    "command_status": ("job", "action"),
}
"""By which arguments a call is known again. The others may depend on results that the view no
longer holds in full."""

_PATIENCE = 2
"""After so many calls whose arguments arrived broken, one is not asked for again."""


def respond(request: Request) -> Answer:
    """What the practice model says to a request. The same request gives the same answer."""
    if (told := summary.answer(request)) is not None:
        return Answer(text=told)
    spoken = turns(request.messages)
    plan = plan_of(spoken)
    seen = words.of_images(spoken[-1].images) if spoken and not plan.now else ""
    if seen and all(isinstance(step, Unknown | Talk) for step in plan.steps):
        return Answer(text=seen)
    around = Surroundings(
        frozenset(str(tool.get("name")) for tool in request.tools), last_todos(request.messages)
    )
    played = play(plan, around)
    text = played.text
    if not played.calls:
        text = "\n\n".join(part for part in (text, _set_aside(spoken, plan, around)) if part)
    return Answer(
        text="\n\n".join(filter(None, (seen, text)))
        or ("" if played.calls else _nothing_left(plan)),
        calls=played.calls,
        thinking=_thinking(plan, played, request),
    )


@dataclass(frozen=True, slots=True)
class Played:
    """Where a plan stands: what is to be said now, the next calls, the steps not done yet."""

    text: str
    calls: tuple[Call, ...] = ()
    left: tuple[Step, ...] = ()


def play(plan: Plan, around: Surroundings) -> Played:
    """Replay a plan. Without calls, it has come to its end."""
    open_ = [*plan.before, *plan.now]
    said: list[str] = []
    telling = not plan.told
    for index, step in enumerate(plan.steps):
        left = plan.steps[index:]
        work = perform(step, around)
        outcomes: tuple[Outcome, ...] = ()
        item = next(work, None)
        while item is not None:
            if isinstance(item, str):
                said.append(item)
                outcomes = ()
            else:
                if missing := sorted({call.name for call in item} - around.tools):
                    said.append(
                        f"For that I would need {_tools(missing)}, which I do not have here."
                    )
                    break
                found = [_take(open_, call) for call in item]
                if wanted := tuple(c for c, e in zip(item, found, strict=True) if e is None):
                    return Played("\n\n".join(said), wanted, left)
                said.clear()
                done = [exchange for exchange in found if exchange is not None]
                telling = telling or any(e is n for e in done for n in plan.now)
                refused = next((e for e in done if e.outcome.refusal is not None), None)
                if refused is not None:
                    if any(refused is e for e in plan.before):
                        break
                    return Played(_accept(refused, left[1:]), (), left[1:])
                outcomes = tuple(exchange.outcome for exchange in done)
            try:
                item = work.send(outcomes)
            except StopIteration:
                item = None
        if not telling:
            said.clear()
    return Played("\n\n".join(said))


def _take(open_: list[Exchange], call: Call) -> Exchange | None:
    """The first exchange not used yet that is this call's, removed from the list."""
    keys = _SUBJECT.get(call.name, ())
    for index, exchange in enumerate(open_):
        same = exchange.name == call.name and "raw_input" not in exchange.input
        if same and all(exchange.input.get(key) == call.input.get(key) for key in keys):
            return open_.pop(index)
    broken = [e for e in open_ if e.name == call.name and "raw_input" in e.input]
    if len(broken) < _PATIENCE:
        return None
    for exchange in broken:
        open_.remove(exchange)
    return broken[-1]


def _accept(refused: Exchange, left: Sequence[Step]) -> str:
    """Words for a call that was not allowed. Nothing is tried in its place."""
    what = next((str(refused.input[k]) for k in ("command", "path") if k in refused.input), "")
    call = f"{refused.name} {code(what)}" if what else refused.name
    text = f"All right, I leave that: {call} was not allowed."
    if refused.outcome.refusal:
        text += f" The reason given: “{refused.outcome.refusal}”"
    if left:
        steps = "\n".join(f"- {describe(step)}" for step in left)
        text += f"\n\nI stopped there. Not done yet:\n\n{steps}\n\nSay `continue` and I do these."
    return text


def _set_aside(spoken: list[Turn], plan: Plan, around: Surroundings) -> str:
    """What an interrupted plan still had to do, when something else was asked for instead."""
    if plan.continued or len(spoken) < 2 or not spoken[-2].open:
        return ""
    before = plan_of(spoken[:-1])
    done = tuple(e for e in before.now if not e.outcome.interrupted)
    left = play(replace(before, now=done), around).left
    if not left:
        return ""
    steps = ", then ".join(describe(step) for step in left)
    return f"Still open from before: {steps}. Say `continue` to have it done."


def _nothing_left(plan: Plan) -> str:
    if not plan.text:
        return (
            "The beginning of this conversation is no longer in front of me, and with it what I "
            "was to do. Tell me the next step, and I go on from here."
        )
    if plan.continued and plan.steps:
        return "All of that is done already. What next?"
    return "There is nothing to go on with. Give me something to do, or say `help`."


def _tools(names: Sequence[str]) -> str:
    return f"the tool{'s' * (len(names) > 1)} {', '.join(f'`{name}`' for name in names)}"


def _thinking(plan: Plan, played: Played, request: Request) -> str:
    """A look at the plan at the start of a turn; before every call where thinking is asked for."""
    if (request.thinking or {}).get("type") == "disabled":
        return ""
    deep = request.thinking is not None or "Think step-by-step" in text_of(request.system)
    steps = played.left if plan.continued else plan.steps
    topic = next((step.topic for step in steps if isinstance(step, Think)), "")
    if plan.now and not deep:
        return ""
    thoughts: list[str] = []
    if not plan.now:
        thoughts.append(_overview(steps))
        if topic:
            thoughts.append(words.pondering(topic))
    if deep and played.calls:
        names = ", ".join(call.name for call in played.calls)
        remaining = len(played.left)
        thoughts.append(
            f"Next is {names}. Its result decides how I go on; "
            f"{remaining} of {len(plan.steps)} steps are open."
        )
    return "\n\n".join(filter(None, thoughts))


def _overview(steps: Sequence[Step]) -> str:
    if not steps or isinstance(steps[0], Talk):
        return ""
    if len(steps) == 1:
        return f"One thing is asked for: {describe(steps[0])}."
    listed = "; ".join(f"{n}. {describe(step)}" for n, step in enumerate(steps, 1))
    return f"{len(steps)} steps are asked for, and I take them in order: {listed}."
