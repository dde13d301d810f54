"""Images in the prompt: pasted, dropped, from the clipboard; kept, queued, brought back."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from textual import events as keys
from textual.pilot import Pilot

from tests.context.pictures import jpeg, png
from tests.support.provider import ScriptedProvider
from tests.support.provider import say as said
from tests.support.script import Hold
from tests.support.world import OldSession, World, old_path, record
from tests.ui.screens.driving import app_of, items, running, say, session_open, turn, until
from tests.ui.screens.test_rewind import RealWorld, choose
from tui.app import drafts
from tui.app.services import SessionChoice
from tui.core.clipboard import Clip
from tui.core.images import MAX_FILE, of_bytes
from tui.core.paths import folders
from tui.session.drafts import UnsentWork
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.context import ContextScreen
from tui.ui.widgets.conversation.items import UserItem
from tui.ui.widgets.questions import ChoiceDialog

WORD = "[image 1: shot.png 1280×800 37 B]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shot.png").write_bytes(png(1280, 800))
    (folder / "a b.jpg").write_bytes(jpeg(20, 10))
    (folder / "notes.md").write_text("# Notes")
    return folder


async def paste(app: HoldfastApp, pilot: Pilot[None], text: str) -> None:
    app.chat.prompt.post_message(keys.Paste(text))
    await settle(app, pilot)


async def settle(app: HoldfastApp, pilot: Pilot[None]) -> None:
    """Until everything that was pasted has been looked at."""
    await pilot.pause()
    await until(pilot, lambda: not any(worker.group == "attach" for worker in app.workers))


def holding(app: HoldfastApp, *clips: Clip) -> None:
    """A clipboard that holds one thing after the other."""
    left = list(clips)
    app.conversation.images.clipboard = lambda: left.pop(0) if len(left) > 1 else left[0]


def spellings(path: Path) -> Iterable[str]:
    yield str(path)
    yield f"{path} "
    yield shlex.quote(str(path))
    yield str(path).replace(" ", "\\ ")
    yield path.as_uri()


async def test_a_path_pasted_before_it_is_ready_becomes_a_word_then(root: Path) -> None:
    world = World(root)
    app = app_of(world)
    async with app.run_test(size=(120, 40)) as pilot:
        assert app.chat.prompt.images is None
        app.chat.prompt.put("see ")
        app.chat.prompt.add_paste(str(root / "shot.png"))
        app.chat.prompt.add_paste(" and ")
        assert "[image" not in app.chat.prompt.text
        await until(pilot, lambda: session_open(app))
        await settle(app, pilot)
        assert app.chat.prompt.text == f"see {WORD} and "


async def test_a_path_given_early_to_a_command_stays_one(root: Path) -> None:
    app, path = app_of(World(root)), str(root / "shot.png")
    async with app.run_test(size=(120, 40)) as pilot:
        app.chat.prompt.put("!file ")
        app.chat.prompt.add_paste(path)
        await until(pilot, lambda: session_open(app))
        await settle(app, pilot)
        assert app.chat.prompt.text == f"!file {path}"


async def test_the_path_of_an_image_becomes_a_word_and_the_image_is_sent(root: Path) -> None:
    world = World(root)
    async with running(world) as (app, pilot):
        for spelling in spellings(root / "shot.png"):
            app.chat.prompt.put("")
            await paste(app, pilot, spelling)
            text = app.chat.prompt.text.rstrip()
            assert text.startswith("[image ")
            assert text.endswith(": shot.png 1280×800 37 B]"), spelling
        app.chat.prompt.put(WORD)
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == [WORD]
        (sent,) = world.agent.images
        assert sent[WORD].block["source"]["media_type"] == "image/png"


async def test_several_files_and_one_that_is_none(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        await pilot.press("a", "space")
        both = f"{root}/a\\ b.jpg {root}/notes.md {root}/shot.png"
        await paste(app, pilot, both)
        first, last = "[image 1: a b.jpg 20×10 ", "[image 2: shot.png 1280×800 37 B]"
        text = app.chat.prompt.text
        assert text.startswith(f"a {first}")
        assert text.endswith(f"] @notes.md {last}")


@pytest.mark.parametrize(
    ("name", "mention"),
    [("notes.md", "@notes.md"), ("sub dir", '@"sub dir"'), ('a"b c.txt', '@a\\"b\\ c.txt')],
)
async def test_a_dropped_file_is_mentioned(root: Path, name: str, mention: str) -> None:
    (root / "sub dir").mkdir()
    (root / 'a"b c.txt').write_text("odd")
    async with running(World(root)) as (app, pilot):
        await pilot.press("a", "space")
        await paste(app, pilot, f"{root / name} ")
        assert app.chat.prompt.text == f"a {mention} "


async def test_a_dropped_file_from_elsewhere_stays_a_path(root: Path) -> None:
    (root.parent / "other.md").write_text("elsewhere")
    async with running(World(root)) as (app, pilot):
        await paste(app, pilot, f"{root}/../other.md")
        assert app.chat.prompt.text == f"{root}/../other.md"


@pytest.mark.parametrize("text", ["notes.md", "missing.png", "just a text", "/usr", "a/b.png c"])
async def test_what_is_no_image_stays_text(root: Path, text: str) -> None:
    async with running(World(root)) as (app, pilot):
        await paste(app, pilot, text)
        assert app.chat.prompt.text == text
        assert app.conversation.images.of(text) == {}


async def test_a_path_for_a_shell_command_stays_a_path(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        await pilot.press("exclamation_mark", *"file", "space")
        await paste(app, pilot, str(root / "shot.png"))
        assert app.chat.prompt.text == f"!file {root}/shot.png"


async def test_enter_right_after_a_paste_waits_for_the_image(root: Path) -> None:
    world = World(root)
    async with running(world) as (app, pilot):
        app.chat.prompt.post_message(keys.Paste(str(root / "shot.png")))
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == [WORD]
        assert list(world.agent.images[0]) == [WORD]
        assert app.chat.prompt.text == ""


async def test_typing_goes_on_while_a_paste_is_looked_at(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        await pilot.press("a", "space")
        app.chat.prompt.post_message(keys.Paste(f"{root}/shot.png "))
        await pilot.press("b", "c")
        await settle(app, pilot)
        assert app.chat.prompt.text == f"a {WORD} bc"
        await pilot.press("d")
        assert app.chat.prompt.text == f"a {WORD} bcd"


async def test_deleting_the_word_removes_the_image(root: Path) -> None:
    world = World(root)
    async with running(world) as (app, pilot):
        await pilot.press("a", "space")
        await paste(app, pilot, str(root / "shot.png"))
        await pilot.press("backspace")
        assert app.chat.prompt.text == "a "
        await pilot.press("ctrl+underscore")
        assert app.chat.prompt.text == f"a {WORD}", "undone, it is back"
        await pilot.press("home", "right", "right", "delete")
        assert app.chat.prompt.text == "a "
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.images == [{}]


async def test_a_word_that_stands_for_nothing_is_deleted_letter_by_letter(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        app.chat.prompt.put("[image 7: typed 1×1 1 B]")
        await pilot.press("backspace")
        assert app.chat.prompt.text == "[image 7: typed 1×1 1 B"


async def test_a_folded_paste_is_deleted_as_one_too() -> None:
    async with running(World()) as (app, pilot):
        await paste(app, pilot, "line\n" * 50)
        await pilot.press("backspace")
        assert app.chat.prompt.text == ""


async def test_ctrl_v_attaches_an_image(root: Path) -> None:
    world = World(root)
    async with running(world) as (app, pilot):
        holding(app, Clip(image=png(640, 480)))
        await pilot.press("ctrl+v")
        await settle(app, pilot)
        assert app.chat.prompt.text == "[image 1: clipboard 640×480 37 B]"
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        (image,) = world.agent.images[0].values()
        assert image.info.width == 640


async def test_ctrl_v_pastes_text_as_a_paste(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        holding(app, Clip(text="two\r\nlines"), Clip(text=str(root / "shot.png")))
        await pilot.press("ctrl+v")
        await settle(app, pilot)
        assert app.chat.prompt.text == "two\nlines"
        app.chat.prompt.put("")
        await pilot.press("ctrl+v")
        await settle(app, pilot)
        assert app.chat.prompt.text == WORD


async def test_ctrl_v_pastes_what_was_copied_here_where_there_is_no_other_clipboard() -> None:
    async with running(World()) as (app, pilot):
        holding(app, Clip(problem="Can't reach the clipboard over ssh.", hint="Paste a path."))
        app.copy_to_clipboard("copied here")
        await pilot.press("ctrl+v")
        await settle(app, pilot)
        assert app.chat.prompt.text == "copied here"


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        (Clip(), "The clipboard is empty."),
        (Clip(problem="Holdfast needs xclip", hint="Paste the path."), "Holdfast needs xclip"),
        (Clip(image=b"MM\0*tiff"), "isn't a PNG, JPEG, GIF or WebP"),
        (Clip(image=png(9000, 9)), "8,000 pixels"),
    ],
)
async def test_ctrl_v_says_what_is_in_the_way(clip: Clip, words: str) -> None:
    async with running(World()) as (app, pilot):
        holding(app, clip)
        await pilot.press("ctrl+v")
        await settle(app, pilot)
        assert words in app.chat.notice.text
        assert app.chat.prompt.text == ""


async def test_the_default_clipboard_of_a_test_is_empty() -> None:
    async with running(World()) as (app, _):
        assert app.conversation.images.clipboard() == Clip()


async def test_an_image_that_is_too_large_stays_a_path_and_it_is_said_what_to_do(
    root: Path,
) -> None:
    (root / "big.png").write_bytes(png(10, 10) + b"\0" * MAX_FILE)
    async with running(World(root)) as (app, pilot):
        await paste(app, pilot, f"{root}/big.png")
        assert app.chat.prompt.text == f"{root}/big.png"
        assert "at most 3.8 MB per image" in app.chat.notice.text
        assert "smaller copy" in app.chat.notice.text


async def test_no_more_images_are_taken_than_a_prompt_may_bring(root: Path) -> None:
    world = World(root)
    for number in range(21):
        (root / f"{number}.png").write_bytes(png(10, number + 1))
    async with running(world) as (app, pilot):
        await paste(app, pilot, " ".join(f"{root}/{number}.png" for number in range(20)))
        assert len(app.conversation.images.of(app.chat.prompt.text)) == 20
        await paste(app, pilot, f" {root}/20.png")
        assert "too many for one prompt" in app.chat.notice.text
        assert len(app.conversation.images.of(app.chat.prompt.text)) == 20


async def test_what_is_too_much_together_is_not_sent_and_not_lost(root: Path) -> None:
    world = World(root)
    for number in range(22):
        (root / f"{number}.png").write_bytes(png(10, number + 1))
    async with running(world) as (app, pilot):
        texts: list[str] = []
        for half in (range(11), range(11, 22)):
            await paste(app, pilot, " ".join(f"{root}/{number}.png" for number in half))
            texts.append(app.chat.prompt.text)
            app.chat.prompt.put("")
        words = " ".join(texts)
        app.chat.prompt.put(words)
        await pilot.press("enter")
        await until(pilot, lambda: "too many" in app.chat.notice.text)
        await until(pilot, lambda: app.chat.prompt.text == words)
        assert world.agent.sent == []


async def test_an_image_is_queued_while_the_agent_works(root: Path) -> None:
    world, hold = World(root), Hold()
    world.scripts.append(turn(hold))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.busy)
        await paste(app, pilot, str(root / "shot.png"))
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.queue == (WORD,))
        assert app.chat.queued.texts == (WORD,)
        await pilot.press("escape")
        await until(pilot, lambda: app.chat.prompt.text == WORD)
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["go", WORD])
        assert list(world.agent.images[-1]) == [WORD]


async def test_up_brings_the_text_and_its_image(root: Path) -> None:
    world = World(root)
    async with running(world) as (app, pilot):
        await paste(app, pilot, str(root / "shot.png"))
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent) and not app.conversation.busy)
        await pilot.press("up", "enter")
        await until(pilot, lambda: len(world.agent.sent) == 2)
        assert list(world.agent.images[1]) == [WORD]


async def test_up_finds_the_image_in_the_record(root: Path) -> None:
    world, image = World(root), of_bytes(png(1280, 800), "shot.png")
    assert image
    told = record("user", 1, text=WORD, images=[WORD], content=[image.block])
    world.old[old_path()] = OldSession(records=[told])
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        app.chat.prompt.past.add(WORD)
        await pilot.press("up")
        assert app.chat.prompt.text == WORD
        assert app.conversation.images.of(WORD)[WORD].data == image.data


async def test_up_says_where_an_image_is_gone(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        app.chat.prompt.past.add(f"see {WORD}")
        await pilot.press("up")
        assert app.chat.prompt.text == f"see {WORD}"
        assert "gone: only the text is sent" in app.chat.notice.text


async def test_the_draft_names_the_file_and_brings_the_image_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "TYPED_FOR_S", 0.001)
    world = World(root)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await paste(app, pilot, str(root / "shot.png"))
        await until(pilot, lambda: WORD in world.agent.watched.drafted_images)
        files = world.agent.watched.drafted_images
        app.conversation.drafts.follow(None)  # as a crash
    (root / "shot.png").unlink()
    again = World(root)
    left = UnsentWork("and", (f"see {WORD}",), images=files)
    again.old[old_path()] = OldSession(unsent=left)
    async with running(again, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == f"see {WORD}\nand")
        await pilot.press("enter")
        await until(pilot, lambda: bool(again.agent.sent))
        assert again.agent.images[0][WORD].info.width == 1280


async def test_a_draft_whose_file_is_gone_says_so(root: Path) -> None:
    world = World(root)
    world.old[old_path()] = OldSession(unsent=UnsentWork(WORD, images={WORD: "0" * 32 + ".png"}))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == WORD)
        assert "only the text" in app.chat.notice.text


async def test_nothing_is_kept_for_a_session_in_memory(root: Path) -> None:
    world = World(root)
    world.old[old_path()] = OldSession(in_memory=True)
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await paste(app, pilot, str(root / "shot.png"))
        assert app.chat.prompt.text == WORD
        assert not (folders().data / "attached").exists()


async def test_a_path_pasted_while_another_pane_has_the_focus(root: Path) -> None:
    async with running(World(root)) as (app, pilot):
        app.chat.set_focus(None)
        app.chat.post_message(keys.Paste(str(root / "shot.png")))
        await settle(app, pilot)
        assert app.chat.prompt.text == WORD


async def talked(
    app: HoldfastApp, pilot: Pilot[None], provider: ScriptedProvider, text: str
) -> list[dict[str, Any]]:
    """Send what stands in the prompt and a text; what the model was asked at last."""
    await pilot.press(*(" " if c == " " else c for c in text), "enter")
    await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
    return [dict(message) for message in provider.requests[-1].messages]


async def test_33_rewind_brings_the_prompt_back_with_its_image(root: Path) -> None:
    provider = ScriptedProvider(said("A screen."), said("Still one."))
    world = RealWorld(root, provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await paste(app, pilot, str(root / "shot.png"))
        first = await talked(app, pilot, provider, "?")
        (item,) = items(app, UserItem)
        assert item.text == f"{WORD}?"
        (root / "shot.png").unlink()
        await pilot.press("escape", "escape")
        await choose(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("c")  # the conversation only: the image was deleted from outside
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == f"{WORD}?")
        assert app.conversation.images.knows(WORD)
        world.clock.elapsed += 1  # an Enter at once would be meant for the dialog
        assert await talked(app, pilot, provider, "") == first


async def test_a_mention_comes_back_with_the_image_as_it_was(root: Path) -> None:
    provider = ScriptedProvider(said("A screen."), said("Still one."))
    world = RealWorld(root, provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        first = await talked(app, pilot, provider, "see @shot.png ")
        (item,) = items(app, UserItem)
        assert item.text == f"see @shot.png\n{WORD}"
        (root / "shot.png").unlink()
        await pilot.press("escape", "escape")
        await choose(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("c")
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == item.text)
        world.clock.elapsed += 1
        again = await talked(app, pilot, provider, "")
        assert [b["type"] for b in again[0]["content"]] == ["image", "text"]
        assert again[0]["content"][0]["source"] == first[0]["content"][0]["source"]


async def test_resuming_shows_the_word_and_sends_the_image(root: Path) -> None:
    provider = ScriptedProvider(said("A screen."), said("Still one."))
    world = RealWorld(root, provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await talked(app, pilot, provider, "see @shot.png ")
        path = world.real[-1].session.path
        assert path
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: bool(items(app, UserItem)))
        assert items(app, UserItem)[0].text == f"see @shot.png\n{WORD}"
        sent = await talked(app, pilot, provider, "and?")
        assert [b["type"] for b in sent[0]["content"]] == ["image", "text"]


async def test_the_inspector_masks_one_image_and_shows_it_again(root: Path) -> None:
    provider = ScriptedProvider(said("A screen."), said("Still one."))
    world = RealWorld(root, provider)
    async with running(world, choice=SessionChoice()) as (app, pilot):
        await talked(app, pilot, provider, "see @shot.png ")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ContextScreen))
        screen = app.screen
        assert isinstance(screen, ContextScreen)

        def row() -> Any:
            return next(one for one in screen.shown if one.item.kind == "image")

        assert row().item.label == WORD[1:-1]
        assert row().item.tokens == 1366  # 1280 x 800 / 750
        screen.rows.move_to(list(screen.shown).index(row()))
        await pilot.press("m")
        await until(pilot, lambda: row().item.state == "masked")
        await pilot.press("u")
        await until(pilot, lambda: row().item.state == "full")
        await pilot.press("m")
        await until(pilot, lambda: row().item.state == "masked")
        await pilot.press("escape")
        sent = await talked(app, pilot, provider, "and?")
        assert [b["type"] for b in sent[0]["content"]] == ["text", "text"]
        assert "Masked by the person: image 1: shot.png" in str(sent[0]["content"][0])


def test_the_draft_of_a_session_keeps_the_files_of_its_images(root: Path) -> None:
    from tests.support.clock import FakeClock  # noqa: PLC0415 - for this test only

    clock = FakeClock()
    session = Session.create(root, folders=folders(), clock=clock)
    session.draft(UnsentWork(WORD, ("then",), images={WORD: "a.png"}))
    assert session.path
    left = Session.open(session.path, clock=clock, read_only=True).unsent
    assert (left.prompt, left.queue, dict(left.images)) == (WORD, ("then",), {WORD: "a.png"})
