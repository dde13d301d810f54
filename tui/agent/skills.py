"""The skills that one agent offers to the model: the tool, the list, the folders that open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tui.context.system_prompt import Source
from tui.core.formatting import plural
from tui.settings.skills import LIST_MAX, InstalledSkills
from tui.tools.base import Tool
from tui.tools.skill import Skill

SKILL_LIST: Final = "Skill list"
"""The name of the list in the system prompt, and when it has changed."""
_NAMED: Final = 5


class OfferedSkills:
    """The installed skills, as they were when they were last read. Not `on`, as in a drill, there
    are none.

    Making one reads them, and blocks.
    """

    def __init__(self, installed: InstalledSkills, *, on: bool = True) -> None:
        self._installed, self._on = installed, on
        self.read()

    def read(self) -> Sequence[Source]:
        """Read them again; then as `sources`. Blocks."""
        if self._on:
            self._installed.load()
        return self.sources()

    def sources(self) -> Sequence[Source]:
        """Return the part of the system prompt about them: names and descriptions."""
        text, _ = self._installed.listing()
        return [Source("skills", SKILL_LIST, text)] if text else []

    def tools(self) -> dict[str, Tool[Any]]:
        """The tool that loads them; none where there are none."""
        installed = self._installed.skills
        return {Skill.name: Skill(self._installed)} if installed else {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders to be read outside the workspace."""
        return self._installed.outside

    def notices(self, *, unasked: bool) -> Sequence[str]:
        """Return first notes for the person: that the list is too long, and what was left out where
        they were not asked about their trust."""
        lines: list[str] = []
        if unasked and (left := self._installed.untrusted):
            what = f"{plural(len(left), 'skill')} of this folder left out"
            lines.append(f"{what}, because you don't trust it as it is now: {_some(left)}.")
        if short := self._installed.listing()[1]:
            what = f"The list of skills has more than {LIST_MAX:,} characters"
            lines.append(f"{what}: the model sees only the names of {_some(short)}.")
        return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
