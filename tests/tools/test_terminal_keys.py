"""What a terminal sends for keys and texts, as xterm does."""

from __future__ import annotations

import pytest

from tui.core.errors import ToolError
from tui.tools.terminal_keys import key_code, readable, text_code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("enter", "\r"), ("Return", "\r"), ("tab", "\t"), ("shift+tab", "\x1b[Z"),
        ("esc", "\x1b"), ("backspace", "\x7f"), ("ctrl+c", "\x03"), ("Ctrl-C", "\x03"),
        ("C-x", "\x18"), ("ctrl+space", "\0"), ("ctrl+]", "\x1d"), ("alt+x", "\x1bx"),
        ("alt+X", "\x1bX"), ("up", "\x1b[A"), ("ctrl+right", "\x1b[1;5C"), ("home", "\x1b[H"),
        ("delete", "\x1b[3~"), ("shift+delete", "\x1b[3;2~"), ("f1", "\x1bOP"), ("f12", "\x1b[24~"),
        ("alt+enter", "\x1b\r"), ("q", "q"), ("Q", "Q"), ("+", "+"), ("-", "-"), (" ", " "),
    ],
)  # fmt: skip
def test_keys(name: str, code: str) -> None:
    assert key_code(name) == code


def test_arrows_as_the_program_wants_them() -> None:
    assert key_code("up", application_cursor=True) == "\x1bOA"
    assert key_code("ctrl+up", application_cursor=True) == "\x1b[1;5A"


@pytest.mark.parametrize("name", ["", "hyper+x", "enterr", "ctrl+ü", "f13"])
def test_what_is_no_key_is_named(name: str) -> None:
    with pytest.raises(ToolError, match="There is no key"):
        key_code(name)


def test_only_several_lines_are_pasted() -> None:
    assert text_code("a\nb", bracketed_paste=True) == "\x1b[200~a\rb\x1b[201~"
    assert text_code("a\nb", bracketed_paste=False) == "a\rb"
    assert text_code("a\n", bracketed_paste=True) == "a\r"
    assert text_code("a\nb\n\n", bracketed_paste=True) == "\x1b[200~a\rb\x1b[201~\r\r"
    with pytest.raises(ToolError, match="control character"):
        text_code("a\x1b[201~", bracketed_paste=True)


def test_every_character_is_seen() -> None:
    assert readable("ls\r\x03\x1b[A\x7f\0") == "ls⏎\n^C⎋[A^?^@"
