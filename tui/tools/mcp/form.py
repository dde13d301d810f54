"""A form of plain fields by which an MCP server asks the person: its fields, and the values that
fit them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.messages import list_of, object_of
from tui.core.questions import UserAnswer
from tui.core.text_cleaning import one_line

FIELDS_MAX: Final = 30
OPTIONS_MAX: Final = 200
SHORT: Final = 60
"""Characters of a title, and of an answer that is repeated."""
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

Value: TypeAlias = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form. `options` are values with what they are called; none for a field that is
    written. `rules` is its schema."""

    name: str
    title: str
    kind: Literal["string", "number", "integer", "boolean", "array"]
    required: bool
    options: tuple[tuple[str | bool, str], ...] = ()
    rules: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def several(self) -> bool:
        return self.kind == "array"

    def shown(self, value: Value | None) -> str:
        """A value in the person's words."""
        names = {str(one): label for one, label in self.options}
        if value is None:
            return "(left out)"
        if isinstance(value, list):
            return ", ".join(names.get(one, one) for one in value)
        return names.get(str(value), str(value))


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a form. Raises ToolError for one that can't be shown."""
    required = {str(one) for one in list_of(schema.get("required"))}
    properties = object_of(schema.get("properties"))
    if len(properties) > FIELDS_MAX:
        raise ToolError(f"A form may have {FIELDS_MAX} fields; this one has {len(properties)}.")
    return tuple(_field(name, object_of(rules), required) for name, rules in properties.items())


def _field(name: str, rules: dict[str, Any], required: set[str]) -> FormField:
    kind = rules.get("type", "string")
    title = one_line(str(rules.get("title") or name))[:SHORT] or "Answer"
    options: list[tuple[str | bool, str]] = []
    match kind:
        case "boolean":
            options = [(True, "Yes"), (False, "No")]
        case "string":
            options = _options(rules)
        case "array":
            options = _options(object_of(rules.get("items")))
            if not options:
                raise ToolError(f"The field {name:.200} is a list without options.")
        case "number" | "integer":
            pass
        case _:
            raise ToolError(f"The field {name:.200} has the type {kind!s:.50}.")
    if len(options) > OPTIONS_MAX:
        raise ToolError(f"The field {name:.200} has more than {OPTIONS_MAX} options.")
    return FormField(name, title, kind, name in required, tuple(options), rules)


def _options(rules: Mapping[str, Any]) -> list[tuple[str | bool, str]]:
    """The values of an enumeration with their names, which differ from each other."""
    titled = list_of(rules.get("oneOf")) or list_of(rules.get("anyOf"))
    pairs = [(object_of(one).get("const"), object_of(one).get("title")) for one in titled]
    if not pairs:
        values, names = list_of(rules.get("enum")), list_of(rules.get("enumNames"))
        names = names if len(names) == len(values) else values
        pairs = list(zip(values, names, strict=True))
    options: list[tuple[str | bool, str]] = []
    taken: set[str] = set()
    for value, name in pairs:
        if isinstance(value, str):
            label = one_line(str(name or value)) or '""'
            label = label if label not in taken else f"{label} ({value})"
            taken.add(label)
            options.append((value, label))
    return options


def accepted(one: FormField) -> str:
    """Say what is accepted."""
    low, high = one.rules.get("minimum"), one.rules.get("maximum")
    few, many = _length_rules(one)
    match one.kind:
        case "integer" | "number":
            what = "A whole number" if one.kind == "integer" else "A number"
            return f"{what}{_between(low, high)}."
        case "array":
            return f"Choose{_between(few, many)}." if few or many else ""
        case "string" if not one.options:
            formats = {
                "email": "An email address.",
                "uri": "An address, such as https://example.com.",
                "date": "A date, such as 2026-01-31.",
                "date-time": "A date and time, such as 2026-01-31T08:00:00Z.",
            }
            hint = formats.get(str(one.rules.get("format")), "")
            length = f"Length:{_between(few, many)} characters." if few or many else ""
            return " ".join(filter(None, (hint, length)))
        case _:
            return ""


def _between(low: object, high: object) -> str:
    if low is not None and high is not None:
        return f" {low} to {high}"
    return f" at least {low}" if low is not None else f" at most {high}" if high is not None else ""


def _length_rules(one: FormField) -> tuple[int | None, int | None]:
    names = ("minItems", "maxItems") if one.several else ("minLength", "maxLength")
    few, many = (one.rules.get(name) for name in names)
    return (few if isinstance(few, int) and few > 0 else None), (
        many if isinstance(many, int) else None
    )


def value_of(one: FormField, answer: UserAnswer) -> Value:
    """An answer as the value that its field takes. Raises ValueError in words for the person."""
    values = {label: value for value, label in one.options}
    if one.several:
        return [str(values[label]) for label in answer.chosen]
    if one.options:
        return values[answer.chosen[0]]
    text = answer.text
    if one.kind == "string":
        return text
    try:
        return int(text) if one.kind == "integer" else float(text.replace(",", "."))
    except ValueError:
        what = "a whole number" if one.kind == "integer" else "a number"
        raise ValueError(f"“{one_line(text)[:SHORT]}” isn't {what}.") from None


def checked(one: FormField, value: object) -> Value:
    """A value that fits its field. Raises ValueError in words for the person."""
    match value:
        case bool() if one.kind == "boolean":
            return value
        case int() | float() if one.kind in {"integer", "number"} and not isinstance(value, bool):
            return _number(one, value)
        case str() if one.kind == "string":
            return _string(one, value)
        case list() if one.several:
            chosen = [str(each) for each in list_of(cast("object", value))]
            if not {each for each, _ in one.options}.issuperset(chosen):
                raise ValueError("That isn't one of the options.")
            _measure(one, len(chosen), "chosen")
            return chosen
        case _:
            raise ValueError("That doesn't fit.")


def _number(one: FormField, value: float) -> float:
    low, high = one.rules.get("minimum"), one.rules.get("maximum")
    if not math.isfinite(value):
        raise ValueError(f"{value} can't be sent.")
    if isinstance(low, int | float) and value < low:
        raise ValueError(f"{value:g} is less than {low}.")
    if isinstance(high, int | float) and value > high:
        raise ValueError(f"{value:g} is more than {high}.")
    return value


def _string(one: FormField, value: str) -> str:
    if one.options:
        if value not in {each for each, _ in one.options}:
            raise ValueError("That isn't one of the options.")
        return value
    _measure(one, len(value), "characters")
    shown = one_line(value)[:SHORT]
    match one.rules.get("format"):
        case "email" if not _EMAIL.fullmatch(value):
            raise ValueError(f"“{shown}” isn't an email address.")
        case "uri" if not _URI.fullmatch(value):
            raise ValueError(f"“{shown}” isn't an address.")
        case "date" if not _parses(date.fromisoformat, value):
            raise ValueError(f"“{shown}” isn't a date like 2026-01-31.")
        case "date-time" if not ("T" in value and _parses(datetime.fromisoformat, value)):
            raise ValueError(f"“{shown}” isn't a date and time like 2026-01-31T08:00:00Z.")
        case _:
            return value


def _measure(one: FormField, count: int, what: str) -> None:
    few, many = _length_rules(one)
    if few is not None and count < few:
        raise ValueError(f"Too few: {count} {what}, but at least {few} are needed.")
    if many is not None and count > many:
        raise ValueError(f"Too many: {count} {what}, but at most {many} are possible.")


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
