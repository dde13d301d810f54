"""Whatever configuration the program takes in these tests fits its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.json_schema import fits
from tui.core.config import Config
from tui.settings import layers
from tui.settings.file_schemas import config
from tui.settings.validation import Key, check

SCHEMA = config()


@pytest.fixture(autouse=True)
def fitting_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(
        merged: Mapping[str, Any],
        layer: Mapping[str, Any],
        source: str,
        *,
        kind: type[Config] = Config,
        at: Key = (),
    ) -> None:
        check(merged, layer, source, kind=kind, at=at)
        assert fits(SCHEMA, {"profile": {at[1]: layer}} if at else layer)

    monkeypatch.setattr(layers, "check", checked)
