"""Steps that only look: read, search, find, list."""

from __future__ import annotations

from tui.provider.practice import results
from tui.provider.practice.answer import Call
from tui.provider.practice.asking import (
    SHOWN,
    Work,
    ask,
    bullets,
    first_line,
    is_missing,
    joined,
    place,
)
from tui.provider.practice.dialogue import Outcome
from tui.provider.practice.steps import Find, ListFolder, Read, Search, code


def read(step: Read) -> Work:
    offset = step.first
    limit = step.last - step.first + 1 if step.first and step.last else None
    arguments = {k: v for k, v in (("offset", offset), ("limit", limit)) if v is not None}
    yield f"I'll read {joined([code(path) for path in step.paths])}."
    outcomes = yield tuple(Call("read_file", {"path": path, **arguments}) for path in step.paths)
    for path, outcome in zip(step.paths, outcomes, strict=True):
        if outcome.is_error:
            yield from not_read(path, outcome)
        else:
            yield _about_file(path, outcome, step.first or 1)


def _about_file(path: str, outcome: Outcome, first: int) -> str:
    page = results.page(outcome.text)
    if not outcome.known:
        return f"I have read {code(path)}; its text is no longer in front of me."
    if not page.lines:
        return f"{code(path)} is empty, or nothing that I can see as text."
    count = f"{len(page.lines):,} line{'s' * (len(page.lines) != 1)}"
    part = f"I read {count} of {code(path)}" + (f" from line {first}" if first > 1 else "")
    text = f"{part}:\n\n{results.fence(page.lines, results.language(path))}"
    if len(outline := results.outline(path, page.text)) > 1:
        more = f" … and {len(outline) - SHOWN} more" if len(outline) > SHOWN else ""
        text += f"\n\nIt holds: {', '.join(outline[:SHOWN])}{more}."
    if page.next_line:
        text += f"\n\nThere is more. Say `read {path} from line {page.next_line}` to go on."
    elif not page.complete:
        text += "\n\nOnly a part of it fitted; the result says where the rest is."
    return text


def not_read(path: str, outcome: Outcome) -> Work:
    """A file that could not be read: look once at what is there instead."""
    yield f"That did not work: {first_line(outcome)}"
    lower = outcome.text.lower()
    if "is a folder" in lower or "is a directory" in lower:
        yield from list_folder(ListFolder(path))
    elif is_missing(outcome):
        folder = path.rpartition("/")[0] or "."
        if "its folder" in lower:
            folder = "."
        outcome = yield from ask("list_dir", path=folder)
        names = results.entries(outcome.text)
        if not outcome.is_error and names:
            yield f"In {place(folder)} I see:\n\n{bullets(names)}\n\nWhich of these shall it be?"


def search(step: Search) -> Work:
    place = "" if step.path == "." else f" in {code(step.path)}"
    literal = not step.regex
    yield f"I'll search for {code(step.text)}{place}."
    outcome = yield from ask("grep_search", pattern=step.text, path=step.path, literal=literal)
    found = results.matches(outcome.text)
    if (
        not found
        and outcome.known
        and not outcome.is_error
        and step.text.lower() != step.text.upper()
    ):
        yield "No match as written; once more without regard to case."
        outcome = yield from ask(
            "grep_search", pattern=step.text, path=step.path, literal=literal, case_insensitive=True
        )
        found = results.matches(outcome.text)
    if outcome.is_error:
        yield f"The search failed: {first_line(outcome)}"
    elif not found:
        yield f"{code(step.text)} is nowhere to be found{place}."
    else:
        files = list(dict.fromkeys(hit.path for hit in found))
        lines = [f"- `{hit.path}:{hit.line}` {code(hit.text)}" for hit in found[:SHOWN]]
        rest = f"\n- … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        matches = f"{len(found)} match{'es' * (len(found) != 1)}"
        where = f"{len(files)} file{'s' * (len(files) != 1)}"
        cut = " or more" if results.was_cut(outcome.text) else ""
        shown = "\n".join(lines)
        yield f"{matches}{cut} in {where}:\n\n{shown}{rest}"


def find(step: Find) -> Work:
    yield f"I'll look for files named {code(step.pattern)}."
    outcome = yield from ask("find_by_name", pattern=step.pattern, path=step.path)
    names = results.entries(outcome.text)
    if outcome.is_error:
        yield f"That did not work: {first_line(outcome)}"
    elif not names:
        yield f"There is no file named {code(step.pattern)} in {place(step.path)}."
    else:
        yield f"I found {len(names)}:\n\n{bullets(names)}"


def list_folder(step: ListFolder) -> Work:
    yield f"I'll list {place(step.path)}."
    outcome = yield from ask("list_dir", path=step.path)
    names = results.entries(outcome.text)
    folders = sum(name.endswith("/") for name in names)
    if outcome.is_error:
        yield f"That did not work: {first_line(outcome)}"
    elif not names:
        yield f"There is nothing in {place(step.path)}."
    else:
        count = f"{folders} folder{'s' * (folders != 1)}, {len(names) - folders} other"
        yield f"In {place(step.path)} ({count}):\n\n{bullets(names, limit=20)}"
