"""Steps that write: create, change, append. Each looks before it writes."""

from __future__ import annotations

from typing import Any

from tui.provider.practice import results
from tui.provider.practice.asking import (
    SHOWN,
    Asking,
    Work,
    ask,
    first_line,
    is_missing,
    joined,
    must_be_read,
)
from tui.provider.practice.dialogue import Outcome
from tui.provider.practice.looking import not_read
from tui.provider.practice.steps import Append, Change, Create, code


def create(step: Create) -> Work:
    lines = step.content.count("\n")
    size = f"{lines} line{'s' * (lines != 1)}" if lines else "an empty file"
    yield f"I'll write {code(step.path)} ({size})."
    outcome = yield from ask("write_file", path=step.path, content=step.content)
    if outcome.is_error and must_be_read(outcome):
        if not step.overwrite:
            yield (
                f"{code(step.path)} is there already, so I left it alone. To replace it say "
                f"`overwrite {step.path} with …`; to add to it, `append … to {step.path}`."
            )
            return
        yield "The file is there already. I read it first, so that nothing is replaced unseen."
        yield from ask("read_file", path=step.path)
        outcome = yield from ask("write_file", path=step.path, content=step.content)
    yield _about_write(outcome)


def _about_write(outcome: Outcome) -> str:
    if outcome.is_error:
        return f"Nothing was written: {first_line(outcome)}"
    return f"Done. {first_line(outcome)}"


def change(step: Change) -> Work:
    yield f"I'll read {code(step.path)} first, then change it."
    outcome = yield from ask("read_file", path=step.path)
    if outcome.is_error:
        yield from not_read(step.path, outcome)
        return
    page = results.page(outcome.text)
    count = page.text.count(step.old)
    complete = outcome.known and page.complete
    if complete and not count:
        yield _not_there(step, page)
        return
    if complete and count > 1 and not step.everywhere:
        yield _several(step, page, count)
        return
    yield f"{code(step.old)} stands there{f' {count} times' if count > 1 else ''}. Now the edit."
    edit = {"old_string": step.old, "new_string": step.new}
    arguments = {"path": step.path, **edit, **({"replace_all": True} if step.everywhere else {})}
    outcome = yield from _edit(step.path, arguments)
    if outcome.is_error:
        yield f"{code(step.path)} is unchanged: {first_line(outcome)}"
        return
    diff: list[str] = []
    for line in (line for line in page.lines if step.old in line):
        after = line.replace(step.old, step.new).splitlines() or [""]
        diff += [f"-{line}", *(f"+{new}" for new in after)]
    shown = f"\n\n{results.fence(diff, 'diff')}" if diff else ""
    yield f"Done. {first_line(outcome)}{shown}"


def _edit(path: str, arguments: dict[str, Any]) -> Asking:
    """An edit; once more after reading again, where the file must be read first."""
    outcome = yield from ask("edit_file", **arguments)
    if outcome.is_error and must_be_read(outcome):
        yield f"{code(path)} has to be read again before it may be changed."
        yield from ask("read_file", path=path)
        outcome = yield from ask("edit_file", **arguments)
    return outcome


def _not_there(step: Change, page: results.Page) -> str:
    text = f"{code(step.old)} is not in {code(step.path)}, so I changed nothing."
    other = [n for n, line in enumerate(page.lines, 1) if step.old.lower() in line.lower()]
    if other:
        text += f" With other capitals it stands on line {joined([str(n) for n in other[:5]])}."
    return text


def _several(step: Change, page: results.Page, count: int) -> str:
    lines = [str(n) for n, line in enumerate(page.lines, 1) if step.old in line]
    on = f" (line{'s' * (len(lines) > 1)} {joined(lines[:SHOWN])})" if lines else ""
    every = code(f"change {step.old} to {step.new} in {step.path} everywhere")
    return (
        f"{code(step.old)} stands {count} times in {code(step.path)}{on}. I changed nothing yet, "
        f"since you may not mean all of them.\n\n- all: {every}\n- one: quote more of its line"
    )


def append(step: Append) -> Work:
    yield f"I'll read {code(step.path)}, so that the text comes at its end."
    outcome = yield from ask("read_file", path=step.path)
    text = step.text if step.text.endswith("\n") else step.text + "\n"
    if outcome.is_error:
        if not is_missing(outcome):
            yield f"That did not work: {first_line(outcome)}"
            return
        yield "It is not there yet, so I create it."
        outcome = yield from ask("write_file", path=step.path, content=text)
        yield _about_write(outcome)
        return
    page = results.page(outcome.text)
    if outcome.known and not page.complete:
        yield f"{code(step.path)} is too long for me to see its end, so I changed nothing."
        return
    if outcome.known and not page.text:
        outcome = yield from ask("write_file", path=step.path, content=text)
    else:
        tail = _unique_tail(page.text) if outcome.known else ""
        glue = "" if tail.endswith("\n") else "\n"
        outcome = yield from _edit(
            step.path, {"path": step.path, "old_string": tail, "new_string": tail + glue + text}
        )
    yield _about_write(outcome)


def _unique_tail(text: str) -> str:
    """The shortest run of last lines that stands in the text only once."""
    lines = text.splitlines(keepends=True)
    for count in range(1, len(lines)):
        tail = "".join(lines[-count:])
        if tail.strip() and text.find(tail) == len(text) - len(tail):
            return tail
    return text
