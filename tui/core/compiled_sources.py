"""Bytecode of what modules compile while they are imported, kept from earlier runs.

The methods of data classes and named tuples are written as source, and annotations are source; the
SDK and what it stands on compile 1,400 pieces each time, the screen's toolkit 450: a tenth of their
import. The bytecode is found by the whole source, so it is always its own, and kept where that of
the modules is.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import marshal
import os
import sys
import typing
from binascii import crc32
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from tui.core import dataclass as our_dataclass

_FILE = "<string>"
"""The file that all name for what they compile."""


class CompiledSources:
    """Compiles as the interpreter does, each source once; `keep` writes what is new to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, bytes] = {}
        try:
            version, known = marshal.loads(_checked(path.read_bytes()))  # noqa: S302 - as other bytecode
            self._known = known if version == sys.version else {}
        except (OSError, EOFError, ValueError, TypeError):
            pass  # none yet, or none of ours
        self._before = len(self._known)

    def compile(self, source: Any, file: str, mode: str, *more: Any) -> Any:
        """Compile a source."""
        if not isinstance(source, str) or file != _FILE or more:
            return cast("Any", builtins.compile(source, file, mode, *more))
        known = self._known.get(mode + source)
        if known is not None:
            return marshal.loads(known)  # noqa: S302 - as above
        # None of this module's own `from __future__` counts in it.
        code: CodeType = builtins.compile(source, file, mode, dont_inherit=True)
        self._known[mode + source] = marshal.dumps(code)
        return code

    def exec(self, source: Any, *names: Any) -> None:
        """Execute a source, or what was compiled."""
        code = self.compile(source, _FILE, "exec") if isinstance(source, str) else source
        builtins.exec(code, *names)  # noqa: S102 - what the builtin would

    def eval(self, source: Any, *names: Any) -> Any:
        """Evaluate a source, or what was compiled."""
        code = self.compile(source, _FILE, "eval") if isinstance(source, str) else source
        return builtins.eval(code, *names)  # noqa: S307 - as above

    def keep(self) -> None:
        """Write the file, if there is anything new."""
        if len(self._known) == self._before or sys.dont_write_bytecode:
            return
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            data = marshal.dumps((sys.version, self._known))
            part.write_bytes(crc32(data).to_bytes(4, "little") + data)
            part.replace(self._path)
        except OSError:
            part.unlink(missing_ok=True)  # no room, or not ours to write


def _checked(data: bytes) -> bytes:
    """The data behind its checksum. Raises ValueError if they do not fit."""
    if int.from_bytes(data[:4], "little") != crc32(data[4:]):
        raise ValueError
    return data[4:]


_active = False


@contextmanager
def compiled_once(path: Path) -> Generator[None]:
    """Let data classes, named tuples and annotations take the bytecode of their sources from a file
    meanwhile; within another such block, from that one's."""
    global _active  # noqa: PLW0603 - so are the modules that it changes
    if _active:
        yield
        return
    sources, _active = CompiledSources(path), True
    with ExitStack() as stack:
        stack.callback(sources.keep)
        # A global of a module goes before the builtin of that name.
        for module, name, ours in (
            (dataclasses, "exec", sources.exec),
            (collections, "eval", sources.eval),
            (our_dataclass, "exec", sources.exec),
            (typing, "compile", sources.compile),
        ):
            stack.enter_context(_changed(module, name, ours))
        try:
            yield
        finally:
            _active = False


@contextmanager
def _changed(module: ModuleType, name: str, value: object) -> Generator[None]:
    """Give a global of a module another value meanwhile."""
    known, missing = vars(module), object()
    before = known.get(name, missing)
    known[name] = value
    try:
        yield
    finally:
        if before is missing:
            del known[name]
        else:
            known[name] = before
