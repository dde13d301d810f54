"""A session as a task file, and as the draft of a skill. Pure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from tui.context.distillation import Correction, DistilledStep, GreenCheck
from tui.context.distilled_script import comment, source_of
from tui.core.dataclass import dataclass
from tui.core.redaction import mask
from tui.core.text_cleaning import clean, one_line
from tui.session.records import Record, is_prompt, title_of

_NAME_CHARS: Final = 48
_DESCRIPTION_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class DistilledPrompt:
    """A prompt that counted: its text, and the checks that were green before the next one."""

    text: str
    record: str
    checks: tuple[str, ...]


def prompts_that_counted(
    records: Sequence[Record], steps: Sequence[DistilledStep], checks: Sequence[GreenCheck]
) -> list[DistilledPrompt]:
    """The prompts from which a step came that counts, in their order."""
    wanted = {
        one.step.origin.prompt.id for one in steps if one.step.origin and one.step.origin.prompt
    }
    found: list[DistilledPrompt] = []
    places = [n for n, record in enumerate(records) if is_prompt(record)]
    for place, end in zip(places, [*places[1:], len(records)], strict=True):
        record = records[place]
        if record.id not in wanted:
            continue
        text = record.data.get("text")
        green = tuple(dict.fromkeys(one.command for one in checks if place < one.place < end))
        text = text if isinstance(text, str) else title_of(record.data)
        found.append(DistilledPrompt(text, record.id, green))
    return found


def task_file(prompts: Sequence[DistilledPrompt], *, session: str, title: str) -> tuple[str, int]:
    """A task file of the prompts, with their green commands as checks; and how many secrets were
    removed from it."""
    named, secrets = mask(title)
    lines = [f"# {_prose(named)}", "", f"Distilled from session {_prose(session)}."]
    lines += ["", "## distilled", ""]
    for prompt in prompts:
        text, count = mask(prompt.text)
        secrets += count
        task = _prose(text)
        for command in prompt.checks:
            masked, count = mask(command)
            secrets += count
            end = "" if task.endswith(tuple(".!?:;")) else "."
            task += f"{end} It is done when this succeeds: {_code(_in_one_line(masked))}"
        lines += [_remark(f"prompt {prompt.record}"), f"- [ ] {task}"]
    return "\n".join(lines) + "\n", secrets


def _prose(text: str) -> str:
    """A text in one line that begins no comment, no fence and no other task."""
    return one_line(text).replace("<!--", "<! --").encode("utf-8", "replace").decode()


def _remark(text: str) -> str:
    """A comment of Markdown that ends where it should."""
    return f"<!-- {re.sub('-(?=[->])', '- ', comment(text))} -->"


def skill(
    steps: Sequence[DistilledStep],
    checks: Sequence[GreenCheck],
    corrected: Sequence[Correction],
    *,
    session: str,
    title: str,
) -> tuple[str, int]:
    """The draft of a SKILL.md, with what the person corrected; and how many secrets were removed
    from it."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_NAME_CHARS].strip("-")
    about = _prose(f"Draft, from session {session}. {mask(title)[0]}")[:_DESCRIPTION_CHARS]
    text = "\n".join(
        [
            "---",
            f"name: {name or 'distilled'}",
            f"description: {json.dumps(about, ensure_ascii=False)}",
            "---",
            "",
            f"# {_prose(title)}",
            "",
            "Steps that worked once. Put a placeholder where the next time differs.",
            "",
            *_steps(steps),
            *_checks(checks),
            *_corrections(corrected),
        ]
    )
    written = [*(one.step.command for one in steps), *(one.command for one in checks)]
    in_blocks = sum(mask(one)[1] for one in written if "\n" in one.strip())
    text, secrets = mask(text + "\n")
    return text, secrets + in_blocks


def _steps(steps: Sequence[DistilledStep]) -> Iterator[str]:
    """The steps in words: edits in a row, of one prompt, are one."""
    rows = groupby(
        enumerate(steps), lambda pair: (pair[1].step.command and pair[0], _wanted(pair[1]))
    )
    for number, (_, row) in enumerate(rows, 1):
        found = [one for _, one in row]
        first = found[0]
        if first.step.command:
            yield from _command(f"{number}. ", "Run {}", "Run this:", first.step.command)
        else:
            paths = dict.fromkeys(path for one in found for path in one.changes)
            names = ", ".join(_code(os.fsdecode(path)) for path in paths)
            yield f"{number}. Change {names}: {_prose(_wanted(first))}"
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"{' ' * len(f'{number}. ')}{_remark(source_of(first) + more)}"


def _wanted(one: DistilledStep) -> str:
    origin = one.step.origin
    return comment(origin.prompt_text) if origin and origin.prompt_text else comment(one.step.title)


def _checks(checks: Sequence[GreenCheck]) -> Iterator[str]:
    if checks:
        yield from ("", "## Checks", "")
        for one in checks:
            yield from _command("- ", "{} succeeds.", "This succeeds:", one.command)


def _corrections(corrected: Sequence[Correction]) -> Iterator[str]:
    if corrected:
        yield from ("", "## What the person corrected", "")
        for one in corrected:
            yield f"> {_prose(one.text)}"
            yield f">\n> ({one.why}, record {_prose(one.record)})\n"


def _command(mark: str, inline: str, above: str, command: str) -> Iterator[str]:
    """The lines of an item of a list about a command; one of several lines is a block below it."""
    lines = clean(mask(command)[0]).strip().encode("utf-8", "replace").decode().splitlines()
    if len(lines) < 2:
        yield f"{mark}{inline.format(_code(command))}"
        return
    indent, fence = " " * len(mark), "`" * max(3, _longest_ticks(command) + 1)
    yield f"{mark}{above}"
    yield from ("", f"{indent}{fence}bash", *(f"{indent}{one}".rstrip() for one in lines))
    yield from (f"{indent}{fence}", "")


def _in_one_line(command: str) -> str:
    """A command of several lines as one that bash reads as the same."""
    text = clean(command).strip()
    if "\n" not in text:
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"bash -c $'{quoted}'"


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)


def _code(text: str) -> str:
    """A text as code in a line, whatever backticks are in it."""
    line = clean(text).replace("\n", " ").strip().encode("utf-8", "replace").decode()
    fence = "`" * (_longest_ticks(line) + 1)
    gap = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{gap}{line}{gap}{fence}"
