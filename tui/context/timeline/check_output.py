"""Tells whether what a line printed is what its check said. Pure.

Other commands of the line may print anything, also words of success: `echo "$N passed"`, `cat` of
an older log. Where one of them can, its output doesn't say how the check ended.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from typing import Final

from tui.context.timeline.check_line import CHECK, without_texts
from tui.core.late_pattern import late_pattern
from tui.permissions.risk_tiers import names

GREEN_WORDS: Final = late_pattern(
    r"\b[1-9]\d* pass(?:ed|ing)\b|test result: ok|^ok\b|\b0 (?:errors?|issues)\b"
    r"|\bno (?:issues|errors)\b|All checks passed|^OK\b",
    re.MULTILINE,
)
"""Words by which checks say that they succeeded."""
_PIPELINE: Final = late_pattern(r"(?:[<>]&|&>|\|&?(?!\|)|\\\n|[^;&|\n])+")
_STAGE: Final = late_pattern(r"(?:[<>]&|&>|\\\n|[^|])+")
_PROGRAM: Final = late_pattern(
    r"(?:.*\b(?:ba|da|z)?sh\s+-\w*c\s+['\"])?[&\s({!]*(?:[A-Za-z_]\w*=\S*\s*)*(?:[\w.~/-]*/)?"
    r"(?P<name>[^\s;|&)}'\"]*)"
)
_HERE_END: Final = late_pattern(r"<<-?\s*['\"]?(\w+)")
_TO_FILE: Final = late_pattern(
    r"(?:(?<![\d&>])1?>|&>)\s*(?P<file>[^\s;&|>()]+)|\|\s*tee\s+(?P<tee>\w\S*)"
)
_EXIT_CODE: Final = late_pattern(r"\$(?:[?!]|\{?(?:PIPESTATUS|pipestatus)[^\s\"'}]*\}?)")
_EXPANDED: Final = late_pattern(r"[$`]|\\[x0-9uU]")
"""Where the shell, or `echo`, puts something into a text."""
_NUMBER: Final = late_pattern(r"[-+]?\d+")
_SHOW: Final = frozenset(names("head tail grep egrep fgrep rg ag cat tee sort uniq less more nl"))
"""Programs that print lines as they are, of a pipe or of files."""
_CHANGE: Final = frozenset({"sed", "awk", "cut", "tr", "column", "ts"})
"""Programs that print them with changes."""
_PATTERN_FIRST: Final = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "cut", "tr"})
_VERDICTS: Final = late_pattern(r"pass|\bok\b|fail|err|issue|succe", re.IGNORECASE)
_QUIET: Final = frozenset(
    names(
        "cd pushd popd set unset export source . mkdir rm rmdir touch cp mv ln chmod true false :"
        " exit return sleep wait test [ [[ kill trap ulimit umask date pwd"
    )
)
"""Programs that print no words of success."""


def says_alone(command: str) -> bool:
    """True if a line prints nothing but what the check in it says, and words that stand in it."""
    line = without_texts(command)
    found = CHECK.search(line)
    if found is None:
        return False
    at, ends = found.start("check"), {*_HERE_END.findall(line)}
    own: set[str] = set()
    for part in _PIPELINE.finditer(line):
        here, text = line[part.start() : part.end()], command[part.start() : part.end()]
        if part.start() <= at < part.end():
            own |= {one["file"] or one["tee"] for one in _TO_FILE.finditer(here)}
            _, *filters = _stages(here, text, at - part.start())
        elif here.strip(" _\n") in ends or not here.strip(" _\n(){}"):
            continue
        else:
            first, *filters = _stages(here, text)
            if not (_is_quiet(*first) or _shows(*first, own)):
                return False
        if not all(_shows(*one, own) for one in filters):
            return False
    return True


def is_quoted(words: str, command: str) -> bool:
    """True if words of an output stand in the line itself: `echo` may have printed them."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", command) is not None


def _stages(here: str, text: str, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the commands of a pipeline from a place on, each blotted and as it was written."""
    for one in _STAGE.finditer(here, start):
        yield one[0].removeprefix("&"), text[one.start() : one.end()].removeprefix("&")


def _name(here: str) -> str:
    found = _PROGRAM.match(here)
    return found["name"] if found else ""


def _is_quiet(here: str, text: str) -> bool:
    name = _name(here)
    if name in {"echo", "printf"} and not _TO_FILE.search(here):
        return _is_fixed(text, printf=name == "printf")
    return not name or name in _QUIET or _TO_FILE.search(here) is not None


def _is_fixed(text: str, *, printf: bool) -> bool:
    """True if `echo` prints what is written, but for exit codes."""
    if _EXPANDED.search(_EXIT_CODE.sub("", text)) or (printf and "%" in text):
        return False
    try:
        words = shlex.split(text)[1:]
    except ValueError:
        return False
    for code in "01":
        printed = _EXIT_CODE.sub(code, " ".join(words))
        if any(not is_quoted(one[0], text) for one in GREEN_WORDS.finditer(printed)):
            return False
    return True


def _shows(here: str, text: str, own: Collection[str]) -> bool:
    """True if a command only shows lines of what it gets, or of the check's own files."""
    name = _name(here)
    if name not in _SHOW and (name not in _CHANGE or _VERDICTS.search(text)):
        return False
    operands: list[str] = []
    before = ""
    for word in (one.rstrip("'\")") for one in here.split()[1:]):
        if not (word.startswith("-") or set("<>") & {*word} or before.endswith((">", "<"))):
            operands.append(word)
        before = word
    operands = [one for one in operands if one and not _NUMBER.fullmatch(one)]
    if name in _PATTERN_FIRST:
        operands = operands[1:]
    return name == "tee" or {*operands} <= {*own}
