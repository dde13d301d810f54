"""F3: the sessions. Typing filters, Tab shows other folders and other agents, Enter goes on.

`filters` holds what is looked at, `reader` fills it from `tui.app.session_repository`, `listing`
and `preview` draw it, `labels` says it, `actions` change sessions, `screen` passes keys to them.
"""

from tui.ui.screens.sessions.screen import SessionsScreen

__all__ = ["SessionsScreen"]
