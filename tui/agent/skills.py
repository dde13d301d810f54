"""The skills that one agent offers to the model: the tools, the list, the folders that open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui.context.system_prompt import Source
from tui.core.formatting import plural
from tui.settings.agent_definitions import AgentDefinitions
from tui.settings.listing import Listing
from tui.settings.skills import InstalledSkills
from tui.tools.base import Tool
from tui.tools.search_installed import SearchInstalled
from tui.tools.skill import Skill

SKILL_LIST: Final = "Skill list"
"""The name of the list in the system prompt, and when it has changed."""
_NAMED: Final = 5


class OfferedSkills:
    """The installed skills, as they were when they were last read. Not `on`, as in a drill, there
    are none.

    Making one reads them, and blocks.
    """

    def __init__(
        self,
        installed: InstalledSkills,
        find_agents: Callable[[], AgentDefinitions] = lambda: AgentDefinitions({}),
        *,
        on: bool = True,
    ) -> None:
        """`find_agents` reads the definitions of sub-agents, which are searched with them."""
        self._installed, self._find_agents, self._on = installed, find_agents, on
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
        lists = (self._installed.listing(), self._find_agents().listing())
        if self._on and not all(one.whole for one in lists):
            tools.append(SearchInstalled(self._there))
        return {tool.name: tool for tool in tools}

    def _there(self) -> Mapping[tuple[str, str], str]:
        self._installed.load()
        skills = {("skill", one.name): one.description for one in self._installed.offered}
        agents = self._find_agents().all.values()
        return skills | {("sub-agent", one.name): one.description for one in agents}

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
        lists = {"skills": self._installed.listing(), "sub-agents": self._find_agents().listing()}
        return [*lines, *(_shortened(what, one) for what, one in lists.items() if not one.whole)]


def _shortened(what: str, listing: Listing) -> str:
    told = f"{listing.cut:,} of its descriptions are shortened" if listing.cut else ""
    if listing.unlisted:
        told = f"{len(listing.unlisted):,} are not listed ({_some(listing.unlisted)})" + (
            f", and {told}" if told else ""
        )
    return f"The list of {what} is too long for the model: {told}. It finds them by a search."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
