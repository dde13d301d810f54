"""The syntax tree of a command line, and what helps the grammar over what it does not know."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import TYPE_CHECKING

from tui.permissions.shell_words import UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

RESERVED = {"!", "{", "if", "then", "elif", "else", "while", "until", "do"}
"""Words that the grammar sometimes takes for a program's name."""

_PREFIXED = re.compile(
    r"((?:^|[\n;&|({`\"')]|\b(?:do|then|else|in)\b)[ \t]*)(?:!|time(?:[ \t]+-p)?)[ \t]+"
    r"(?=[({!]|(?:if|while|until|for|case|select|time|function)\b|\w+[ \t]*\(\))"
)
"""`!` and `time` before a compound command, which the grammar does not know."""

_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_MOST_PREFIXES = 20
_MOST_PIPES = 1000
"""The grammar's time grows with the square of a pipeline, and it looks at no clock in between."""
_ASCII = bytes(range(128)) + b"a" * 128


_CHUNK = 65_536
_MOST_SECONDS = 0.5
"""Of this thread's own time. The grammar takes seconds for some texts, such as `) a|a|a|…`."""


class TooMuchError(Exception):
    """A command line that would take too long to read. The message says why."""


def parse(command: str) -> tuple[bytes, Node]:
    """The text as it was read, and its tree; `root.has_error` tells of syntax errors.

    Raises TooMuchError where the grammar takes too long.
    """
    if command.count("|") > _MOST_PIPES:
        raise TooMuchError("it holds too much")
    text = _CONTINUED.sub(r"\1", command.replace(UNKNOWN, "?").replace("\x01", "?"))
    for _ in range(_MOST_PREFIXES):
        text, count = _PREFIXED.subn(r"\1", text)
        if not count:
            break
    source = text.encode("utf-8", "replace")
    root = _tree(source)
    if root.has_error and b"$((" in source:  # perhaps no arithmetic, but a subshell in `$(…)`
        other = source.replace(b"$((", b"$( (")
        again = _tree(other)
        if not again.has_error:
            return other, again
    return source, root


def _tree(source: bytes) -> Node:
    """The grammar reads beyond its tables for characters above 255 and may crash the process.

    So it sees a letter for every byte that is not ASCII; places in the text stay the same.
    """
    text = source.translate(_ASCII)
    end = time.thread_time() + _MOST_SECONDS
    try:
        return (
            _parser()
            .parse(
                lambda start, _point: text[start : start + _CHUNK],
                progress_callback=lambda _start, _error: time.thread_time() > end,
            )
            .root_node
        )
    except ValueError as error:
        raise TooMuchError("it holds too much") from error


def _parser() -> Parser:
    """A new one each time: one that was stopped would go on with the text before."""
    import tree_sitter  # noqa: PLC0415 - start-up stays light

    return tree_sitter.Parser(_language())


@cache
def _language() -> Language:
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Language(tree_sitter_bash.language())
