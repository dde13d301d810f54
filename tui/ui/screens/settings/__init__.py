"""/config: the settings, where each comes from, and a change of any of them in the person's file.

`screen` passes keys on; `listing` and `rows` draw the settings, `wording` says what each does,
`lines` is the field for lists; `standing` reads them, changes them and takes changes back. What a
setting is stands in `tui.settings.schema`, what writes the file in `settings_edit`
beside it.
"""

from tui.ui.screens.settings.port import Port
from tui.ui.screens.settings.screen import SettingsScreen

__all__ = ["Port", "SettingsScreen"]
