"""The bytecode of what earlier runs imported, in one file next to the program's own.

For each module Python searches folders, opens a file and checks it: a tenth of a start. A bundle
holds the same bytecode for modules in packages, with the time and size of their sources. A module
whose source is another by now, or lies elsewhere, is imported as ever, and so is one whose bytecode
is damaged. Whoever may write the bundle
may write the bytecode next to it, and the program itself.
"""

from __future__ import annotations

import marshal
import os
import sys
from binascii import crc32
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, ModuleType
    from typing import TypeAlias

    Entry: TypeAlias = tuple[str, bytes, int, int, int]
    """A source, its stamp, and the place, length and checksum of its bytecode."""
    Held: TypeAlias = tuple[str, bytes, bytes]
    """A source, its stamp, and its bytecode."""

_HEADER = 16
"""Bytes before the code in a file of bytecode: magic number, flags, and the stamp of the source."""
_BY_STAMP = bytes(4)
"""The flags of a file whose bytecode counts as long as the stamp is that of the source."""
_WORTH = 40
"""Modules that a bundle may lack before it is written again."""


class Bundle:
    """A finder of the modules in a bundle, for `sys.meta_path`; the file need not be there yet.

    The bytecode comes first, then the index, then the place of the index in 8 bytes and its
    checksum in 4.
    """

    def __init__(self, path: str) -> None:
        self._path, self._file = path, -1
        self._index: dict[str, Entry] = {}
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if self._file <= 2:  # the place of a standard stream that is closed
                os.close(self._file)
                return
            end = os.fstat(self._file).st_size - 12
            last = os.pread(self._file, 12, end)
            place, check = int.from_bytes(last[:8], "little"), int.from_bytes(last[8:], "little")
            version, index = marshal.loads(  # noqa: S302 - as Python does with its own
                _checked(self._file, place, end - place, check)
            )
            self._index = index if version == sys.version else {}
        except (OSError, EOFError, ValueError, TypeError, OverflowError):
            return  # none yet, or none of ours

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module in a package, if its source is where and as it was."""
        if path is None or name not in self._index:
            return None
        source, stamp, *bytecode = self._index[name]
        folder, _, file = source.rpartition(os.sep)
        package = file == "__init__.py"
        if (folder.rpartition(os.sep)[0] if package else folder) not in path:
            return None
        if _stamp(source) != stamp:
            return None
        loader = _Loader(name, source)
        loader.bytecode = self._file, *bytecode
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(folder)
        return spec

    def keep(self) -> None:
        """Write it again if it lacks many of the modules that are loaded."""
        from pathlib import Path  # noqa: PLC0415 - the start does without

        loaded = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
        missing = [spec for spec in loaded if isinstance(spec, ModuleSpec) and self._lacks(spec)]
        if len(missing) < _WORTH or sys.dont_write_bytecode:
            return
        new = {spec.name: held for spec in missing if (held := _read(spec)) is not None}
        place = 0
        index: dict[str, Entry] = {}
        whole = Path(self._path)
        part = whole.with_name(f"{whole.name}.{os.getpid()}")
        try:
            with part.open("wb") as file:
                for name, (source, stamp, code) in (dict(self._held()) | new).items():
                    index[name] = source, stamp, place, len(code), crc32(code)
                    place += file.write(code)
                named = marshal.dumps((sys.version, index))
                file.write(named + place.to_bytes(8, "little") + crc32(named).to_bytes(4, "little"))
            part.replace(whole)
        except OSError:
            part.unlink(missing_ok=True)  # no room, or not ours to write

    def _lacks(self, spec: ModuleSpec) -> bool:
        if "." not in spec.name or type(spec.loader) is not SourceFileLoader:
            return False
        known = self._index.get(spec.name)
        return known is None or known[1] != _stamp(known[0])

    def _held(self) -> Iterator[tuple[str, Held]]:
        """The entries whose sources are unchanged."""
        for name, (source, stamp, *bytecode) in self._index.items():
            with suppress(OSError, ValueError):
                if _stamp(source) == stamp:
                    yield name, (source, stamp, _checked(self._file, *bytecode))


class _Loader(SourceFileLoader):
    """Loads a module from a bundle, or from its own files where that fails."""

    bytecode: tuple[int, ...]
    """Descriptor of the bundle, place, length and checksum."""

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            return marshal.loads(_checked(*self.bytecode))  # noqa: S302 - as above
        except (OSError, EOFError, ValueError, TypeError):
            return super().get_code(fullname)


def _checked(file: int, place: int, length: int, check: int) -> bytes:
    """Read a part of a bundle. Raises ValueError if it is not what was written."""
    data = os.pread(file, length, place)
    if len(data) != length or crc32(data) != check:
        raise ValueError(place)
    return data


def _stamp(source: str) -> bytes:
    """The time and size of a source, as files of bytecode have them; b"" if it is not there."""
    try:
        found = os.stat(source)  # noqa: PTH116 - the start does without paths
    except OSError:
        return b""
    time, size = int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF
    return time.to_bytes(4, "little") + size.to_bytes(4, "little")


def _read(spec: ModuleSpec) -> Held | None:
    """Read the bytecode of a module; None where there is none, or not of its source."""
    from pathlib import Path  # noqa: PLC0415 - the start does without

    if not spec.origin or not spec.cached:
        return None
    try:
        data = Path(spec.cached).read_bytes()
    except OSError:
        return None
    stamp = data[8:_HEADER]
    if data[4:8] != _BY_STAMP or stamp != _stamp(spec.origin):
        return None
    return spec.origin, stamp, data[_HEADER:]
