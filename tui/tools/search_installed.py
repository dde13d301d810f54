"""search_installed: skills and sub-agents that their lists have no room for, found by words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, ClassVar, Protocol

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread
from tui.tools.registry import SEARCH_INSTALLED
from tui.tools.word_search import NAME_WEIGHT, WordIndex, words_in


class SearchInstalledParams(Params, frozen=True, kw_only=True):
    query: Annotated[str, about("Words for what it should do.", min_length=1)]
    limit: Annotated[int, about("How many to show.", ge=1, le=50)] = 8


class Searchable(Protocol):
    """A thing that can be found."""

    def there(self) -> Mapping[tuple[str, str], str]:
        """Return descriptions by kind and name. Blocks."""
        ...


class SearchInstalled(Tool[SearchInstalledParams]):
    """Searches what is installed, as it is now."""

    name: ClassVar[str] = SEARCH_INSTALLED
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = SearchInstalledParams

    def __init__(self, installed: Searchable) -> None:
        self._installed = installed

    async def run(
        self,
        params: SearchInstalledParams,
        ctx: ToolContext,  # noqa: ARG002
    ) -> ToolOutput:
        return await in_thread(lambda _stop: self._answer(params))

    def subject(self, params: SearchInstalledParams) -> str:
        return params.query

    def label(self, params: SearchInstalledParams) -> str:
        return params.query

    def _answer(self, params: SearchInstalledParams) -> ToolOutput:
        there = self._installed.there()
        keys = list(there)
        index = WordIndex(_words(name, there[kind, name]) for kind, name in keys)
        found = [keys[place] for place in index.find(params.query, params.limit)]
        if not found:
            return ToolOutput.text(
                f"None of {len(keys):,} skills and sub-agents fits. Try other words.",
                summary="nothing found",
            )
        lines = [f"- {kind} {name}: {there[kind, name]}" for kind, name in found]
        head = f"{len(found)} of {len(keys):,}, the best first:"
        names = ", ".join(name for _, name in found)
        return ToolOutput.text("\n".join([head, *lines]), summary=names[:200])


def _words(name: str, description: str) -> Counter[str]:
    words = Counter(words_in(description))
    for word in words_in(name):
        words[word] += NAME_WEIGHT
    return words
