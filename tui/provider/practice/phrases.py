"""The handful of phrases that the practice model understands, and its actions for each.

The work for a phrase is a generator: it yields calls, is sent their results, and returns the
answer. It starts over at every request and is sent the results that are already there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeAlias

from tui.core.dataclass import dataclass
from tui.provider.practice.conversation import CallResult
from tui.provider.practice.excerpts import (
    code,
    fence,
    first_line,
    headings,
    opening,
    page_of,
    readme_of,
)
from tui.provider.practice.script import ToolUse

Work: TypeAlias = Generator[ToolUse, CallResult, str]

_QUOTED = r"`[^`]+`|\"[^\"]*\"|“[^”]*”|'[^']*'"
_PATH = rf"(?:the )?(?:file |folder )?(?P<path>@?(?:{_QUOTED})|[^\s,]+)"
_MORE = r"(?P<more>,? (?:and|then) .+)?"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A kind of prompt, and the work that is done for it."""

    example: str
    pattern: str
    """Matches a whole prompt. The group `more` is the part of it that is not done."""
    aim: str
    """The aim in words; it may name groups of the pattern."""
    tool: str
    """The tool without which the example is not offered."""
    work: Callable[..., Work]
    """Called with the groups of the pattern, without their quotes."""


def _list(path: str = ".") -> Work:
    result = yield ToolUse(name="list_dir", input={"path": path})
    where = "this folder" if path == "." else code(path)
    return _failure(result) or f"In {where}:\n\n{fence(result.text)}"


def _explain() -> Work:
    listed = yield ToolUse(name="list_dir", input={"path": "."})
    if listed.is_error:
        return _failure(listed)
    answer = f"This folder holds:\n\n{fence(listed.text)}"
    if (name := readme_of(listed.text)) is None:
        return f"{answer}\n\nIt has no README that I could quote."
    result = yield ToolUse(name="read_file", input={"path": name})
    text, _ = page_of(result.text)
    if not (about := opening(text)):
        return _failure(result) or f"{answer}\n\n{code(name)} has no text that I could quote."
    sections = headings(name, text)[1:9]
    parts = f"\n\nIts parts: {', '.join(sections)}." if sections else ""
    return f"{answer}\n\n{code(name)} begins:\n\n> {about}{parts}"


def _read(path: str) -> Work:
    result = yield ToolUse(name="read_file", input={"path": path})
    text, note = page_of(result.text)
    count = len(text.splitlines())
    answer = f"I read {count:,} line{'s' * (count != 1)} of {code(path)}:\n\n{fence(text, path)}"
    if len(sections := headings(path, text)) > 1:
        answer += f"\n\nIt contains: {', '.join(sections[:8])}{' …' if len(sections) > 8 else '.'}"
    return _failure(result) or (f"{answer}\n\n{note}" if note else answer)


def _fetch(url: str) -> Work:
    result = yield ToolUse(name="web_fetch", input={"url": url})
    return _failure(result) or f"I fetched {code(url)}:\n\n{fence(result.text)}"


def _search(text: str, path: str = ".") -> Work:
    if re.search(r"[*?]", text):
        result = yield ToolUse(name="find_by_name", input={"pattern": text, "path": path})
    else:
        arguments = {"pattern": text, "path": path, "literal": True, "case_insensitive": True}
        result = yield ToolUse(name="grep_search", input=arguments)
    return _failure(result) or f"The search for {code(text)} found:\n\n{fence(result.text)}"


def _run(command: str) -> Work:
    result = yield ToolUse(name="run_command", input={"command": command})
    verdict = "**failed**" if result.is_error else "succeeded"
    return f"{code(command)} {verdict}. It printed:\n\n{fence(result.text, tail=True)}"


def _review() -> Work:
    return (yield from _run("git status --short && git diff --stat"))


def _test(command: str = "pytest -q") -> Work:
    result = yield ToolUse(name="run_command", input={"command": command})
    if not result.is_error:
        return f"The tests pass:\n\n{fence(result.text, tail=True)}"
    return (
        f"The tests fail:\n\n{fence(result.text, tail=True)}\n\nI'm a rule-based demo, so I "
        f"can't find"
        " the fix. Tell me the edit: `change OLD to NEW in FILE`."
    )


def _create(path: str, text: str) -> Work:
    arguments = {"path": path, "content": _lines(text)}
    result = yield ToolUse(name="write_file", input=arguments)
    return _failure(result) or f"Done. {first_line(result.text)}"


def _change(old: str, new: str, path: str) -> Work:
    result = yield ToolUse(name="read_file", input={"path": path})
    if not result.is_error:
        edit = {"path": path, "old_string": old, "new_string": new}
        result = yield ToolUse(name="edit_file", input=edit)
    changed = [("-", line) for line in old.splitlines()] + [
        ("+", line) for line in new.splitlines()
    ]
    diff = "\n".join(sign + line for sign, line in changed)
    return _failure(result) or f"Done. {first_line(result.text)}\n\n{fence(diff, '.diff')}"


def _append(text: str, path: str) -> Work:
    result = yield ToolUse(name="read_file", input={"path": path})
    before, note = page_of(result.text)
    if result.is_error or not before:
        if result.is_error and "doesn't exist" not in result.text:
            return _failure(result)
        result = yield ToolUse(name="write_file", input={"path": path, "content": _lines(text)})
    elif "continue with" in note:
        return f"{code(path)} is too long for me to see its end, so I changed nothing."
    else:
        end = _unique_end(before)
        after = _lines(end) + _lines(text)
        edit = {"path": path, "old_string": end, "new_string": after}
        result = yield ToolUse(name="edit_file", input=edit)
    return _failure(result) or f"Done. {first_line(result.text)}"


PHRASES = (
    Phrase(
        "explain this repository",
        r"(?:explain|describe|summari[sz]e|what is)(?: me| to me)? (?:this|the|my)"
        rf" (?:repository|repo|project|code ?base|folder|directory|workspace){_MORE}",
        "explain this folder", "list_dir", _explain,
    ),
    Phrase(
        "list files",
        rf"(?:list|ls)(?: (?:the )?files)?(?: in)?(?: {_PATH})?{_MORE}"
        r"|show (?:me )?(?:the )?files",
        "list the folder", "list_dir", _list,
    ),
    Phrase(
        "run the tests",
        r"(?:run|fix) (?:all )?(?:the |my )?(?:failing )?(?:unit )?tests?"
        rf"(?: with (?P<command>{_QUOTED}))?(?: and fix .+)?{_MORE}",
        "run the tests", "run_command", _test,
    ),
    Phrase(
        "review my uncommitted changes",
        r"review (?:my |the )?(?:uncommitted )?changes(?:: (?P<more>.+))?",
        "review the changes", "run_command", _review,
    ),
    Phrase(
        "run git status", r"(?:(?:run|execute) |(?=`))(?P<command>.+)",
        "run {command}", "run_command", _run,
    ),
    Phrase(
        "search for TODO in src",
        r"(?:search|grep|find|look for)(?: for)?"
        rf" (?P<text>{_QUOTED}|\S+(?: \S+){{0,2}}?)(?: in {_PATH})?",
        "search for {text}", "grep_search", _search,
    ),
    Phrase(
        'append "- a line" to notes.md',
        rf"(?:append|add|write) (?P<text>{_QUOTED}|\S+) to {_PATH}",
        "append to {path}", "edit_file", _append,
    ),
    Phrase(
        'create notes.txt with "hello"',
        rf"(?:create|write) (?:a )?{_PATH} (?:with|containing) (?:the text )?"
        rf"(?P<text>{_QUOTED}|.+)",
        "write {path}", "write_file", _create,
    ),
    Phrase(
        "change OLD to NEW in app.py",
        rf"(?:change|replace) (?P<old>{_QUOTED}|.+?) (?:to|with|by) (?P<new>{_QUOTED}|.+?)"
        rf" in {_PATH}",
        "change {old} to {new} in {path}", "edit_file", _change,
    ),
    Phrase(
        "fetch https://example.org",
        rf"(?:fetch|get|read|open|show)(?: me)? (?P<url>https?://[^\s,]+){_MORE}",
        "fetch {url}", "web_fetch", _fetch,
    ),
    Phrase(
        "read README.md", rf"(?:read|open|show|cat|view|what(?:'s| is) in)(?: me)? {_PATH}{_MORE}",
        "read {path}", "read_file", _read,
    ),
)  # fmt: skip
"""The phrases in the order in which they are tried."""

_POLITE = re.compile(r"(?:please|can you|could you) ", re.IGNORECASE)
_LONGEST = 2000
"""A longer prompt is no phrase; the patterns are slow on long texts."""


def match_phrase(phrase: Phrase, text: str) -> dict[str, str] | None:
    """Return a phrase's groups if a prompt matches it, otherwise None."""
    text = re.sub(r"(?<=[\w`\"”'])[.!?]+$", "", _POLITE.sub("", text.strip(), count=1))
    if len(text) > _LONGEST:
        return None
    match = re.fullmatch(phrase.pattern, text, re.IGNORECASE | re.DOTALL)
    return match and {name: _unquoted(part) for name, part in match.groupdict().items() if part}


def _failure(result: CallResult) -> str:
    """Explain why a call did not work; "" if it did."""
    return f"That didn't work: {first_line(result.text)}" if result.is_error else ""


def _unquoted(text: str) -> str:
    quoted = re.fullmatch(rf"@?(?:{_QUOTED})", text)
    return text.lstrip("@")[1:-1] if quoted else text.removeprefix("@")


def _lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _unique_end(text: str) -> str:
    """The shortest run of last lines that occurs in the text only once."""
    lines = text.splitlines(keepends=True)
    for count in range(1, len(lines)):
        end = "".join(lines[-count:])
        if end.strip() and text.find(end) == len(text) - len(end):
            return end
    return text
