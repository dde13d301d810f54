"""The choice of MCP tools that are in every request, and the search for the others by words. Pure:
a tool's words are those of its name, its description and its arguments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tui.core.messages import object_of
from tui.tools.mcp.tool import McpTool

DIRECT_MAX: Final = 128
"""Tools of one server that requests list: among more no model chooses well."""
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_K: Final = 1.2
_NAME_WEIGHT: Final = 3
_STEM: Final = 4
"""Letters from which on the beginning of a word finds it."""


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


@dataclass(frozen=True, slots=True)
class ToolIndex:
    """Tools by their words."""

    tools: tuple[McpTool, ...]
    _words: list[Counter[str]] = field(default_factory=list[Counter[str]], init=False)
    _spread: Counter[str] = field(default_factory=Counter[str], init=False)

    def __post_init__(self) -> None:
        for tool in self.tools:
            words = _words_of(tool)
            self._words.append(words)
            self._spread.update(words.keys())

    def find(self, query: str, most: int) -> list[McpTool]:
        """The tools that fit a query best, the best first; none where no word is in any."""
        wanted = set(words_in(query))
        scores = [
            (sum(self._score(word, words) for word in wanted), -place)
            for place, words in enumerate(self._words)
        ]
        best = sorted((one for one in scores if one[0] > 0), reverse=True)[:most]
        return [self.tools[-place] for _, place in best]

    def _score(self, wanted: str, words: Counter[str]) -> float:
        """Weigh how much a word of a query says for a tool: the rarer it is, the more."""
        hits = [wanted] if wanted in words else []
        if not hits and len(wanted) >= _STEM:
            hits = [word for word in words if len(word) >= _STEM and _same_stem(word, wanted)]
        return sum(
            math.log(1 + len(self.tools) / self._spread[word]) * words[word] / (words[word] + _K)
            for word in hits
        )


def _same_stem(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return long.startswith(short)


def words_in(text: str) -> Iterable[str]:
    """The words of a text, with those that names are made of."""
    return (word.lower() for word in _WORD.findall(text))


def _words_of(tool: McpTool) -> Counter[str]:
    properties = object_of(tool.schema()["input_schema"].get("properties"))
    words = Counter(words_in(tool.description))
    words.update(word for name in properties for word in words_in(name))
    for word in words_in(f"{tool.server} {tool.own_name}"):
        words[word] += _NAME_WEIGHT
    return words
