"""A fact, and the two forms that every one has: an object here, a line of JSON outside."""

from __future__ import annotations

from typing import Any

import msgspec

from tui.core.messages import Usage


class WireFact(msgspec.Struct, frozen=True, tag_field="type"):
    """Something that happened, of the type that its `tag` names in JSON."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)

    def to_json(self) -> dict[str, Any]:
        """As one JSON object: its `type`, then its fields."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if isinstance(usage := getattr(self, "usage", None), Usage):
            found["usage"] = usage.to_json()
        return found
