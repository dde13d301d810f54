"""The foot of the chat: the prompt between its lines, with what is suggested and found for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Static

from tui.ui.widgets.panes import CachedHorizontal, CachedVertical, PaneRule
from tui.ui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from tui.ui.widgets.autocomplete import Sources, Suggestions
    from tui.ui.widgets.search_bars import PromptSearch


class PromptSide(CachedVertical):
    """A prompt below its `rule`. Suggestions and the search exist once they are asked for."""

    def __init__(self, rule: PaneRule, prompt: Prompt, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._rule, self._prompt = rule, prompt
        self._caret = Static("›", id="caret", markup=False)
        self._search: PromptSearch | None = None

    def compose(self) -> ComposeResult:
        yield self._rule
        with CachedHorizontal(id="prompt-row"):
            yield self._caret
            yield self._prompt
        yield PaneRule(id="foot-rule")

    def address(self, to: str) -> None:
        """Show whom the typed text is for; see `Prompt.Addressed`."""
        shell = to.startswith("!")
        self._caret.update("$" if shell else "›")
        self._caret.set_class(shell, "-shell")

    async def suggest(self, sources: Sources) -> None:
        """Let the prompt show suggestions. Called once."""
        from tui.ui.widgets.autocomplete import Suggestions  # noqa: PLC0415

        popup = Suggestions(sources, id="suggestions")
        await self.mount(popup, before="#prompt-row")
        self._prompt.suggestions = popup
        if self._prompt.has_focus:
            self._prompt.suggest()  # for what was typed before

    def on_suggestions_picked(self, event: Suggestions.Picked) -> None:
        event.stop()
        self._prompt.focus()
        self._prompt.pick()

    async def search(self) -> bool:
        """Search earlier prompts; the typed text stays until one is taken. False if there are
        none."""
        from tui.ui.widgets.search_bars import PromptSearch  # noqa: PLC0415 - only where asked for

        if self._search is None:
            self._search = PromptSearch(id="prompt-search")
            await self.mount(self._search, before="#prompt-row")
        if self._prompt.past.entries:
            self._search.open(self._prompt.past.entries)
        return bool(self._prompt.past.entries)

    def on_prompt_search_taken(self, event: PromptSearch.Taken) -> None:
        event.stop()
        self._prompt.put_whole(event.text)
