"""The keys and commands that the program promises exist, do something, and are in the help."""

from __future__ import annotations

from importlib import import_module

import pytest
from textual.binding import Binding

from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.app.commands import find
from tui.app.commands.table import COMMANDS
from tui.ui.app import HoldfastApp
from tui.ui.commands.views import VIEWS
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.help import HelpScreen, HelpTable
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.dialog import Dialog
from tui.ui.widgets.prompt import Prompt

COMMANDS_PROMISED = (
    "/help /new(/clear) /resume(/sessions) /rename /fork /rewind(/undo) /export /copy /compact"
    " /uncompact /context /output /prune /pin /memory /status /usage(/cost) /model /retry /think"
    " /effort /verbose /elevated /plan /todos /permissions /add-dir /mcp /theme /config /diff /init"
    " /btw(/side) /tasks /repair /vim /doctor /tour /drill /quit(/exit)"
)
SHOWN = (
    "Enter", "Shift+Enter, Ctrl+J", "Esc", "Esc Esc", "Ctrl+C", "Ctrl+D", "Ctrl+Z", "Shift+Tab",
    "Ctrl+P", "Ctrl+O", "Ctrl+R", "Ctrl+G", "Ctrl+T", "F1", "F2", "F3", "F4", "F5", "F12",
    "PgUp, PgDn", "Up, Down", "/, @", "!, !!",
)  # fmt: skip
BOUND = (
    "shift+enter ctrl+j ctrl+d ctrl+z ctrl+r ctrl+g pageup pagedown escape shift+tab ctrl+o ctrl+t"
    " f1 f2 f3 f4 f5 f12 ctrl+c ctrl+p"
)
TWINS = {"f1": "help", "f2": "context", "f3": "sessions", "f4": "output", "f12": "verbose"}


def promised() -> list[tuple[str, str]]:
    """Each name with the command that it stands for."""
    found: list[tuple[str, str]] = []
    for word in COMMANDS_PROMISED.split():
        name, _, alias = word.removesuffix(")").partition("(")
        found.append((name[1:], name[1:]))
        found += [(alias[1:], name[1:])] if alias else []
    return found


@pytest.mark.parametrize(("name", "of"), promised())
def test_every_command_exists_and_leads_somewhere(name: str, of: str) -> None:
    command = find(name)
    assert command is not None
    assert command.name == of
    module, function = f"tui.app.{command.module}", command.name.replace("-", "_")
    shown = command.name in VIEWS
    assert shown or command.directive or callable(getattr(import_module(module), function))
    assert command.help


def test_no_name_means_two_things() -> None:
    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    assert len(names) == len(set(names))


def bound(*owners: type[object]) -> set[str]:
    """The keys that are bound by classes and those that they are made from."""
    return {
        key
        for owner in owners
        for one in owner.mro()
        for binding in getattr(one, "BINDINGS", ())
        if isinstance(binding, Binding)
        for key in binding.key.split(",")
    }


@pytest.mark.parametrize("key", BOUND.split())
def test_every_key_is_bound(key: str) -> None:
    known = bound(Prompt, ChatScreen, HoldfastApp)
    assert key in known


def test_an_approval_is_answered_by_a_digit() -> None:
    assert {"1", "2", "3", "4"} <= bound(ApprovalModal)


@pytest.mark.parametrize("name", TWINS.values())
def test_every_function_key_has_a_twin(name: str) -> None:
    assert find(name)


def first_section(app: HoldfastApp) -> str:
    return str(app.screen.query_one(HelpTable).render()).splitlines()[0]


@pytest.mark.parametrize(
    ("key", "section"),
    [("f2", "Context"), ("f3", "Sessions"), ("f12", "Debug view")],
)
async def test_f1_shows_first_what_works_on_the_screen(key: str, section: str) -> None:
    async with running(World()) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat)
        under = app.screen
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert first_section(app).startswith(section)
        assert first_section(app).endswith("here")
        await pilot.press("f1")
        assert app.screen is under


async def test_f1_follows_the_focus_in_the_chat() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert first_section(app).startswith("Prompt")
        await pilot.press("f1")
        app.chat.conversation.focus()
        await until(pilot, lambda: "enter send" not in app.chat.status.render().plain)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert first_section(app).startswith("Conversation and output")


async def test_f1_explains_a_dialog_that_no_table_does() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, Dialog))
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert first_section(app) == "theme  ● here"


async def test_all_of_it_is_in_the_help() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        text = str(app.screen.query_one(HelpTable).render())
        missing = [name for name, _ in promised() if f"/{name}" not in text]
        missing += [key for key in SHOWN if not any(
            line.startswith(key) for line in text.splitlines()
        )]  # fmt: skip
        assert missing == []
