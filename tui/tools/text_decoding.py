"""Bytes and text: byte order marks, kinds of binary files, printable names."""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass

from tui.core.errors import ToolError
from tui.core.images import media_type

HEAD_BYTES = 8192
"""Bytes of a file that are read to find out its kind."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_KINDS = (
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or an office document, a wheel, a JAR)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\0", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"\x7fELF", "ELF executable or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O executable or library"),
    (b"\xca\xfe\xba\xbe", "Mach-O universal binary or Java class"),
    (b"MZ", "Windows executable"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"RIFF", "RIFF audio or video"),
    (b"PAR1", "Parquet table"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"BM", "BMP image"),
    (b"\0\0\1\0", "ICO image"),
)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A decoded file. `encode` gives back the bytes it came from, unless `text` was changed.

    Bytes that are no UTF-8 are in `text` as lone surrogates; `valid` is False then.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    valid: bool = True

    def encode(self, text: str) -> bytes:
        """Encode another text as this file is. `text` may have all characters of `self.text`."""
        return self.bom + text.encode(self.encoding, _errors(self.encoding))


def decode(data: bytes, shown: str) -> DecodedText:
    """Decode a whole file. Raises ToolError for a binary file and for broken UTF-16."""
    kind = binary_kind(data[:HEAD_BYTES])
    if kind is None and b"\0" in data and not bom_of(data)[0]:
        kind = "binary data after some text"
    if kind is not None:
        raise ToolError(f"{shown} isn't a text file: {kind}.")
    bom, encoding = bom_of(data)
    try:
        text = data[len(bom) :].decode(encoding, _errors(encoding))
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown} starts as {encoding}, but isn't valid: {error.reason}."
        ) from error
    return DecodedText(text, encoding, bom, valid=not re.search(r"[\ud800-\udfff]", text))


def _errors(encoding: str) -> str:
    return "surrogateescape" if encoding == "utf-8" else "surrogatepass"


def bom_of(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark that `head` starts with and its encoding; otherwise UTF-8."""
    return next(((bom, name) for bom, name in _BOMS if head.startswith(bom)), (b"", "utf-8"))


def binary_kind(head: bytes) -> str | None:
    """Return the kind of binary file that starts with `head`; None for text, also in an unknown
    encoding."""
    if bom_of(head)[0]:
        return None
    nul = b"\0" in head
    if not nul and _is_utf8_start(head):
        return None
    if (image := media_type(head)) is not None:
        return f"{image.removeprefix('image/').upper()} image"
    if head[4:8] == b"ftyp":
        return "MP4 or other ISO media"
    if head[257:262] == b"ustar":
        return "tar archive"
    known = next((kind for magic, kind in _KINDS if head.startswith(magic)), None)
    return known or ("binary data of an unknown kind" if nul else None)


def _is_utf8_start(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
    return True


def printable(name: str) -> str:
    """Return a file name that can be shown and sent: odd bytes and control characters as
    escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace") if not name.isascii() else name
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda m: m[0].encode("unicode_escape").decode(), text)
