"""Unpacking: a session that was packed on another machine becomes one of this one. Everything
blocks.

A pack is somebody else's until it is proven: each file is checked against the manifest before
anything is written, and what its checkpoints name may only be what the file tools could write. The
session's own file comes last, so it is here whole or not at all; what came before it is the same
when it is unpacked again. A session that is here already grows by what the pack has more.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeAlias

from tui.app.packs.form import (
    CHECKPOINTS,
    CHILDREN,
    CONTENTS,
    MANIFEST,
    OUTPUTS,
    SESSION,
    Manifest,
    damaged,
)
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, SessionError, StorageError, os_error_as
from tui.core.files import sha256_of, sync_folder
from tui.core.formatting import plural
from tui.core.messages import object_of, string_of
from tui.core.output_store import open_full_copy, unpacked_copy
from tui.core.paths import Folders
from tui.core.workspace import Workspace
from tui.permissions.rules import GUARDED
from tui.session import catalog, chain_check, copies
from tui.session.catalog import id_of
from tui.session.checkpoints.entries import FILE_BYTES_MAX, CheckpointError
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.checkpoints.transfer import StoredState
from tui.session.jsonl import JsonLine, split
from tui.session.lock import SessionLock
from tui.session.reader import read
from tui.session.records import CHECKPOINT
from tui.session.session import children_of

State: TypeAlias = Literal["new", "grown", "same", "older"]
"""The relation of a packed session to the one that is here: there was none; that one had less, and
got the rest; both are the same; the pack has less."""

_MANIFEST_MAX: Final = 256_000_000
_FREE_MIN: Final = 100_000_000
_CHUNK: Final = 1 << 20
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x1


@dataclass(slots=True, kw_only=True)
class Unpacked:
    """The outcome of unpacking. `verified`: every line and full output is what was written, and
    nothing was redacted. `differs` are the files of the folder that are not as the session left
    them, None where that isn't known; `problems` say in sentences what is not as it was packed."""

    id: str
    path: Path
    state: State
    verified: bool = False
    children: int = 0
    outputs: int = 0
    checkpoints: int = 0
    differs: Sequence[str] | None = ()
    problems: list[str] = field(default_factory=list[str])


def unpack(file: Path, workspace: Path, *, folders: Folders, clock: Clock) -> Unpacked:
    """Make the session of a pack one of this machine, for a workspace. Raises SessionError for
    what is no pack, SessionInUseError, StorageError."""
    with _opened(file) as opened:
        pack = _Pack(opened, _manifest(opened))
        pack.check()
        return _Unpacking(pack, workspace, folders, clock).run()


def _opened(file: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
        raise damaged(f"{file.name} isn't a whole pack") from None
    except OSError as error:
        raise SessionError(f"Can't read {file}: {error.strerror or error}.") from error


def _manifest(opened: zipfile.ZipFile) -> Manifest:
    names = [one.filename for one in opened.infolist()]
    if names.count(MANIFEST) != 1:
        raise damaged("it has no manifest")
    return Manifest.of(b"".join(_pieces(opened, MANIFEST, _MANIFEST_MAX)))


def _pieces(opened: zipfile.ZipFile, name: str, most: int) -> Iterator[bytes]:
    """Yield a file of a pack. Raises SessionError where it is damaged or longer than it may be."""
    try:
        with opened.open(name) as stream:
            while piece := stream.read(_CHUNK):
                most -= len(piece)
                if most < 0:
                    raise damaged(f"{name} is longer than it says")
                yield piece
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, KeyError, ValueError):
        raise damaged(f"{name} can't be read") from None
    except RuntimeError as error:  # encrypted
        raise damaged(f"{name} can't be read: {error}") from None


@dataclass(frozen=True, slots=True)
class _Pack:
    opened: zipfile.ZipFile
    manifest: Manifest

    def check(self) -> None:
        """Raise SessionError unless everything is what the manifest says."""
        files, infos = self.manifest.files, self.opened.infolist()
        if sorted(one.filename for one in infos) != sorted([MANIFEST, *files]):
            raise damaged("its files aren't those in its manifest")
        for info in infos:
            if info.compress_type not in _METHODS or info.flag_bits & _ENCRYPTED:
                raise damaged(f"Holdfast didn't pack {info.filename}")
            if info.filename != MANIFEST and info.file_size != files[info.filename].bytes:
                raise damaged(f"{info.filename} isn't as long as it says")
        for name, packed in files.items():
            digest, size = sha256(), 0
            for piece in self.pieces(name):
                digest.update(piece)
                size += len(piece)
            if size != packed.bytes or digest.hexdigest() != packed.sha256:
                raise damaged(f"{name} isn't what was packed")
        session = self.manifest.session
        self._check_header(SESSION, session, "")
        for name in self.names(CHILDREN):
            parent, _, file = name.rpartition("/")
            above = id_of(PurePosixPath(parent)) if parent != CHILDREN.rstrip("/") else session
            self._check_header(name, id_of(PurePosixPath(file)), above)
        for _ in self.states():
            pass

    def _check_header(self, name: str, id_: str, parent: str) -> None:
        """Raise SessionError where a record says that it is another session's, or a sub-agent's of
        another: what lies beside a session is found by that."""
        for line in self.lines(name):
            with suppress(ValueError, RecursionError):
                data = line.data or b""
                if b'"session"' not in data and b"\\u" not in data:
                    continue
                header = object_of(json.loads(data))
                if header.get("type") == "session":
                    above = header.get("parent_session")
                    if header.get("id") != id_ or (parent and above and above != parent):
                        raise damaged(f"{name} is the record of another session")
                    return

    def states(self) -> Iterator[StoredState]:
        """Yield its checkpoints. Raises SessionError where one isn't one."""
        for line in self.lines(CHECKPOINTS) if CHECKPOINTS in self.manifest.files else ():
            try:
                yield StoredState.from_json(json.loads(line.data or b""))
            except (ValueError, RecursionError):
                raise damaged(f"{CHECKPOINTS} holds something that isn't a checkpoint") from None

    def lines(self, name: str) -> Iterator[JsonLine]:
        pieces = self.pieces(name)
        return split(lambda _: next(pieces, b""))

    def pieces(self, name: str) -> Iterator[bytes]:
        return _pieces(self.opened, name, self.manifest.files[name].bytes)

    def names(self, begin: str) -> list[str]:
        return [name for name in self.manifest.files if name.startswith(begin)]

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.manifest.files.values())


@dataclass(slots=True)
class _Unpacking:
    pack: _Pack
    workspace: Path
    folders: Folders
    clock: Clock

    def run(self) -> Unpacked:
        manifest = self.pack.manifest
        target = self._target()
        below = children_of(target)
        places = {
            SESSION: target,
            **{name: below / name.removeprefix(CHILDREN) for name in self.pack.names(CHILDREN)},
        }
        states: Mapping[str, State] = {
            name: self._state(name, place) for name, place in places.items()
        }
        self._check_room(target)
        done = Unpacked(id=manifest.session, path=target, state=states[SESSION])
        if manifest.redacted:
            done.problems.append("Secrets were masked when it was packed.")
        if manifest.gone:
            done.problems.append(
                f"{plural(len(manifest.gone), 'full output')} had been deleted before."
            )
        done.outputs = sum(map(self._put_output, self.pack.names(OUTPUTS)))
        self._adopt(done)
        for name in reversed(places):  # the session's own file last
            self._place(name, places[name], states[name])
        done.children = len(places) - 1
        done.verified = not manifest.redacted and self._is_as_written(places)
        return done

    def _target(self) -> Path:
        """The session's file: that of the one which is here already, or a new one's."""
        manifest = self.pack.manifest
        for path in catalog.files(self.folders):
            if id_of(path) == manifest.session:
                return path
        return self.folders.sessions_of(self.workspace) / manifest.file

    def _state(self, name: str, place: Path) -> State:
        """Compare a record of the pack with the one that is here, byte for byte. Raises
        SessionError where both have gone on."""
        if not place.exists():
            return "new"
        here = place.stat().st_size
        packed = self.pack.manifest.files[name].bytes
        left = min(here, packed)
        with os_error_as(StorageError, f"Can't read {place}"), place.open("rb") as file:
            for piece in self.pack.pieces(name):
                part = piece[:left]
                if part != file.read(len(part)):
                    raise SessionError(
                        f"The session {self.pack.manifest.session} is here already, and both copies"
                        " have been continued, so they can't be joined.",
                        hint="Nothing was written. To keep both: `holdfast sessions fork"
                        f" {self.pack.manifest.session}`, delete it here, then unpack again.",
                    )
                left -= len(part)
        return "same" if here == packed else "grown" if here < packed else "older"

    def _check_room(self, target: Path) -> None:
        folder = target.parent
        while not folder.exists():
            folder = folder.parent
        with os_error_as(StorageError, f"Can't write to {folder}"):
            free = shutil.disk_usage(folder).free
        # contents are written twice: to the store's log, then to the store
        if self.pack.bytes * 2 + _FREE_MIN > free:
            raise StorageError(
                f"Not enough room: {self.pack.bytes:,} bytes to unpack, {free:,} free.",
                hint="Nothing was written. Free up disk space, then unpack again.",
            )

    def _put_output(self, name: str) -> bool:
        """Keep a full output where it is found for its recorded path; False where it was there."""
        packed = self.pack.manifest.files[name]
        path = Path(packed.path)
        if _sha256_of(path, Workspace(self.workspace).tool_results) == packed.sha256:
            return False
        place = unpacked_copy(path)
        with os_error_as(StorageError, f"Can't write {place}"):
            place.unlink(missing_ok=True)
            with copies.new_file(place) as copy:  # whole or not there, whatever kills this
                for piece in self.pack.pieces(name):
                    copy.write(piece)
        return True

    def _adopt(self, done: Unpacked) -> None:
        """Add the checkpoints to the store. If that fails, the session is still whole; only its
        files can't be restored."""
        if CHECKPOINTS not in self.pack.manifest.files:
            return
        store = store_of(self.folders, self.workspace)
        refused, count = dict[bytes, None](), 0

        def moved() -> Iterator[StoredState]:
            nonlocal count, refused
            for count, state in enumerate(self.pack.states(), 1):  # noqa: B007 - counted
                outside = state.refused(GUARDED)
                refused |= dict.fromkeys(outside)
                yield state.without(outside)

        try:
            now = store.adopt(moved(), self._contents(), GUARDED)
            done.checkpoints = count
            done.differs = self._differing(store, now)
        except CheckpointError as error:
            done.problems.append(f"Its checkpoints couldn't be unpacked: {error.message}")
            return
        finally:
            store.close()
        if refused:
            done.problems.append(
                f"Left out of its checkpoints: {plural(len(refused), 'path')} that file tools"
                f" may not write, such as {os.fsdecode(next(iter(refused)))[:80]!r}."
            )

    def _differing(self, store: CheckpointStore, now: str) -> list[str] | None:
        """The files that are not as the session left them; None where its last checkpoint wasn't in
        the pack."""
        try:
            changes = store.difference(self._last_checkpoint(), now)
        except CheckpointError:
            return None
        return [
            str(change.path.relative_to(self.workspace))
            for change in changes
            if not change.ignored and not change.is_folder
        ]

    def _contents(self) -> Iterator[bytes]:
        for name in self.pack.names(CONTENTS):
            if self.pack.manifest.files[name].bytes <= FILE_BYTES_MAX:
                yield b"".join(self.pack.pieces(name))

    def _last_checkpoint(self) -> str:
        """The last checkpoint that the session recorded, on any branch."""
        last = ""
        for line in self.pack.lines(SESSION):
            with suppress(ValueError, RecursionError):
                if line.data and b'"checkpoint"' in line.data:
                    record = object_of(json.loads(line.data))
                    if record.get("type") == CHECKPOINT:
                        last = string_of(record.get("checkpoint")) or last
        return last

    def _place(self, name: str, place: Path, state: State) -> None:
        """Write a record of the pack, or what it has more than the one that is here."""
        if state == "new":
            with copies.new_file(place) as stream:
                for piece in self.pack.pieces(name):
                    stream.write(piece)
        elif state == "grown":
            lock = SessionLock(place, clock=self.clock)
            lock.take()
            try:
                if self._state(name, place) == "grown":  # it may have gone on meanwhile
                    self._append(name, place)
            finally:
                lock.release()

    def _append(self, name: str, place: Path) -> None:
        with os_error_as(StorageError, f"Can't write {place}"), place.open("ab") as file:
            skip = file.tell()
            for piece in self.pack.pieces(name):
                file.write(piece[skip:])
                skip = max(0, skip - len(piece))
            file.flush()
            os.fsync(file.fileno())
            sync_folder(place.parent)

    def _is_as_written(self, places: Mapping[str, Path]) -> bool:
        """True if the links of all records hold, and all full outputs are as they were saved."""
        outputs = {one.path: one.sha256 for one in self.pack.manifest.files.values() if one.path}
        for place in places.values():
            with suppress(HoldfastError):
                lines = chain_check.verify(place)
                receipts = (object_of(one.data.get("receipt")) for one in read(place).records)
                wrong = any(
                    outputs.get(string_of(receipt.get("path")), receipt.get("sha256"))
                    != receipt.get("sha256")
                    for receipt in receipts
                )
                if lines.linked and not lines.changed and not wrong:
                    continue
            return False
        return True


def _sha256_of(path: Path, results: Path) -> str:
    """The hash of a full output as it is here, "" where it isn't."""
    try:
        return sha256_of(open_full_copy(path, results))
    except (OSError, ValueError):
        return ""
