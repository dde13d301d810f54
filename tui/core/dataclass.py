"""The standard `dataclass`, with its methods made when they are needed.

The standard one writes up to six methods of each class as source and compiles them at import, which
takes 0.7 ms; a start loads hundreds of classes and makes few objects of some. Here `__init__` is
compiled once it has made a few, the others are shared functions over the fields, and a class gets
all of them at once. The fields are the standard ones, so `fields`, `replace`, `asdict` and patterns
work as with any data class. There is no `InitVar` and no `KW_ONLY`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import asdict, astuple, field, fields, is_dataclass, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - the same to its readers

__all__ = ["asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

MISSING = dataclasses.MISSING
_OF_EACH = ("__dict__", "__weakref__")
"""Members that each class makes for itself."""
_UNCOMPILED = 8
"""Objects of a class that are made before its `__init__` is worth compiling."""

if not TYPE_CHECKING:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """Make a data class, by those of the standard decorator's options that are used here."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, kw_only=kw_only)
        own = dict(vars(cls))
        every = _fields_of(cls, frozen=frozen, kw_only=kw_only)
        names = tuple(name for name, one in every.items() if one.init and not one.kw_only)
        members = {"__match_args__": names, "__repr__": _repr}
        if eq:
            members |= _comparison(every.values(), hashable=frozen)
        if frozen:
            members |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if frozen and slots:
            members |= {"__getstate__": _state, "__setstate__": _set_state}
        members = {name: member for name, member in members.items() if own.get(name) is None}
        members |= {"__dataclass_fields__": every, "__dataclass_params__": _OPTIONS[frozen]}
        if slots:
            kept = {name: member for name, member in own.items() if name not in every}
            made = _slotted(cls, kept | members)
        else:
            made = cls
            for name, member in members.items():
                setattr(cls, name, member)
            for name, one in every.items():
                if own.get(name) is one:  # what it says stands in the place of its value
                    delattr(cls, name)
                    if one.default is not MISSING:
                        setattr(cls, name, one.default)
        if own.get("__init__") is None:
            made.__init__ = _late_init(made, frozen=frozen)
        return made


def _standard(*, frozen: bool) -> Any:
    """A class of the standard decorator, for what marks its fields and its options."""
    kind: Any = type("Standard", (), {"__doc__": "", "__annotations__": {"one": int}})
    return dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen)(kind)


_OPTIONS = {frozen: _standard(frozen=frozen).__dataclass_params__ for frozen in (False, True)}
_A_FIELD = fields(_standard(frozen=False))[0]._field_type  # noqa: SLF001 - `fields` goes by it


def _fields_of(cls: Any, *, frozen: bool, kw_only: bool) -> dict[str, Any]:
    """The fields of a class by name, those of its bases first. Raises TypeError as the standard
    decorator does, ValueError for a default that all objects would change."""
    every: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        if (inherited := base.__dict__.get("__dataclass_fields__")) is None:
            continue
        every |= inherited
        if base.__dataclass_params__.frozen != frozen:
            raise TypeError("only all of a class and its bases, or none, can be frozen")
    for name, annotation in cls.__annotations__.items():
        if "ClassVar" in str(annotation):
            continue
        default = cls.__dict__.get(name, MISSING)
        one: Any = default
        if not isinstance(default, dataclasses.Field):
            one = field(default=default)
        if one.default.__class__.__hash__ is None:
            raise ValueError(f"mutable default of {name}: use default_factory")
        one.name, one.type = name, annotation
        one._field_type = _A_FIELD  # noqa: SLF001 - as above
        one.kw_only = kw_only if one.kw_only is MISSING else one.kw_only
        every[name] = one
    return every


def _slotted(cls: Any, members: dict[str, Any]) -> Any:
    """Make a class of these members in the place of another, with a slot for each field that has
    none."""
    taken = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    slots = tuple(name for name in members["__dataclass_fields__"] if name not in taken)
    members = {name: member for name, member in members.items() if name not in _OF_EACH}
    made = type(cls)(cls.__name__, cls.__bases__, members | {"__slots__": slots})
    made.__qualname__ = cls.__qualname__
    return made


def _late_init(cls: Any, *, frozen: bool) -> Any:
    """An `__init__` that sets the fields one by one, and after a few objects, or where arguments do
    not fit, puts the compiled one in its place."""
    objects, places = 0, ()

    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        nonlocal objects, places
        places = places or tuple(map(_place, fields(cls)))
        values = _values_of(places, args, named) if objects < _UNCOMPILED else None
        if values is None:
            cls.__init__ = _init(cls, frozen=frozen)
            cls.__init__(self, *args, **named)
            return
        objects += 1
        put = object.__setattr__ if frozen else setattr
        for name, value in values:
            put(self, name, value)
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    return __init__


def _place(one: Any) -> tuple[str, bool, bool, Any, Any]:
    """A field as its name, whether it is a parameter, by name only, its default and its factory."""
    return one.name, one.init, one.kw_only, one.default, one.default_factory


def _values_of(places: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The names and values of the fields; None where the arguments do not fit them."""
    values: list[tuple[str, Any]] = []
    given, left = iter(args), len(named)
    taken = 0
    for name, init, by_name, default, factory in places:
        if init and not by_name and taken < len(args):
            values.append((name, next(given)))
            taken += 1
        elif init and name in named:
            values.append((name, named[name]))
            left -= 1
        elif factory is not MISSING:
            values.append((name, factory()))
        elif default is not MISSING:
            values.append((name, default))
        elif init:
            return None
    return None if left or taken < len(args) else values


def _init(cls: Any, *, frozen: bool) -> Any:
    """Compile the `__init__` of a class from its fields."""
    known: dict[str, Any] = {"__set": object.__setattr__, "__unset": MISSING}
    placed: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for one in fields(cls):
        name, value = one.name, one.name
        default = ""
        if one.default_factory is not MISSING:
            known[f"__new_{name}"] = one.default_factory
            value = (
                f"__new_{name}() if {name} is __unset else {name}"
                if one.init
                else f"__new_{name}()"
            )
            default = "=__unset"
        elif one.default is not MISSING:
            known[f"__default_{name}"] = one.default
            default = f"=__default_{name}"
            value = name if one.init else f"__default_{name}"
        elif not one.init:
            continue
        if one.init:
            (named if one.kw_only else placed).append(name + default)
        body.append(f"__set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *placed, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), known)  # noqa: S102 - names of fields only
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _comparison(every: Collection[Any], *, hashable: bool) -> dict[str, Any]:
    """`__eq__`, and what goes with it: equal objects have one hash, or none."""
    compared = _values([one.name for one in every if one.compare])
    hashed = _values([one.name for one in every if (one.compare if one.hash is None else one.hash)])

    def __eq__(self: Any, other: Any) -> bool:  # noqa: N807
        if other.__class__ is self.__class__:
            return compared(self) == compared(other)
        return NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if hashable else None}


def _values(names: list[str]) -> Any:
    """A function that returns a tuple of these attributes."""
    if len(names) > 1:
        return attrgetter(*names)

    def values(one: Any) -> tuple[Any, ...]:
        return tuple(getattr(one, name) for name in names)

    return values


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(_self: Any, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
