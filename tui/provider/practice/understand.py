"""From a prompt to steps: the places where it falls apart, and the texts that belong together.

Quoted text, code spans and fences are never split. Elsewhere a prompt is split at "then", ";",
"and", a comma or a new line, but only where what follows is a request by itself; so
"create list.txt with milk and eggs" stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.provider.practice.grammar import (
    CREATE_HEAD,
    OVERWRITING,
    QUOTED,
    WITH,
    parse,
    path_of,
    with_newline,
    without_lead_in,
)
from tui.provider.practice.steps import Create, Plan, Run, Step, Talk, Unknown

MAX_STEPS = 20
_MAX_SPLITS = 60
_LOOK_AHEAD = 4

_QUOTED = re.compile(QUOTED, re.DOTALL)
_SEPARATOR = re.compile(
    r"""(?P<hard>\s*;\s*|,?\s+(?:and\s+)?then\s+|[.!]\s+then,?\s+|\s*\n\s*(?:[-*•]\s+|\d+[.)]\s+)?)
    |(?P<soft>[,.!]\s+(?:and\s+)?(?:also\s+)?|\s+and\s+(?:also\s+)?)""",
    re.IGNORECASE | re.VERBOSE,
)
_PLAN = re.compile(
    r"""(?:please\s+)?(?:make\s+a\s+)?(?:plan|to-?dos?(?:\s+list)?)\s*:[ \t]*
    (?P<lines>\n(?:[^\n]*\S[^\n]*(?:\n|$))+|[^\n]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_CREATE = re.compile(
    rf"""(?:please\s+)?{CREATE_HEAD}{WITH}?\s*:?[ \t]*
    (?:(?<=:)[ \t]*\n|(?<=:)[ \t]*\n?(?=```)|\n?(?=```))(?P<content>.+)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_FENCE = re.compile(r"(`{3,})[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_MENTION = re.compile(r"""(?<!\S)@(?=")""")
"""What stands before a file's name that is quoted, as the completion of names writes it."""
_LIST_MARK = re.compile(r"^(?:(?:[-*•]|\d+[.)])\s+)+")
_ITEM_MARK = re.compile(r"[-*•]\s+|\d+[.)]\s+|(?:and\s+)?then\s+|and\s+", re.IGNORECASE)
_SHELL_WORDS = {
    "ls", "cat", "cd", "cp", "mv", "rm", "find", "grep", "echo", "test", "make", "git", "sleep",
    "python", "python3", "pytest", "npm", "uv", "pwd", "head", "tail", "true", "false", "exit",
}  # fmt: skip


def understand(text: str) -> tuple[Step, ...]:
    """The steps that a prompt asks for, in order; what is not understood is `Unknown`.

    Small talk beside real work is dropped. An empty prompt gives no steps.
    """
    steps = tuple(_steps(_MENTION.sub("", text.strip())))
    work = tuple(step for step in steps if not isinstance(step, Talk))
    return (work or steps[:1])[:MAX_STEPS]


def _steps(text: str) -> Iterator[Step]:
    while text := _LIST_MARK.sub("", text):
        if (block := _block(text)) is not None:
            step, text = block
            yield step
            text = without_lead_in(text)
            continue
        left, text = _split(text)
        yield parse(left) or Unknown(left)


def _block(text: str) -> tuple[Step, str] | None:
    """A step at the start whose content takes up lines of its own, and what follows it."""
    if found := _PLAN.match(text):
        lines = found["lines"].strip()
        parts = re.split(r"\n" if "\n" in lines else r"\s*[,;]\s*", lines)
        items = tuple(item for part in parts if (item := _ITEM_MARK.sub("", part.strip(), count=1)))
        return (Plan(items), text[found.end() :].strip()) if items else None
    if found := _CREATE.match(text):
        content, rest = found["content"], ""
        if fence := _FENCE.match(content):
            content, rest = fence[2], content[fence.end() :]
        path = path_of(found["path"], strict=not found["file"])
        if path and content.strip():
            overwrite = found["verb"].lower() in OVERWRITING
            return Create(path, with_newline(content), overwrite), rest.strip()
    return None


def _split(text: str) -> tuple[str, str]:
    """The first step's words, and the rest."""
    shielded = [found.span() for found in _QUOTED.finditer(text)]
    breaks = [
        found
        for found in _SEPARATOR.finditer(text)
        if not any(start < found.end() and found.start() < end for start, end in shielded)
    ]
    if len(breaks) > _MAX_SPLITS:
        return text, ""
    for index, found in enumerate(breaks):
        left, right = text[: found.start()].strip(), text[found.end() :].strip()
        if not without_lead_in(f"{left} ") or not right:
            continue
        if found[0].strip() == ";" and _of_one_shell_line(left, right):
            continue
        strict = found["soft"] is not None
        stops = [later.start() for later in breaks[index + 1 : index + 1 + _LOOK_AHEAD]]
        tries = (text[found.end() : stop] for stop in [*stops, len(text)])
        if _block(right) or any(parse(part, strict=strict) for part in tries):
            return left, right
    return text, ""


def _of_one_shell_line(left: str, right: str) -> bool:
    """Whether a semicolon is a command's own: "run cd src; ls"."""
    word = right.split(maxsplit=1)[0].lower()
    return isinstance(parse(left), Run) and (word in _SHELL_WORDS or parse(right) is None)
