"""Before there is a session: no key, an unknown folder, the browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual import events as keys
from textual.widgets import Input, OptionList, Static

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.app.dialog_data import Account, KeySetup, PracticeSetup, ServerSetup
from tui.app.services import SessionChoice
from tui.core.errors import CredentialsError, StorageError
from tui.settings.local_servers import LocalServer
from tui.settings.trust import TrustItem
from tui.ui.app import HoldfastApp
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.screens.welcome import WelcomeScreen
from tui.ui.widgets.questions import ChoiceDialog

OLLAMA = LocalServer("Ollama", "http://127.0.0.1:11434", ("llama3.2", "qwen3"))

MODEL_SET = TrustItem("model", "Sets model = x", "1")


def keyless(*, times: int = 1) -> World:
    world = World()
    world.refusals.extend(CredentialsError("No API key found.") for _ in range(times))
    return world


async def test_a_paste_without_a_field_says_so() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("down", "down")
        app.post_message(keys.Paste("sk-ant-secret"))
        problem = app.screen.query_one("#problem", Static)
        await until(pilot, lambda: "belongs first" in str(problem.render()))
        assert app.chat.prompt.value == ""


async def test_a_pasted_key_is_kept_and_the_session_opens() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        assert "No API key found." in str(app.screen.query_one("#name", Static).render())
        app.screen.post_message(keys.Paste("  sk-ant-secret \n"))
        await until(pilot, lambda: app.screen.query_one("#key", Input).value == "sk-ant-secret")
        assert app.screen.query_one("#key", Input).password
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [KeySetup("sk-ant-secret")]
        assert app.screen is app.chat
        assert app.chat.notice.text.endswith("Kept in the keyring.")


async def test_what_is_typed_before_a_field_was_entered_gets_there() -> None:
    async with running(keyless()) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        for key in "sk-ant":
            app.post_message(keys.Key({"-": "minus"}.get(key, key), key))
        await until(pilot, lambda: app.screen.query_one("#key", Input).value == "sk-ant")
        assert app.screen.query_one("#key", Input).has_focus


async def test_on_the_smallest_terminal_every_choice_is_in_sight_in_one_row() -> None:
    async with running(keyless(), (40, 10)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.pause()
        choices = app.screen.find_widget(app.screen.query_one("#choices"))
        assert choices.visible_region == choices.region
        assert choices.region.height == app.screen.query_one("#choices", OptionList).option_count
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "No API key found." in str(app.screen.query_one("#name", Static).render())


async def test_on_a_narrow_terminal_every_choice_is_described_in_whole_words() -> None:
    world = keyless()
    world.account = Account(sign_in="work")
    world.servers = (LocalServer("Ollama", "http://127.0.0.1:11434", ("llama3.2", "qwen3")),)
    async with running(world, (40, 24)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        choices = app.screen.query_one("#choices", OptionList)
        await until(pilot, lambda: choices.option_count == 6)
        assert [str(option.prompt) for option in choices.options] == [
            "Sign-in work         signed in",
            "Anthropic            paste a key",
            "Ollama               llama3.2, qwen3",
            "Another server       by address",
            "Practice model       offline",
            "Take the tour first  5 minutes",
        ]
        await pilot.press("down", "down")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert choices.highlighted_option == choices.options[2]
        assert str(choices.options[2].prompt) == "Ollama, on this machine   llama3.2, qwen3"


async def test_a_profile_is_asked_for_the_key_of_its_own_server() -> None:
    world = keyless()
    world.account = Account("work", ServerSetup("http://127.0.0.1:1", "m-1", ""))
    async with running(world, (80, 24)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        head = str(app.screen.query_one("#name", Static).render())
        assert "Connect a model for profile work" in head
        world.clock.elapsed += 1
        first = app.screen.query_one("#choices", OptionList).options[0]
        assert str(first.prompt) == "127.0.0.1:1               paste its key"
        key = app.screen.query_one("#server-key", Input)
        app.screen.post_message(keys.Paste("sk-" + "w" * 40))
        await until(pilot, lambda: bool(key.value))
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.set_up_with))
        assert world.set_up_with == [ServerSetup("http://127.0.0.1:1", "m-1", "sk-" + "w" * 40)]


async def test_on_the_smallest_terminal_a_problem_is_in_sight() -> None:
    world = keyless()
    async with running(world, (40, 10)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("enter", "enter")
        await pilot.pause()
        problem = app.screen.find_widget(app.screen.query_one("#problem"))
        assert problem.visible_region == problem.region
        assert problem.region.height == 1


async def test_a_letter_where_no_field_is_wanted_means_nothing() -> None:
    async with running(keyless()) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("down", "down", "x")
        assert app.screen.query_one("#choices").has_focus
        assert not any(field.value for field in app.screen.query(Input))


async def test_a_key_never_shows_in_a_repr() -> None:
    assert "sk-ant" not in repr(KeySetup("sk-ant-secret"))
    assert "sk-ant" not in repr(ServerSetup("http://x", "m", "sk-ant-secret"))


async def test_an_empty_key_is_asked_for_again() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("enter", "enter")
        assert "Paste a key first." in str(app.screen.query_one("#problem", Static).render())
        assert world.set_up_with == []


async def test_the_practice_model_needs_one_choice() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("end", "up", "enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [PracticeSetup()]


async def test_another_server_is_checked_before_it_is_taken() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("down", "enter", *"ftp://gateway", "enter")
        problem = app.screen.query_one("#problem", Static)
        assert "http://" in str(problem.render())
        app.screen.query_one("#base-url", Input).value = "https://gateway.example/"
        await pilot.press("enter")
        assert "Enter a model name" in str(problem.render())
        await pilot.press("m", "1", "enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [ServerSetup("https://gateway.example", "m1")]


async def test_an_address_without_a_scheme_is_taken_and_shown() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("down", "enter", *"localhost:4000/", "enter")
        assert app.screen.query_one("#base-url", Input).value == "http://localhost:4000"
        assert app.screen.query_one("#model", Input).has_focus
        await pilot.press("m", "enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [ServerSetup("http://localhost:4000", "m")]


async def test_a_server_of_this_machine_is_offered_by_name() -> None:
    world = keyless()
    world.servers = (OLLAMA,)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        choices = app.screen.query_one(OptionList)
        await until(pilot, lambda: choices.option_count == 5)
        assert "Ollama" in str(choices.get_option_at_index(1).prompt)
        await pilot.press("down", "enter")
        assert app.screen.query_one("#model", Input).has_focus
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [ServerSetup(OLLAMA.base_url, "llama3.2")]


async def test_what_could_not_be_kept_is_said_and_asked_again() -> None:
    world = keyless()
    world.set_up_refusals.append(StorageError("Can't write the file."))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("enter", "k", "enter")
        await until(pilot, lambda: len(world.set_up_with) == 1)
        screen = app.screen
        assert isinstance(screen, WelcomeScreen)
        await until(
            pilot, lambda: "Can't write" in str(screen.query_one("#problem", Static).render())
        )
        assert app.screen.query_one("#key", Input).value == "k"
        await pilot.press("1", "enter")
        await until(pilot, lambda: bool(world.agents))
        assert world.set_up_with == [KeySetup("k"), KeySetup("k1")]


async def test_while_a_key_is_checked_it_says_so_and_escape_gives_up() -> None:
    world = keyless()
    world.set_up_hold = Hold()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        problem = app.screen.query_one("#problem", Static)
        await pilot.press("enter", "k", "enter")
        await until(pilot, lambda: len(world.set_up_with) == 1)
        assert "Checking the key…" in str(problem.render())
        await pilot.press("escape")
        assert str(problem.render()) == ""
        world.set_up_hold.release()
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)
        assert world.agents == []


async def test_escape_leaves_the_welcome_screen_and_the_program() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += 1
        await pilot.press("enter", "escape", "escape")
        await pilot.pause()
        await until(pilot, lambda: not isinstance(app.screen, WelcomeScreen))
    assert world.agents == []
    assert app.return_code == 0


async def test_30_a_folder_that_brings_files_is_asked_about_once() -> None:
    world = World()
    world.undecided = (MODEL_SET,)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert world.agents == []
        world.clock.elapsed += 1
        await pilot.press("y")
        await until(pilot, lambda: bool(world.agents))
        assert world.granted == [{"model"}]


async def test_what_is_being_typed_when_a_question_comes_is_the_prompts() -> None:
    world = World()
    world.undecided = (MODEL_SET,)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("y", "e", "s", "enter")  # the fake clock stands still
        assert isinstance(app.screen, ChoiceDialog)
        assert app.chat.prompt.text == "yes"
        for _ in range(2):  # with a draft in the prompt, the first press only marks the answer
            assert isinstance(app.screen, ChoiceDialog)
            world.clock.elapsed += 3
            await pilot.press("escape")
        await until(pilot, lambda: bool(world.agents))
        assert (world.granted, app.chat.prompt.text) == ([set()], "yes")


async def test_30_enter_and_escape_do_not_trust() -> None:
    for key in ("enter", "escape", "n"):
        world = World()
        world.undecided = (MODEL_SET,)
        async with running(world) as (app, pilot):
            await until(pilot, lambda app=app: isinstance(app.screen, ChoiceDialog))
            world.clock.elapsed += 1
            await pilot.press(key)
            await until(pilot, lambda world=world: bool(world.agents))
            assert world.granted == [set()]


def browser(app: HoldfastApp) -> SessionsScreen:
    assert isinstance(app.screen, SessionsScreen)
    return app.screen


async def test_the_browser_comes_first_when_it_was_asked_for() -> None:
    world = World()
    world.add_row("the one", hours=1)
    async with running(world, choice=None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await until(pilot, lambda: bool(browser(app).shown))
        await pilot.press("enter")
        await until(pilot, lambda: world.chosen == [SessionChoice(world.rows[0].path)])


async def test_leaving_the_browser_begins_a_new_session() -> None:
    world = World()
    async with running(world, choice=None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: world.chosen == [SessionChoice()])


async def test_the_browser_filters_as_one_types() -> None:
    world = World()
    for n, title in enumerate(("fix the test", "read the manual", "fix the typo")):
        world.add_row(title, hours=n + 1)
    async with running(world) as (app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        screen = browser(app)
        await until(pilot, lambda: len(screen.shown) == 3)
        await pilot.press("f", "i", "x", "space", "t", "y")
        await until(pilot, lambda: len(screen.shown) == 1)
        await pilot.press("z")
        await until(pilot, lambda: len(screen.shown) == 0)
        assert "No session title matches" in str(app.screen.query_one("#empty").render())
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.shown) == 3)
        await pilot.press("down", "down", "up", "enter")
        await until(pilot, lambda: world.chosen[-1] == SessionChoice(world.rows[1].path))


async def test_a_theme_that_does_not_exist_is_said_and_replaced() -> None:
    async with running(World(), theme="mauve") as (app, _):
        assert app.theme == "midnight"
        assert "no such theme" in app.chat.notice.text


async def test_a_theme_with_a_wrong_colour_is_used_and_said(own_folders: Path) -> None:
    folder = own_folders / "config" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('[colors]\nprimary = "#abcdef"\naccent = "?"\n')
    async with running(World(), theme="mine") as (app, _):
        assert app.theme == "mine"
        assert "colors.accent" in app.chat.notice.text


async def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    def colours(svg: str) -> set[str]:
        styles = svg.split("</style>", maxsplit=1)[0]
        found = set(re.findall(r"-r\d+ \{ fill: #(\w{6})", styles))
        return found - {"c5c8c6"}  # the picture's own, of its line ends

    async with running(World()) as (app, _):
        assert any(len({c[:2], c[2:4], c[4:]}) > 1 for c in colours(app.export_screenshot()))
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(World()) as (app, _):
        left = colours(app.export_screenshot())
        assert all(len({c[:2], c[2:4], c[4:]}) == 1 for c in left)  # reverse, and the picture's
        assert len(left) <= 2


async def test_30_trust_is_chosen_one_by_one_and_decided_anew() -> None:
    world = World()
    rule = TrustItem("permissions.allow: edit_file", "Allows without asking: edit_file", "2")
    world.undecided = (MODEL_SET, rule)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press("c")
        await until(pilot, lambda: "1 of 2" in titled(app))
        world.clock.elapsed += 1
        await pilot.press("n")
        await until(pilot, lambda: "2 of 2" in titled(app))
        world.clock.elapsed += 1
        await pilot.press("y")
        await until(pilot, lambda: bool(world.agents))
        assert world.granted == [{rule.name}]
        await say(pilot, "/trust")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("y")
        await until(pilot, lambda: len(world.granted) == 2)
        assert world.granted[-1] == {MODEL_SET.name, rule.name}


def titled(app: HoldfastApp) -> str:
    return app.screen.title_text if isinstance(app.screen, ChoiceDialog) else ""
