"""The mouse as the bytes that a terminal sends to its program: what the program asked for, in the
form that it asked for. One on a screen of its own that asked for nothing gets arrow keys for the
wheel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual import events
from textual.geometry import Offset

_WHEEL: Final[Mapping[type[events.MouseEvent], int]] = {
    events.MouseScrollUp: 64,
    events.MouseScrollDown: 65,
    events.MouseScrollLeft: 66,
    events.MouseScrollRight: 67,
}
_ARROWS: Final[Mapping[int, bytes]] = {64: b"A", 65: b"B"}
_ARROWS_A_NOTCH: Final = 3
_MOVED: Final = 32
_NO_BUTTON: Final = 3
_SHIFT, _ALT, _CONTROL = 4, 8, 16
_LAST_PLACE: Final = 223
"""The last column or row that three bytes can say."""


def mouse_bytes(
    event: events.MouseEvent, place: Offset, modes: Mapping[str, bool], *, alternate: bool
) -> bytes:
    """Return what a program gets of the mouse at a cell, from 0, by its `modes`; `alternate` if it
    draws on a screen of its own. Empty for what it hasn't asked for."""
    code = _WHEEL.get(type(event))
    if not any(modes.get(name) for name in ("mouse_clicks", "mouse_drags", "mouse_moves")):
        arrow = _ARROWS.get(code or 0) if alternate else None
        form = b"\x1bO" if modes.get("application_cursor") else b"\x1b["
        return (form + arrow) * _ARROWS_A_NOTCH if arrow else b""
    if code is None:
        code = (event.button or _NO_BUTTON + 1) - 1
    if isinstance(event, events.MouseMove):
        if not modes.get("mouse_moves") and not (modes.get("mouse_drags") and event.button):
            return b""
        code += _MOVED
    code += _SHIFT * event.shift + _ALT * event.meta + _CONTROL * event.ctrl
    up, column, row = isinstance(event, events.MouseUp), place.x + 1, place.y + 1
    if modes.get("mouse_sgr"):
        return f"\x1b[<{code};{column};{row}{'m' if up else 'M'}".encode()
    if max(column, row) > _LAST_PLACE:
        return b""
    return b"\x1b[M" + bytes(32 + one for one in (code | _NO_BUTTON if up else code, column, row))
