"""Every field takes whole characters: moves, deletions, clicks and breaks are between them, and
what is typed is what is pasted."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot

from tui.core.characters import boundaries, clusters
from tui.core.text_cleaning import as_typed
from tui.ui.toolkit.key_parser import KeyParser
from tui.ui.widgets.answer_field import AnswerField
from tui.ui.widgets.dialog import TextField
from tui.ui.widgets.prompt import Prompt

PIECES = (
    *("a", "b c", " ", "\n", "\t", "é", "e\u0301", "\u0301", "日本", "\u3000", "한"),
    *("\u1112\u1161\u11ab", "क्षि", "नमस्ते ", "❤\ufe0f", "\ufe0f", "👍🏽", "🇩🇪", "🇫", "\u200f"),
    *(
        "👨\u200d👩\u200d👧",
        "\u200d",
        "שלום",
        "\xad",
        "\ue0b0",
        "\xa0",
        "[x]",
        "ก\u0e33",
        "word_two",
    ),
)
SCRIPTS = {
    "Latin": "Zażółć gęślą jaźń, naïve",
    "decomposed": "re\u0301sume\u0301 a\u0308",
    "Cyrillic": "съешь ещё этих",
    "Greek": "ξεσκεπάζω τὴν",
    "Hebrew": "שָׁלוֹם \u200fעולם",
    "Arabic": "مرحبا می\u200cخواهم",
    "Devanagari": "नमस्ते क्षत्रिय",
    "Thai": "สวัสดีครับ ทำ",
    "Japanese": "日本語\u3000か\u3099き",
    "Korean": "안녕 \u1112\u1161\u11ab",
    "Chinese": "漢字\u3000輸入",
    "emoji": "❤\ufe0f 👍🏽 👨\u200d👩\u200d👧 🇩🇪 1\ufe0f\u20e3 \ue0b0 \U0001fae9",
}


class Host(App[None]):
    CSS = "Prompt { width: 12; max-height: 20; }"

    def compose(self) -> ComposeResult:
        yield Prompt()
        yield AnswerField("words")
        yield TextField()


@asynccontextmanager
async def fields() -> AsyncGenerator[tuple[Host, Pilot[None]]]:
    app = Host()
    async with app.run_test(size=(40, 40)) as pilot:
        yield app, pilot


def value_of(field: Prompt | AnswerField | TextField) -> str:
    return field.value


EDITS = (
    *("cursor_left", "cursor_right", "cursor_word_left", "cursor_word_right", "cursor_line_start"),
    *("delete_left", "delete_right", "delete_word_left", "delete_word_right", "undo", "redo"),
    *("cursor_up", "cursor_down", "delete_to_start_of_line", "yank"),
)
ONE_LINE_EDITS = (
    *("cursor_left", "cursor_right", "cursor_left_word", "cursor_right_word", "home", "end"),
    *("delete_left", "delete_right", "delete_left_word", "delete_right_word", "delete_left_all"),
)


async def test_no_sequence_of_edits_splits_a_character() -> None:
    chance = random.Random(49)
    async with fields() as (app, _):
        prompt, field = app.query_one(Prompt), app.query_one(TextField)
        for _ in range(1500):
            if chance.random() < 0.45:
                piece = chance.choice(PIECES)
                prompt.insert_at_cursor(piece)
                field.replace(piece.strip("\n"), *field.selection)
            elif chance.random() < 0.3:
                select = chance.random() < 0.5
                prompt.action_cursor_left(select)
                field.action_cursor_left(select)
                at = prompt.wrapped_document.offset_to_location(
                    Offset(chance.randrange(14), chance.randrange(4))
                )
                prompt.move_cursor(at, select=select)
            else:
                getattr(prompt, f"action_{chance.choice(EDITS)}")()
                getattr(field, f"action_{chance.choice(ONE_LINE_EDITS)}")()
            for row, column in prompt.selection:
                line = prompt.document.get_line(row)
                assert column in boundaries(line), (line, column)
            for row, line in enumerate(prompt.document.lines):
                assert set(prompt.wrapped_document.get_offsets(row)) <= {*boundaries(line)}
            assert set(field.selection) <= {*boundaries(field.value)}
            if len(prompt.text) > 200:
                prompt.load_text("")
                field.clear()


@pytest.mark.parametrize("piece", ["e\u0301", "❤\ufe0f", "👍🏽", "🇩🇪", "क्षि", "\u1112\u1161\u11ab"])
@pytest.mark.parametrize("key", ["backspace", "delete"])
async def test_a_key_deletes_one_character(piece: str, key: str) -> None:
    async with fields() as (app, pilot):
        for field in (app.query_one(Prompt), app.query_one(TextField)):
            field.focus()
            await pilot.pause()
            app.post_message(events.Paste(f"a{piece}"))
            await pilot.pause()
            before = value_of(field)
            await pilot.press(*(["left"] if key == "delete" else []), key)
            assert clusters(value_of(field)) == clusters(before)[:-1]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("kind", [Prompt, AnswerField, TextField])
async def test_what_is_typed_is_what_is_pasted(
    script: str, kind: type[Prompt | AnswerField | TextField]
) -> None:
    text = SCRIPTS[script]
    async with fields() as (app, pilot):
        field = app.query_one(kind)
        field.focus()
        await pilot.pause()
        for pieces in (clusters(text), [f"\x1b[200~{text}\x1b[201~"], list(text)):
            keyboard = KeyParser(as_typed)
            for piece in pieces:
                for message in keyboard.feed(piece.encode()):
                    app.post_message(message)
            await pilot.pause()
            assert value_of(field) == text
            field.clear()


async def test_up_and_down_keep_the_column_of_cells() -> None:
    async with fields() as (app, pilot):
        prompt = app.query_one(Prompt)
        prompt.focus()
        prompt.insert_at_cursor("日本e\u0301x\nabcdefg")
        prompt.move_cursor((1, 5))
        await pilot.press("up")
        assert prompt.cursor_location == (0, 4), "after two wide ones and the accented letter"
        await pilot.press("down")
        assert prompt.cursor_location == (1, 5)


async def test_a_click_puts_the_cursor_before_a_whole_character() -> None:
    async with fields() as (app, pilot):
        prompt = app.query_one(Prompt)
        prompt.insert_at_cursor("a👨\u200d👩\u200d👧b")
        await pilot.pause()
        places: list[int] = []
        for x in range(5):
            await pilot.click(Prompt, offset=(x, 0))
            places.append(prompt.cursor_location[1])
        assert places == [0, 1, 1, 6, 7]


async def test_the_cursor_covers_a_whole_character() -> None:
    async with fields() as (app, pilot):
        prompt, field = app.query_one(Prompt), app.query_one(TextField)
        prompt.focus()
        prompt.insert_at_cursor("❤\ufe0fx")
        await pilot.press("home")
        await pilot.pause()
        assert prompt.render_line(0)._segments[0].text == "❤\ufe0f"  # pyright: ignore[reportPrivateUsage]
        field.focus()
        field.value = "❤\ufe0fx"
        await pilot.press("home")
        assert field.render_line(0)._segments[0].text == "❤\ufe0f"  # pyright: ignore[reportPrivateUsage]
