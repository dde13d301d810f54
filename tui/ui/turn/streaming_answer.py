"""The answer that streams: drawn as it comes, provisional until its record."""

from __future__ import annotations

from tui.ui.screens.chat import ChatScreen
from tui.ui.widgets.conversation.items import AssistantItem, Item, ThinkingItem


class Answer:
    """The items of an answer that is not recorded yet: thinking, texts, and calls being written."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat
        self._items: list[Item] = []
        self._streaming: AssistantItem | ThinkingItem | None = None

    @property
    def text(self) -> str:
        """What has been said in it."""
        texts = (item.text for item in self._items if isinstance(item, AssistantItem))
        return "\n\n".join(filter(None, texts))

    def stream(self, kind: type[AssistantItem] | type[ThinkingItem], text: str) -> None:
        """Some more text of one kind."""
        if not isinstance(self._streaming, kind):
            self.pause()
            item = kind(streaming=True)
            if isinstance(item, ThinkingItem):
                item.folded = False
            self._streaming = item
            self.add(item)
        assert self._streaming
        self._chat.conversation.stream(self._streaming, text)

    def add(self, item: Item) -> None:
        """Another part of it, behind what was streamed."""
        self._items.append(item)
        self._chat.add(item)

    def pause(self) -> None:
        """No more of the text comes: draw it to its end."""
        if self._streaming:
            if isinstance(self._streaming, ThinkingItem):
                self._streaming.folded = True
            self._chat.conversation.finish(self._streaming)
            self._streaming = None

    def keep(self) -> None:
        """It is recorded, or all that will come of it."""
        self.pause()
        self._items.clear()

    def take_back(self) -> tuple[str, list[Item]]:
        """It never was: the request is made again. Returns its text and what is drawn no more."""
        self.pause()  # what was not drawn yet stands in the text then
        text, items = self.text, self._items
        self._items = []
        for item in items:
            self._chat.conversation.remove(item)
        return text, items
