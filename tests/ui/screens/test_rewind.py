"""Rewind: the session branches inside its file, the prompt comes back, and so do the files."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.agents import Yes, make_agent
from tests.support.provider import ScriptedProvider, call
from tests.support.provider import say as said
from tests.support.world import World, WorldServices
from tests.ui.screens.driving import NARROW, WIDE, items, running, say, until
from tui.agent.agent import Agent
from tui.app.branch_switch import restore_files
from tui.app.services import SessionChoice
from tui.context.file_changes import FileChange
from tui.core.paths import folders
from tui.permissions.types import Approver
from tui.session.checkpoints.store import store_of
from tui.session.reader import read
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.picker import PickScreen
from tui.ui.widgets.conversation.items import NoticeItem, UserItem
from tui.ui.widgets.questions import ChoiceDialog


class RealWorld(World):
    """Real agents on a scripted model, with sessions on the disk."""

    def __init__(self, workspace: Path, provider: ScriptedProvider) -> None:
        super().__init__(workspace)
        self.provider = provider
        self.real: list[Agent] = []

    def services(self) -> WorldServices:
        async def make(choice: SessionChoice, approver: Approver) -> Agent:
            del approver
            self.chosen.append(choice)
            if choice.path is None:
                session = Session.create(self.workspace, folders=folders(), clock=self.clock)
            else:
                session = await asyncio.to_thread(Session.open, choice.path, clock=self.clock)
            agent = make_agent(
                self.workspace,
                self.provider,
                session=session,
                clock=self.clock,
                approver=Yes(),
                open_checkpoints=lambda: store_of(folders(), self.workspace),
            )
            self.real.append(agent)
            return agent

        return replace(super().services(), make_agent=make)


@asynccontextmanager
async def two_turns(tmp_path: Path) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None], RealWorld]]:
    """The first prompt writes a.txt, the second changes it and writes b.txt."""
    (tmp_path / "work").mkdir()
    provider = ScriptedProvider(
        [call("write_file", path="a.txt", content="one\n")],
        said("Written."),
        [
            call("edit_file", path="a.txt", old_string="one", new_string="two"),
            call("write_file", path="b.txt", content="new\n"),
        ],
        said("Changed."),
        said("Again."),
    )
    world = RealWorld(tmp_path / "work", provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        for text in ("write a", "change it"):
            await say(pilot, text)
            await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        yield app, pilot, world


async def choose(app: HoldfastApp, pilot: Pilot[None], *keys: str) -> None:
    await until(pilot, lambda: isinstance(app.screen, PickScreen))
    await pilot.press(*keys, "enter")


async def commands_over(app: HoldfastApp, pilot: Pilot[None]) -> None:
    """Wait until no command runs, which might yet ask something."""
    await until(pilot, lambda: not any(w.group == "command" and w.is_running for w in app.workers))


@pytest.mark.parametrize(
    ("size", "count"),
    [(WIDE, "1 file changed since"), (NARROW, "1 file changed since"), ((40, 10), "1 file")],
    ids=str,
)
async def test_the_list_shows_what_changed_since_a_long_prompt(
    tmp_path: Path, size: tuple[int, int], count: str
) -> None:
    (tmp_path / "work").mkdir()
    provider = ScriptedProvider([call("write_file", path="a.txt", content="one")], said("Done."))
    world = RealWorld(tmp_path / "work", provider)
    prompt = "write a file and " + "say every single thing that you have done in it " * 9
    async with running(world, size, choice=SessionChoice()) as (app, pilot):
        app.chat.prompt.insert(prompt)
        await pilot.press("enter")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        screen = app.screen
        assert isinstance(screen, PickScreen)
        await until(pilot, lambda: bool(screen.rows.row_width))
        row = screen.rows.render_line(0).text.rstrip()
        assert row.endswith(f"  {count}")
        shortened = row.removesuffix(count).split(maxsplit=1)[1].rstrip()
        assert shortened.endswith("…")
        assert shortened.removesuffix("…").split() == prompt.split()[: shortened.count(" ") + 1]


async def test_33_the_conversation_and_the_files_go_back(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        root = world.workspace
        assert (root / "a.txt").read_text() == "two\n"
        path = world.real[-1].session.path
        assert path
        before = len(read(path).records)
        await pilot.press("escape", "escape")
        await choose(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("f")
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == "change it")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert (root / "a.txt").read_text() == "one\n"
        assert not (root / "b.txt").exists()
        assert [item.text for item in items(app, UserItem)] == ["write a"]
        loaded = read(path)
        assert not loaded.findings
        assert len(loaded.records) > before, "nothing was taken out of the file"
        assert world.real[-1].session.path == path
        await commands_over(app, pilot)
        world.clock.elapsed += 1
        await pilot.press("enter")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        texts = [r.data.get("text") for r in read(path).branch if r.type == "user"]
        assert texts == ["write a", "change it"]
        asked = world.provider.requests[-1].messages
        assert "Changed." not in str(asked)


async def test_only_the_conversation_goes_back_where_that_is_wanted(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await say(pilot, "/rewind")
        world.clock.elapsed += 1
        await choose(app, pilot, "up")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("c")
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == "write a")
        assert (world.workspace / "a.txt").read_text() == "two\n"
        assert items(app, UserItem) == []


async def test_a_file_that_somebody_changed_since_is_left_alone(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        (world.workspace / "a.txt").write_text("mine\n")
        await say(pilot, "/undo")
        world.clock.elapsed += 1
        await choose(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("f")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert (world.workspace / "a.txt").read_text() == "mine\n"
        assert not (world.workspace / "b.txt").exists()
        assert "changed since" in items(app, NoticeItem)[-1].detail


async def test_escape_stays(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await say(pilot, "/rewind")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("escape")
        assert app.screen is app.chat
        assert len(world.real) == 1


async def test_one_escape_alone_rewinds_nothing(tmp_path: Path) -> None:
    async with two_turns(tmp_path) as (app, pilot, world):
        await pilot.press("escape")
        assert "Esc again" in app.chat.notice.text
        world.clock.elapsed += 3
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_there_is_nothing_to_rewind_in_a_new_session(tmp_path: Path) -> None:
    async with running(World(tmp_path)) as (app, pilot):
        await say(pilot, "/rewind")
        assert "Nothing to rewind" in app.chat.notice.text
        await pilot.press("escape", "escape")
        assert app.screen is app.chat


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_what_only_a_record_says_is_not_restored(tmp_path: Path) -> None:
    """A session file of somebody else names what git, another session or anybody would run."""
    root = tmp_path / "work"
    copies = root / ".holdfast" / "tool-results"
    for folder in (copies, root / ".git" / "hooks", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(tmp_path / "elsewhere")
    copy, planted = copies / "c1.before", root / "evil"
    for path in (copy, planted):
        path.write_text("evil")
    named = {
        ".git/hooks/pre-commit": copy,
        "sub/.GIT/hooks/pre-commit": copy,
        ".holdfast/config.toml": copy,
        ".claude/settings.json": copy,
        "link/a.txt": copy,
        "../elsewhere/a.txt": copy,
        "a.txt": planted,
        "b.txt": copies / ".." / "tool-results" / "c1.before",
    }
    found = [
        FileChange(root / name, source, sha256("evil"), None, mode=0o755)
        for name, source in named.items()
    ]
    done = restore_files(found, root, copies)
    assert {one.outcome for one in done} == {"failed"}
    assert (
        done[0].detail == "nothing in .git is brought back: hooks and settings there run programs"
    )
    assert done[-2].detail == "the copy that it names isn't one of Holdfast's"
    assert not any(os.path.lexists(root / name) for name in named)


def test_a_file_that_was_deleted_comes_back_from_its_own_copy(tmp_path: Path) -> None:
    copies = tmp_path / ".holdfast" / "tool-results"
    copies.mkdir(parents=True)
    (copies / "c1.before").write_text("text")
    change = FileChange(tmp_path / "a.sh", copies / "c1.before", sha256("text"), None, mode=0o4755)
    (done,) = restore_files([change], tmp_path, copies)
    assert done.outcome == "restored"
    assert (tmp_path / "a.sh").stat().st_mode & 0o7777 == 0o755


async def test_files_outside_the_workspace_are_never_touched(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere.txt"
    outside.write_text("new")
    (tmp_path / "work").mkdir()
    change = FileChange(outside, None, None, sha256("new"))
    (done,) = restore_files([change], tmp_path / "work", tmp_path)
    assert done.outcome == "failed"
    assert outside.read_text() == "new"


async def test_what_a_command_changed_goes_back_and_comes_again(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "gone").mkdir()
    (root / "gone" / "b").write_text("b")
    provider = ScriptedProvider(
        [call("run_command", command="echo two > a.txt; rm -r gone; mkdir new; echo 3 > new/c")],
        said("Done."),
    )
    world = RealWorld(root, provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await say(pilot, "do it")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        (root / "mine").write_text("by me")
        await say(pilot, "/rewind")
        world.clock.elapsed += 1
        await choose(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        shown = str(app.screen.query_one("#details > Static").render())
        assert "new/c · new: will be deleted" in shown
        assert "gone/b · deleted: will be restored" in shown
        assert "mine · edited outside" in shown
        await pilot.press("f")
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == "do it")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        names = sorted(path.name for path in root.rglob("*") if ".holdfast" not in path.parts)
        assert names == ["a.txt", "b", "gone", "mine"]
        assert (root / "a.txt").read_text() == "one\n"
        await commands_over(app, pilot)
        world.clock.elapsed += 1
        await pilot.press("ctrl+c")
        await say(pilot, "/rewind undo")
        await until(pilot, (root / "new" / "c").exists)
        assert (root / "a.txt").read_text() == "two\n"
        assert not (root / "gone").exists()
        assert (root / "mine").read_text() == "by me"


async def test_what_export_wrote_is_no_change_to_take_back(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    world = RealWorld(root, ScriptedProvider(said("Done."), said("Again.")))
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await say(pilot, "do it")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        await say(pilot, "/export")
        await say(pilot, "/export html")
        await until(pilot, lambda: len(list(root.glob("session-*"))) == 2)
        await say(pilot, "/rewind 1")
        await until(pilot, lambda: len(world.real) == 2)
        assert app.screen is app.chat
        assert len(list(root.glob("session-*"))) == 2
        await pilot.press("ctrl+c")
        (root / "mine").write_text("by me")
        await say(pilot, "go")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        (root / "mine").write_text("by me, too")
        await say(pilot, "/rewind 1")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        shown = str(app.screen.query_one("#details > Static").render())
        assert shown == "mine · edited outside"
