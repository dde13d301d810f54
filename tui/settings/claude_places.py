"""The places in the text of a command or skill of Claude Code, filled in as that program does.

It counts from zero: `$0` and `$ARGUMENTS[0]` are the first word, and a field `arguments` of the
front matter names words (`$issue`). A place without its word stays as it is written, a name without
one is empty. If no place took anything, the arguments follow the text. What it was seen to do lies
beside the tests (`tests/settings/claude_code`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tui.core.front_matter import MarkdownFile

_NAMES_MAX: Final = 64
_APART: Final = re.compile(r"(?:[ \t]|\\\n)*")
_WORD: Final = re.compile(
    r"""(?:'[^']*+'|"(?:[^"\\]|\\.)*+"|\\[^\n]|\$(?!\()|[^\s'"\\;&|<>()`$])+""", re.DOTALL
)
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_EXPANSION: Final = re.compile(r"\$(?:\w+|\{[^}]*\})")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=")
_VARIABLE: Final = re.compile(r"\$\{(CLAUDE_\w+)\}")
_FENCED_RUN: Final = re.compile(r"```!\s*\n?(.*?)\n?```", re.DOTALL)
_RUN: Final = re.compile(r"(?:(?<=\s)|^)!`([^`]+)`", re.MULTILINE)
RUNS: Final = re.compile(f"{_FENCED_RUN.pattern}|{_RUN.pattern}", re.DOTALL | re.MULTILINE)
"""A command that is run with the text: the one or the other group has it."""


def names_in(file: MarkdownFile) -> tuple[str, ...]:
    """Return the names that a front matter gives to words, in their order."""
    listed = file.text("arguments").replace(",", " ").split()
    return tuple(name for name in listed if not name.isdigit())[:_NAMES_MAX]


def words_of(typed: str) -> list[str]:
    """Split arguments into words as the program does, which reads them as one command of a shell:
    what follows `;`, `&`, `|`, a redirection, a new line or a comment is no word, nor is a variable
    behind the first word. A quote that stays open takes all that follows, with the quote."""
    words, at, text = list[str](), 0, typed.strip()
    while at < len(text):
        apart = _APART.match(text, at)
        at = apart.end() if apart else at
        word = None if words and text[at] == "#" else _WORD.match(text, at)
        end = word.end() if word else at
        if text[end : end + 1] in {"'", '"'}:
            words.append(text[at:])
            break
        if word is None or (text[at] == "#" and not words):
            break
        at = end
        if text[at : at + 1] in {"<", ">"} and word[0].isdigit():
            break  # the number of a stream
        if not words or not _EXPANSION.fullmatch(word[0]):
            words.append(_QUOTED.sub(_unquoted, word[0]))
        if text[at : at + 1] not in {" ", "\t", "\\"}:
            break
    while words and _ASSIGNED.match(words[0]):
        del words[0]
    return words or typed.split()


def _unquoted(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None)


class ArgumentPlaces:
    """Fills in the places of one text's parts; `taken` is true once one of them took something."""

    def __init__(
        self, typed: str, names: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        self.taken = False
        self._typed, self._words, self._names = typed, words_of(typed), tuple(names)
        self._variables = variables or {}
        named = "|".join(re.escape(one) for one in sorted(names, key=len, reverse=True))
        name = rf"(?P<name>{named})(?![\[\w])|" if named else ""
        self._place = re.compile(
            rf"(?P<escaped>(?<!\\)\\\$(?=\d|ARGUMENTS|{name.replace('?P<name>', '?:') or '(?!)'}))"
            rf"|\$(?:{name}ARGUMENTS\[(?P<at>\d+)\]|(?P<number>\d+)(?!\w)|(?P<all>ARGUMENTS))"
            rf"|{_VARIABLE.pattern.replace('(C', '(?P<variable>C')}"
        )

    def filled(self, text: str) -> str:
        """Fill in one part. What is filled in is never read for places."""
        return self._place.sub(self._value, text)

    @property
    def rest(self) -> str:
        """Return what follows the whole text: the arguments, if nothing took them."""
        return "" if self.taken or not self._typed else f"\n\nARGUMENTS: {self._typed}"

    def _value(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        match kind:
            case "escaped":
                return "$"
            case "variable":
                return self._variables.get(found[kind], found[0])
            case "all":
                self.taken = True
                return self._typed
            case "name":
                self.taken, at = True, self._names.index(found[kind])
                return self._words[at] if at < len(self._words) else ""
            case _:
                at = int(found["at"] or found["number"])
        if at >= len(self._words):
            return found[0]
        self.taken = True
        return self._words[at]
