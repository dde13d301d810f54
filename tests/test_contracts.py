"""The contracts of the house, counted. Each figure is today's, and may only fall, to its goal.

A figure that was exceeded is a fault of the change. One that has fallen is written down here by
the change that made it fall, so that nobody takes the room again.
"""

from __future__ import annotations

import ast
import re
import signal
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tui.core.gc_pause import gc_pause

ROOT: Final = Path(__file__).parents[1]
TUI: Final = ROOT / "tui"

FIELDS_MAX: Final = 20
"""The most fields that the body of a class declares."""
METHODS_MAX: Final = 30
"""The most public methods and properties of its own that a class has."""

CALLABLES_GOAL: Final = 40
CALLABLES: Final = 79
"""Fields that hold a callable: so declared, or set from a parameter that is. What a class asks of
others is named by a Protocol, or is a method of what it holds."""

BUDGET: Final = ROOT / "tests" / "budget.toml"
SLACK, SLACK_LINES = 0.02, 40
"""How far a room's lines may be from their figure, as a share or, in a small room, in lines: so
that not every change has to write a new one."""


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """What is counted of a class."""

    name: str
    fields: int
    methods: int
    callables: int


def _classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes of a module, those inside others too."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from _classes(node.body)


def _is_callable(type_: ast.expr | None, aliases: frozenset[str]) -> bool:
    """Whether a value of that type is a callable, or may be one."""
    match type_:
        case ast.BinOp(left=left, right=right):
            return _is_callable(left, aliases) or _is_callable(right, aliases)
        case ast.Subscript(value=ast.Name(id="Final"), slice=inner):
            return _is_callable(inner, aliases)
        case ast.Subscript(value=value):
            return _is_callable(value, aliases)
        case ast.Constant(value=str(text)):
            return text.startswith("Callable[")
        case ast.Name(id=name):
            return name == "Callable" or name in aliases
        case _:
            return False


def _set_in(method: ast.FunctionDef) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    """The attributes that a constructor sets, each with its value or its declared type."""
    for node in method.body:
        match node:
            case ast.AnnAssign(target=ast.Attribute() as target, annotation=type_):
                yield target, type_
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Attribute):
                        yield target, value
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                yield target, value
            case _:
                pass


def _held_callables(
    cls: ast.ClassDef, declared: Mapping[str, ast.expr], aliases: frozenset[str]
) -> set[str]:
    """The fields of a class that hold a callable."""
    held = {name for name, type_ in declared.items() if _is_callable(type_, aliases)}
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            given = (*method.args.args, *method.args.kwonlyargs)
            known = aliases | {each.arg for each in given if _is_callable(each.annotation, aliases)}
            for target, value in _set_in(method):
                values = value.values if isinstance(value, ast.BoolOp) else [value]
                if any(_is_callable(each, known) for each in values):
                    held.add(target.attr)
    return held


def _figures_of(cls: ast.ClassDef, aliases: frozenset[str]) -> ClassFigures:
    declared: dict[str, ast.expr] = {}
    methods: set[str] = set()
    for node in cls.body:
        match node:
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="ClassVar"))):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=type_):
                declared[name] = type_
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name[0] != "_":
                methods.add(name)
            case _:
                pass
    held = _held_callables(cls, declared, aliases)
    return ClassFigures(cls.name, len(declared), len(methods), len(held))


def _aliases(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives to types of callables."""
    for node in tree.body:
        match node:
            case ast.AnnAssign(ast.Name(id=name), ast.Name(id="TypeAlias"), value=value):
                if _is_callable(value, frozenset()):
                    yield name
            case _:
                pass


Trees: TypeAlias = tuple[ast.Module, ...]
Figures: TypeAlias = tuple[ClassFigures, ...]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """The modules that declare or replace anything; all others count for nothing here. They are
    240 MB, so they go with the last of these tests."""
    sources = (path.read_bytes() for path in TUI.rglob("*.py"))
    with gc_pause():
        return tuple(ast.parse(text) for text in sources if _COUNTED.search(text))


_COUNTED: Final = re.compile(rb"class |TypeAlias|replace\(")


@pytest.fixture(scope="module")
def figures(trees: Trees) -> Figures:
    """Of each class of the program."""
    aliases = frozenset(name for tree in trees for name in _aliases(tree))
    return tuple(_figures_of(cls, aliases) for tree in trees for cls in _classes(tree.body))


def test_no_class_has_more_fields(figures: Figures) -> None:
    grown = {each.name: each.fields for each in figures if each.fields > FIELDS_MAX}
    assert not grown, f"More fields than allowed: {grown}. Group them by what they mean."


def test_no_class_has_more_public_methods(figures: Figures) -> None:
    grown = {each.name: each.methods for each in figures if each.methods > METHODS_MAX}
    assert not grown, f"More public methods than allowed: {grown}. Give a part its own class."


def test_no_more_callables_are_kept_in_fields(figures: Figures) -> None:
    count = sum(each.callables for each in figures)
    most = sorted(figures, key=lambda each: -each.callables)[:8]
    named = ", ".join(f"{each.name} {each.callables}" for each in most)
    assert count <= CALLABLES, f"{count} fields hold a callable ({named} …). Name a port instead."
    assert count == CALLABLES, f"Only {count} fields hold a callable: lower CALLABLES to it."
    assert count > CALLABLES_GOAL, "The goal is reached: let it be the limit."


def lines_of_rooms() -> dict[str, int]:
    """The lines of Python in each room, as `wc -l` counts them."""
    rooms = sorted(path.parent for path in TUI.glob("*/__init__.py"))
    return {
        room.name: sum(path.read_bytes().count(b"\n") for path in room.rglob("*.py"))
        for room in rooms
    }


def test_no_room_outgrows_its_budget() -> None:
    budget: dict[str, int] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    lines = lines_of_rooms()
    assert lines.keys() == budget.keys()
    slack = {room: max(SLACK_LINES, SLACK * figure) for room, figure in budget.items()}
    over = {room: count for room, count in lines.items() if count > budget[room] + slack[room]}
    assert not over, (
        f"More lines than {BUDGET.name} allows: {over}. Say it with fewer; else raise the figure"
        " there, with the promise that it pays for behind it."
    )
    under = {room: count for room, count in lines.items() if count < budget[room] - 2 * slack[room]}
    assert not under, f"Fewer lines than {BUDGET.name} has: {under}. Lower the figures to these."


def test_what_a_replace_names_are_fields_of_one_class(trees: Trees) -> None:
    """No type checker looks at the keywords of `replace`, and a field that moved into a part of its
    class fails only when a person gets there."""
    classes = [cls for tree in trees for cls in _classes(tree.body)]
    bases = {cls.name: cls for cls in classes}
    fields = [_fields_of(cls, bases) for cls in classes]
    replaced = [
        {keyword.arg for keyword in node.keywords if keyword.arg}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_replace(node.func)
    ]
    assert len(replaced) > 100
    assert not [names for names in replaced if not any(names <= known for known in fields)]


def _is_replace(function: ast.expr) -> bool:
    """True for the function of a module; a method of that name belongs to a string."""
    match function:
        case ast.Name(id="replace") | ast.Attribute(value=ast.Name(id="structs"), attr="replace"):
            return True
        case _:
            return False


def _fields_of(cls: ast.ClassDef, bases: Mapping[str, ast.ClassDef]) -> set[str]:
    """Return the names that a class and those it is made from declare."""
    own = {
        node.target.id
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    names = [base.id for base in cls.bases if isinstance(base, ast.Name) and base.id in bases]
    return own.union(*(_fields_of(bases[name], bases) for name in names))


def test_a_timeout_comes_again_until_the_test_has_ended() -> None:
    left, again = signal.getitimer(signal.ITIMER_REAL)
    assert bool(left) == bool(again)
