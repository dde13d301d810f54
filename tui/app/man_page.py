"""The man page, in roff: made of the table of options and of tables in the manual. Pure.

`holdfast help --man` prints it; `.packaging/holdfast.1` is what a wheel brings along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from textwrap import wrap
from typing import Final

from tui.app import manual
from tui.app.options.flags import COMMANDS, MAIN, Command, Flag
from tui.core.project import REPOSITORY

DATE: Final = "2026-11-28"
"""The day on which this page changed last."""

_ABOUT: Final = """\
Holdfast is a full-screen agent for the terminal. It reads and changes files, runs commands
in a sandbox and asks before it does what you have not allowed. Every finished step is on
disk before it is shown, so a crash loses nothing.

Without a command it opens the screen in this folder, and sends PROMPT first. With -p it
prints the answer and ends."""
_WIDTH: Final = 70
_ROW: Final = re.compile(r"^\| (`.*?) \| (.*) \|$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def text() -> str:
    """The whole page."""
    parts = [
        f'.TH HOLDFAST 1 {DATE} Holdfast "Holdfast manual"',
        *_section("Name", ["holdfast \\- a terminal agent that never loses work"]),
        *_section("Synopsis", _synopsis()),
        *_section("Description", _paragraphs(_ABOUT.split("\n\n"))),
        *_section("Options", _options(MAIN)),
        *_section("Commands", _commands()),
        *_section("Exit status", _table("command-line", "Exit codes")),
        *_section("Environment", _table("files", "Environment variables")),
        *_section("See also", _paragraphs(_see_also())),
    ]
    return "\n".join(parts) + "\n"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f".SH {title.upper()}"
    yield from lines


def _synopsis() -> Iterator[str]:
    yield ".B holdfast"
    yield "[options] [PROMPT]"
    yield ".br"
    yield ".B holdfast"
    yield "[options] \\-p [TEXT]"
    yield ".br"
    yield ".B holdfast"
    yield "COMMAND ..."


def _see_also() -> Iterator[str]:
    topics = ", ".join(manual.TOPICS)
    yield f"holdfast help opens the manual, holdfast help TOPIC one topic: {topics}."
    yield f"{manual.address()} has the same pages."
    yield f"Report problems at {REPOSITORY}/issues."


def _options(command: Command) -> Iterator[str]:
    """The flags of a command, under their groups where it has some."""
    groups = dict.fromkeys(flag.group for flag in command.flags)
    for group in groups:
        if len(groups) > 1:
            yield f".SS {_roff(group)}"
        for flag in (flag for flag in command.flags if flag.group == group):
            yield from _entry(_usage(flag), flag.help)


def _usage(flag: Flag) -> str:
    names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in flag.names)
    value = _roff(flag.value or "|".join(flag.choices))
    return f"{names} {f'[{value}]' if flag.optional else value}".rstrip()


def _commands() -> Iterator[str]:
    described = [replace(flag, group="") for flag in MAIN.flags]
    for command in COMMANDS:
        parts = [one.name if one.required else f"[{one.name}]" for one in command.arguments]
        parts += [f"-- {command.after}"] if command.after else []
        yield f'.SS "{_roff(" ".join(("holdfast", *command.words, *parts)))}"'
        yield from _sentence(command.help)
        same: list[str] = []
        for flag in command.flags:
            if replace(flag, group="") in described:
                same.append(flag.names[-1])
            else:
                yield from _entry(_usage(flag), flag.help)
        if same:
            yield ".PP"
            yield from _lines(f"Also takes {', '.join(same)}.")


def _entry(head: str, said: str) -> Iterator[str]:
    yield ".TP"
    yield head
    yield from _sentence(said)


def _table(topic: str, heading: str) -> Iterator[str]:
    """The rows of a table in the manual, as entries."""
    (page,) = (one for one in manual.topics() if one.name == topic)
    (section,) = (body for title, body in manual.sections(page) if title == heading)
    for head, text in _ROW.findall(section):
        name = "".join(
            f"\\fB{_roff(part)}\\fR" if odd % 2 else _roff(part)
            for odd, part in enumerate(head.split("`"))
        )
        yield ".TP"
        yield name
        plain = _LINK.sub(r"\1", text).replace("`", "")
        yield from _lines(f"{plain}.") if text.startswith("`") else _sentence(plain)


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield ".PP"
        yield from _lines(text)


def _sentence(said: str) -> Iterator[str]:
    """A text of help as a sentence."""
    return _lines(said[:1].upper() + said[1:] + ("" if said.endswith(".") else "."))


def _lines(said: str) -> Iterator[str]:
    """A text in lines of the length that is usual in sources of man pages."""
    return map(_roff, wrap(said, _WIDTH, break_on_hyphens=False, break_long_words=False))


def _roff(said: str) -> str:
    """A text as roff prints it as it is."""
    escaped = said.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped
