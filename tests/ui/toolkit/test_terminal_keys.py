"""Keys of recorded terminals reach a program as one that asked for nothing would get them."""

from __future__ import annotations

import pytest
from textual import events

from tests.terminals import Struck, struck
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.ui.toolkit.key_parser import raw_of
from tui.ui.toolkit.terminal_keys import key_bytes, paste_bytes

KITTY = next(row for row in struck() if (row.terminal, row.modes) == ("kitty", ("legacy",)))
PROTOCOL = [
    row
    for row in struck()
    if row.layout == "us"
    and row.modes == ("asked",)
    and row.terminal in {"kitty", "foot", "ghostty"}
]
OTHERWISE = {"ctrl+minus": b"\x1f"}
"""What most programs take the key for; kitty itself types a minus sign."""


def sent(data: bytes, *, application: bool = False) -> bytes:
    keyboard = Keyboard()
    keyboard.read(data)
    keyboard.pause(1.0)
    keys = [one for one in keyboard.heard if isinstance(one, events.Key)]
    return b"".join(key_bytes(one, application=application) for one in keys)


@pytest.mark.parametrize("row", PROTOCOL, ids=lambda row: row.terminal)
def test_keys_of_the_protocol_become_those_of_a_terminal_without_it(row: Struck) -> None:
    for key, data in row.sent.items():
        wanted = OTHERWISE.get(key, KITTY.sent.get(key))
        if data and wanted:
            assert sent(data) == wanted, key


@pytest.mark.parametrize(
    "row",
    [row for row in struck() if row.modes == ("legacy",) and row.terminal != "linux"],
    ids=lambda row: f"{row.terminal} {row.layout}",
)
def test_what_a_terminal_sends_to_every_program_passes(row: Struck) -> None:
    """Apart from the form of the cursor keys and of Shift+Enter, which programs know in one form
    only."""
    for key, data in row.sent.items():
        if data.startswith((b"\x1bO", b"\x1b[1~", b"\x1b[4~", b"\x1b[27;", b"\x1b[7", b"\x1b[8")):
            continue
        if data and not data.endswith(b"u"):
            assert sent(data) == data, key


@pytest.mark.parametrize(
    ("raw", "normal", "application"),
    [
        (b"\x1b[A", b"\x1b[A", b"\x1bOA"),
        (b"\x1bOA", b"\x1b[A", b"\x1bOA"),
        (b"\x1b[H", b"\x1b[H", b"\x1bOH"),
        (b"\x1b[1~", b"\x1b[H", b"\x1bOH"),
        (b"\x1b[1;5A", b"\x1b[1;5A", b"\x1b[1;5A"),
        (b"\x1b[[A", b"\x1bOP", b"\x1bOP"),
        (b"\x1b[11~", b"\x1bOP", b"\x1bOP"),
        (b"\x1b[15~", b"\x1b[15~", b"\x1b[15~"),
        (b"\x1b[3^", b"\x1b[3;5~", b"\x1b[3;5~"),
        (b"\x1bOM", b"\r", b"\r"),
        (b"\x1b[27;5;109~", b"\r", b"\r"),
        (b"\x1b[57399u", b"0", b"0"),
        (b"\x1b\x7f", b"\x1b\x7f", b"\x1b\x7f"),
        ("日é".encode(), "日é".encode(), "日é".encode()),
        (b"\x00", b"\x00", b"\x00"),
        (b"\x1d", b"\x1d", b"\x1d"),
    ],
)
def test_cursor_keys_follow_the_mode_of_the_program(
    raw: bytes, normal: bytes, application: bytes
) -> None:
    assert sent(raw) == normal
    assert sent(raw, application=True) == application


@pytest.mark.parametrize(
    ("name", "data"),
    [("up", b"\x1b[A"), ("ctrl+c", b"\x03"), ("f5", b"\x1b[15~"), ("ctrl+left", b"\x1b[1;5D"),
     ("shift+tab", b"\x1b[Z"), ("alt+x", b"\x1bx"), ("enter", b"\r"), ("escape", b"\x1b")],
)  # fmt: skip
def test_a_key_of_which_only_the_name_is_known_has_its_usual_form(name: str, data: bytes) -> None:
    key = events.Key(name, None)
    assert not raw_of(key)
    assert key_bytes(key) == data


def test_a_paste_is_typed_and_cannot_end_its_marks() -> None:
    assert paste_bytes("a\r\nb\n") == b"a\rb\r"
    assert paste_bytes("a\x1b[201~b", bracketed=True) == b"\x1b[200~a[201~b\x1b[201~"
