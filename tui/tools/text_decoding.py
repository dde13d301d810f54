"""Bytes and text: byte order marks, kinds of binary files, printable names."""

from __future__ import annotations

import codecs
import os
import re

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.images import media_type
from tui.core.late_pattern import late_pattern

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
    (b"RIFF", "RIFF audio or video"),  # WebP is asked for before
    (b"PAR1", "Parquet table"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"BM", "BMP image"),
    (b"\0\0\1\0", "ICO image"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000 image"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL image"),
    (b"\xff\x0a", "JPEG XL image"),
    (b"qoif", "QOI image"),
    (b"8BPS", "Photoshop image"),
    (b"icns", "ICNS icons"),
    (b"DDS ", "DDS texture"),
)

_BRANDS = (
    ({b"avif", b"avis"}, "AVIF image"),
    ({b"heic", b"heix", b"hevc", b"heim", b"heis"}, "HEIC image"),
)
"""Images in ISO media, by their first brand."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A decoded file. `encode` gives back the bytes it came from, unless `text` was changed.

    Bytes that are no UTF-8 are in `text` as lone surrogates; `valid` is False then. In a file whose
    lines end in CR alone (`cr`), `text` has LF in its place.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    valid: bool = True
    cr: bool = False

    def encode(self, text: str, shown: str) -> bytes:
        """Encode another text as this file is. Raises ToolError for characters that it has not and
        that can't be encoded as its others are."""
        if not text.isascii():
            new = set(text) - (set(self.text) if not self.valid else set[str]())
            if any("\ud800" <= char <= "\udfff" for char in new):
                raise ToolError(
                    f"The new text of {shown} has half a surrogate pair, which isn't valid text.",
                    hint="Send the character as a whole.",
                )
            if not self.valid and any(not char.isascii() for char in new):
                raise ToolError(
                    f"{shown} isn't UTF-8, so the encoding of the new characters is unknown.",
                    hint="Use ASCII characters only, or convert the file with a command (iconv) "
                    "first.",
                )
        if self.cr:
            text = text.replace("\r\n", "\n").replace("\n", "\r")
        return self.bom + text.encode(self.encoding, _errors(self.encoding))

    def form(self) -> list[str]:
        """Return in words what a change keeps that a usual file does not have."""
        crlf = self.text.count("\r\n")
        endings = "CR" if self.cr else "CRLF" if crlf == self.text.count("\n") else "mixed"
        return [
            *([f"{self.encoding.upper()} encoding"] if self.encoding != "utf-8" else []),
            *(["unknown encoding"] if not self.valid else []),
            *(["BOM"] if self.bom else []),
            *([f"{endings} line endings"] if crlf or self.cr else []),
        ]


def decode(data: bytes, shown: str) -> DecodedText:
    """Decode a whole file. Raises ToolError for a binary file and for broken UTF-16."""
    head = data[:HEAD_BYTES]
    kind = binary_kind(head)
    bom, encoding = encoding_of(head)
    if kind is None and encoding == "utf-8" and b"\0" in data:
        kind = "binary data after some text"
    if kind is not None:
        raise ToolError(f"{shown} isn't a text file: {kind}.")
    try:
        text = data[len(bom) :].decode(encoding, _errors(encoding))
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown} starts as {encoding}, but isn't valid: {error.reason}."
        ) from error
    cr = only_cr(text)
    valid = not re.search(r"[\ud800-\udfff]", text)
    return DecodedText(text.replace("\r", "\n") if cr else text, encoding, bom, valid, cr)


def valid_text(text: str) -> str:
    """Return a text that can be shown: bytes that are no UTF-8 become U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def only_cr(text: str) -> bool:
    """True if the lines of a text end in CR, as on the first Macintosh."""
    return "\r" in text and "\n" not in text


def _errors(encoding: str) -> str:
    return "surrogateescape" if encoding == "utf-8" else "surrogatepass"


def bom_of(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark that `head` starts with and its encoding; otherwise UTF-8."""
    return next(((bom, name) for bom, name in _BOMS if head.startswith(bom)), (b"", "utf-8"))


def encoding_of(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark and the encoding of a file that starts with `head`: without a
    mark, UTF-8, or UTF-16 if every other byte is NUL and the rest reads as a text."""
    bom, encoding = bom_of(head)
    if not bom and b"\0" in head[:2]:
        wide = "utf-16-be" if head[0] == 0 else "utf-16-le"
        text = head[: len(head) // 2 * 2].decode(wide, "replace")
        if _WIDE_TEXT.fullmatch(text) and head.count(b"\0") * 4 > len(head):
            return b"", wide
    return bom, encoding


_WIDE_TEXT = late_pattern(r"[\t\n\f\r\x20-\x7e\xa0-\u024f\u0370-\u052f\u2010-\u2044\u20ac]{4,}")
"""Text of which UTF-16 is recognised without a mark: two bytes of other data are hardly ever so."""


def binary_kind(head: bytes) -> str | None:
    """Return the kind of binary file that starts with `head`; None for text, also in an unknown
    encoding."""
    if encoding_of(head) != (b"", "utf-8"):
        return None
    nul = b"\0" in head
    if not nul and _is_utf8_start(head):
        return None
    if (image := media_type(head)) is not None:
        return f"{image.removeprefix('image/').upper()} image"
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    if head[257:262] == b"ustar":
        return "tar archive"
    known = next((kind for magic, kind in _KINDS if head.startswith(magic)), None)
    return known or ("binary data of an unknown kind" if nul else None)


def _iso_media(head: bytes) -> str:
    """Return the kind of an ISO media file by its brands: AVIF and HEIC are images."""
    brands = head[8 : min(int.from_bytes(head[:4], "big"), 128)]
    first = brands[:4]
    for names, kind in _BRANDS:
        if first in names:
            return kind
    if first in {b"mif1", b"msf1"}:
        return "AVIF image" if b"avif" in brands else "HEIF image"
    return "MP4 or other ISO media"


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
