"""Vim's normal mode for a text: a pure function from a state and a key to the next state.

In insert mode the text area does what it always does; `insert_ended` takes over what was typed. A
sequence of keys without a meaning changes nothing. A letter of another script is the command in its
place on a Latin keyboard. A character is what `tui.core.characters` takes for one.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len

from tui.core.characters import (
    boundaries,
    clusters,
    next_end,
    previous_start,
    whole_before,
)
from tui.core.dataclass import dataclass, replace
from tui.core.keyboard_layouts import latin
from tui.core.terminal_input import is_text

Mode: TypeAlias = Literal["NORMAL", "INSERT"]
Wish: TypeAlias = Literal["", "undo", "redo", "older", "newer", "search"]


@dataclass(frozen=True, slots=True)
class Vim:
    """The state of a text and its commands.

    `cursor` is the character that it is on, in insert mode the one that it is before. `pending` are
    the keys of an incomplete command. `register` is the last cut or copy, whole lines with the
    newline at their end. `search` is the last f, F, t or T with its character. `change` are the
    keys of the last change and the text typed in it, for `.`; `begun` is the change that insert
    mode belongs to, with the text and the cursor of its beginning. `column` is the one that j and k
    aim for, in cells. `wish` is for the owner of the text's history, `times` how often.
    """

    text: str = ""
    cursor: int = 0
    mode: Mode = "INSERT"
    pending: str = ""
    register: str = ""
    search: str = ""
    change: tuple[str, str] = ("", "")
    begun: tuple[str, str, int] = ("", "", 0)
    column: int | None = None
    wish: Wish = ""
    times: int = 1


_MOTION: Final = r"gg|[fFtT].+|[hjklwbeWBE0^$G;,]"
_COUNT: Final = r"[1-9]\d{0,3}(?!\d)"
_COMPLETE: Final = (
    rf"(?P<count>{_COUNT})?(?:"
    rf"(?P<operator>[dcy])(?P<more>{_COUNT})?(?P<target>(?P=operator)|[ia][wW]|{_MOTION})"
    rf"|(?P<motion>{_MOTION})"
    rf"|(?P<command>r.+|[iaIAoOxXDCYsSpPuJ~./\x12]))"
)
_BEGUN: Final = rf"(?:{_COUNT})?(?:[dcy](?:{_COUNT})?(?:[giafFtT])?|[grfFtT])?"
_NAMED: Final = {"backspace": "h", "delete": "x", "ctrl+r": "\x12"}
_SHORT: Final = {"D": "d$", "C": "c$", "Y": "yy", "x": "dl", "X": "dh", "s": "cl", "S": "cc"}
"""Commands that stand for an operator with a target."""
_WISHES: Final[dict[str, Wish]] = {"u": "undo", "\x12": "redo", "/": "search"}

_LONGEST: Final = 1_000_000
"""No count makes a text longer than this."""


def takes(state: Vim, key: str, character: str | None) -> bool:
    """True if a key belongs to normal mode; all others do what they do anywhere."""
    if state.mode == "INSERT":
        return key == "escape"
    printable = character is not None and is_text(character)
    return printable or key in _NAMED or (key == "escape" and bool(state.pending))


def pressed(state: Vim, key: str, character: str | None) -> Vim:
    """Return the state after a key that it `takes`."""
    state = replace(state, wish="", times=1)
    if key == "escape":
        return insert_ended(state) if state.mode == "INSERT" else replace(state, pending="")
    state = _on_character(state)
    typed = _NAMED.get(key) or character or ""
    if state.pending[-1:] not in {*"fFtTr"}:
        typed = "l" if typed == " " else _in_place(typed)
    keys = state.pending + typed
    state = replace(state, pending="")
    if match := re.fullmatch(_COMPLETE, keys):
        done = _done(state, keys, match)
        return _on_character(done) if done.mode == "NORMAL" else done
    return replace(state, pending=keys) if re.fullmatch(_BEGUN, keys) else state


def _in_place(typed: str) -> str:
    """Return the Latin character in the place of a letter of another script, with its case."""
    char = latin(typed.lower())
    if typed == typed.lower():
        return char or typed
    return char.upper() if char.isalpha() else typed


def insert_ended(state: Vim) -> Vim:
    """Return to normal mode.

    The text typed in insert mode belongs to the change before it, and is repeated by its count.
    """
    keys, text, at = state.begun
    change = state.change
    if keys:
        typed = state.text[at : state.cursor]
        if state.text != text[:at] + typed + text[at:]:
            typed = ""  # the cursor was moved meanwhile
        change = (keys, typed)
        more = _more_of(keys, typed)
        before, behind = state.text[: state.cursor], state.text[state.cursor :]
        state = replace(state, text=before + more + behind, cursor=state.cursor + len(more))
    back = _stepped(state.text, state.cursor, -1)
    return _on_character(
        replace(state, mode="NORMAL", cursor=back, change=change, begun=("", "", 0), column=None)
    )


def _more_of(keys: str, typed: str) -> str:
    """Return what an insert with a count adds to the text typed in it."""
    if not typed or not re.fullmatch(rf"{_COUNT}[iaIAoO]", keys):
        return ""
    one, times = f"\n{typed}" if keys[-1] in "oO" else typed, int(keys[:-1]) - 1
    return one * times if len(one) * times < _LONGEST else ""


def _on_character(state: Vim) -> Vim:
    """Put the cursor on a character of its line, or at the beginning of an empty one."""
    at = max(0, min(state.cursor, len(state.text)))
    start, end = _line(state.text, at)
    last = previous_start(state.text, end) if end > start else start
    return replace(state, cursor=min(whole_before(state.text, at), last))


def _stepped(text: str, at: int, steps: int) -> int:
    """Return the place some characters along the line, as far as there are any."""
    start, end = _line(text, at)
    for _ in range(abs(steps)):
        if at == (end if steps > 0 else start):
            break
        at = next_end(text, at) if steps > 0 else previous_start(text, at)
    return at


def _done(state: Vim, keys: str, found: re.Match[str]) -> Vim:
    """Carry out a whole command, and remember its change, if any, for `.`."""
    count = int(found["count"] or 0)
    if found["motion"]:
        return _moved(state, found["motion"], count)
    operator, target, command = found["operator"], found["target"], found["command"]
    if command and command in _SHORT:
        operator, target = _SHORT[command][0], _SHORT[command][1:]
    if operator:
        if more := int(found["more"] or 0):
            count = min(9999, max(1, count) * more)
        after = _operated(state, operator, target, count)
    elif command in _WISHES:
        return replace(state, wish=_WISHES[command], times=max(1, count))
    elif command == ".":
        return _again(state, count)
    else:
        after = _commanded(state, command, count)
    if after.mode == "INSERT":
        return replace(after, begun=(keys, after.text, after.cursor), column=None)
    if after.text != state.text:
        after = replace(after, change=(keys, ""))
    return replace(after, column=None)


def _again(state: Vim, count: int) -> Vim:
    """Repeat the last change, with another count if one is given."""
    keys, typed = state.change
    if count:
        keys = f"{count}{re.sub(rf'^{_COUNT}', '', keys)}"
    match = re.fullmatch(_COMPLETE, keys)
    if not match:
        return state
    after = _done(state, keys, match)
    if after.mode == "INSERT":
        at = after.cursor
        text = after.text[:at] + typed + after.text[at:]
        after = insert_ended(replace(after, text=text, cursor=at + len(typed)))
    return replace(after, change=(keys, typed))


# Motions


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line(text: str, at: int) -> tuple[int, int]:
    """Return where the line around a place begins, and where its newline is."""
    end = text.find("\n", at)
    return _line_start(text, at), len(text) if end < 0 else end


def _indent(text: str, at: int) -> int:
    """Return the first non-blank character of a line."""
    start, end = _line(text, at)
    return end - len(text[start:end].lstrip())


def _line_at(text: str, number: int) -> int:
    """Return where a line begins, counted from 1; the last one if there are fewer."""
    at = 0
    for _ in range(number - 1):
        after = text.find("\n", at)
        if after < 0:
            break
        at = after + 1
    return at


def _kind(text: str, at: int, big: bool) -> int:
    """Return 0 for blanks and places outside, 1 for letters, 2 for signs."""
    at = whole_before(text, at) if 0 <= at < len(text) else len(text)
    character = text[at : at + 1]
    if not character or character.isspace():
        return 0
    return 1 if big or character.isalnum() or character == "_" else 2


def _next_word(text: str, at: int, big: bool) -> int:
    kind = _kind(text, at, big)
    while at < len(text) and kind and _kind(text, at, big) == kind:
        at += 1
    while at < len(text) and _kind(text, at, big) == 0:
        if text[at] == "\n" and text[at + 1 : at + 2] == "\n":
            return at + 1  # an empty line is a word
        at += 1
    return at


def _word_before(text: str, at: int, big: bool) -> int:
    at = max(0, at - 1)
    while at > 0 and _kind(text, at, big) == 0:
        at -= 1
    while at > 0 and _kind(text, at - 1, big) == _kind(text, at, big):
        at -= 1
    return at


def _word_end(text: str, at: int, big: bool) -> int:
    at = next_end(text, at)
    while at < len(text) and _kind(text, at, big) == 0:
        at += 1
    while _kind(text, at + 1, big) == _kind(text, at, big) != 0:
        at += 1
    return min(at, max(0, len(text) - 1))


def _searched(state: Vim, search: str, count: int, *, again: bool) -> int | None:
    """Return where f, F, t or T leads within the line, None if the character is not there."""
    kind, character = search[0], search[1:]
    start, end = _line(state.text, state.cursor)
    line = state.text[start:end]
    places, characters = boundaries(line), clusters(line)
    step, short = 1 if kind in "ft" else -1, kind in "tT"
    at = places.index(state.cursor - start) + (step if again and short else 0)
    for _ in range(count):
        at += step
        while 0 <= at < len(characters) and characters[at] != character:
            at += step
        if not 0 <= at < len(characters):
            return None
    return start + places[at - step if short else at]


def _target(state: Vim, motion: str, count: int) -> int | None:
    """Return where a motion leads; None if it leads nowhere."""
    text, at, times = state.text, state.cursor, max(1, count)
    match motion[0]:
        case "h" | "l" | "0" | "^" | "$":
            return _along(state, motion, times)
        case "j" | "k":
            return _vertical(state, times if motion == "j" else -times)
        case "g" | "G":
            last = motion == "G" and not count
            return _indent(text, len(text) if last else _line_at(text, times))
        case "f" | "F" | "t" | "T":
            return _searched(state, motion, times, again=False)
        case ";" | ",":
            search = state.search
            if motion == "," and search:
                search = search[0].swapcase() + search[1:]
            return _searched(state, search, times, again=True) if search else None
        case _:
            step = {"w": _next_word, "b": _word_before, "e": _word_end}[motion.lower()]
            for _ in range(times):
                at = step(text, at, motion.isupper())
            return None if at == state.cursor else at


def _along(state: Vim, motion: str, times: int) -> int | None:
    """Return where a motion within the line leads; `$` with a count goes down."""
    text, at = state.text, state.cursor
    start, end = _line(text, at)
    match motion:
        case "h":
            return _stepped(text, at, -times) if at > start else None
        case "l":
            return _stepped(text, at, times) if at < end else None
        case "0":
            return start
        case "^":
            return _indent(text, at)
        case _:
            down = _vertical(replace(state, column=None), times - 1)
            return None if down is None else _line(text, down)[1]


def _vertical(state: Vim, lines: int) -> int | None:
    """Return the place some lines down, or up, as far as there are any; None if there is none."""
    text, at = state.text, state.cursor
    column = _column(text, at) if state.column is None else state.column
    number = text.count("\n", 0, at) + 1
    number_there = max(1, min(number + lines, text.count("\n") + 1))
    if lines and number_there == number:
        return None
    start, end = _line(text, _line_at(text, number_there))
    there = start
    while there < end and cell_len(text[start : (after := next_end(text, there))]) <= column:
        there = after
    return _on_character(replace(state, cursor=there)).cursor


def _column(text: str, at: int) -> int:
    return cell_len(text[_line_start(text, at) : at])


def _moved(state: Vim, motion: str, count: int) -> Vim:
    search = motion if motion[0] in "fFtT" else state.search
    target = _target(state, motion, count)
    if target is None:
        wish: Wish = {"j": "newer", "k": "older"}.get(motion, "")  # pyright: ignore[reportAssignmentType]
        return replace(state, search=search, wish=wish)
    column: int | None = None
    if motion in {"j", "k"}:
        column = _column(state.text, state.cursor) if state.column is None else state.column
    elif motion == "$":
        column = 2 * len(state.text)
    return replace(state, cursor=target, search=search, column=column)


# Changes


def _operated(state: Vim, operator: str, target: str, count: int) -> Vim:
    """Apply d, c or y to a target."""
    text, at = state.text, state.cursor
    # dd, cc, yy: whole lines.
    if target == operator:
        number = text.count("\n", 0, at) + 1
        if count > 1 and _line(text, at)[1] == len(text):
            return state
        return _on_lines(state, operator, at, _line_at(text, number + max(1, count) - 1))
    if target in {"j", "k", "gg", "G"}:
        reached = _target(state, target, count)
        return state if reached is None else _on_lines(state, operator, at, reached)
    if target[0] in "fFtT":
        state = replace(state, search=target)
    if target[0] in "ia":
        start, end = _words_around(text, at, target, count)
    elif span := _span(state, operator, target, count):
        start, end = span
    elif operator == "c" and target in {*"hlwWeE"}:  # at an end of the line or the text
        start = end = at
    else:
        return state
    # Over several lines, vim may take whole ones, or leave the last newline out.
    if "\n" in text[start:end]:
        if _covers_lines(text, operator, target, start, end):
            return _on_lines(state, operator, start, end - 1)
        end -= target in {"b", "B"} and text[end - 1] == "\n"
    if start == end and operator != "c":
        return state
    cut = text[start:end]
    if operator == "y":
        return replace(state, cursor=start, register=cut)
    remaining = text[:start] + text[end:]
    mode: Mode = "INSERT" if operator == "c" else "NORMAL"
    return replace(state, text=remaining, cursor=start, register=cut or state.register, mode=mode)


def _covers_lines(text: str, operator: str, target: str, start: int, end: int) -> bool:
    """True if vim takes a span over several lines for whole lines."""
    if start > _indent(text, start):
        return False
    to_start = target in {"b", "B", "w", "W"} and text[end - 1] == "\n"
    return to_start or (operator == "d" and not text[end : _line(text, end)[1]].strip())


def _span(state: Vim, operator: str, motion: str, count: int) -> tuple[int, int] | None:
    """Return the span that an operator with a motion covers."""
    text, at = state.text, state.cursor
    big = motion.isupper()
    # As in vim, cw ends with the word, without the blanks after it.
    if operator == "c" and motion in {"w", "W"} and _kind(text, at, big):
        end = at
        while _kind(text, end + 1, big) == _kind(text, at, big):
            end += 1
        for _ in range(max(1, count) - 1):
            end = _word_end(text, end, big)
        return at, end + 1
    target = _target(state, motion, count)
    if target is None and motion in {"e", "E"} and at < len(text):
        target = at
    if target is None:
        return None
    kind = state.search[:1] if motion == ";" else motion[0]
    if motion == ",":
        kind = state.search[:1].swapcase()
    # Inclusive motions cover the character that they lead to.
    if kind in {"e", "E", "f", "t"}:
        target = next_end(text, target)
    elif kind in {"w", "W"}:
        gap = text[at:target]
        broken = gap[len(gap.rstrip()) :].find("\n")
        if gap[0] == "\n":  # an empty line
            target = at + 1
        elif broken >= 0:  # the last word of a line ends with it
            target = at + len(gap.rstrip()) + broken
    return min(at, target), max(at, target)


def _words_around(text: str, at: int, target: str, count: int) -> tuple[int, int]:
    """Return the word, or the blanks, around a place; with "a", also what separates it from the
    next. A count adds more of them."""
    big, (first, last) = target[1] == "W", _line(text, at)
    kind = _kind(text, at, big)
    start = end = at
    while start > first and _kind(text, start - 1, big) == kind:
        start -= 1
    for _ in range(max(1, count)):
        end = _run_end(text, end, last, big)
    if target[0] == "i" or start == end:
        return start, end
    if bool(_kind(text, end, big)) != bool(kind):  # blanks after a word, a word after blanks
        end = _run_end(text, end, last, big)
    else:
        while start > first and not _kind(text, start - 1, big):
            start -= 1
    return start, end


def _run_end(text: str, at: int, last: int, big: bool) -> int:
    """Return the end of a word or of blanks within a line."""
    end = at
    while end < last and _kind(text, end, big) == _kind(text, at, big):
        end += 1
    return end


def _on_lines(state: Vim, operator: str, one: int, other: int) -> Vim:
    """Apply d, c or y to the lines from one place to another."""
    text = state.text
    start, end = _line(text, min(one, other))[0], _line(text, max(one, other))[1]
    register = f"{text[start:end]}\n"
    if operator == "y":
        up = other if other < _line_start(text, state.cursor) else state.cursor
        return replace(state, cursor=up, register=register)
    if operator == "c":
        remaining = text[:start] + text[end:]
        return replace(state, text=remaining, cursor=start, register=register, mode="INSERT")
    before = start if end < len(text) else max(0, start - 1)  # the last line takes its newline
    remaining = text[:before] + text[end + 1 :]
    return replace(
        state,
        text=remaining,
        cursor=_indent(remaining, min(start, len(remaining))),
        register=register,
    )


def _commanded(state: Vim, command: str, count: int) -> Vim:
    """Carry out a command of one key, or r with its character."""
    text, at, times = state.text, state.cursor, max(1, count)
    start, end = _line(text, at)
    match command[0]:
        case "i" | "a" | "I" | "A":
            place = {"i": at, "a": _stepped(text, at, 1), "I": _indent(text, at), "A": end}[command]
            return replace(state, cursor=place, mode="INSERT")
        case "o":
            return replace(state, text=f"{text[:end]}\n{text[end:]}", cursor=end + 1, mode="INSERT")
        case "O":
            return replace(
                state, text=f"{text[:start]}\n{text[start:]}", cursor=start, mode="INSERT"
            )
        case "p" | "P":
            return _put(state, before=command == "P", times=times)
        case "J":
            return _joined(state, times)
        case "~":
            last = _stepped(text, at, times)
            turned = text[at:last].swapcase()
            return replace(state, text=text[:at] + turned + text[last:], cursor=at + len(turned))
        case _:  # r
            last = _stepped(text, at, times)
            if len(clusters(text[at:last])) < times:
                return state
            written = command[1:] * times
            replaced = text[:at] + written + text[last:]
            return replace(state, text=replaced, cursor=at + len(written) - 1)


def _put(state: Vim, *, before: bool, times: int) -> Vim:
    """p and P: put the last cut after the cursor or before it; lines as lines."""
    text, at, register = state.text, state.cursor, state.register
    start, end = _line(text, at)
    if not register or len(text) + len(register) * times > _LONGEST:
        return state
    if not register.endswith("\n"):
        place = at if before else _stepped(text, at, 1)
        whole = register * times
        cursor = place if "\n" in whole else place + len(whole) - 1
        return replace(state, text=text[:place] + whole + text[place:], cursor=cursor)
    lines = register * times
    if before:
        return replace(state, text=text[:start] + lines + text[start:], cursor=start)
    whole = f"\n{lines[:-1]}"
    return replace(state, text=text[:end] + whole + text[end:], cursor=end + 1)


def _joined(state: Vim, times: int) -> Vim:
    """J: join the next line to this one, with one space between them."""
    text, at = state.text, state.cursor
    for _ in range(max(1, times - 1)):
        _, end = _line(text, at)
        if end == len(text):
            break
        line = text[end + 1 : _line(text, end + 1)[1]]
        stripped = line.lstrip()
        space = " " if stripped and text[:end] and not text[:end].endswith((" ", "\n")) else ""
        text = text[:end] + space + stripped + text[end + 1 + len(line) :]
        at = end if stripped else max(0, end - 1)
    return replace(state, text=text, cursor=at)
