"""The answers to work that an earlier run of a session left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.agent.interrupted_work import InterruptedWork
from tui.agent.prompts import GoalWish
from tui.core.formatting import plural, shortened
from tui.core.text_cleaning import one_line
from tui.tools.process import end_group

if TYPE_CHECKING:
    from tui.app.conversation import Conversation
    from tui.context.interrupted_calls import Interrupted

_LABEL_CHARS = 60
"""Characters of a command in a sentence."""
_KNOWN = {
    "never_started": "never started",
    "finished_result_lost": "finished; its result was lost",
    "unknown": "may or may not have run",
}
_BEGUN = "started; may or may not have finished"
_FILE = {
    "written": "the file has the new content",
    "unchanged": "the file is unchanged",
    "changed": "the file has changed since",
    "unknown": "",
}
_FILES = {
    "written": "the files have the new content",
    "unchanged": "the files are unchanged",
    "changed": "files have changed since",
    "unknown": "",
}


def taken_over(work: InterruptedWork) -> str:
    """Say what happened to the commands of calls that are kept."""
    kept_calls = [call for call in work.calls if call.recovery == "result"]
    runs = {call.call_id for call in kept_calls if call.kept == "running"}
    parts = [
        f"`{shortened(one_line(call.label), _LABEL_CHARS)}`"
        f" {'still runs' if call.call_id in runs else 'has ended meanwhile'}"
        for call in kept_calls
    ]
    one = len(kept_calls) == 1
    return f"The last run was interrupted. {'; '.join(parts)}: {'its' if one else 'their'} " + (
        "output and result are kept." if not runs else "output is kept, and it continues here."
    )


async def take_over(conversation: Conversation, work: InterruptedWork) -> InterruptedWork | None:
    """Continue with the commands of an earlier run that are kept: the whole turn where nothing else
    is uncertain, else until their results are recorded. Returns what a person has to decide."""
    agent = conversation.agent
    if agent is None or not work.supervised:
        return work
    for event in await agent.note(taken_over(work)):
        conversation.frontend.show(event)
    if work.resumable:
        conversation.resume_turn([call.call_id for call in work.calls])
        return None
    if conversation.start_side_work("taking over commands", agent.collect(work.supervised)):
        await conversation.at_rest()
    left = work.uncertain
    return left if left and agent is conversation.agent else None


async def act_on_interruption(
    conversation: Conversation, work: InterruptedWork, answer: str
) -> InterruptedWork | None:
    """Tell the model, make the calls again, leave them, or stop the commands. Returns what is
    still to be decided, None for nothing."""
    agent, say = conversation.agent, conversation.frontend.say
    if agent is None:
        return None
    ids = [call.call_id for call in work.calls]
    match answer:
        case "tell":
            conversation.submit(summary_of(work))
        case "again":
            conversation.resume_turn(ids, repeat=True, goal=GoalWish())
        case "leave":
            for event in await agent.close_calls(ids):
                conversation.frontend.show(event)
            say("Skipped.", hint="The model sees that the run was interrupted.")
        case _:
            clock = conversation.services.clock
            ended = [await end_group(each.pid, each.born, clock) for each in work.orphans]
            if all(ended):
                say(f"Stopped {plural(len(ended), 'command')}.", "success")
            else:
                say("Some commands couldn't be stopped.", "warning")
            return InterruptedWork(work.calls) if work.calls else None
    return None


def summary_of(work: InterruptedWork) -> str:
    """Make the model's report of an interruption: for each call what is known, no more."""
    lines = ["The last run of this session was interrupted."]
    if work.calls:
        lines.append("What is known about calls without a result:")
        lines += [
            f"- {call.tool} {call.label}".rstrip() + f": {known(call)}." for call in work.calls
        ]
    if work.orphans:
        lines.append("Still running since then:")
        lines += [f"- {each.name}: {each.command}" for each in work.orphans]
    return "\n".join([*lines, "Check what is uncertain first, then continue."])


def interruption_report(work: InterruptedWork) -> list[str]:
    """Make the person's report where nobody can be asked: what was open, and what still runs."""
    lines = ["The last run of this session was interrupted."]
    lines += [f"{call.tool} {call.label}".rstrip() + f": {known(call)}." for call in work.calls]
    lines += [
        f"Still running since {each.started[:16].replace('T', ' ')} UTC: {each.name},"
        f" {each.command}. Stop it: kill -- -{each.pid}"
        for each in work.orphans
    ]
    return [one_line(line) for line in lines]


def known(call: Interrupted) -> str:
    """Say what is known of an interrupted call."""
    match call.recovery:
        case "result":
            return "still running" if call.kept == "running" else "finished; its result is kept"
        case "continue":
            return "interrupted; run again, it continues where it was"
        case "unknown" if call.kept == "lost":
            return _BEGUN
        case _:
            pass
    states = _FILES if call.files else _FILE
    return "; ".join(filter(None, (_KNOWN[call.outcome], states[call.file])))
