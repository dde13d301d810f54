"""The address of the project. An owner who moves it changes this, and a test names everything that
follows."""

from __future__ import annotations

from typing import Final

REPOSITORY: Final = "https://github.com/holdfast-agent/holdfast"
