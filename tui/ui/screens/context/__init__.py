"""F2: what the next request holds, item by item; what is masked or pinned here can be undone.

`screen` passes keys on; `listing` shows the items, `rows` draws one, `item` opens one and
`bulk_menu` chooses many; `changes` is what a key changes and how that is undone; `wording` says it.
"""

from tui.ui.screens.context.screen import ContextScreen

__all__ = ["ContextScreen"]
