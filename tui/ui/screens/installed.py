"""/hooks and /skills: panels of what a person has installed, to look closer at each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import BindingType

from tui.app.reports.hooks import ABOUT as ABOUT_HOOKS
from tui.app.reports.skills import ABOUT as ABOUT_SKILLS
from tui.ui.screens.panel import Panel
from tui.ui.widgets.keys import HOOKS_KEYS, SKILLS_KEYS, bindings


class HooksScreen(Panel[str]):
    """A row for each hook: when it runs, how it ended last, what it runs."""

    NAME = "hooks"
    NONE = f"{ABOUT_HOOKS}\nWrite them into .holdfast/hooks.json: /help hooks."
    KEYS: ClassVar[Mapping[str, str]] = {"open": "enter", "copy": "y", "edit": "e"}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(HOOKS_KEYS)]


class SkillsScreen(Panel[str]):
    """A row for each skill. Dismissed with the name of one that is to be used, or None."""

    NAME = "skills"
    NONE = f"{ABOUT_SKILLS}\nPut folders with a SKILL.md into .holdfast/skills: /help skills."
    KEYS: ClassVar[Mapping[str, str]] = {"open": "enter", "use": "u", "edit": "e"}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SKILLS_KEYS)]

    def action_use(self) -> None:
        """Put the skill under the cursor into the prompt, as a command."""
        if self.row is not None and "use" in self.row.actions:
            self.dismiss(self.row.key)
