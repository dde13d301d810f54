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
from tui.ui.widgets.conversation.view import Conversation

__all__ = [
    "AssistantItem",
    "AttemptItem",
    "Conversation",
    "Item",
    "NoticeItem",
    "ThinkingItem",
    "ToolItem",
    "UserItem",
]
