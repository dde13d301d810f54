"""A data class of ours is one like the standard decorator makes, and what it makes is made late."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from tui.core.dataclass import dataclass

Decorator = Callable[..., Any]

STANDARD: Decorator = dataclasses.dataclass
OURS: Decorator = dataclass


def _made(decorator: Decorator) -> dict[str, Any]:
    """The same classes by either decorator."""

    @decorator(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list[str])
        hidden: int = field(default=0, repr=False, compare=False)
        KIND: ClassVar[str] = "point"

        @property
        def sum(self) -> int:
            return self.x + self.y

    @decorator(frozen=True, slots=True)
    class Deep(Point):
        z: int = 3

    @decorator(slots=True)
    class Tally:
        name: str = ""
        seen: set[str] = field(init=False, default_factory=set[str])
        total: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            self.seen.add(self.name)

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        first: int
        second: str = "b"

    @decorator(slots=True, eq=False)
    class Same:
        x: int

    @decorator
    class Loose:  # noqa: PLW1641 - what becomes of its hash is seen below
        x: int
        rest: dict[str, int] = field(default_factory=dict[str, int])

        def __repr__(self) -> str:
            return "loose"

        def __eq__(self, other: object) -> bool:
            return True

    @decorator(frozen=True, slots=True)
    class Empty:
        pass

    @decorator(frozen=True)
    class One:
        x: tuple[int, ...] = ()

    return {kind.__name__: kind for kind in (Point, Deep, Tally, Named, Same, Loose, Empty, One)}


def _error(call: Callable[[], object]) -> tuple[type[BaseException], str]:
    with pytest.raises((TypeError, AttributeError)) as caught:
        call()
    return caught.type, re.sub(r"\S*\.", "", str(caught.value))


def _observed(decorator: Decorator) -> list[object]:
    """What can be seen of such classes from outside."""
    kinds = _made(decorator)
    point, deep, tally = kinds["Point"], kinds["Deep"], kinds["Tally"]
    named, same, loose, one = kinds["Named"], kinds["Same"], kinds["Loose"], kinds["One"]
    a, b = point(1), point(1, names=[], hidden=5)
    text = "<locals>"

    def shown(value: object) -> str:
        return repr(value).rpartition(text)[2]

    def assign(to: Any, name: str) -> Callable[[], None]:
        return lambda: setattr(to, name, 3)

    return [
        *(shown(kinds[name](1)) for name in ("Point", "Deep", "Same", "Loose", "One")),
        *(shown(value) for value in (tally("t"), named(first=1), kinds["Empty"]())),
        (a == b, a == point(2), a == deep(1), deep(1) == deep(1), same(1) == same(1)),
        (kinds["Empty"]() == kinds["Empty"](), loose(1) == 5, one((1,)) == one((1,)), a == 1),
        hash(one((1,))) == hash(one((1,))), {kinds["Empty"](): 1}[kinds["Empty"]()],
        (tally.__hash__, loose.__hash__),
        {same(1)} != {same(1)},
        _error(lambda: hash(a)), _error(assign(a, "x")), _error(lambda: delattr(a, "x")),
        _error(assign(deep(1), "z")), _error(assign(tally(), "other")), _error(point),
        _error(lambda: point(1, w=2)), _error(lambda: named(1)), _error(lambda: tally("", set())),
        (a.names is not b.names, tally().total, tally("u").seen, a.sum, a.KIND, loose(1).rest),
        [(f.name, f.type, f.default, f.init, f.kw_only) for f in fields(deep) if f.name != "names"],
        shown(replace(a, x=5)), asdict(a), deep.__match_args__, named.__match_args__,
        point.__slots__, hasattr(a, "__dict__"),
        shown(copy.copy(a)), shown(copy.deepcopy(deep(4))), dataclasses.is_dataclass(a),
        point.__init__.__qualname__.rpartition(".")[0] == point.__qualname__,
    ]  # fmt: skip


def test_the_classes_are_those_of_the_standard_decorator() -> None:
    for ours, standard in zip(_observed(OURS), _observed(STANDARD), strict=True):
        assert ours == standard


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    size: int = 0


def test_a_frozen_one_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept("a", 2))) == Kept("a", 2)


@pytest.mark.parametrize("base", [OURS, STANDARD])
@pytest.mark.parametrize("derived", [OURS, STANDARD])
def test_either_kind_is_the_base_of_the_other(base: Decorator, derived: Decorator) -> None:
    @base(frozen=True, slots=True)
    class Base:
        x: int

    @derived(frozen=True, slots=True)
    class Derived(Base):
        y: int = 2

    made: Any = Derived(1)
    assert (made.x, made.y, made == Derived(1, 2), hash(made)) == (1, 2, True, hash((1, 2)))
    with pytest.raises(FrozenInstanceError):
        made.x = 3
    with pytest.raises(TypeError):

        @derived(slots=True)
        class _Thawed(Base):  # pyright: ignore[reportUnusedClass]
            y: int = 2


_MOST_CALLS = 64
"""Calls that make a frozen class of five fields: 296 with the standard decorator underneath. A
start makes 300 classes."""


def test_a_class_is_made_in_few_calls() -> None:
    class Kind:
        a: int
        b: str = ""
        c: list[str] = field(default_factory=list[str])
        d: int = 1
        e: int = 2

    calls = list[object]()

    def see(_frame: object, event: str, arg: object) -> None:
        if event in {"call", "c_call"}:
            calls.append(arg)

    make: Any = dataclass(frozen=True, slots=True)
    sys.setprofile(see)
    try:
        kind = make(Kind)
    finally:
        sys.setprofile(None)
    assert (kind(1).c, kind(1).e) == ([], 2)
    assert len(calls) <= _MOST_CALLS


def test_a_default_that_all_would_change_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass
        class _Shared:  # pyright: ignore[reportUnusedClass]
            names: list[str] = []  # noqa: RUF012 - what is refused


def test_nothing_is_compiled_for_a_few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()

    def compile_it(source: str, known: dict[str, Any]) -> None:
        compiled.append(source)
        exec(source, known)

    monkeypatch.setattr("tui.core.dataclass.exec", compile_it, raising=False)
    point = _made(OURS)["Point"]
    few, many = [point(x) for x in range(3)], [point(x) for x in range(20)]
    assert [one.x for one in few + many] == [*range(3), *range(20)]
    assert len(compiled) == 1, "the one of a class that is made often"


def test_a_recursive_one_can_be_shown() -> None:
    loose = _made(OURS)["Tally"]()
    loose.seen = [loose]
    assert "..." in repr(loose)
    with pytest.raises(FrozenInstanceError):
        Kept("a").size = 3  # pyright: ignore[reportAttributeAccessIssue]
