"""/mcp: how the servers stand; tools on and off, restart, the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.call_host import UNCALLED
from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.agent.agent_servers import AgentServers
from tui.agent.request.break_cost import SwitchPrice
from tui.app import passing_questions
from tui.app.reports import Row
from tui.core.config import McpServer
from tui.core.errors import StorageError, ToolError
from tui.tools.mcp import Server
from tui.tools.mcp.oauth import OpenPage
from tui.tools.mcp.redirect import Paste
from tui.tools.mcp.tool import McpTool
from tui.ui.app import HoldfastApp
from tui.ui.screens import mcp_sign_in
from tui.ui.screens.mcp import McpScreen
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.widgets.questions import Confirmation


class Restarts(Server):
    restarts = 0

    async def restart(self) -> None:
        self.restarts += 1
        self.state, self.detail = "ready", "time 2.0"


class Listed:
    """A tool as a server lists it."""

    title = output_schema = None
    input_schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - read only

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description


def tool(server: str, name: str, description: str) -> McpTool:
    listed: Any = Listed(name, description)
    return McpTool(server, listed, UNCALLED)


def servers(folder: Path) -> tuple[Restarts, ...]:
    command = McpServer(command=("uvx", "mcp-server-time"))
    time = Restarts("time", command, folder, folder / "mcp-time.log", state="ready")
    time.detail = "mcp-time 1.26.0"
    time.tools = (
        tool("time", "convert_time", "Convert time between timezones."),
        tool("time", "get_current_time", "Get the current time in a timezone."),
    )
    docs = Restarts("docs", McpServer(url="http://127.0.0.1:3911/mcp"), folder, folder / "none.log")
    docs.state, docs.detail = "failed", "All connection attempts failed"
    return docs, time


def about(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#about", Static).content)


def log(pilot: Pilot[None]) -> str:
    shown = pilot.app.screen.query(".text")
    return str(shown.first(Static).content) if shown else ""


async def opened(pilot: Pilot[None]) -> McpScreen:
    await say(pilot, "/mcp")
    await until(pilot, lambda: isinstance(pilot.app.screen, McpScreen))
    screen = pilot.app.screen
    assert isinstance(screen, McpScreen)
    return screen


@pytest.mark.parametrize("size", [(40, 10), (60, 20)], ids=str)
@pytest.mark.parametrize("some", [True, False], ids=["servers", "none"])
async def test_rows_and_keys_are_in_sight_on_a_small_screen(
    tmp_path: Path, size: tuple[int, int], *, some: bool
) -> None:
    async with running(World(mcp=servers(tmp_path) if some else ()), size) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("down", "enter", "down")
        box = screen.query_one("#box")
        assert box.region.bottom <= size[1]
        assert box.region.right <= size[0]
        assert "close" in str(box.border_subtitle)
        if some:
            assert screen.rows.size.height >= 3
            rows = [screen.rows.render_line(y).text.rstrip() for y in range(3)]
            about_tool = rows[2].partition("convert_time")[2].strip().removesuffix("…")
            words = ["Convert", "time", "between", "timezones."]
            assert about_tool.split() == words[: len(about_tool.split())]


async def test_servers_are_drawn_again_only_when_they_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    docs, time = servers(tmp_path)
    async with running(World(mcp=(docs, time))) as (_, pilot):
        screen = await opened(pilot)
        drawn: list[None] = []
        draw = screen.draw

        def counted(rows: Sequence[Row] | None = None) -> None:
            drawn.append(None)
            draw(rows)

        monkeypatch.setattr(screen, "draw", counted)
        screen.follow()
        assert not drawn
        docs.detail = "gone"
        screen.follow()
        assert len(drawn) == 1
        time.switched_off.add("convert_time")
        screen.follow()
        screen.follow()
        assert len(drawn) == 2


async def test_tools_are_listed_and_switched_off_and_on(tmp_path: Path):
    docs, time = servers(tmp_path)
    async with running(World(mcp=(docs, time))) as (_, pilot):
        screen = await opened(pilot)
        assert "All connection attempts failed" in about(pilot)
        await pilot.press("down", "enter", "down")
        assert "mcp__time__convert_time: available to the model" in about(pilot)
        await pilot.press("space")
        assert time.switched_off == {"convert_time"}
        assert "hidden from the model" in about(pilot)
        time.detail = "another"
        screen.draw()
        assert "mcp__time__convert_time" in about(pilot)  # the cursor stays on its row
        await pilot.press("space", "up", "enter")
        assert time.switched_off == set()
        assert docs.switched_off == set()
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, McpScreen)


async def test_a_tool_is_switched_in_what_every_request_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = World(mcp=servers(tmp_path))
    async with running(world) as (_, pilot):
        await opened(pilot)
        await pilot.press("n", "w", "down", "enter", "down")
        hides = "space hides it: applies from the first request on."
        await until(pilot, lambda: hides in about(pilot))
        await pilot.press("n")  # nothing was sent: there is nothing to begin again
        assert world.mcp[1].switched_off == set()
        session = world.agent.session
        price = SwitchPrice(
            "calls to it are refused, at no cost", "−40 tokens per request; so much"
        )

        async def asked(_: object, tool: object) -> SwitchPrice:
            return price

        monkeypatch.setattr(AgentServers, "price_of_switch", asked)
        await pilot.press("down", "up")
        too = "n switches it in the cached part too: −40 tokens per request; so much."
        await until(pilot, lambda: too in about(pilot))
        await pilot.press("w")
        assert world.mcp[1].switched_off == {"convert_time"}
        assert [r.type for r in session.records if r.type == "reload"] == ["reload"]
        await pilot.press("n")
        assert world.mcp[1].switched_off == set()
        assert [r.type for r in session.records if r.type == "reload"] == ["reload"]


async def test_a_server_is_restarted(tmp_path: Path):
    docs, time = servers(tmp_path)
    async with running(World(mcp=(docs, time))) as (_, pilot):
        await opened(pilot)
        await pilot.press("r")
        await until(pilot, lambda: docs.restarts == 1)
        assert "time 2.0" in about(pilot)
        assert time.restarts == 0


async def test_the_log_is_shown_and_is_never_markup_or_control(tmp_path: Path):
    docs, time = servers(tmp_path)
    time.log_file.write_text("x" * 100_000 + "\n[bold]ready\x1b[2J\n")
    async with running(World(mcp=(docs, time))) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadScreen))
        assert log(pilot) == "The server has written nothing."
        await pilot.press("escape", "down", "o")
        await until(pilot, lambda: "[bold]ready" in log(pilot))
        assert "\x1b" not in log(pilot)
        assert len(log(pilot)) < 70_000
        await pilot.press("escape")
        assert screen.rows.has_focus


async def test_without_servers_it_says_how_to_name_one():
    async with running(World()) as (_, pilot):
        screen = await opened(pilot)
        assert screen.query_one("#none").display
        await pilot.press("space", "r", "o", "enter", "escape")
        assert not isinstance(pilot.app.screen, McpScreen)


def nothing(_: str) -> str:
    """Opens no page."""
    return ""


class Vault:
    """Keeps what any program stores, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.kept.get(name)

    def put(self, name: str, text: str) -> object:
        self.kept[name] = text
        return None

    def remove(self, name: str) -> None:
        self.kept.pop(name, None)

    def mark(self) -> object:
        return dict(self.kept)


class AsksToSignIn(Restarts):
    """Shows an address, takes what is pasted, and refuses anything but "right"."""

    signed_in = False

    async def sign_in(self, open_page: OpenPage, paste: Paste | None = None) -> None:
        await open_page("https://door.test/authorize?state=1")
        assert paste
        if await paste() != "right":
            raise ToolError("This address doesn't belong to the sign-in that was begun.")
        self.signed_in = True
        self.state, self.detail = "ready", "door 1"


def asking(folder: Path) -> AsksToSignIn:
    config = McpServer(url="https://door.test")
    return AsksToSignIn("door", config, folder, folder / "x.log", vault=Vault())


@pytest.mark.parametrize("opens", [True, False])
async def test_signing_in_shows_the_address_and_takes_what_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, opens: bool
):
    monkeypatch.setattr(mcp_sign_in, "open_page", {True: str, False: nothing}[opens])
    door = asking(tmp_path)
    door.state, door.detail = "needs sign-in", "it needs you to sign in"
    world = World(mcp=(door,))
    async with running(world) as (_, pilot):
        screen = await opened(pilot)
        assert "sign in" in screen.rows.render_line(0).text
        assert "sign in" in str(screen.query_one("#box").border_subtitle)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, mcp_sign_in.McpSignInDialog))
        dialog = pilot.app.screen

        def text(name: str) -> str:
            return str(dialog.query_one(name, Static).content)

        await until(pilot, lambda: "https://door.test/authorize?state=1" in text("#address"))
        assert ("Sign in in your browser" if opens else "Open in a browser") in text("#what")
        await pilot.press(*"wrong", "enter")  # as typed ahead: it sends nothing
        await until(
            pilot, lambda: "Press Enter again" in str(dialog.query_one("#box").border_subtitle)
        )
        assert not text("#problem")
        world.clock.elapsed += 1
        await pilot.press("enter")
        await until(pilot, lambda: "doesn't belong to the sign-in" in text("#problem"))
        await pilot.press("enter", *"right", "enter")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert door.signed_in
        assert "ready" in screen.rows.render_line(0).text


async def test_a_sign_in_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mcp_sign_in, "open_page", nothing)
    door = asking(tmp_path)
    door.state = "needs sign-in"
    async with running(World(mcp=(door,))) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, mcp_sign_in.McpSignInDialog))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert not door.signed_in


async def test_the_question_goes_once_another_window_has_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    said: list[str] = []

    def notify(_: HoldfastApp, text: str, **_options: object) -> None:
        said.append(text)

    monkeypatch.setattr(HoldfastApp, "notify", notify)
    monkeypatch.setattr(passing_questions, "LOOK_S", 0.03)
    monkeypatch.setattr(mcp_sign_in, "open_page", nothing)
    door = asking(tmp_path)
    door.state = "needs sign-in"
    async with running(World(mcp=(door,))) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(pilot.app.screen, mcp_sign_in.McpSignInDialog))
        await pilot.press("x")  # what is being pasted is not cut short
        assert door.vault is not None
        door.vault.put("mcp https://door.test", '{"client": {}}')
        door.vault.put("mcp https://door.test", '{"client": {}, "tokens": {"access_token": "t"}}')
        await pilot.pause(0.2)
        assert isinstance(pilot.app.screen, mcp_sign_in.McpSignInDialog)
        await pilot.press("backspace")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert door.restarts == 1
        assert not door.signed_in
        assert said == ["Signed in to door in another window."]


class SignedIn(Restarts):
    """Has tokens until it is signed out, which fails where the test says so."""

    tokens, fails = True, False

    @property
    def has_tokens(self) -> bool:
        return self.tokens

    async def sign_out(self) -> None:
        if self.fails:
            raise StorageError("The keyring is locked.")
        self.tokens = False
        self.state, self.detail = "needs sign-in", "it needs you to sign in"


async def test_signing_out_asks_first(tmp_path: Path):
    door = SignedIn("door", McpServer(url="https://door.test"), tmp_path, tmp_path / "x.log")
    door.state, door.detail = "ready", "door 1"
    async with running(World(mcp=(door,))) as (_, pilot):
        screen = await opened(pilot)
        assert "sign out" in str(screen.query_one("#box").border_subtitle)
        await pilot.press("L")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirmation))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert door.tokens
        await pilot.press("L")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirmation))
        await pilot.press("y")
        await until(pilot, lambda: pilot.app.screen is screen)
        await until(pilot, lambda: not door.tokens)
        await until(pilot, lambda: "sign in" in screen.rows.render_line(0).text)
        assert "sign in" in str(screen.query_one("#box").border_subtitle)
        await pilot.press("L")
        assert pilot.app.screen is screen


async def test_a_sign_out_that_fails_says_why(tmp_path: Path):
    door = SignedIn("door", McpServer(url="https://door.test"), tmp_path, tmp_path / "x.log")
    door.state, door.fails = "ready", True
    async with running(World(mcp=(door,))) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("L")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirmation))
        await pilot.press("y")
        await until(pilot, lambda: pilot.app.screen is screen)
        await until(pilot, lambda: "The keyring is locked." in about(pilot))
        assert door.tokens
