"""A fact and its forms: an object here, a line of JSON outside, and a record, if it is durable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

import msgspec

from tui.core.facts import record_form
from tui.core.messages import Usage

T = TypeVar("T")
Kept: TypeAlias = Annotated[T, record_form.KEPT]
"""A field that is written and not published: its class has it for the record alone."""


class WireFact(msgspec.Struct, frozen=True, tag_field="type"):
    """Something that happened, of the type that its `tag` names in JSON."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)

    def to_json(self) -> dict[str, Any]:
        """As one JSON object: its `type`, then its fields."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        if isinstance(usage := getattr(self, "usage", None), Usage):
            data["usage"] = usage.to_json()
        return data

    def to_lines(self) -> list[dict[str, Any]]:
        """As the objects that programs read: one, for most facts."""
        return [self.to_json()]


class DurableFact(WireFact, frozen=True):
    """A fact that is in the record, too.

    `record_type` is the type of its record, where that is not the tag. `written` names the fields
    of the record in their order: as `name`, or `name=field` where the fact has another name for
    it; one that ends in `?` is left out where it is empty. Without it every field is written. A
    field that is not named there is only published; one that is `Kept` is only written. UNSET
    fields are left out.
    """

    record_type: ClassVar[str] = ""
    written: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        form = record_form.form_of(type(self))
        if not form.hides:
            return super().to_json()
        data = {"type": self.type}
        return data | {
            key: msgspec.to_builtins(record_form.plain(getattr(self, name)))
            for name, key in form.told
            if getattr(self, name) is not msgspec.UNSET
        }

    @classmethod
    def recorded_as(cls) -> str:
        """The type of its record."""
        return cls.record_type or str(cls.__struct_config__.tag)

    def to_record(self) -> dict[str, Any]:
        """The fields of its record."""
        fields: dict[str, Any] = {}
        for key, name, sparse in record_form.form_of(type(self)).written:
            value = getattr(self, name)
            if value is not msgspec.UNSET and (value or not sparse):
                fields[key] = record_form.plain(value)
        return fields

    @classmethod
    def of_record(cls, data: Mapping[str, Any]) -> Self:
        """The fact that a record tells again. A field that is missing or odd is empty."""
        form = record_form.form_of(cls)
        return cls.completed(
            *[
                value if type(value) is kind else empty if value is None else read(value)
                for value, (kind, read, empty) in zip(
                    map(data.get, form.keys), form.read, strict=True
                )
            ]
        )

    @classmethod
    def completed(cls, *values: Any) -> Self:
        """The fact with these values, and with what follows from them."""
        return cls(*values)


class RecordFact(DurableFact, frozen=True):
    """A durable fact that isn't published as it happens: another one shows it."""
