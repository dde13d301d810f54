"""The choice of MCP tools that are in every request, and the search for the others by words. Pure:
a tool's words are those of its name, its description and its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tui.core.messages import object_of
from tui.tools.mcp.tool import McpTool
from tui.tools.word_search import NAME_WEIGHT, WordIndex, words_in

DIRECT_MAX: Final = 128
"""Tools of one server that requests list: among more no model chooses well."""


def chosen(
    tools: Mapping[str, Sequence[McpTool]],
    weights: Mapping[str, float],
    budget: float,
    direct: Collection[str],
) -> frozenset[str]:
    """The servers whose tools stand in the requests: those that are `direct` already, then the
    lightest ones as long as all of them stay within the budget."""
    picked = {name for name in tools if name in direct}
    used = sum(weights[name] for name in picked)
    for name in sorted(tools.keys() - picked, key=lambda one: (weights[one], one)):
        used += weights[name]
        if used > budget or len(tools[name]) > DIRECT_MAX:
            break
        picked.add(name)
    return frozenset(picked)


class ToolIndex:
    """Tools by their words."""

    def __init__(self, tools: Sequence[McpTool]) -> None:
        self.tools = tuple(tools)
        self._index = WordIndex(map(_words_of, self.tools))

    def find(self, query: str, most: int) -> list[McpTool]:
        """The tools that fit a query best, the best first; none where no word is in any."""
        return [self.tools[place] for place in self._index.find(query, most)]


def _words_of(tool: McpTool) -> Counter[str]:
    properties = object_of(tool.schema()["input_schema"].get("properties"))
    words = Counter(words_in(tool.description))
    words.update(word for name in properties for word in words_in(name))
    for word in words_in(f"{tool.server} {tool.own_name}"):
        words[word] += NAME_WEIGHT
    return words
