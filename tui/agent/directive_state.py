"""The directives in force in one session, and what they switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tui.agent import directives as words
from tui.agent.directives import Directives
from tui.agent.recorder import Recorder
from tui.agent.runtime_state import Settings
from tui.session.session import Session


class Switches:
    """Holds the directives. A resumed session is not elevated until asked again (K47)."""

    def __init__(
        self,
        session: Session,
        settings: Settings,
        *,
        recorder: Recorder,
        think: Callable[[bool], None],
    ) -> None:
        kept = Directives()
        if "directives" in session.metadata:
            kept = words.from_json(session.directives)
        self.was_elevated = kept.elevated
        self.now = replace(kept, elevated=False)
        self._settings, self._recorder, self._think = settings, recorder, think
        think(self.now.think)

    def apply(self, changes: Mapping[str, bool]) -> None:
        """Switch, and record it."""
        self.now = self.now.with_changes(changes)
        self._think(self.now.think)
        self._settings.elevated = self.now.elevated
        self._settings.verbose = self.now.verbose
        self._settings.workspace = self._settings.workspace.widen(self.now.elevated)
        self._recorder.append("directive", **self.now.to_json())
