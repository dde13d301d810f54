"""Every key of the recorded terminals arrives under the name that bindings have for it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.terminals import Struck, key_bytes, struck
from tests.terminals.heard import heard, meant, reached
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.core.keyboard_layouts import latin
from tui.core.keymap import normalized
from tui.ui.toolkit.key_parser import DoubtfulKey, Unclassified
from tui.ui.widgets.keys import HELP, Key

ASKED = [row for row in struck() if "asked" in row.modes]
ELSEWHERE = {
    ("linux", "shift+f5"): "f17",  # where a keyboard with 24 of them would have it
}
"""What a terminal sends for a key that is another key's alone."""
TOO_EARLY = {"alt+shift+x", "alt+slash"}
"""Keys with Alt that begin a sequence, or are the Esc before a command."""


def label(row: Struck) -> str:
    return f"{row.terminal} {row.modes[0]} {row.layout}"


@pytest.mark.parametrize("row", [row for row in struck() if row.layout == "us"], ids=label)
def test_a_key_has_its_name_unless_the_terminal_sends_another_one(row: Struck) -> None:
    same = {data: [key for key in row.sent if row.sent[key] == data] for data in row.sent.values()}
    for key, data in row.sent.items():
        keys = heard(data)
        if not keys or key in TOO_EARLY or meant(key) in keys:
            continue
        (name,) = keys
        typed = min(data) >= 0x20
        shared = name in map(meant, same[data])
        assert typed or shared or ELSEWHERE.get((row.terminal, key)) == name, (key, data, name)


@pytest.mark.parametrize("row", struck(), ids=label)
def test_no_key_is_unknown(row: Struck) -> None:
    for key, data in row.sent.items():
        keyboard = Keyboard()
        keyboard.read(data)
        keyboard.pause(1.0)
        unknown = [one for one in keyboard.heard if isinstance(one, Unclassified)]
        assert not unknown or key in TOO_EARLY, (key, data)


@pytest.mark.parametrize(
    "row", [row for row in struck() if row.layout not in {"us", "de"}], ids=label
)
def test_on_other_layouts_the_place_of_a_key_with_ctrl_or_alt_counts(row: Struck) -> None:
    """Unless the terminal sends the letter alone, or a number that is no letter's."""
    for key in ("ctrl+c", "ctrl+r", "ctrl+z", "alt+b", "alt+f", "alt+z", "alt+shift+b"):
        data = row.sent.get(key, b"")
        typed = data.decode().isprintable()
        numbers = row.terminal == "foot" and row.modes == ("legacy",) and key.startswith("ctrl+")
        if data and not typed and not numbers:
            assert heard(data) == [meant(key)], (key, data)


@pytest.mark.parametrize("row", [row for row in ASKED if row.layout != "us"], ids=label)
def test_letters_stay_what_they_are(row: Struck) -> None:
    for key in ("c", "y", "n"):
        (name,) = heard(row.sent[key])
        letter = "ψυνснт"
        assert name in (letter if row.layout != "de" else "czn")


def test_bytes_cut_anywhere_are_the_same_keys() -> None:
    for data in key_bytes():
        whole = heard(data)
        for cut in range(1, len(data)):
            assert heard(data, cut) == whole, (data, cut)


def reachable(key: Key, keys: Iterable[str]) -> bool:
    """True if one of an action's keys arrives. Letters and signs do everywhere."""
    names = [*filter(None, key.keys.split(",")), *map(normalized, key.shown.split(","))]
    signs = {"slash", "space", "minus", "less_than_sign", "greater_than_sign"}
    return any(name in keys or len(name) == 1 or name in signs for name in names)


@pytest.mark.parametrize("row", [row for row in ASKED if row.layout == "us"], ids=label)
def test_every_action_has_a_key_in_every_terminal(row: Struck) -> None:
    keys = reached(row)
    assert {"a", "A", "slash", "question_mark", "space", "1"} <= keys.keys()
    for title, table in HELP:
        for key in table:
            assert not key.keys or reachable(key, keys), (title, key)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("\x1b[98;3;98u", ["ctrl+left"]),  # with a text that Alt did not change
        ("\x1b[113;3;339u", ["œ"]),  # with one that it did
        ("\x1b[1080;3;1080u", ["ctrl+left"]),
        ("\x1b[0:65;3;65u", ["A"]),
        ("\x1b[0:176:96;2u", ["degree_sign"]),  # a dead key without Shift
        ("\x1b[49:33;4;33u", ["alt+exclamation_mark"]),
        ("\x1b[44:60;4u", ["alt+less_than_sign"]),
        ("\x1b[54:94;6u", ["ctrl+circumflex_accent"]),
        ("\x1b[27;6;47~", ["ctrl+underscore"]),  # where the slash needs Shift
        ("\x1b[27;2;47~", ["slash"]),
        ("\x1b[252::91;5u", ["ctrl+ü"]),  # a Latin letter is itself
        ("\x1b[1093::91;5u", ["escape"]),
        ("\x1b[57441u\x1b[57442u\x1b[57358u", []),  # modifiers and locks alone
        ("\x1bOM\x1bO2M", ["shift+enter"] * 2),
        ("\x1b/help", ["escape", "slash", "h", "e", "l", "p"]),
        ("\x1b!", ["escape", "exclamation_mark"]),
        ("\x1b\t\x1b\x7f\x1b\b", ["shift+tab", "ctrl+w", "ctrl+w"]),
    ],
)
def test_names(data: str, names: list[str]) -> None:
    assert heard(data.encode()) == names


def test_what_an_esc_precedes_in_one_read_is_held_for_a_part_of_a_text() -> None:
    keyboard = Keyboard()
    keyboard.read(b"\x1b/clear")
    assert all(isinstance(one, DoubtfulKey) for one in keyboard.heard)


@pytest.mark.parametrize(
    ("language", "letter", "char"),
    [
        *(("en_US.UTF-8", letter, char) for letter, char in zip("сфцქשψї", "cawqac]", strict=True)),
        ("sr_RS.UTF-8", "ц", "c"),
        ("bg_BG.UTF-8", "ц", "["),
        ("ru_RU.UTF-8", "ц", "w"),
        ("C", "é", ""),
        ("", "日", ""),
    ],
)
def test_the_persons_language_decides_between_layouts(
    monkeypatch: pytest.MonkeyPatch, language: str, letter: str, char: str
) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_CTYPE", raising=False)
    monkeypatch.setenv("LANG", language)
    assert latin(letter) == char
