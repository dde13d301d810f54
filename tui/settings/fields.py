"""The fields of a section of `tui.core.config`: what is allowed, the default, and the words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import msgspec

from tui.core.config import Config, When
from tui.core.dataclass import dataclass, field

TOP: Final = "Model and screen"
"""The heading of the keys in no table."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a section. `type` is what msgspec checks, `heading` names a table, `label` and
    `help` say what a setting is in a few words and in a sentence, `choices` what each of its
    values means."""

    name: str
    type: Any
    heading: str
    label: str
    help: str
    when: When
    choices: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def words(self) -> str:
        """The effect of the setting, then of each choice."""
        names = {"": '""'}
        what = ". ".join(f"{names.get(name, name)}: {one}" for name, one in self.choices.items())
        return f"{self.help} {what}." if what else self.help

    @property
    def section(self) -> type[msgspec.Struct] | None:
        """The table that is under this key, if its keys are known."""
        type_: object = self.type
        return type_ if isinstance(type_, type) and issubclass(type_, msgspec.Struct) else None


@cache
def fields_of(section: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the fields of a section by name, in the order in which they are shown."""
    types = get_type_hints(section, include_extras=True)
    return {name: _field(name, types[name]) for name in section.__struct_fields__}


def _field(name: str, type_: Any) -> Field:
    if get_origin(type_) is not Annotated:
        return Field(name, type_, "", "", "", When.SESSION)
    plain, *notes = get_args(type_)
    texts = [note.partition(": ") for note in notes if isinstance(note, str)]
    heading = next((text for text, _, help_ in texts if not help_), "")
    described = [(label, help_) for label, _, help_ in texts if help_]
    label, help_ = described[0] if described else ("", "")
    when = next((note for note in notes if isinstance(note, When)), When.SESSION)
    limits = [note for note in notes if isinstance(note, msgspec.Meta)]
    checked = Annotated[(plain, *limits)] if limits else plain
    return Field(name, checked, heading, label, help_, when, dict(described[1:]))


def heading_of(section: tuple[str, ...]) -> str:
    """The heading of a table, by its key; () is the top."""
    return fields_of(Config)[section[0]].heading if section else TOP
