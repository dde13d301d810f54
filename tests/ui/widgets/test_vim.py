"""Normal mode, key by key: what vim does with a text, and nothing with a wrong sequence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.characters import whole_before
from tui.ui.widgets.vim import Vim, pressed, takes

NAMED = {"<esc>": "escape", "<bs>": "backspace", "<del>": "delete", "<redo>": "ctrl+r"}


def typed(state: Vim, keys: str) -> Vim:
    """What keys make of a text; in insert mode they are typed. `<esc>` and so on are keys."""
    while keys:
        name = next((name for name in NAMED if keys.startswith(name)), keys[0])
        keys = keys[len(name) :]
        key, character = NAMED.get(name, name), None if name in NAMED else name
        if takes(state, key, character):
            state = pressed(state, key, character)
        elif state.mode == "INSERT" and character:
            at = state.cursor
            text = state.text[:at] + character + state.text[at:]
            state = replace(state, text=text, cursor=at + 1)
    return state


def normal(marked: str) -> Vim:
    """A state in normal mode; `|` stands before the character with the cursor."""
    return Vim(marked.replace("|", "", 1), marked.index("|"), "NORMAL")


def marked(state: Vim) -> str:
    return f"{state.text[: state.cursor]}|{state.text[state.cursor :]}"


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("on|e two", "h", "o|ne two"),
        ("|one two", "ц", "one |two"),
        ("|one two", "вц", "|two"),
        ("|ж, ;", "fж", "|ж, ;"),
        ("|ж;ж", "fж", "ж;|ж"),
        ("|one", "Фя<esc>", "one|я"),
        ("|one", "Ж", "|one"),
        ("|one two", "w", "one |two"),
        ("|one.two", "w", "one|.two"),
        ("|one.two x", "W", "one.two |x"),
        ("one |two", "b", "|one two"),
        ("|one two", "e", "on|e two"),
        ("|one two", "2e", "one tw|o"),
        ("|  one", "^", "  |one"),
        ("on|e\ntwo", "$", "on|e\ntwo"),
        ("one|", "0", "|one"),
        ("lon|ger\na\nlonger", "jj", "longer\na\nlon|ger"),
        ("a\n|b", "gg", "|a\nb"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("|a\nb\nc", "2G", "a\n|b\nc"),
        ("|a,b,c", "f,", "a|,b,c"),
        ("|e\u0301❤\ufe0fx", "l", "e\u0301|❤\ufe0fx"),
        ("|e\u0301❤\ufe0fx", "$", "e\u0301❤\ufe0f|x"),
        ("e\u0301❤\ufe0f|x", "2h", "|e\u0301❤\ufe0fx"),
        ("|नमस्ते दुनिया", "w", "नमस्ते |दुनिया"),
        ("|नमस्ते दुनिया", "e", "नम|स्ते दुनिया"),
        ("नमस्ते दुनि|या", "bb", "|नमस्ते दुनिया"),
        ("|日本x\nabcdef", "$j", "日本x\nabcde|f"),
        ("日本|x\nabcdef", "j", "日本x\nabcd|ef"),
        ("日本x\nabc|def", "k", "日|本x\nabcdef"),
        ("|a,b,c", "f,;", "a,b|,c"),
        ("|a,b,c", "t,;", "a,|b,c"),
        ("|a,b,c", "2f,,", "a|,b,c"),
        ("a,b,|c", "T,", "a,b,|c"),
        ("a,b,|c", "F,", "a,b|,c"),
        ("|a b", "f x", "a|b"),
        ("|abc", "x", "|bc"),
        ("ab|c", "x", "a|b"),
        ("|abc", "9x", "|"),
        ("ab|c", "X", "a|c"),
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("one t|wo", "db", "one |wo"),
        ("|one two", "de", "| two"),
        ("o|ne two", "D", "|o"),
        ("one t|wo x", "diw", "one | x"),
        ("one t|wo x", "daw", "one |x"),
        ("a\n|b\nc", "dd", "a\n|c"),
        ("a\n|b", "dd", "|a"),
        ("|a\nb\nc", "2dd", "|c"),
        ("a\n|b\nc", "dk", "|c"),
        ("a\n|b\nc", "dG", "|a"),
        ("|one two", "cwnew<esc>", "ne|w two"),
        ("o|ne two", "ciwnew<esc>", "ne|w two"),
        ("on|e two", "ccnew<esc>", "ne|w"),
        ("o|ne", "Cx<esc>", "o|x"),
        ("|one", "sx<esc>", "|xne"),
        ("o|ne", "ix<esc>", "o|xne"),
        ("o|ne", "ax<esc>", "on|xe"),
        ("  o|ne", "Ix<esc>", "  |xone"),
        ("o|ne", "Ax<esc>", "one|x"),
        ("o|ne\ntwo", "ox<esc>", "one\n|x\ntwo"),
        ("o|ne", "Ox<esc>", "|x\none"),
        ("|one two", "dwP", "one| two"),
        ("|ab", "xp", "b|a"),
        ("|a\nb", "yyjp", "a\nb\n|a"),
        ("|a\nb", "ddp", "b\n|a"),
        ("a\n|b", "ddP", "|b\na"),
        ("|ab", "yl3p", "aaa|ab"),
        ("|one two", "ywP", "one| one two"),
        ("|a\n  b", "J", "a| b"),
        ("|a\nb\nc", "3J", "a b| c"),
        ("|aB c", "~~", "Ab| c"),
        ("|abc", "rx", "|xbc"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "4rx", "|abc"),
        ("|one two three", "dw.", "|three"),
        ("|one two three", "dw2.", "|"),
        ("|a b", "Ax<esc>.", "a bx|x"),
        ("|one two", "cwx<esc>w.", "x |x"),
        ("|a b c", "x3.", "|c"),
        ("|a", "3Axy<esc>", "axyxyx|y"),
        ("|a", "2ox<esc>", "a\nx\n|x"),
        ("|" + "a" * 30, "20x", "|" + "a" * 10),
        ("|" + "a" * 30, "d20l", "|" + "a" * 10),
        ("a\n|b", "2dd", "a\n|b"),
        ("one\n|two", "db", "|two"),
        ("  |one\n  two", "2D", "|"),
        ("ab|c", "<bs>", "a|bc"),
        ("|abc", "<del>", "|bc"),
        ("|", "x", "|"),
        ("|", "dd", "|"),
        ("|", "dwp", "|"),
    ],
)
def test_a_sequence_does_what_vim_does(before: str, keys: str, after: str) -> None:
    assert marked(typed(normal(before), keys)) == after


@pytest.mark.parametrize(
    "keys", ["d<esc>", "dz", "2gx", "99999", "rr<esc>", "dix", "q", "ZZ", "fz", ";"]
)
def test_a_wrong_or_broken_off_sequence_does_nothing(keys: str) -> None:
    before = normal("o|ne two\nthree")
    after = typed(before, keys)
    if keys == "rr<esc>":
        assert marked(after) == "o|re two\nthree"
    else:
        assert (after.text, after.cursor, after.mode) == (before.text, before.cursor, "NORMAL")
    assert after.pending == ""


@pytest.mark.parametrize(
    ("keys", "wish", "times"),
    [("u", "undo", 1), ("3u", "undo", 3), ("<redo>", "redo", 1), ("/", "search", 1),
     ("j", "newer", 1), ("k", "older", 1)],
)  # fmt: skip
def test_what_needs_a_history_is_wished_for(keys: str, wish: str, times: int) -> None:
    after = typed(normal("|one"), keys)
    assert (after.wish, after.times) == (wish, times)
    assert typed(after, "l").wish == ""


KEYS = st.text("hjklwbe0^$gGxXDCdcyiaIAoOpPuJ~rfFtT;,.123 \"/WsSY'é\n", max_size=25)
SEQUENCES = st.lists(KEYS | st.sampled_from(list(NAMED)), max_size=6).map("".join)
TEXTS = st.text("ab _.,\n\t(é漢\u0301", max_size=40)


@given(TEXTS, st.integers(-3, 50), SEQUENCES)
def test_whatever_is_pressed_the_cursor_is_in_the_text(text: str, cursor: int, keys: str) -> None:
    state = Vim(text, cursor, "NORMAL")
    for key in keys:
        state = typed(replace(state, cursor=state.cursor), key)
        assert 0 <= state.cursor <= len(state.text) or state.cursor == cursor
        if state.mode == "NORMAL" and takes(state, key, key):
            line = state.text.rfind("\n", 0, state.cursor) + 1
            assert state.cursor == line or state.text[state.cursor : state.cursor + 1] not in {
                "",
                "\n",
            }
    after = typed(state, "<esc><esc>")
    assert after.mode == "NORMAL"
    assert after.pending == ""
    if keys and len(after.text) < 1000:
        assert len(typed(after, "9999p9999p").text) <= 1_001_000


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("|e\u0301❤\ufe0fx", "x", "|❤\ufe0fx"),
        ("e\u0301|❤\ufe0fx", "X", "|❤\ufe0fx"),
        ("|e\u0301❤\ufe0fx", "2x", "|x"),
        ("e\u0301|❤\ufe0f", "D", "|e\u0301"),
        ("|नमस्ते दुनिया", "de", "| दुनिया"),
        ("|नमस्ते दुनिया", "dw", "|दुनिया"),
        ("|❤\ufe0fx", "r👍", "|👍x"),
        ("|e\u0301❤\ufe0fx", "2ra", "a|ax"),
        ("|e\u0301x", "~", "E\u0301|x"),
        ("|e\u0301x", "xp", "x|e\u0301"),
        ("|e\u0301x", "ab<esc>", "e\u0301|bx"),
        ("e\u0301x|", "a<esc>", "e\u0301|x"),
    ],
)
def test_changes_take_whole_characters(before: str, keys: str, after: str) -> None:
    assert marked(typed(normal(before), keys)) == after


def test_a_character_of_several_code_points_is_found_whole() -> None:
    state = normal("|a e e\u0301 x")
    for key in ("f", "e\u0301"):
        state = pressed(state, key, key)
    assert marked(state) == "a e |e\u0301 x"


@given(TEXTS, KEYS)
def test_the_cursor_is_between_characters(text: str, keys: str) -> None:
    state = typed(Vim(text, 0, "NORMAL"), keys)
    assert state.mode == "INSERT" or whole_before(state.text, state.cursor) == state.cursor
