"""`B` in views of diffs and files: where the line comes from, and the way to its session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.session.checkpoints.store as store_module
from tests.support import blame_world
from tests.support.clock import ManualClock
from tests.support.idle import threads_held
from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import ROOMY, begun, running, say, turn, until
from tests.ui.screens.test_approval_of_calls import asked_about
from tui.app.commands import why
from tui.app.conversation import Conversation
from tui.app.services import SessionChoice
from tui.context.ledger_items import Item
from tui.core.errors import HoldfastError
from tui.session import catalog
from tui.session.copies import write_session
from tui.session.reader import read
from tui.session.records import Header
from tui.ui.app import HoldfastApp
from tui.ui.screens.context_item import ContextItemScreen, ItemTexts
from tui.ui.screens.read_screen import FileScreen, show_file
from tui.ui.screens.read_session import ReadSessionScreen
from tui.ui.screens.reports import DiffScreen
from tui.ui.screens.why import WhyScreen
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.items import ToolItem, UserItem


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[blame_world.World]:
    """A file with a line of the person's, lines of before, and a last line by a call under the
    second prompt."""
    monkeypatch.setattr(store_module, "time", store_module.time)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "told" / "home"))
    told = blame_world.World(tmp_path / "told", 1)
    told.put(told.root, [("first", "person"), *told.lines()])
    told.commit(words="my own line")
    session = told.session()
    session.prompt()
    session.edit("edit_file", [*told.lines(), ("last", "")])
    session.save()
    yield told
    told.close()


@pytest.fixture
def world(told: blame_world.World) -> World:
    return World(told.root)


def diff_of(told: blame_world.World, *rows: str, name: str = "src/module.py") -> str:
    """A diff in which the file's last lines are, each row with its sign."""
    first = len(told.lines()) - len(rows) + 1
    head = f"--- a/{name}\n+++ b/{name}\n@@ -{first},1 +{first},{len(rows)} @@\n"
    return head + "\n".join(rows)


def said(app: HoldfastApp) -> str:
    assert isinstance(app.screen, WhyScreen)
    return "\n".join(line.plain for line in app.screen.lines(76))


def seen(app: HoldfastApp) -> str:
    """All that is on the screen."""
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    return "\n".join(strip.text for strip in strips)


def toasts(app: HoldfastApp) -> str:
    """What the notifications say, which a test's screen doesn't draw."""
    told = app._notifications  # pyright: ignore[reportPrivateUsage]
    return "\n".join(one.message for one in told)


def foot(screen: WhyScreen) -> str:
    return str(screen.query_one("#box").border_subtitle)


async def asked(app: HoldfastApp, pilot: object, diff: str) -> WhyScreen:
    """Ask about the line in sight of a diff on a screen of its own."""
    app.push_screen(DiffScreen("changes", diff))
    await until(pilot, lambda: isinstance(app.screen, DiffScreen))  # type: ignore[arg-type]
    await pilot.press("B")  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(app.screen, WhyScreen))  # type: ignore[arg-type]
    screen = app.screen
    assert isinstance(screen, WhyScreen)
    await until(pilot, lambda: screen.step is not None or screen.problem is not None)  # type: ignore[arg-type]
    return screen


async def test_a_line_of_a_diff_names_its_prompt_call_and_price(
    told: blame_world.World, world: World
) -> None:
    last = len(told.lines())
    async with running(world) as (app, pilot):
        screen = await asked(app, pilot, diff_of(told, "+last"))
        title, keys = screen.explained
        assert title == f"Why src/module.py:{last}"
        assert [key for key, _ in keys] == ["enter", "f", "← →", "y", "↑ ↓", "esc"]
        rows = dict(line.split(maxsplit=1) for line in said(app).splitlines())
        assert rows["code"] == "last"
        assert rows["prompt"].startswith("“Please do part 2")
        assert rows["call"] == "edit_file, allowed by a rule"
        assert rows["model"] == "claude-sonnet-5-5, $0.0030 for the request"
        assert rows["session"] == told.sessions[0].id
        await pilot.press("left")
        assert screen.explained[0] == f"Why src/module.py:{last - 1}"
        assert "From before the first state that is known" in " ".join(said(app).split())
        await pilot.press("escape")
        assert isinstance(app.screen, DiffScreen)


async def test_enter_reads_the_session_at_the_prompt_and_r_resumes_it(
    told: blame_world.World, world: World
) -> None:
    session = told.sessions[0]
    async with running(world) as (app, pilot):
        await asked(app, pilot, diff_of(told, "+last"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadSessionScreen))
        screen = app.screen
        assert isinstance(screen, ReadSessionScreen)
        await until(pilot, lambda: screen.view.cursor is not None)
        item = screen.view.cursor
        assert isinstance(item, UserItem)
        assert item.text == f"Please do part 2 of {session.id}"
        await pilot.press("r")
        await until(pilot, lambda: len(world.chosen) > 1)
        assert world.chosen[-1] == SessionChoice(session.file, message=session.prompts[1][0])
        assert app.screen is app.chat


async def test_a_copied_answer_has_no_key_in_it(told: blame_world.World, world: World) -> None:
    key = "sk-ant-api03-" + "B" * 40
    file = told.sessions[0].file
    file.write_text(file.read_text().replace("Please do part 2", f"Use {key}"))
    async with running(world) as (app, pilot):
        screen = await asked(app, pilot, diff_of(told, "+last"))
        await pilot.press("y")
        assert "“Use [secret removed] of " in app.clipboard
        assert key not in app.clipboard
        assert "Removed 1 secret from the copy." in foot(screen)


async def test_f_continues_in_a_copy_from_before_the_prompt(
    told: blame_world.World, world: World
) -> None:
    async with running(world) as (app, pilot):
        before = set(catalog.files(told.folders))
        await asked(app, pilot, diff_of(told, "+last"))
        await pilot.press("f")
        await until(pilot, lambda: "part 2" in app.chat.prompt.text)
        (copy,) = set(catalog.files(told.folders)) - before
        prompts = [one.data["text"] for one in read(copy).branch if one.type == "user"]
        assert prompts == [f"Please do part 1 of {told.sessions[0].id}"]
        assert app.screen is app.chat


async def test_no_session_is_opened_while_the_agent_works(
    told: blame_world.World, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(world) as (app, pilot):
        before = catalog.files(told.folders)
        screen = await asked(app, pilot, diff_of(told, "+last"))
        with monkeypatch.context() as patch:
            patch.setattr(Conversation, "busy", property(lambda _: True))
            await pilot.press("f")
            await until(pilot, lambda: "Stop the agent first" in foot(screen))
        assert catalog.files(told.folders) == before


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        ("+was here once", "This line isn't in module.py any more."),
        ("+was here once", "/why src/module.py answers about those that are."),
        ("+", "module.py has this line"),
        ("+", "Ask about one by its number: /why src/module.py:"),
        ("-was here once", "This line isn't in module.py any more."),
    ],
)
async def test_a_line_that_is_not_there_by_now_says_so(
    told: blame_world.World, world: World, diff: str, words: str
) -> None:
    told.put(told.root, [*told.lines(), ("", ""), ("", ""), ("end", "")])
    async with running(world) as (app, pilot):
        await asked(app, pilot, diff_of(told, diff))
        assert words in " ".join(said(app).split())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.py", None, "gone.py isn't there any more."),
        ("folder", "", "it is a folder, not a file"),
        ("binary", b"\0\1", "binary is a binary file"),
        ("empty", b"", "empty is empty"),
    ],
)
async def test_a_file_that_has_no_lines_to_tell_of_says_why(
    told: blame_world.World, world: World, name: str, content: str | bytes | None, words: str
) -> None:
    path = told.root / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    async with running(world) as (app, pilot):
        await asked(app, pilot, diff_of(told, "+last", name=name))
        assert words in " ".join(said(app).split())
        await pilot.press("enter", "f", "y", "left", "n")
        assert isinstance(app.screen, WhyScreen)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a  b.py", "a b.py"),
        ("nl\nx.py", "nl x.py"),
        ("nl\nx.py", "nl\\nx.py"),
        ("bidi\u202egnp.py", "bidignp.py"),
        ("esc\x1b[2Jx.py", "esc\\x1b[2Jx.py"),
        ("~backup.py", "~backup.py"),
    ],
)
async def test_a_file_with_an_odd_name_answers_by_the_name_that_is_shown(
    told: blame_world.World, world: World, name: str, shown: str
) -> None:
    (told.root / "src" / "module.py").rename(told.root / name)
    async with running(world) as (app, pilot):
        screen = await asked(app, pilot, diff_of(told, "+last", name=shown))
        assert screen.problem is None
        assert said(app).split()[:2] == ["code", "last"]
        assert not {"\u202e", "\x1b"} & {*screen.explained[0]}


async def test_of_two_files_that_are_shown_alike_none_is_guessed(
    told: blame_world.World, world: World
) -> None:
    for name in ("a  b.py", "a   b.py"):
        (told.root / name).write_text("last\n")
    async with running(world) as (app, pilot):
        await asked(app, pilot, diff_of(told, "+last", name="a b.py"))
        assert "a b.py isn't there any more." in said(app)


async def test_a_path_that_cannot_be_followed_is_not_called_deleted(
    told: blame_world.World, world: World
) -> None:
    (told.root / "loop").symlink_to("loop")
    async with running(world) as (app, pilot):
        await asked(app, pilot, diff_of(told, "+last", name="loop/module.py"))
        assert "Can't read loop/module.py: Too many levels" in " ".join(said(app).split())


async def test_a_long_look_shows_a_sign_and_escape_stops_it(
    told: blame_world.World, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.clock = ManualClock()
    began, stopped = threading.Event(), threading.Event()

    def slow(*given: object) -> None:
        began.set()
        stop = given[-1]
        assert isinstance(stop, threading.Event)
        stop.wait(30)
        stopped.set()

    monkeypatch.setattr(why, "located", slow)
    async with running(world) as (app, pilot):
        app.push_screen(DiffScreen("changes", diff_of(told, "+last")))
        await until(pilot, lambda: isinstance(app.screen, DiffScreen))
        with threads_held():
            await pilot.press("B")
            await until(pilot, began.is_set)
            assert "last" in said(app), "the line is named at once"
            assert "Reading" not in said(app)
            world.clock.advance(0.25)
            await until(pilot, lambda: "Reading the sessions…" in said(app))
            await pilot.press("escape")
            await until(pilot, stopped.is_set)
        assert isinstance(app.screen, DiffScreen)


async def test_a_session_that_is_gone_is_said_in_words(
    told: blame_world.World, world: World
) -> None:
    async with running(world) as (app, pilot):
        screen = await asked(app, pilot, diff_of(told, "+last"))
        told.sessions[0].file.unlink()
        await pilot.press("enter")
        await until(pilot, lambda: "Session not found" in foot(screen))
        await pilot.press("f")
        await until(pilot, lambda: "Session not found" in app.chat.notice.text)


async def title_after_b(app: HoldfastApp, pilot: object) -> str:
    await pilot.press("B")  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(app.screen, WhyScreen))  # type: ignore[arg-type]
    screen = app.screen
    assert isinstance(screen, WhyScreen)
    await until(pilot, lambda: screen.step is not None)  # type: ignore[arg-type]
    return screen.explained[0]


async def test_a_card_answers_also_from_the_answer_below_it(
    told: blame_world.World, world: World
) -> None:
    last = len(told.lines())
    async with running(world) as (app, pilot):
        app.chat.add(
            ToolItem("one", "edit_file", state="ok", diff=diff_of(told, "+last"), folded=False)
        )
        await begun(app, pilot)
        app.chat.conversation.focus()
        app.chat.conversation.go_to(app.chat.conversation.items[-1])
        assert await title_after_b(app, pilot) == f"Why src/module.py:{last}"
        await pilot.press("escape")
        read = ToolItem(
            "two", "read_file", state="ok", input={"path": "src/module.py", "offset": 3}
        )
        app.chat.add(read)
        app.chat.conversation.go_to(read)
        assert await title_after_b(app, pilot) == "Why src/module.py:3"


async def test_a_conversation_without_a_file_says_so(world: World) -> None:
    async with running(world) as (app, pilot):
        await begun(app, pilot)
        app.chat.conversation.focus()
        await pilot.press("k")
        await until(pilot, lambda: "y copy" in seen(app))
        assert "B why" not in seen(app)
        await pilot.press("B")
        await until(pilot, lambda: "Choose an edit" in seen(app))


async def test_the_output_beside_the_conversation_answers(
    told: blame_world.World, world: World
) -> None:
    last = len(told.lines())
    async with running(world, ROOMY) as (app, pilot):
        await begun(app, pilot)
        app.chat.side.show("Edit", diff_of(told, "+last"), diff=True)
        await pilot.pause()
        app.chat.output.focus()
        await until(pilot, lambda: "B why" in seen(app))
        assert await title_after_b(app, pilot) == f"Why src/module.py:{last}"
        await pilot.press("escape")
        app.chat.side.show("Run", "12 passed\n")
        app.chat.conversation.focus()
        await pilot.pause()
        app.chat.output.focus()
        await until(pilot, lambda: "12 passed" in seen(app) and "o open" in seen(app))
        assert "B why" not in seen(app)


async def test_a_file_that_is_shown_answers_for_its_first_line_in_sight(
    told: blame_world.World, world: World
) -> None:
    async with running(world) as (app, pilot):
        show_file(app, told.root / "src" / "module.py")
        await until(pilot, lambda: isinstance(app.screen, FileScreen))
        await pilot.pause()
        assert await title_after_b(app, pilot) == "Why src/module.py:1"
        await pilot.press("escape", *["j"] * 4)
        await pilot.pause()
        texts = [text for text, _ in told.lines()]
        first = next(n for n, text in enumerate(texts, 1) if n > 4 and text.strip())
        assert await title_after_b(app, pilot) == f"Why src/module.py:{first}"


async def test_what_the_model_read_of_a_file_answers_in_f2(
    told: blame_world.World, world: World
) -> None:
    item = Item("r", "result", "read_file", 10, "full")
    text = "7\t\n8\tdef x():\n"
    async with running(world) as (app, pilot):
        screen = ContextItemScreen(
            item, ItemTexts(text, text), told.root, 1000, file="src/module.py"
        )
        app.push_screen(screen)
        await until(pilot, lambda: "def x()" in seen(app))
        assert "B why" in seen(app)
        await pilot.press("B")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        assert isinstance(app.screen, WhyScreen)
        assert app.screen.explained[0] == "Why src/module.py:8"


async def test_an_approval_answers_for_the_line_that_goes_and_stays_open(
    told: blame_world.World, world: World
) -> None:
    """`B` asks, and nothing in its screens answers the question beneath."""
    edit = {"path": "src/module.py", "old_string": "last\n", "new_string": "final\n"}
    world.scripts.append(turn(Ask(*await asked_about(told.root, "edit_file", **edit))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        world.clock.elapsed += 0.6
        question = app.screen
        assert await title_after_b(app, pilot) == f"Why src/module.py:{len(told.lines())}"
        screen = app.screen
        assert isinstance(screen, WhyScreen)
        await until(pilot, lambda: "Please do part 2" in seen(app))
        await pilot.press("f")
        await until(pilot, lambda: "Stop the agent first" in foot(screen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadSessionScreen))
        await pilot.press("r", "escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is question)
        assert world.agent.answers == []


async def test_b_held_down_or_pressed_again_while_it_reads_asks_once(
    told: blame_world.World, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks: list[object] = []
    release = threading.Event()

    def slow(*given: object) -> None:
        asks.append(given[0])
        release.wait(30)
        raise HoldfastError("no answer")

    monkeypatch.setattr(why, "located", slow)
    async with running(world) as (app, pilot):
        app.push_screen(DiffScreen("changes", diff_of(told, "+last")))
        await until(pilot, lambda: isinstance(app.screen, DiffScreen))
        with threads_held():
            await pilot.press(*["B"] * 50)
            await until(pilot, lambda: bool(asks))
            release.set()
        await until(pilot, lambda: "no answer" in seen(app))
        assert len(asks) == 1
        await pilot.press("escape")
        assert isinstance(app.screen, DiffScreen)


async def test_a_sub_agents_session_is_read_but_not_forked(
    told: blame_world.World, world: World
) -> None:
    parent = told.sessions[0]
    child = told.session()
    child.prompt()
    child.edit("edit_file", [*told.lines(), ("by the sub-agent", "")])
    header = Header(
        child.id, told.clock.iso(), str(told.root), "holdfast test", parent_session=parent.id
    )
    write_session(
        parent.file.with_suffix("") / f"20260101T000000Z-{child.id}.jsonl", header, child.records
    )
    async with running(world) as (app, pilot):
        screen = await asked(app, pilot, diff_of(told, "+by the sub-agent"))
        assert [key for key, _ in screen.explained[1]][:2] == ["enter", "← →"]
        await pilot.press("f")
        await until(pilot, lambda: "A sub-agent wrote it" in foot(screen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadSessionScreen))
        await until(pilot, lambda: f"Please do part 2 of {child.id}" in seen(app))
        assert f"session {child.id} · read-only here" in seen(app)
        assert "f fork" not in seen(app)
        await pilot.press("f")
        await until(pilot, lambda: "A sub-agent wrote it" in toasts(app))
        assert isinstance(app.screen, ReadSessionScreen)


async def test_enter_in_the_own_session_goes_to_the_prompt_in_the_chat(
    told: blame_world.World, world: World
) -> None:
    """In the chat no copy of it is shown to read; above another screen it is."""
    session = told.sessions[0]
    session.prompt()
    session.save()
    last = ToolItem("one", "edit_file", state="ok", diff=diff_of(told, "+last"), folded=False)
    async with running(world, choice=SessionChoice(session.file)) as (app, pilot):
        view = app.chat.conversation
        await until(pilot, lambda: len(view.items) > 2)
        app.chat.add(last)
        view.focus()
        view.go_to(last)
        await title_after_b(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat)
        item = view.cursor
        assert isinstance(item, UserItem)
        assert item.text == f"Please do part 2 of {session.id}"
        assert view.has_focus
        await asked(app, pilot, diff_of(told, "+last"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadSessionScreen))
