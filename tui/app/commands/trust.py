"""Trust in a folder's own files: the question at the start, and /trust."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tui.app.conversation import Conversation
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.passing_questions import answer_while, until
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.settings.trust import TrustItem, trust_of

_ANSWERS = (
    AnswerOption("y", "Trust all of it", "all"),
    AnswerOption("c", "Choose one by one", "choose"),
    AnswerOption("n", "Not now: ignore it all", "none"),
)
_ONE = (AnswerOption("y", "Trust it", "yes"), AnswerOption("n", "Ignore it", "no"))
_CHANGE_MAX = 12
"""Lines of a change that are shown; the file itself has them all."""


async def trust(conversation: Conversation, _: str) -> None:
    """/trust: decide again about everything that the folder's files would do."""
    if conversation.services.bare:
        conversation.frontend.say("This session is bare: nothing of this folder counts in it.")
        return
    brought = await asyncio.to_thread(conversation.services.brought)
    if not brought:
        conversation.frontend.say("This folder has nothing that needs your trust.")
        return
    if await ask_trust(conversation, brought):
        conversation.frontend.say("Its settings apply to new sessions: /new.")


async def ask_trust(
    conversation: Conversation, about: Sequence[TrustItem], *, unasked: bool = False
) -> bool:
    """Ask what of a folder's files counts, and remember it. False where nothing was decided."""
    frontend, services = conversation.frontend, conversation.services
    now = services.trust()
    trusted = {item.name for item in about if now.granted.get(item.name) == item.sha256}
    question = ChoiceQuestion(
        "Trust this folder's own files?",
        "They ask for what is listed here. Untrusted, they can only tighten"
        " permissions. If one of them changes, you're asked again.",
        _ANSWERS,
        details=[line for item in about for line in _lines(item, item.name in trusted)],
        warning=True,
        unasked=unasked,
    )
    asking = frontend.choose(question)
    if unasked:
        over = until(lambda: not services.undecided())
        answer = await answer_while(asking, over, "decided")
    else:
        answer = await asking
    if answer is None and not unasked:
        return False
    granted = {item.name for item in about} if answer == "all" else set[str]()
    if answer == "decided":
        stored = trust_of(services.folders, services.workspace).granted
        granted = {item.name for item in about if stored.get(item.name) == item.sha256}
        frontend.say("Another window has answered for this folder.", hint="/trust changes it.")
    if answer == "choose":
        for number, item in enumerate(about, 1):
            title = f"Trust this? {number} of {plural(len(about), 'item')}"
            one = ChoiceQuestion(
                title, "\n".join(_lines(item, item.name in trusted)), _ONE, warning=True
            )
            if await frontend.choose(one) == "yes":
                granted.add(item.name)
    try:
        await services.decide_trust(about, granted)
    except HoldfastError as error:
        frontend.say(error.message, "warning", hint=error.hint)
    return True


def _lines(item: TrustItem, trusted: bool) -> list[str]:
    """Say what a thing would do, and how it differs from what the person decided about last."""
    change = [line for line in item.change if line[1:] != item.does]
    shown = [f"│ {line[0]} {line[1:]}" for line in change[:_CHANGE_MAX]]
    more = len(change) - len(shown)
    does = f"{item.does} (trusted)" if trusted else item.does
    return [does, *shown, *([f"│ … {plural(more, 'more line')}"] if more > 0 else [])]
