"""Whatever configuration the program takes in these tests fits its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.json_schema import fits
from tui.settings import edit, layers
from tui.settings.file_schemas import config
from tui.settings.validation import check

SCHEMA = config()


@pytest.fixture(autouse=True)
def fitting_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(merged: Mapping[str, Any], layer: Mapping[str, Any], source: str) -> None:
        check(merged, layer, source)
        assert fits(SCHEMA, layer)

    monkeypatch.setattr(layers, "check", checked)
    monkeypatch.setattr(edit, "check", checked)
