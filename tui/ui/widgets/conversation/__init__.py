"""The conversation: a line-API view over items; its cost depends on what is visible."""

from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.view import ConversationView

__all__ = [
    "AssistantItem",
    "AttemptItem",
    "ConversationView",
    "Item",
    "NoticeItem",
    "ThinkingItem",
    "ToolItem",
    "UserItem",
]
