"""Where the project lives. An owner who moves it changes this, and a test names all that follow."""

from __future__ import annotations

from typing import Final

REPOSITORY: Final = "https://github.com/holdfast-agent/holdfast"
