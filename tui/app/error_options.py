"""The person's options after a failed request: retry, repair, change the key or the model.

A wait is shortened by /retry. Where the same request would fail again, a question shows what is
wrong and the choices; it appears after the turn, and on /retry. A request that failed twice in the
same way is not sent a third time before the person was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tui.agent.prompts import GoalWish
from tui.app.accounts import change_account
from tui.app.conversation import Conversation
from tui.app.dialog_data import FailedRequest, RecoveryOption, SetupElsewhere
from tui.app.models import choose_model, use_model
from tui.app.open_session import reconnect, switch_session
from tui.app.passing_questions import answer_while, until
from tui.app.services import SessionChoice
from tui.context.repair_levels import RepairLevel
from tui.core.config import model_of, profile_of
from tui.core.dataclass import dataclass, replace
from tui.core.facts import ErrorRaised
from tui.provider.base import Request
from tui.session.records import GOAL, Record, last_of_turn

if TYPE_CHECKING:
    from tui.agent.agent import Agent

_PASSING: Final = frozenset({"rate_limit", "overloaded", "timeout", "network", "server"})
"""Classes of errors that pass by themselves."""
_OF_THE_ACCOUNT: Final = frozenset({"auth", "billing", "not_found"})
"""Classes of errors that another account may not meet."""
_CHANGES: Final = frozenset(
    {
        *("user", "tool_result", "interrupt", "repair", "overlay", "compaction", "failover"),
        *("feature", "recovery", "parked"),
    }
)
"""Records after which a request is another one."""
_OFTEN: Final = 2

_LADDER: Final[tuple[tuple[RepairLevel, str, str], ...]] = (
    ("strict", "Repair and retry", "drop anything invalid"),
    ("drop_thinking", "Drop thinking", "drop invalid parts and all thinking blocks"),
    ("text_only", "Text only", "drop tool calls and results"),
    ("summary_only", "Summary only", "a summary plus your last prompt"),
)
LEVELS: Final[Mapping[str, tuple[RepairLevel, RecoveryOption]]] = {
    level: (level, RecoveryOption(level, label, text)) for level, label, text in _LADDER
}
_NEW = RecoveryOption("new", "New session", "keep this session; prompt carried over")
_RETRY = RecoveryOption("retry", "Retry", "send the same request again")
_AGAIN = RecoveryOption("retry", "Retry anyway", "send the same request again")
_MODEL = RecoveryOption("model", "Another model", "choose one that accepts it")
_KEY = RecoveryOption("key", "Another key", "paste one, or connect another server")
_ELSEWHERE: Final = "elsewhere"
"""The option that asks through another profile."""
_CONTEXT = RecoveryOption("context", "Open the context", "hide large results, then /retry")


@dataclass(frozen=True, slots=True)
class _ErrorCard:
    """The card for an error that would only come again."""

    title: str
    meaning: str
    ways: tuple[RecoveryOption, ...]


_UNSIGNED: Final = "The sign-in was rejected"
_CARDS: Final[Mapping[str, _ErrorCard]] = {
    "invalid_request": _ErrorCard(
        "The server rejected the request",
        "Retrying as is will fail again. Repairs change only what is sent, never the session file.",
        (_NEW,),
    ),
    "context_overflow": _ErrorCard(
        "Too long for this model",
        "Holdfast has already shortened what it can.",
        (_MODEL, _CONTEXT, _NEW),
    ),
    "payload_too_large": _ErrorCard(
        "The request is too large", "Holdfast has already shortened what it can.", (_CONTEXT, _NEW)
    ),
    "auth": _ErrorCard("The server rejected the key", "", (_KEY, _RETRY)),
    "billing": _ErrorCard("The account can't pay for this request", "", (_RETRY, _KEY)),
    "not_found": _ErrorCard("Not found on the server", "", (_MODEL, _KEY, _RETRY)),
}


async def retry(conversation: Conversation, argument: str) -> None:
    """/retry: do not wait any longer, or continue the turn that stopped."""
    agent, say = conversation.open_agent(), conversation.frontend.say
    other = argument.strip().lower() == "other"
    if agent is None:
        return
    if argument.strip() and not other:
        say("/retry sends it now, /retry other uses another model.", "warning")
    elif agent.models.use_fallback() if other else agent.models.retry_now():
        return
    elif conversation.busy:
        stop = f"Press {conversation.frontend.stop_key} to stop it."
        say("Nothing to retry: the agent is working.", hint=stop)
    elif other:
        say("Nothing is waiting to be retried.", hint="/model switches to another model.")
    elif failed := _refused(agent):
        await offer_recovery(conversation, failed)
    elif (again := _repeated(agent)) is not None:
        await _offer(conversation, again)
    elif not (_unanswered(agent.session.records) and conversation.resume_turn(goal=GoalWish())):
        say("Nothing to retry: the last answer is complete.")


async def offer_recovery(conversation: Conversation, error: ErrorRaised) -> None:
    """Ask how to continue after an error that would only come again, and do that."""
    agent = conversation.agent
    if agent is not None and (trouble := failed_request(agent, error)) is not None:
        if error.error_class in _OF_THE_ACCOUNT:
            trouble = _with_other_profile(conversation, trouble)
        await _offer(conversation, trouble)


def _with_other_profile(conversation: Conversation, trouble: FailedRequest) -> FailedRequest:
    """Offer first to ask through another profile, where one of the fallbacks is of one."""
    if not (other := _through_another_profile(conversation)):
        return trouble
    label = f"Through {profile_of(other)}"
    option = RecoveryOption(_ELSEWHERE, label, f"{model_of(other)}; that profile pays")
    return replace(trouble, ways=(option, *trouble.ways))


def _through_another_profile(conversation: Conversation) -> str:
    """The first fallback that is asked through another profile than the model; "" for none."""
    agent = conversation.agent
    now = profile_of(agent.models.current) if agent else ""
    ranked = sorted((one.fallback, one.name) for one in conversation.services.models())
    others = (name for rank, name in ranked if rank and profile_of(name) != now)
    return next(others, "")


async def _offer(conversation: Conversation, trouble: FailedRequest) -> None:
    agent, frontend = conversation.agent, conversation.frontend
    if agent is None:
        return
    over = until(lambda: _is_over(conversation, agent, trouble))
    name = await answer_while(frontend.choose(trouble), over, "over")
    if name == "over":
        await _use_setup_elsewhere(conversation, agent)
    elif name is None or conversation.agent is not agent:
        frontend.say("Dismissed.", hint="/retry brings these options back.")
    else:
        await _continue(conversation, agent, name)


async def _continue(conversation: Conversation, agent: Agent, name: str) -> None:
    """Continue in the chosen way."""
    frontend = conversation.frontend
    if name in LEVELS or name == "retry":
        for event in await agent.context.repair(LEVELS[name][0]) if name in LEVELS else ():
            frontend.show(event)
        conversation.resume_turn(goal=GoalWish())
    elif name == _ELSEWHERE:
        if other := _through_another_profile(conversation):
            before = agent.models.current
            await use_model(conversation, other)
            frontend.say(f"Switched to {other}.", "success", hint=f"/model {before} switches back.")
            conversation.resume_turn(goal=GoalWish())
    elif name == "model":
        if await choose_model(conversation):
            conversation.resume_turn(goal=GoalWish())
    elif name == "key":
        if await change_account(conversation, "The server rejected the key."):
            conversation.resume_turn(goal=GoalWish())
    elif name == "context":
        if view := frontend.view("context", ""):
            await view
    else:
        last = _asked_last(agent)
        await switch_session(conversation, SessionChoice())
        if last and not frontend.prompt_text:
            frontend.put_prompt(last)


def _is_over(conversation: Conversation, agent: Agent, trouble: FailedRequest) -> bool:
    """True once the question doesn't hold any more: another program has the session, or has set up
    another key where one helps. Blocks."""
    if agent is not conversation.agent or agent.session.read_only:
        return True
    return _KEY in trouble.ways and conversation.services.set_up_elsewhere()


async def _use_setup_elsewhere(conversation: Conversation, agent: Agent) -> None:
    """Use what another program has set up. Only the person says when to send it."""
    if agent is conversation.agent and not agent.session.read_only:
        done = await conversation.services.set_up(SetupElsewhere())
        await reconnect(conversation)
        conversation.frontend.say(done, "success", hint="/retry uses it.")


def failed_request(agent: Agent, error: ErrorRaised) -> FailedRequest | None:
    """Describe what can be done about an error; None where only sending the same again can help."""
    card = _CARDS.get(error.error_class)
    if card is None:
        return None
    if not agent.models.takes_key:
        title = _UNSIGNED if error.error_class == "auth" else card.title
        ways = _MODEL, *(way for way in card.ways if way not in {_KEY, _MODEL})
        card = _ErrorCard(title, card.meaning, ways if _KEY in card.ways else card.ways)
    record = last_of_turn(agent.session.records)
    data: Mapping[str, Any] = record.data if record and record.type == "error" else {}
    status, id_ = data.get("status"), data.get("request_id")
    rejected = error.error_class == "invalid_request"
    left = tuple(agent.context.repair_levels()) if rejected else ()
    tried = [level for level in LEVELS if level not in left] if rejected else []
    ways = (*(LEVELS[level][1] for level in left), *card.ways)
    meaning = card.meaning or error.hint
    return FailedRequest(
        card.title,
        error.message,
        ways,
        meaning=meaning,
        status=status if isinstance(status, int) else None,
        request_id=id_ if isinstance(id_, str) else None,
        findings=_findings(agent.context.next_request()) if rejected else None,
        before=tuple(LEVELS[level][1].label.lower() for level in tried),
    )


def _refused(agent: Agent) -> ErrorRaised | None:
    """The error that the session is at, where sending the same again is of no use."""
    last = last_of_turn(agent.session.records)
    if last is None or last.type != "error" or last.data.get("error_class") != "invalid_request":
        return None
    data = last.data
    message, hint = str(data.get("message") or ""), str(data.get("hint") or "")
    return ErrorRaised("invalid_request", message, True, hint)


def _repeated(agent: Agent) -> FailedRequest | None:
    """The choices where the same failure came at least twice in a row, each time perhaps paid
    for; None where sending it again may help."""
    records = agent.session.records
    last = last_of_turn(records)
    if last is None or last.type != "error" or last.data.get("error_class") in _PASSING:
        return None
    count, model, newer = 0, None, ""
    for record in reversed(records):
        data = record.data
        if record.type in {"error", "retry"}:
            same = data.get("error_class") == last.data.get("error_class")
            if not same or _message_of(record) != _message_of(last):
                break
            count += 1
        elif record.type == "request":
            model = model or data.get("model")
            if data.get("model") != model:
                break
        elif record.type in _CHANGES or (record.type == "assistant" and newer != "error"):
            break
        newer = record.type
    if count < _OFTEN:
        return None
    status, id_ = last.data.get("status"), last.data.get("request_id")
    return FailedRequest(
        f"Failed the same way {count} times",
        str(_message_of(last) or ""),
        (_MODEL, *((_KEY,) if agent.models.takes_key else ()), _AGAIN, _NEW),
        meaning="The same request will most likely fail again, and may cost as much again.",
        status=status if isinstance(status, int) else None,
        request_id=id_ if isinstance(id_, str) else None,
    )


def _message_of(record: Record) -> object:
    """The words of a failure."""
    return record.data.get("message") or record.data.get("reason")


def _unanswered(records: Sequence[Record]) -> bool:
    """True if something was asked that has no whole answer yet."""
    last = last_of_turn(records)
    return last is not None and last.type != GOAL and (last.type != "assistant" or _calls(last))


def _calls(record: Record) -> bool:
    from tui.core.messages import blocks_of, tool_calls  # noqa: PLC0415

    return bool(tool_calls(blocks_of(record.data.get("content"))))


def _findings(request: Request) -> tuple[str, ...]:
    """Return the findings of the check of a request, one line each."""
    from tui.context.validate import check_request  # noqa: PLC0415 - on demand

    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        **({"thinking": request.thinking} if request.thinking else {}),
    }
    return tuple(one.text for one in check_request(body))


def _asked_last(agent: Agent) -> str:
    """The newest prompt of a session, "" where there is none."""
    records = reversed(agent.session.records)
    prompts = (str(r.data["text"]) for r in records if r.type == "user" and r.data.get("text"))
    return next(prompts, "")
