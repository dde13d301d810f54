"""The SDK with its lists of names resolved late: a third of its modules, two fifths of its memory.

The packages of the SDK re-export thousands of types, of which a request needs a few dozen. Here
a package whose code is nothing but re-exports is not executed: its names are read from the
source, and each is imported when it is first asked for. Everything else is the SDK, unchanged.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import TypeAlias

SDK = "anthropic"

_Names: TypeAlias = dict[str, tuple[str, str]]
"""Name → the module that has it, relative to the package, and its name there ("": the module)."""


def import_sdk() -> ModuleType:
    """The SDK's package. Where it cannot be had like this, as it is; raises ImportError then."""
    if SDK in sys.modules:
        return sys.modules[SDK]
    sys.meta_path.insert(0, _Finder)
    try:
        sdk = import_module(SDK)
        _ = sdk.AsyncAnthropic, sdk.APIError
    except (ImportError, AttributeError):  # an SDK that is built in another way
        sys.meta_path.remove(_Finder)
        for name in [name for name in sys.modules if _is_part(name)]:
            del sys.modules[name]
        return import_module(SDK)
    return sdk


def reexports(source: bytes, *, root: bool = False) -> _Names | None:
    """The names of a package that only re-exports; None if it does anything else.

    The root package may: it sets up the SDK's own log and dresses up the names of its classes.
    """
    names: _Names = {}
    for node in ast.parse(source).body:
        match node:
            case ast.ImportFrom(module="__future__") | ast.Expr(ast.Constant()):
                pass
            case ast.Assign([ast.Name("__all__")]):
                pass
            case ast.ImportFrom(module, imported, 1):
                for one in imported:
                    if one.name != "*":
                        place = (f".{module}", one.name) if module else (f".{one.name}", "")
                        names[one.asname or one.name] = place
                    elif not root:
                        return None
            case _ if not root:
                return None
            case _:
                pass
    own = {module[1:].partition(".")[0] for module, name in names.values() if name}
    attributes = {name for name, (_, there) in names.items() if there}
    return None if own & attributes else names  # a submodule would stand in for the attribute


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__
        names = reexports(self.get_data(self.path), root=package == SDK)
        if names is None:
            super().exec_module(module)
            return

        def find(name: str) -> object:
            if name not in names:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            where, there = names[name]
            found: object = import_module(where, package)
            if there:
                found = getattr(found, there)
            module.__dict__[name] = found
            return found

        module.__dict__.update(__getattr__=find, __all__=list(names))


class _Finder:
    """Finds the SDK's packages as always, and gives them the loader above."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_part(name):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.submodule_search_locations and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _is_part(name: str) -> bool:
    return name == SDK or name.startswith(f"{SDK}.")
