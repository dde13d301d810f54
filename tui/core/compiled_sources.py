"""Bytecode of the source that modules make while they are imported, kept from earlier runs.

The methods of data classes are written as source, and annotations are source; the SDK and what it
stands on compile 1,400 pieces each time, the screen's toolkit 450: a tenth of their import. The
bytecode is found by the whole source, so it is always its own, and kept where that of the modules
is.
"""

from __future__ import annotations

import builtins
import dataclasses
import marshal
import os
import sys
import typing
from binascii import crc32
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, cast

_FILE = "<string>"
"""The file that both name for what they compile."""


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


@contextmanager
def compiled_once(path: Path) -> Generator[None]:
    """Let data classes and annotations take the bytecode of their sources from a file meanwhile."""
    sources = CompiledSources(path)
    # A global of a module goes before the builtin of that name.
    dataclasses.__dict__["exec"], typing.__dict__["compile"] = sources.exec, sources.compile
    try:
        yield
    finally:
        del dataclasses.__dict__["exec"], typing.__dict__["compile"]
        sources.keep()
