"""Rules about images. Only their headers are read: a few bytes, a few microseconds."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tui.context.rules import Violation
from tui.messages import Block

MAX_BYTES = 5 * 1024 * 1024
"""Of the base64 text (B31)."""

MAX_PIXELS = 8000
MANY_IMAGES = 20
MANY_PIXELS = 2000
MAX_MEDIA = 600
"""Images and documents together (B34)."""

MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

SOURCE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "base64": ("data", "media_type"),
    "url": ("url",),
    "file": ("file_id",),
}

_HEAD = 64 * 1024  # base64 characters; a JPEG whose size stands later is decoded whole


@dataclass(frozen=True, slots=True)
class Picture:
    """What an image's own bytes say. Sizes are in pixels."""

    media_type: str
    width: int
    height: int

    @property
    def longest(self) -> int:
        return max(self.width, self.height)


def image_violations(block: Block, where: str) -> Iterator[Violation]:
    """What is wrong with one image by itself."""
    given: object = block.get("source")
    source = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kind = source.get("type")
    fields = SOURCE_FIELDS.get(kind) if isinstance(kind, str) else None
    if not fields or not all(isinstance(source.get(f), str) and source[f] for f in fields):
        yield Violation("B32", where, f"{where}.image.source: Could not process image")
        return
    for name in sorted(source.keys() - {"type", *fields}):
        text = f"{where}.image.source.{kind}.{name}: Extra inputs are not permitted"
        yield Violation("B27", where, text)
    if kind == "base64":
        yield from _base64_violations(source, where)


def crowd_violations(found: Sequence[tuple[str, Block]]) -> Iterator[Violation]:
    """What is wrong with all images and documents of a request together, in order."""
    if len(found) > MAX_MEDIA:
        text = f"too many images and documents: {len(found)} + 0 > {MAX_MEDIA}"
        yield Violation("B34", "messages", text)
    images = [(where, block) for where, block in found if block.get("type") == "image"]
    if len(images) <= MANY_IMAGES:
        return
    for where, block in images:
        picture = picture_of(block)
        if picture is not None and picture.longest > MANY_PIXELS:
            words = "At least one of the image dimensions exceed max allowed size for many-image"
            text = f"{where}.image.source.base64.data: {words} requests: {MANY_PIXELS} pixels"
            yield Violation("B30", where, text)


def media_in(content: Iterable[object], where: str) -> Iterator[tuple[str, Block]]:
    """The images and documents of one message's content, those in tool results included."""
    for index, item in enumerate(content):
        if not isinstance(item, dict):
            continue
        block = cast("Block", item)
        kind = block.get("type")
        if kind in ("image", "document"):
            yield f"{where}.content.{index}", block
        elif kind == "tool_result" and isinstance(block.get("content"), list):
            for inner, part in enumerate(cast("list[object]", block["content"])):
                if isinstance(part, dict) and part.get("type") in ("image", "document"):  # pyright: ignore[reportUnknownMemberType]
                    yield f"{where}.content.{index}.tool_result.content.{inner}", part


def picture_of(block: Block) -> Picture | None:
    """What the bytes of a base64 image say; None where they cannot be read or are elsewhere."""
    source: Any = block.get("source")
    data = cast("dict[str, Any]", source).get("data") if isinstance(source, dict) else None
    if not isinstance(data, str) or len(data) % 4 or not data.isascii():
        return None
    for length in (_HEAD, len(data)):
        try:
            head = binascii.a2b_base64(data[:length], strict_mode=True)
        except ValueError:
            return None
        if found := _picture(head):
            return found if found.width and found.height else None
        if not head.startswith(b"\xff\xd8"):
            return None
    return None


def _base64_violations(source: dict[str, Any], where: str) -> Iterator[Violation]:
    path = f"{where}.image.source.base64"
    data, given = cast("str", source["data"]), source.get("media_type")
    if len(data) > MAX_BYTES:
        text = f"{path}: image exceeds 5 MB maximum: {len(data)} bytes > {MAX_BYTES} bytes"
        yield Violation("B31", where, text)
        return
    picture = picture_of({"source": source})
    if picture is None:
        yield Violation("B32", where, f"{where}.image.source: Could not process image")
        return
    if given not in MEDIA_TYPES or given != picture.media_type:
        text = (
            f"{path}.media_type: The image was specified using the {given} media type, "
            f"but the image appears to be a {picture.media_type} image"
        )
        yield Violation("B33", where, text)
    if picture.longest > MAX_PIXELS:
        words = "At least one of the image dimensions exceed max allowed size"
        yield Violation("B30", where, f"{path}.data: {words}: {MAX_PIXELS} pixels")


def _picture(head: bytes) -> Picture | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return Picture("image/png", _big(head[16:20]), _big(head[20:24]))
    if head[:6] in {b"GIF87a", b"GIF89a"} and len(head) >= 10:
        return Picture("image/gif", _little(head[6:8]), _little(head[8:10]))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    return None


def _webp(head: bytes) -> Picture | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
        case b"VP8L":
            bits = _little(head[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = _little(head[24:27]) + 1, _little(head[27:30]) + 1
        case _:
            return None
    return Picture("image/webp", width, height)


def _jpeg(head: bytes) -> Picture | None:
    """Walk the segments to the frame header, which holds the size."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return Picture("image/jpeg", _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7]))
        if marker == 0xFF:  # fill byte
            at += 1
        else:
            at += 2 + _big(head[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
