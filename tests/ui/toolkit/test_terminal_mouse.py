"""The mouse as xterm sends it to programs (its control sequences, "Mouse Tracking")."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from textual import events
from textual.geometry import Offset

from tui.ui.toolkit.terminal_mouse import mouse_bytes

CLICKS = {"mouse_clicks": True}
DRAGS = {"mouse_drags": True}
MOVES = {"mouse_moves": True}
SGR = {"mouse_sgr": True}


def sent(
    kind: type[events.MouseEvent], modes: Mapping[str, bool], button: int = 0, **more: bool
) -> bytes:
    shift, meta, ctrl = (more.get(key, False) for key in ("shift", "meta", "ctrl"))
    event = kind(None, 4, 9, 0, 0, button, shift, meta, ctrl)
    return mouse_bytes(event, Offset(4, 9), modes, alternate=False)


@pytest.mark.parametrize(
    ("kind", "button", "modes", "bytes_"),
    [
        (events.MouseDown, 1, CLICKS, b"\x1b[M %*"),
        (events.MouseDown, 3, CLICKS, b'\x1b[M"%*'),
        (events.MouseUp, 3, CLICKS, b"\x1b[M#%*"),
        (events.MouseMove, 1, CLICKS, b""),
        (events.MouseMove, 1, DRAGS, b"\x1b[M@%*"),
        (events.MouseMove, 0, DRAGS, b""),
        (events.MouseMove, 0, MOVES, b"\x1b[MC%*"),
        (events.MouseScrollUp, 1, CLICKS, b"\x1b[M`%*"),
        (events.MouseDown, 2, CLICKS | SGR, b"\x1b[<1;5;10M"),
        (events.MouseUp, 2, CLICKS | SGR, b"\x1b[<1;5;10m"),
        (events.MouseMove, 0, MOVES | SGR, b"\x1b[<35;5;10M"),
        (events.MouseScrollRight, 0, MOVES | SGR, b"\x1b[<67;5;10M"),
        (events.MouseDown, 1, SGR, b""),
    ],
)
def test_what_the_program_asked_for(
    kind: type[events.MouseEvent], button: int, modes: Mapping[str, bool], bytes_: bytes
) -> None:
    assert sent(kind, modes, button) == bytes_


def test_keys_that_are_held() -> None:
    assert sent(events.MouseDown, CLICKS | SGR, 1, ctrl=True, meta=True) == b"\x1b[<24;5;10M"
    assert sent(events.MouseScrollDown, CLICKS | SGR, shift=True) == b"\x1b[<69;5;10M"


def test_a_place_that_three_bytes_can_not_say_is_not_sent() -> None:
    event = events.MouseDown(None, 0, 0, 0, 0, 1, False, False, False)
    assert mouse_bytes(event, Offset(222, 0), CLICKS, alternate=False) == b"\x1b[M \xff!"
    assert mouse_bytes(event, Offset(223, 0), CLICKS, alternate=False) == b""
    assert mouse_bytes(event, Offset(223, 0), CLICKS | SGR, alternate=False) == b"\x1b[<0;224;1M"
