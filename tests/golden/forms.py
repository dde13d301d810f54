"""The forms of the corpus: what the program makes of a session, as lines. One function each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import MISSING, fields
from io import StringIO
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from tests.golden.sessions import GoldenSession, Json
from tests.support.clock import FakeClock, ManualClock
from tui.agent.agent import Agent
from tui.app.services import SessionChoice
from tui.app.session_report import session_report
from tui.cli.acp.updates import SessionUpdates, Update
from tui.cli.print_mode import write_event
from tui.context.view import build
from tui.plain.fact_speaker import FactSpeaker
from tui.plain.frontend import PlainFrontend
from tui.provider.anthropic import convert
from tui.provider.base import Request
from tui.session.export import export
from tui.session.session import Session
from tui.ui.fact_renderer import FactRenderer
from tui.ui.screens.chat import ChatScreen
from tui.ui.widgets.bars import HeaderState, StatusState
from tui.ui.widgets.conversation.items import AssistantItem, Item, ThinkingItem
from tui.ui.widgets.record_items import restored

Lines = list[str]
_ROOT: Final = Path("/w")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


# Requests


def _request_lines(body: bytes, before: Lines) -> tuple[Lines, Lines]:
    """A request, of its messages those that are not as in the one `before`; and all of them."""
    made: Json = json.loads(body)
    assert _json(made).encode("utf-8", "surrogatepass") == body, "a line would hide a difference"
    messages = [_json(one) for one in made["messages"]]
    pairs = zip(before, messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    apart = {"messages": len(messages), "system": "below", "tools": "below"}
    head = [_json({name: apart.get(name, value) for name, value in made.items()})]
    head += [f"  {name} {_json(made[name])}" for name in ("system", "tools") if name in made]
    head += [f"  = the first {same} as before"] if same else []
    return [*head, *(f"  {line}" for line in messages[same:])], messages


def requests(session: GoldenSession) -> Lines:
    """The requests that an agent sent; of a file, the one that its records make."""
    bodies = session.bodies
    if not bodies:
        model = Session.of(session.loaded, clock=FakeClock()).model or "claude-sonnet-5-5"
        messages = build(session.loaded.branch, model=model).messages
        bodies = [convert.body(Request(model, [], messages, [], 1000))]
    told: Lines = []
    before: Lines = []
    for body in bodies:
        made, before = _request_lines(body, before)
        told += made
    return told


def records(session: GoldenSession) -> Lines:
    """The records as the reader has them: what `export jsonl` writes."""
    return export(session.loaded, "jsonl").text.splitlines()


# Live


def _printed(session: GoldenSession) -> tuple[Lines, Lines]:
    out, err = StringIO(), StringIO()
    for event in session.events:
        write_event(event, "stream-json", out, err)
    return out.getvalue().splitlines(), err.getvalue().splitlines()


def stream_json(session: GoldenSession) -> Lines:
    return _printed(session)[0]


def stderr(session: GoldenSession) -> Lines:
    """What `-p` prints on standard error."""
    return _printed(session)[1]


def dump(made: Item | HeaderState | StatusState) -> str:
    """An item or a bar by its fields that are not as in a new one."""
    told: Json = {}
    for one in fields(made):
        value = getattr(made, one.name)
        new = one.default_factory() if one.default_factory is not MISSING else one.default
        if value != new:
            told[one.name] = value
    return f"{type(made).__name__.removesuffix('Item')} {_json(told)}"


class _Conversation:
    """The items in the place of the view that draws them."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    @property
    def newest(self) -> Item | None:
        return self.items[-1] if self.items else None

    def stream(self, item: AssistantItem | ThinkingItem, text: str) -> None:
        item.text += text

    def finish(self, item: AssistantItem | ThinkingItem) -> None:
        item.streaming = False

    def take_out(self, item: Item) -> None:
        self.items = [one for one in self.items if one is not item]

    def changed(self, item: Item) -> None:
        pass


class _Part:
    """A part of the screen that only says what it is told."""

    def __init__(self, name: str, said: Lines) -> None:
        vars(self).update(name=name, said=said, todos=(), texts=())

    def __getattr__(self, name: str) -> Callable[..., str]:
        def tell(*args: object, **named: object) -> str:
            given = [getattr(one, "type", one) for one in args]
            given += [f"{key}={value}" for key, value in named.items() if value]
            self.said.append(f"{self.name}.{name} {_json(given)}")
            return "12:00"

        return tell

    def __setattr__(self, name: str, value: object) -> None:
        if vars(self).get(name) != value:
            self.said.append(f"{self.name}.{name} = {_json(value)}")
        vars(self)[name] = value

    if TYPE_CHECKING:
        name: str
        said: Lines


class _Screen(_Part):
    """A chat screen that is not drawn: `said` is what it was told besides the conversation."""

    def __init__(self) -> None:
        super().__init__("screen", [])
        vars(self).update(
            {
                name: _Part(name, self.said)
                for name in ("retry", "side", "output", "todos", "queued")
            }
        )
        vars(self).update(conversation=_Conversation(), clock=FakeClock())
        vars(self.side).update(in_sight=False)
        vars(self).update(activity=_Part("screen", self.said))
        vars(self).update(header=SimpleNamespace(state=HeaderState()))
        vars(self).update(status=SimpleNamespace(state=StatusState()))

    def add(self, item: Item) -> None:
        self.conversation.items.append(item)

    if TYPE_CHECKING:
        conversation: _Conversation
        header: SimpleNamespace
        status: SimpleNamespace


def screen_live(session: GoldenSession) -> Lines:
    """The items of the conversation, then what the rest of the screen was told."""
    if not session.events:
        return []
    screen = _Screen()
    renderer = FactRenderer(cast("ChatScreen", screen))
    for event in session.events:
        renderer.show(event)
    bars = [dump(screen.header.state), dump(screen.status.state)]
    return [*map(dump, screen.conversation.items), *bars, *screen.said]


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run what never waits for the loop, without the cost of one each time."""
    loop = _loop()
    loop.run_until_complete(work)


_loops: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    if not _loops:
        _loops.append(asyncio.new_event_loop())
    return _loops[0]


def plain_live(session: GoldenSession) -> Lines:
    """What plain lines say as it happens. Nothing is said of waits: the clock stands still."""
    said: Lines = []

    def say(*lines: str) -> None:
        said.extend(lines)

    async def speak() -> None:
        speaker = FactSpeaker(ManualClock(), say)
        for event in session.events:
            speaker.speak(event)
        speaker.stop()
        await asyncio.sleep(0)

    _run(speak())
    return [part for line in said for part in line.split("\n")]


def _updates(made: Sequence[Update]) -> Lines:
    return [_json(one.model_dump(mode="json", by_alias=True, exclude_none=True)) for one in made]


def acp_live(session: GoldenSession) -> Lines:
    """What an editor is told as it happens."""
    updates = SessionUpdates(_ROOT)
    return _updates([made for event in session.events for made, _ in updates.of(event)])


# From the record


def screen_resumed(session: GoldenSession) -> Lines:
    """The conversation as the screen has it of a file."""
    return [dump(item) for item in restored(session.loaded.branch).items]


def plain_resumed(session: GoldenSession) -> Lines:
    """What plain lines say of a session that is opened."""
    said: Lines = []

    def say(*lines: str) -> None:
        said.extend(lines)

    terminal = SimpleNamespace(say=say)
    frontend = cast("PlainFrontend", SimpleNamespace(terminal=terminal))
    opened = SimpleNamespace(session=Session.of(session.loaded, clock=FakeClock()))
    choice = SessionChoice(session.loaded.path)
    _run(PlainFrontend.show_session(frontend, cast("Agent", opened), choice))
    return [part for line in said for part in line.split("\n")]


def acp_loaded(session: GoldenSession) -> Lines:
    """What an editor is told of a session that it loads."""
    return _updates([*SessionUpdates(_ROOT).replayed(session.loaded.branch)])


def export_md(session: GoldenSession) -> Lines:
    return export(session.loaded, "md").text.split("\n")


_STYLE: Final = ("<style>", "</style>")


def export_html(session: GoldenSession) -> Lines:
    """The page without its style, which is the same in all."""
    text = export(session.loaded, "html").text
    before, rest = text.split(_STYLE[0], 1)
    return f"{before}{_STYLE[0]}{_STYLE[1]}{rest.split(_STYLE[1], 1)[1]}".split("\n")


def report_md(session: GoldenSession) -> Lines:
    return session_report(session.loaded, {}).text.split("\n")


Form = Callable[[GoldenSession], Lines]

EXACT: Final[dict[str, Form]] = {
    "requests": requests,
    "records": records,
    "stream-json": stream_json,
}
"""What may not change at all."""

LIVE: Final[dict[str, Form]] = {
    "screen-live": screen_live,
    "plain-live": plain_live,
    "stderr": stderr,
    "acp-live": acp_live,
}
"""What is shown of events."""

REPLAYED: Final[dict[str, Form]] = {
    "screen-resumed": screen_resumed,
    "plain-resumed": plain_resumed,
    "acp-loaded": acp_loaded,
    "export-md": export_md,
    "export-html": export_html,
    "report": report_md,
}
"""What is shown of records."""

FORMS: Final[dict[str, Form]] = {**EXACT, **LIVE, **REPLAYED}
