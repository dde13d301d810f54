"""The form of a pack: a zip file with a manifest, and with what a session consists of.

    manifest.json       what is in it: each file with its size and SHA-256
    session.jsonl       the record, byte for byte
    children/…          the records of its sub-agents, in the folders they are in
    outputs/N.txt       the full outputs that the records name
    checkpoints.jsonl   the states of the workspace's files: see `session/checkpoints/transfer.py`
    contents/SHA-256    their contents

A redacted pack has no checkpoints, and secrets of known shapes are masked in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final, cast

from tui.core.dataclass import asdict, dataclass
from tui.core.errors import SessionError
from tui.core.messages import list_of, object_of, string_of

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SESSION: Final = "session.jsonl"
CHILDREN: Final = "children/"
OUTPUTS: Final = "outputs/"
CHECKPOINTS: Final = "checkpoints.jsonl"
CONTENTS: Final = "contents/"
SUFFIX: Final = ".holdfast.zip"

_NAME: Final = re.compile(
    r"session\.jsonl|checkpoints\.jsonl|outputs/[0-9]{1,7}\.txt|contents/[0-9a-f]{64}"
    r"|children/(?:[0-9]{8}T[0-9]{6}Z-[0-9a-z]{1,40}/){0,20}[0-9]{8}T[0-9]{6}Z-[0-9a-z]{1,40}\.jsonl"
)
_FILE: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-([0-9a-z]{1,40})\.jsonl")
_OUTPUT: Final = re.compile(r"[A-Za-z0-9_-]{1,80}\.txt")


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a pack. `path` is where a full output was recorded to be, "" for others."""

    name: str
    bytes: int
    sha256: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a pack. `file` is the name of the session's file, `gone` are the full outputs
    that its records name and that weren't there any more."""

    session: str
    file: str
    cwd: str
    app: str
    created: str
    redacted: bool
    files: Mapping[str, PackedFile]
    gone: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        value = asdict(self) | {"files": [asdict(one) for one in self.files.values()]}
        value["format"] = FORMAT
        return json.dumps(value, ensure_ascii=True, indent=1).encode()

    @classmethod
    def of(cls, data: bytes) -> Manifest:
        """Read a manifest. Raises SessionError for one of a newer version, or that isn't one."""
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError):
            raise damaged("its manifest can't be read") from None
        fields = object_of(value)
        match fields.get("format"):  # first: the rest of a newer one may mean something else
            case int(number) if number > FORMAT:
                raise SessionError(
                    f"A newer version of Holdfast made this pack (format {number}).",
                    hint="Update this installation, then unpack it.",
                )
            case int(number) if number == FORMAT:
                pass
            case _:
                raise damaged("the format of its manifest is unknown")
        files = [_file(object_of(one)) for one in list_of(fields.get("files"))]
        name, id_ = string_of(fields.get("file")), string_of(fields.get("session"))
        known = _FILE.fullmatch(name)
        if known is None or known[1] != id_ or len({one.name for one in files}) != len(files):
            raise damaged("Holdfast doesn't make such a manifest")
        if SESSION not in {one.name for one in files}:
            raise damaged("the session isn't in it")
        return cls(
            session=id_,
            file=name,
            cwd=string_of(fields.get("cwd")),
            app=string_of(fields.get("app")),
            created=string_of(fields.get("created")),
            redacted=fields.get("redacted") is not False,
            files={one.name: one for one in files},
            gone=tuple(map(string_of, list_of(fields.get("gone")))),
        )


def _file(fields: Mapping[str, Any]) -> PackedFile:
    name, digest = string_of(fields.get("name")), string_of(fields.get("sha256"))
    size, path = cast("object", fields.get("bytes")), string_of(fields.get("path"))
    whole = isinstance(size, int) and size >= 0 and re.fullmatch(r"[0-9a-f]{64}", digest)
    output = name.startswith(OUTPUTS)
    if not whole or not _NAME.fullmatch(name) or output != bool(path):
        raise damaged(f"it lists a file that no pack has: {name[:80]!r}")
    if output and not is_output(path):
        raise damaged(f"it lists an output that Holdfast didn't write: {path[:80]!r}")
    if name.startswith(CONTENTS) and name != CONTENTS + digest:
        raise damaged(f"the content of {name} doesn't match its name")
    return PackedFile(name, cast("int", size), digest, path)


def is_output(path: str) -> bool:
    """True if a recorded path has the form of a full output's."""
    parts = PurePosixPath(path)
    return (
        parts.is_absolute()
        and ".." not in parts.parts
        and "\0" not in path
        and parts.parent.name == "tool-results"
        and _OUTPUT.fullmatch(parts.name) is not None
    )


def file_name(name: str, session: str, now: datetime) -> str:
    """Return the name of a session's file: as packed, or a new one where it was renamed. Raises
    SessionError for a session without an id of ours."""
    known = _FILE.fullmatch(name)
    if known is not None and known[1] == session:
        return name
    made = f"{now:%Y%m%dT%H%M%SZ}-{session}.jsonl"
    if not _FILE.fullmatch(made):
        raise SessionError(
            f"The session's id isn't one that Holdfast gives: {session[:40]!r}.",
            hint="`holdfast sessions fork FILE` makes one that can be packed.",
        )
    return made


def is_packable(name: str) -> bool:
    """True if a pack may have a file of this name."""
    return _NAME.fullmatch(name) is not None


def damaged(why: str) -> SessionError:
    """The error for a pack that can't be used."""
    return SessionError(
        f"This pack is damaged or was changed: {why}.",
        hint="Nothing was written. Copy the file again, or pack the session again where it is.",
    )
