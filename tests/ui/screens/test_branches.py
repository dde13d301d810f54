"""/tree and the undo of a rewind: what was left is on the screen, and comes back with its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.provider import ScriptedProvider, call
from tests.support.provider import say as said
from tests.ui.screens.driving import items, running, say, until
from tests.ui.screens.test_rewind import RealWorld, choose, two_turns
from tui.app.services import SessionChoice
from tui.session.reader import read
from tui.ui.app import HoldfastApp
from tui.ui.screens.branches import BranchesScreen
from tui.ui.screens.picker import PickScreen
from tui.ui.toolkit.key_parser import DoubtfulKey
from tui.ui.widgets.conversation.items import NoticeItem, UserItem
from tui.ui.widgets.questions import ChoiceDialog

BOTH = ["write a", "change it"]


def prompts(app: HoldfastApp) -> list[str]:
    return [item.text for item in items(app, UserItem)]


def said_in(app: HoldfastApp) -> list[str]:
    return [item.text for item in items(app, NoticeItem)]


async def rewound(app: HoldfastApp, pilot: Pilot[None], world: RealWorld, answer: str) -> None:
    """Rewind before the last prompt, and clear the prompt that is put back."""
    await pilot.press("escape", "escape")
    count = len(world.real)
    await choose(app, pilot)
    await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
    await pilot.press(answer)
    await until(pilot, lambda: len(world.real) > count and app.chat.prompt.text == "change it")
    await until(pilot, lambda: any("Rewound 1 prompt" in text for text in said_in(app)))
    world.clock.elapsed += 1  # an Enter at once would be meant for the dialog


async def branches(app: HoldfastApp, pilot: Pilot[None], world: RealWorld) -> BranchesScreen:
    world.clock.elapsed += 1  # an Enter at once would be meant for a dialog before
    await say(pilot, "/tree")
    world.clock.elapsed += 1
    await until(pilot, lambda: isinstance(app.screen, BranchesScreen))
    screen = app.screen
    assert isinstance(screen, BranchesScreen)
    await until(pilot, lambda: bool(screen.rows.row_width))
    return screen


def shown(screen: BranchesScreen, count: int) -> list[str]:
    return [screen.rows.render_line(number).text.strip() for number in range(count)]


async def test_a_rewind_says_what_it_did_and_u_undoes_it_with_the_files(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        root = world.workspace
        await rewound(app, pilot, world, "f")
        (notice,) = [item for item in items(app, NoticeItem) if item.can_undo]
        assert notice.text == "Rewound 1 prompt, with the files."
        assert notice.hint == "/rewind undo takes you back; /tree shows all branches."
        assert (root / "a.txt").read_text() == "one\n"
        app.chat.conversation.focus()
        await pilot.press("u")
        await until(pilot, lambda: len(world.real) == 3 and prompts(app) == BOTH)
        assert (root / "a.txt").read_text() == "two\n"
        assert (root / "b.txt").read_text() == "new\n"
        await until(pilot, lambda: app.chat.prompt.text == "")
        await say(pilot, "/rewind undo")  # and what was undone is undone
        await until(pilot, lambda: len(world.real) == 4 and prompts(app) == ["write a"])
        assert (root / "a.txt").read_text() == "one\n"
        assert not (root / "b.txt").exists()
        path = world.real[-1].session.path
        assert path
        assert not read(path).findings


async def test_u_is_a_letter_again_once_something_was_sent(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await rewound(app, pilot, world, "c")
        await pilot.press("enter")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        app.chat.conversation.focus()
        await pilot.press("u")
        await until(pilot, lambda: app.chat.prompt.text == "u")
        assert len(world.real) == 2


async def test_a_held_u_undoes_once(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await rewound(app, pilot, world, "c")
        await pilot.press("ctrl+c")
        app.chat.conversation.focus()
        await pilot.press("u")
        await until(pilot, lambda: len(world.real) == 3 and prompts(app) == BOTH)
        app.chat.conversation.focus()
        await pilot.press("u", "u")
        await until(pilot, lambda: app.chat.prompt.text == "uu")
        assert len(world.real) == 3


async def test_a_text_that_begins_with_u_undoes_nothing(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await rewound(app, pilot, world, "c")
        await pilot.press("ctrl+c")
        app.chat.conversation.focus()
        app.post_message(DoubtfulKey(events.Key("u", "u"), follows=False))
        await until(pilot, lambda: app.chat.prompt.text == "u")
        assert len(world.real) == 2
        await pilot.press("ctrl+c")
        await branches(app, pilot, world)
        app.post_message(DoubtfulKey(events.Key("u", "u"), follows=False))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert len(world.real) == 2


async def test_a_number_of_nothing_is_said_to_be_none(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        for command in ("/rewind", "/tree"):
            for number in ("00000000199", "9" * 300):
                await say(pilot, f"{command} {number}")
                await until(pilot, lambda: number[:40] in app.chat.notice.text)  # noqa: B023
        assert len(world.real) == 1


async def test_the_tree_leads_to_any_branch_with_its_files_or_without(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        root = world.workspace
        await rewound(app, pilot, world, "f")
        await pilot.press("ctrl+c")
        await say(pilot, "something else")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        screen = await branches(app, pilot, world)
        first, second = shown(screen, 2)
        assert first.startswith("○ write a")
        assert first.endswith("2 files")
        assert second.startswith("└ ● something else")
        await pilot.press("up", "enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("f")
        await until(pilot, lambda: len(world.real) == 3 and prompts(app) == BOTH)
        assert (root / "a.txt").read_text() == "two\n"
        assert (root / "b.txt").exists()
        assert any(text.startswith("Switched to another branch, with") for text in said_in(app))
        screen = await branches(app, pilot, world)
        assert shown(screen, 2)[0].startswith("● write a")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("c")
        await until(pilot, lambda: prompts(app) == ["write a", "something else"])
        assert (root / "a.txt").read_text() == "two\n"


async def test_what_the_person_edited_meanwhile_is_left_alone(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        root = world.workspace
        await rewound(app, pilot, world, "f")
        (root / "a.txt").write_text("mine\n")
        await pilot.press("ctrl+c")
        await say(pilot, "/rewind undo")
        await until(pilot, (root / "b.txt").exists)
        await until(pilot, lambda: prompts(app) == BOTH)
        assert (root / "a.txt").read_text() == "mine\n"
        await until(pilot, lambda: "Restored 1 of 2 files." in said_in(app))


async def test_the_rewind_dialog_leads_to_the_tree(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("u")
        world.clock.elapsed += 1  # letters that come together are a text
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, BranchesScreen))
        await pilot.press("escape")
        assert app.screen is app.chat
        assert len(world.real) == 1


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True)


def one_turn(tmp_path: Path, command: str) -> RealWorld:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    provider = ScriptedProvider([call("run_command", command=command)], said("Done."))
    return RealWorld(root, provider)


async def asked(world: RealWorld, app: HoldfastApp, pilot: Pilot[None]) -> str:
    """Let the agent work, ask for a rewind, and return the question about the files."""
    await say(pilot, "do it")
    await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
    await say(pilot, "/rewind")
    world.clock.elapsed += 1
    await choose(app, pilot)
    await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
    screen = app.screen
    assert isinstance(screen, ChoiceDialog)
    return str(screen.query_one(".text", Static).render())


async def test_a_nested_repository_whose_git_is_gone_is_not_called_restored(
    tmp_path: Path,
) -> None:
    world = one_turn(tmp_path, "rm -rf lib")
    lib = world.workspace / "lib"
    git(world.workspace, "init", "-q", "lib")
    (lib / "code.py").write_text("x = 1\n")
    async with running(world, choice=SessionChoice()) as (app, pilot):
        text = await asked(world, app, pilot)
        assert "lib was a git repository of its own. Its files come back; its" in text
        await pilot.press("f")
        await until(pilot, lambda: (lib / "code.py").exists() and len(world.real) == 2)
        await until(pilot, lambda: "Restored 1 of 2 files." in said_in(app))
        (report,) = [item for item in items(app, NoticeItem) if item.text.startswith("Restored")]
        assert "lost           lib/.git · checkpoints leave it out" in report.detail
        assert not (lib / ".git").exists()
