"""Packing: a session, with all that belongs to it, into one file. Everything blocks.

The record goes in byte for byte: one changed byte would break its links, and the signatures of the
model's thinking. So a pack with secrets is made only if that is said; a redacted one is to be read.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

import tui
from tui.app.packs.form import (
    CHECKPOINTS,
    CHILDREN,
    CONTENTS,
    MANIFEST,
    OUTPUTS,
    SESSION,
    SUFFIX,
    Manifest,
    PackedFile,
    file_name,
    is_output,
    is_packable,
)
from tui.core.clock import Clock, timestamp
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import SessionError, StorageError, os_error_as
from tui.core.messages import object_of, string_of
from tui.core.output_store import open_full_copy
from tui.core.paths import Folders
from tui.core.redaction import is_secret_name, mask, mask_values
from tui.core.workspace import Workspace
from tui.session import copies
from tui.session.catalog import id_of
from tui.session.chain import CHAIN
from tui.session.checkpoints.entries import CheckpointError
from tui.session.checkpoints.store import CheckpointStore
from tui.session.checkpoints.transfer import StoredState
from tui.session.lock import holder
from tui.session.reader import LoadedSession, read
from tui.session.records import CHECKPOINT, encode
from tui.session.session import children_of

Secrets: TypeAlias = Literal["refuse", "keep", "redact"]

_NAMED_OUTPUT: Final = re.compile(
    rb'"(?:[^"\\]|\\.){1,4096}?tool-results/[A-Za-z0-9_-]{1,80}\.txt"'
)
_TEXT_MAX: Final = 64_000_000
"""Bytes at the start of an output or content that are searched for secrets."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Secret:
    """A place with what looks like a secret: a line of a record, an output, a file of a
    checkpoint."""

    place: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"place": self.place, "why": self.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The outcome of packing. `path` is None where it was refused for its `secrets`."""

    path: Path | None
    manifest: Manifest
    secrets: Sequence[Secret]
    checkpoints: int

    @property
    def outputs(self) -> int:
        return sum(name.startswith(OUTPUTS) for name in self.manifest.files)

    @property
    def children(self) -> int:
        return sum(name.startswith(CHILDREN) for name in self.manifest.files)


def default_name(path: Path) -> str:
    """The name of a session's pack, by the session's file."""
    return f"session-{id_of(path)}{SUFFIX}"


def pack(
    path: Path, out: Path, *, folders: Folders, clock: Clock, secrets: Secrets = "refuse"
) -> Packed:
    """Write a session into the new file `out`. Raises SessionError, StorageError; overwrites
    nothing."""
    loaded = read(path)
    source = _Source.of(path, loaded, folders)
    try:
        found = list(source.secrets())
        refused = bool(found) and secrets == "refuse"
        redact = secrets == "redact"
        manifest = Manifest(
            session=loaded.header.id,
            file=file_name(path.name, loaded.header.id, clock.now()),
            cwd=loaded.header.cwd,
            app=f"holdfast {tui.__version__}",
            created=timestamp(clock.now()),
            redacted=redact,
            files={},
            gone=tuple(source.gone),
        )
        if not refused:  # the manifest comes last: hashes are known once the parts are written
            files: dict[str, PackedFile] = {}
            with (
                copies.new_file(out) as stream,
                zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made,
            ):
                for part in source.parts(redact=redact):
                    files[part.name] = _add(made, part)
                manifest = replace(manifest, files=files)
                made.writestr(MANIFEST, manifest.to_bytes())
        return Packed(
            path=None if refused else out,
            manifest=manifest,
            secrets=found,
            checkpoints=0 if redact else sum(len(states) for _, states in source.stored),
        )
    finally:
        source.close()


@dataclass(frozen=True, slots=True)
class _Part:
    """A file that goes into a pack: its bytes in pieces."""

    name: str
    pieces: Iterable[bytes]
    path: str = ""


def _add(made: zipfile.ZipFile, part: _Part) -> PackedFile:
    digest, size = sha256(), 0
    with made.open(part.name, "w", force_zip64=True) as stream:
        for piece in part.pieces:
            digest.update(piece)
            size += len(piece)
            stream.write(piece)
    return PackedFile(part.name, size, digest.hexdigest(), part.path)


@dataclass(slots=True)
class _Source:
    """The parts of a session. `records` are its files by their names in the pack, each with how
    many of its bytes count; `outputs` the paths of full outputs, as recorded."""

    records: Mapping[str, tuple[Path, int]]
    outputs: Sequence[str]
    results: Path
    gone: list[str]
    stored: list[tuple[CheckpointStore, list[StoredState]]] = field(
        default_factory=list[tuple[CheckpointStore, list[StoredState]]]
    )

    @classmethod
    def of(cls, path: Path, loaded: LoadedSession, folders: Folders) -> _Source:
        records = {SESSION: (path, _whole(path))}
        below = children_of(path)
        for child in sorted(below.rglob("*.jsonl")):
            name = CHILDREN + child.relative_to(below).as_posix()
            if is_packable(name) and child.is_file() and not child.is_symlink():
                records[name] = (child, _whole(child))
        results = Workspace(Path(loaded.header.cwd)).tool_results
        outputs, gone = list[str](), list[str]()
        for named in dict.fromkeys(name for one in records.values() for name in _outputs(*one)):
            try:
                with open(open_full_copy(Path(named), results), "rb"):  # noqa: PTH123 - a descriptor
                    outputs.append(named)
            except (OSError, ValueError):
                gone.append(named)
        source = cls(records, outputs, results, gone)
        wanted = {id_ for one, _ in records.values() for id_ in _checkpoints(one)}
        for file in sorted(folders.checkpoints.glob("*.sqlite3")) if wanted else ():
            store = CheckpointStore(file, Path(loaded.header.cwd))
            with suppress(CheckpointError):
                if states := store.states(wanted):
                    source.stored.append((store, states))
                    wanted -= {state.id for state in states}
                    continue
            store.close()
        return source

    def close(self) -> None:
        for store, _ in self.stored:
            store.close()

    def parts(self, *, redact: bool) -> Iterator[_Part]:
        """Yield the files of the pack."""
        for name, (path, size) in self.records.items():
            lines = _lines(path, size)
            yield _Part(name, (_masked_line(line)[0] for line in lines) if redact else lines)
        for number, named in enumerate(self.outputs, 1):
            pieces = self._output(named)
            yield _Part(f"{OUTPUTS}{number}.txt", _masked(pieces) if redact else pieces, named)
        if redact or not self.stored:
            return
        yield _Part(CHECKPOINTS, self._states())
        for digest, (store, _) in self._contents().items():
            with suppress(CheckpointError):  # not stored any more: it is lost here, too
                yield _Part(CONTENTS + digest.hex(), [store.content(digest)])

    def secrets(self) -> Iterator[Secret]:
        """Yield the places that look as if they held a secret."""
        for name, (path, size) in self.records.items():
            for number, line in enumerate(_lines(path, size), 1):
                if count := _masked_line(line)[1]:
                    yield Secret(f"{name}, line {number}", _keys(count))
        for named in self.outputs:
            if count := mask(_text(self._output(named)))[1]:
                yield Secret(named, _keys(count))
        for path in sorted(
            {path for _, states in self.stored for one in states for path in one.entries}
        ):
            if count := mask(name := path.decode("utf-8", "replace"))[1]:
                yield Secret(f"checkpoints, {mask(name)[0]}", f"{_keys(count)} in its name")
        for digest, (store, paths) in self._contents().items():
            if named := next(filter(is_secret_name, paths), ""):
                yield Secret(f"checkpoints, {named}", "its name")
                continue
            with suppress(CheckpointError):
                if count := mask(_text([store.content(digest)]))[1]:
                    yield Secret(f"checkpoints, {paths[0]}", _keys(count))

    def _output(self, named: str) -> Iterator[bytes]:
        with open(open_full_copy(Path(named), self.results), "rb") as file:  # noqa: PTH123 - a descriptor
            yield from iter(lambda: file.read(_CHUNK), b"")

    def _states(self) -> Iterator[bytes]:
        for _, states in self.stored:
            for state in states:
                yield json.dumps(state.to_json(), ensure_ascii=True).encode() + b"\n"

    def _contents(self) -> dict[bytes, tuple[CheckpointStore, list[str]]]:
        """The contents that the checkpoints have, each with its store and the paths that had it."""
        contents: dict[bytes, tuple[CheckpointStore, list[str]]] = {}
        for store, states in self.stored:
            for state in states:
                for path, entry in state.entries.items():
                    if entry is not None and entry.digest is not None:
                        paths = contents.setdefault(entry.digest, (store, []))[1]
                        if (name := path.decode("utf-8", "replace")) not in paths[:1]:
                            paths.append(name)
        return contents


def _whole(path: Path) -> int:
    """The bytes of a session file that count: while a program writes it, up to its last whole
    line."""
    with os_error_as(StorageError, f"Can't read {path}"):
        size = path.stat().st_size
        if holder(path) is None:
            return size
        with path.open("rb") as file:
            at = size
            while at > 0:
                begin = max(0, at - _CHUNK)
                file.seek(begin)
                if (end := file.read(at - begin).rfind(b"\n")) >= 0:
                    return begin + end + 1
                at = begin
    return 0


def _lines(path: Path, size: int) -> Iterator[bytes]:
    """Yield the lines of the first bytes of a file, with their newlines."""
    with os_error_as(StorageError, f"Can't read {path}"), path.open("rb") as file:
        while size > 0 and (line := file.readline(size)):
            size -= len(line)
            yield line


def _outputs(path: Path, size: int) -> Iterator[str]:
    """Yield the full outputs that the records of a file name."""
    for line in _lines(path, size):
        for named in _NAMED_OUTPUT.finditer(line):
            with suppress(ValueError):
                text = string_of(json.loads(named[0]))
                if is_output(text):
                    yield text


def _checkpoints(path: Path) -> Iterator[str]:
    with suppress(SessionError):
        for record in read(path).records:
            if record.type in {CHECKPOINT, "rewind"} and record.data.get("checkpoint"):
                yield string_of(record.data.get("checkpoint"))


def _keys(count: int) -> str:
    return "a key" if count == 1 else f"{count} keys"


def _text(pieces: Iterable[bytes]) -> str:
    made = io.BytesIO()
    for piece in pieces:
        made.write(piece)
        if made.tell() > _TEXT_MAX:
            break
    data = made.getvalue()
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8", "replace")


def _masked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Mask an output, whole: a key may stand in two pieces."""
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    yield mask(text)[0].encode("utf-8", "surrogateescape")


def _masked_line(line: bytes) -> tuple[bytes, int]:
    """A line of a record with its secrets masked, and without its link, which is another's then;
    and how many were in it. Keys are looked for in its texts as they are, without the escapes of
    JSON. A draft is left out: one key may stand in two."""
    try:
        value: object = json.loads(line)
        if isinstance(value, dict):
            fields = object_of(cast("object", value))
            fields.pop(CHAIN, None)
            masked, count = mask_values(fields)
            return b"" if fields.get("type") == "draft" else encode(masked), count
    except (ValueError, RecursionError):
        pass
    text, count = mask(line.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape"), count
