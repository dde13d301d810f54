"""What stands between a file and a session to go on with, as questions: damage, another program.

Each question leads to the session to open instead, None for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.app.damage_report import in_words, where
from tui.app.ports import Agent, SessionChoice
from tui.app.resume import (
    IN_USE,
    MIXED_UP,
    after_damage,
    after_in_use,
    copy_of,
    damage,
    elsewhere,
)
from tui.core.errors import SessionInUseError
from tui.plain.conversation import Talk
from tui.plain.speech_text import sentence
from tui.session.records import Finding

_FINDINGS: Final = 20


async def accepted(talk: Talk, choice: SessionChoice, agent: Agent) -> SessionChoice | None:
    """Damage is shown before a session is gone on with."""
    if choice.path is None or choice.read_only:
        return choice
    found = await damage(agent)
    return await damaged(talk, choice, choice.path, found) if found else choice


async def damaged(
    talk: Talk, choice: SessionChoice, path: Path, found: Sequence[Finding]
) -> SessionChoice | None:
    """Say what is wrong with a session's file, and go the way that is chosen."""
    copy = copy_of(path, talk.services.clock)
    ways = [
        ("continue", "Continue; what comes next is added at the end of the file"),
        ("read_only", "Open it read-only"),
        ("copy", "Write a repaired copy into a file of its own, and go on with that"),
        ("back", "Back"),
    ]
    answer = await talk.asker.choose(damage_lines(found), ways)
    return await after_damage(answer, choice, copy, talk.services.clock)


def damage_lines(found: Sequence[Finding]) -> list[str]:
    """What was found, counted, then one by one."""
    places = "one place" if len(found) == 1 else f"{len(found):,} places"
    lines = [
        sentence(f"This session is damaged. It needs repair in {places}: {in_words(found)}"),
        "Nothing in the file is changed: it is repaired in memory.",
        *(sentence(f"{where(one)}: {one.action}, {one.code}") for one in found[:_FINDINGS]),
    ]
    if (more := len(found) - _FINDINGS) > 0:
        lines.append(f"And {more:,} more.")
    return lines


async def from_elsewhere(talk: Talk, path: Path) -> SessionChoice | None:
    """Another agent's session becomes a copy of ours; its damage is told first."""
    found = await elsewhere(path, talk.services)
    if found.findings:
        ways = [("continue", "Continue with a repaired copy of it"), ("back", "Back")]
        if await talk.asker.choose(damage_lines(found.findings), ways) != "continue":
            return None
    return await found.taken_over(talk.services)


async def in_use(
    talk: Talk, choice: SessionChoice, error: SessionInUseError
) -> SessionChoice | None:
    """Another program has the session: take it over, only read it, or go on with a copy."""
    answer = await talk.asker.choose([sentence(error.message, MIXED_UP)], [*IN_USE.items()])
    return await after_in_use(answer, choice, talk.services)
