"""`/keys`: what a pressed key sends, is called and does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.clock import FakeClock
from tests.support.world import World
from tests.terminals import recorded
from tests.ui.screens.driving import running, say, until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, opened
from tests.ui.screens.test_own_keys import world_with
from tui.core.terminal_input import TerminalInput
from tui.ui.app import HoldfastApp
from tui.ui.screens.key_viewer import KeysScreen, spelled
from tui.ui.toolkit.key_parser import KeyParser

NAMED = b"\x1bP>|kitty(0.26.5)\x1b\\"
FLAGS = b"\x1b[?1u"


async def sent(app: HoldfastApp, pilot: Pilot[None], *reads: bytes) -> None:
    """Let the terminal send this, with a pause after each read."""
    clock = FakeClock()
    parser = KeyParser(str, now=clock.monotonic, watched=app.takeover.watched)
    for read in reads:
        messages = [*parser.feed(read)]
        clock.elapsed += 3.0
        messages += parser.tick()
        for message in messages:
            message.set_sender(app)
            app.post_message(message)
    await pilot.pause()


@asynccontextmanager
async def watching(
    world: World | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None], Callable[[], list[str]]]]:
    """The app with the panel open, and what the panel says."""
    async with running(world or World(), size) as (app, pilot):
        await say(pilot, "/keys")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen))
        panel = app.screen

        def rows() -> list[str]:
            texts = [str(part.content) for part in panel.query(Static)]
            return [" ".join(line.split()) for line in "\n".join(texts).split("\n")]

        yield app, pilot, rows


@pytest.mark.parametrize(
    ("read", "name", "how"),
    [
        (b"\x1f", "Ctrl+_ undo", "^_ · legacy"),
        (b"\x1b[45;6u", "Ctrl+_ undo", "ESC [ 4 5 ; 6 u · kitty protocol"),
        (b"\x1b[27;2;13~", "Shift+Enter new line", "ESC [ 2 7 ; 2 ; 1 3 ~ · modifyOtherKeys"),
        (b"\x1bOQ", "F2 context: what the model sees", "ESC O Q · legacy"),
        ("é".encode(), "é types “é”", "c3 a9 · legacy"),
        ("\u3000".encode(), "U+3000 types U+3000", "e3 80 80 · legacy"),
        (b" ", "Space types a space", "SP · legacy"),
        (b"\x17", "Ctrl+W delete left to start of word", "^W · legacy"),
        (b"\x1bk", "Alt+K nothing here", "ESC k · legacy"),
        (b"\x1b[<0;5;7M", "Mouse left down column 5, row 7", "ESC [ < 0 ; 5 ; 7 M · mouse"),
        (b"\x1b[200~a\nb\x1b[201~", "Paste pastes 3 characters in 2 lines", "a LF b · paste"),
        (
            b"\x1b[57441;2:3u",
            "Modifier nothing alone",
            "ESC [ 5 7 4 4 1 ; 2 : 3 u · kitty protocol",
        ),
        (b"\x1b[I", "Focus the terminal gets the focus", "ESC [ I · report"),
        (b"\x1b[99y", "Unknown not understood", "ESC [ 9 9 y · legacy"),
        (b"\x1b[12", "Unknown not understood yet", "ESC [ 1 2 · legacy"),
        (b"\x1b[12\x07", "Unknown not understood: an unfinished sequence", "ESC [ 1 2 · legacy"),
    ],
)
async def test_a_key_is_shown_with_its_bytes_and_what_it_does(
    read: bytes, name: str, how: str
) -> None:
    async with watching() as (app, pilot, rows):
        await sent(app, pilot, read)
        shown = rows()
        assert any(row.startswith(name) for row in shown), shown
        assert any(row == how for row in shown), shown
        assert app.chat.prompt.text == ""


async def test_the_head_says_which_terminal_it_is_and_what_protocol_is_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-kitty")
    monkeypatch.setenv("TERM_PROGRAM", "")
    async with watching() as (app, pilot, rows):
        assert rows()[:2] == ["Terminal xterm-kitty", "Protocol legacy"]
        await sent(app, pilot, NAMED, FLAGS)
        assert rows()[:3] == [
            "Terminal xterm-kitty · kitty(0.26.5)",
            "Protocol kitty protocol, flags 1",
            "Press any key.",
        ]
        await sent(app, pilot, b"\x1b[?0u", b"\x1b[>4;2m")
        assert rows()[1] == "Protocol modifyOtherKeys 2"


async def test_own_keys_are_named_by_what_they_do() -> None:
    async with watching(world_with(find="ctrl+t", tasks="")) as (app, pilot, rows):
        await sent(app, pilot, b"\x14", b"\x06")
        assert "Ctrl+T find in the conversation" in rows()
        assert "Ctrl+F move cursor right" in rows() or "Ctrl+F nothing here" in rows()


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_no_key_acts_until_the_second_of_those_that_close(key: str) -> None:
    async with watching() as (app, pilot, _):
        for other in ("f1", "ctrl+q", "ctrl+p", "f12", "enter", "a", key, "f2"):
            await pilot.press(other)
        assert isinstance(app.screen, KeysScreen)
        assert app.chat.prompt.text == ""
        await pilot.press(key)
        box = app.screen.query_one("#box")
        assert "again to close" in str(box.border_subtitle)
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)
        assert not app.takeover.watched.is_set()
        await sent(app, pilot, b"b")
        assert app.chat.prompt.text == "b"


async def test_a_panel_is_no_higher_than_a_small_terminal() -> None:
    async with watching(size=(40, 10)) as (app, pilot, rows):
        await sent(app, pilot, *(b"\x1b[%d;5u" % code for code in range(97, 110)))
        box = app.screen.query_one("#box")
        assert box.region.bottom <= 10
        assert rows()[2].startswith("Ctrl+")


def test_all_that_terminals_have_sent_is_in_the_parts_byte_by_byte() -> None:
    for reply in recorded("query", "key", "mouse", "focus"):
        clock = FakeClock()
        source = TerminalInput(clock.monotonic)
        parts = [*source.feed(reply.data)]
        clock.elapsed += 3.0
        parts += source.tick()
        if any(part.kind == "dropped" for part in parts) or reply.data[0] >= 0x80:
            continue  # told in pieces; an introducer of one byte becomes one of two
        assert "".join(part.raw for part in parts) == reply.data.decode("utf-8", "surrogateescape")


def test_long_input_is_spelled_to_where_it_fits() -> None:
    assert spelled("\x1b[A\udcff") == "ESC [ A ff"
    assert spelled("x" * 1234).endswith(" x … (1,234 bytes)")


def shown_keys(*reads: bytes) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        stage.monkeypatch.setenv("TERM", "xterm-kitty")
        for name in ("TERM_PROGRAM", "TERM_PROGRAM_VERSION"):
            stage.monkeypatch.delenv(name, raising=False)

        async def drive(pilot: Pilot[None]) -> None:
            await opened(pilot)
            await say(pilot, "/keys")
            app = pilot.app
            assert isinstance(app, HoldfastApp)
            await until(pilot, lambda: isinstance(app.screen, KeysScreen))
            await sent(app, pilot, NAMED, FLAGS, *reads)

        return stage.app(World()), drive

    return make


PICTURES: Pictures = {
    "keys": Picture(
        KeysScreen,
        shown_keys(
            b"\x1b[45;6u",
            "ж".encode(),
            b"\x1b[1089::99;5u",
            b"\x1b[200~def f():\n    return 1\n\x1b[201~",
            b"\x1b[99y",
        ),
    )
}


@each_of(PICTURES)
def test_pictures(picture: Picture, take: Take) -> None:
    take(picture)
