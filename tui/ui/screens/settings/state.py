"""The settings as they stand, and the changes that were made to them on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from tui.core.errors import ConfigError
from tui.settings.edit import Changes, SettingsEdit, change_settings, take_back
from tui.settings.layers import LoadedSettings, Table, merge
from tui.settings.schema import Setting, table
from tui.ui.screens.settings import labels
from tui.ui.screens.settings.port import Port, Said


class Standing:
    """`rows` are all settings as they were read last; `problem` is why they could not be read
    since. One change is to be made at a time."""

    def __init__(self, port: Port) -> None:
        self.rows: Sequence[Setting] = ()
        self.problem: ConfigError | None = None
        self._port = port
        self._loaded: LoadedSettings | None = None
        self._edits: list[SettingsEdit] = []

    async def read(self) -> None:
        """Read all layers. What is wrong with them is `problem` afterwards."""
        try:
            self._loaded = await asyncio.to_thread(self._port.read)
        except ConfigError as error:
            self.problem = error
            return
        self.problem = None
        models = self._port.models or (self._loaded.config.model,)
        self.rows = table(self._loaded, models=models, themes=self._port.themes)

    async def take_up(self) -> None:
        """Read what stands in the files now, and make it count. Raises HoldfastError."""
        before = self._loaded
        await self.read()
        if self._loaded is not None and self.problem is None:
            await self._port.take_up((before or self._loaded).config, self._loaded.config)

    async def save(self, setting: Setting, wanted: Changes) -> Said:
        """Write a change, and make it count. Raises HoldfastError; where the change itself was
        refused, nothing is written."""
        folders = self._port.folders
        edit = await asyncio.to_thread(change_settings, folders, wanted, accept=self._accept)
        if edit is None:
            return Said(f"{setting.name} stays as it is.")
        self._edits.append(edit)
        await self.take_up()
        return labels.saved(next((row for row in self.rows if row.key == setting.key), setting))

    async def undo(self) -> Said:
        """Take back the last change. Raises HoldfastError."""
        if not self._edits:
            return Said("Nothing was changed here that could be undone.")
        await asyncio.to_thread(take_back, self._port.folders, self._edits[-1])
        self._edits.pop()
        await self.take_up()
        return Said("Undone: the file is as it was before.", "success")

    def _accept(self, mine: Table) -> None:
        """Refuse what does not fit together with the other layers. Raises ConfigError."""
        layers = self._loaded.layers if self._loaded else ()
        merge([replace(one, table=mine) if one.place == "user" else one for one in layers])
