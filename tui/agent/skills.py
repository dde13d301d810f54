"""The skills that one agent offers to the model: the tools, the list, the folders that open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from tui.context.system_prompt import Source
from tui.core.formatting import plural
from tui.settings.agent_definitions import AgentDefinitions, BoundedList
from tui.settings.skills import InstalledSkills
from tui.tools.base import Tool
from tui.tools.skill import Skill

SKILL_LIST: Final = "Skill list"
"""The name of the list in the system prompt, and when it has changed."""
_NAMED: Final = 5


class KnownAgents(Protocol):
    """The kinds of sub-agents there are."""

    def definitions(self) -> AgentDefinitions:
        """Read them as they are now. Blocks."""
        ...


class OfferedSkills:
    """The installed skills, as they were when they were last read. Not `on`, as in a drill, there
    are none.

    Making one reads them, and blocks.
    """

    def __init__(
        self,
        installed: InstalledSkills,
        agents: KnownAgents | None = None,
        *,
        on: bool = True,
        beside: tuple[Path, ...] = (),
    ) -> None:
        """The kinds of sub-agents are searched with them; folders `beside` those of skills are
        read, too."""
        self._installed, self._agents, self._on = installed, agents, on
        self._beside = beside
        self.read()

    def read(self) -> Sequence[Source]:
        """Read them again; then as `sources`. Blocks."""
        if self._on:
            self._installed.load()
        return self.sources()

    def sources(self) -> Sequence[Source]:
        """Return the part of the system prompt about them: names and descriptions."""
        text = self._installed.listing().text
        return [Source("skills", SKILL_LIST, text)] if text else []

    def tools(self) -> dict[str, Tool[Any]]:
        """The tool that loads them, if there are any, and the one that finds what the lists of
        skills and sub-agents do not say whole, if anything. Blocks."""
        tools: list[Tool[Any]] = [Skill(self._installed)] if self._installed.skills else []
        lists = (self._installed.listing(), self._kinds().listing())
        if self._on and not all(one.whole for one in lists):
            from tui.tools.search_installed import (  # noqa: PLC0415 - few have so many
                SearchInstalled,
            )

            tools.append(SearchInstalled(self))
        return {tool.name: tool for tool in tools}

    def _kinds(self) -> AgentDefinitions:
        return self._agents.definitions() if self._agents else AgentDefinitions({})

    def there(self) -> Mapping[tuple[str, str], str]:
        """All skills and sub-agents, as kind and name, with their descriptions. Blocks."""
        self._installed.load()
        skills = {("skill", one.name): one.description for one in self._installed.offered}
        agents = self._kinds().all.values()
        return skills | {("sub-agent", one.name): one.description for one in agents}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders to be read outside the workspace."""
        return (*self._beside, *self._installed.outside)

    def notices(self, *, unasked: bool) -> Sequence[str]:
        """Return first notes for the person: that the list is too long, and what was left out where
        they were not asked about their trust."""
        lines: list[str] = []
        if unasked and (left := self._installed.untrusted):
            what = f"{plural(len(left), 'skill')} of this folder left out"
            lines.append(f"{what}, because you don't trust it as it is now: {_some(left)}.")
        lists = {"skills": self._installed.listing(), "sub-agents": self._kinds().listing()}
        return [*lines, *(_shortened(what, one) for what, one in lists.items() if not one.whole)]


def _shortened(what: str, listing: BoundedList) -> str:
    told = f"{listing.cut:,} descriptions are shortened" if listing.cut else ""
    if listing.unlisted:
        told = f"{len(listing.unlisted):,} aren't listed ({_some(listing.unlisted)})" + (
            f", and {told}" if told else ""
        )
    return f"The model's list of {what} is too long: {told}. The model can search for them."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
