"""What a person may do about a failed request: send it again, repair it, change key or model.

A wait is shortened by the banner's keys and by /retry. Where the same request would fail again, a
dialog shows what is wrong and the ways on; it opens by itself after the turn, and by /retry.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tui import choosing
from tui.agent.events import ErrorRaised
from tui.bridge import TurnEnded
from tui.context.ladder import Rung
from tui.desk import Desk
from tui.errors import HoldfastError
from tui.provider.base import Request
from tui.screens.recovery import RecoveryScreen, Trouble, Way
from tui.services import Agent, SessionChoice
from tui.session.records import Record

_TURNS = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})

_LADDER: Final[tuple[tuple[Rung, str, str], ...]] = (
    ("strict", "Repair and retry", "sends only what is plainly valid"),
    ("drop_thinking", "Drop thinking", "that, without what was thought"),
    ("text_only", "Only what was said", "that, with calls and results left out"),
    ("summary_only", "Summary only", "a digest of it all, and what you asked last"),
)
_RUNGS: Final[Mapping[str, tuple[Rung, Way]]] = {
    rung: (rung, Way(rung, label, text)) for rung, label, text in _LADDER
}
_NEW = Way("new", "New session", "this one stays; your prompt is laid ready")
_RETRY = Way("retry", "Try again", "sends the same request")
_MODEL = Way("model", "Another model", "choose one that takes it")
_KEY = Way("key", "Another key", "paste one, or name another server")
_CONTEXT = Way("context", "Look at the context", "mask what is large, then /retry")


@dataclass(frozen=True, slots=True)
class _Card:
    """How an error is told that would only come again."""

    title: str
    meaning: str
    ways: tuple[Way, ...]


_CARDS: Final[Mapping[str, _Card]] = {
    "invalid_request": _Card(
        "The server refused the request",
        "The same request would be refused again. The session itself is never changed by a"
        " repair, only what is sent of it.",
        (_NEW,),
    ),
    "context_overflow": _Card(
        "The conversation is too long for the model",
        "All that could be shortened has been.",
        (_MODEL, _CONTEXT, _NEW),
    ),
    "payload_too_large": _Card(
        "The request is too large",
        "All that could be shortened has been.",
        (_CONTEXT, _NEW),
    ),
    "auth": _Card("The server refused the key", "", (_KEY, _RETRY)),
    "billing": _Card("The account cannot pay for the request", "", (_RETRY, _KEY)),
    "not_found": _Card("Not found on the server", "", (_MODEL, _KEY, _RETRY)),
}


def turn_ended(desk: Desk, ended: TurnEnded) -> None:
    """After a turn: show the ways on where it failed by what would only come again."""
    if ended.outcome == "failed" and ended.error and desk.app.screen is desk.bridge.chat:
        _show(desk, ended.error)


async def retry(desk: Desk, argument: str) -> None:
    """/retry: do not wait any longer, or go on with the turn that stopped."""
    bridge = desk.bridge
    agent, say = bridge.agent, bridge.chat.notice.say
    other = argument.strip().lower() == "other"
    if agent is None:
        say("No session is open yet.")
    elif argument.strip() and not other:
        say("/retry sends it again now, /retry other with another model.", "warning")
    elif agent.other_model() if other else agent.retry_now():
        return
    elif bridge.busy:
        what = "switched from" if other else "waited for"
        say(f"There is nothing to be {what} now: the agent is at work.", hint="Esc stops it.")
    elif other:
        say("Nothing is waited for now.", hint="/model switches to another model.")
    elif failed := _refused(agent):
        _show(desk, failed)
    elif not (_unanswered(agent.session.records) and bridge.go_on()):
        say("There is nothing to send again: the last turn is complete.")


def _show(desk: Desk, error: ErrorRaised) -> None:
    """Show the ways on from an error, where there are any but sending the same again."""
    card, agent = _CARDS.get(error.error_class), desk.bridge.agent
    if card is None or agent is None:
        return
    _work(desk, _lead(desk, agent, _trouble(agent, card, error)))


def _trouble(agent: Agent, card: _Card, error: ErrorRaised) -> Trouble:
    record = _last_turn(agent.session.records)
    data: Mapping[str, Any] = record.data if record and record.type == "error" else {}
    status, id_ = data.get("status"), data.get("request_id")
    refused = error.error_class == "invalid_request"
    left = tuple(agent.offers()) if refused else ()
    tried = [rung for rung in _RUNGS if rung not in left] if refused else []
    ways = (*(_RUNGS[rung][1] for rung in left), *card.ways)
    if "key" in {way.name for way in ways} and agent.session.path is None:
        ways = tuple(way for way in ways if way is not _KEY)  # it is opened anew for that
    meaning = card.meaning or error.hint
    return Trouble(
        card.title,
        error.message,
        ways,
        meaning=meaning,
        status=status if isinstance(status, int) else None,
        request_id=id_ if isinstance(id_, str) else None,
        findings=_findings(agent.next_request()) if refused else None,
        before=tuple(_RUNGS[rung][1].label.lower() for rung in tried),
    )


async def _lead(desk: Desk, agent: Agent, trouble: Trouble) -> None:
    """Show the dialog and go the way that is chosen."""
    bridge = desk.bridge
    chat = bridge.chat
    screen = RecoveryScreen(trouble, chat.clock, chat.prompt.insert)
    name = await desk.app.push_screen_wait(screen)
    if name is None or bridge.agent is not agent:
        chat.notice.say("Everything is kept as it is.", hint="/retry shows the ways on again.")
        return
    if name in _RUNGS:
        for event in await agent.repair(_RUNGS[name][0]):
            bridge.presenter.show(event)
        bridge.go_on()
    elif name == "retry":
        bridge.go_on()
    elif name == "model":
        if await choosing.choose(desk):
            bridge.go_on()
    elif name == "key":
        await _other_key(desk, agent)
    elif name == "context":
        await desk.app.run_action("app.command('context')")
    else:
        await _begin_anew(desk, agent)


async def _other_key(desk: Desk, agent: Agent) -> None:
    """Ask for a key, then open the session with it and go on."""
    from tui.screens.welcome import WelcomeScreen  # noqa: PLC0415 - on demand

    services, path, problem = desk.bridge.services, agent.session.path, ""
    while True:
        why = "The server refused the key."
        screen = WelcomeScreen(services.probe_servers, why, problem)
        setup = await desk.app.push_screen_wait(screen)
        if setup is None:
            return
        try:
            said = await services.set_up(setup)
        except HoldfastError as error:
            problem = str(error)
            continue
        break
    await desk.bridge.close()  # it is opened again, by this program
    await desk.open_session(SessionChoice(path)).wait()
    desk.bridge.chat.notice.say(said, "success")
    desk.bridge.go_on()


async def _begin_anew(desk: Desk, agent: Agent) -> None:
    """A new session, with what was asked last laid ready in the prompt."""
    asked = (r for r in reversed(agent.session.records) if r.type == "user" and r.data.get("text"))
    last = next(asked, None)
    await desk.open_session(SessionChoice()).wait()
    if last is not None and not desk.bridge.chat.prompt.text:
        desk.bridge.chat.prompt.put(str(last.data["text"]))


def _refused(agent: Agent) -> ErrorRaised | None:
    """The error that the session stands at, where sending the same again is of no use."""
    last = _last_turn(agent.session.records)
    if last is None or last.type != "error" or last.data.get("error_class") != "invalid_request":
        return None
    data = last.data
    message, hint = str(data.get("message") or ""), str(data.get("hint") or "")
    return ErrorRaised("invalid_request", message, True, hint)


def _unanswered(records: Sequence[Record]) -> bool:
    """Whether something was asked that has no whole answer yet."""
    last = _last_turn(records)
    return last is not None and (last.type != "assistant" or _calls(last))


def _last_turn(records: Sequence[Record]) -> Record | None:
    return next((record for record in reversed(records) if record.type in _TURNS), None)


def _calls(record: Record) -> bool:
    from tui.messages import blocks_of, tool_calls  # noqa: PLC0415

    return bool(tool_calls(blocks_of(record.data.get("content"))))


def _findings(request: Request) -> tuple[str, ...]:
    """What the check says of a request, one line each."""
    from tui.context.check import check_request  # noqa: PLC0415 - on demand

    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        **({"thinking": request.thinking} if request.thinking else {}),
    }
    return tuple(f"{one.code}  {one.text}" for one in check_request(body))


def _work(desk: Desk, work: Coroutine[Any, Any, object]) -> None:
    desk.app.run_worker(work, group="recovery", exclusive=True)
