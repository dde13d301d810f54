"""/skills: what each is for, where it is from, and who may use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from tui.app.reports import Row, problem_row
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.settings.skills import InstalledSkill, InstalledSkills

ABOUT: Final = "Skills are instructions that the model loads when a task fits."
NOT_OFFERED: Final = "This session began without skills; /reload offers them to the model."


def skill_rows(installed: InstalledSkills) -> Iterator[Row]:
    """Yield a row for each skill, and one for each folder that is none."""
    yield from map(_row, installed.skills.values())
    for problem in installed.problems:
        place, _, why = problem.partition(": ")
        yield replace(problem_row(problem), name=one_line(place), values=(one_line(why),), dim=True)


def _row(skill: InstalledSkill) -> Row:
    whose = "this workspace" if skill.brought else "yours"
    ways = [
        *([] if skill.offered else ["only you can use it"]),
        *([] if skill.typed else ["only the model can use it"]),
        *([f"left out: {', '.join(skill.left)}"] if skill.left else []),
        *([f"still asks before {skill.allowed_tools}"] if skill.allowed_tools else []),
    ]
    used = one_line(f"/{skill.name} {skill.argument}".strip()) if skill.typed else ""
    facts = (used, f"{whose}: {shorten(skill.folder)}", *ways)
    return Row(
        one_line(skill.name),
        (one_line(skill.description),),
        skill.name,
        about=(skill.description, " · ".join(filter(None, facts))),
        actions=frozenset({"open", "edit", *(("use",) if skill.typed else ())}),
        file=skill.file,
    )


def skill_lines(rows: Iterable[Row]) -> list[str]:
    """Return two lines for each skill, and one for each problem."""
    lines: list[str] = []
    for row in rows:
        about, *facts = row.about
        if row.mark:
            lines.append(one_line(f"Not used: {about}"))
        else:
            lines += [f"{row.name}: {about}", f"  {facts[0]}"]
    return lines
