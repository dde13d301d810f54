"""Rules about images. Only their headers are read: a few bytes, a few microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from tui.context.rules import Violation
from tui.core.images import (
    MANY_PIXELS,
    MAX_BYTES,
    MAX_PIXELS,
    MEDIA_TYPES,
    ImageInfo,
    base64_image_info,
)
from tui.core.messages import Block, is_object, list_of, object_of

MANY_IMAGES = 20
MAX_MEDIA = 600
"""The most images and documents in one request."""
SMALL_WINDOW = 200_000
SMALL_MEDIA = 100
"""The most of them for a model whose window is no larger than the small one."""

SOURCE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "base64": ("data", "media_type"),
    "url": ("url",),
    "file": ("file_id",),
}


def most_media(window: int) -> int:
    """The most images and documents that a model with such a window accepts in one request."""
    return SMALL_MEDIA if window <= SMALL_WINDOW else MAX_MEDIA


def image_violations(block: Block, where: str) -> Iterator[Violation]:
    """Yield everything that is wrong with one image by itself."""
    source = object_of(block.get("source"))
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
    """Yield everything that is wrong with all images and documents of a request together, in
    order."""
    if len(found) > MAX_MEDIA:
        text = f"too many images and documents: {len(found)} + 0 > {MAX_MEDIA}"
        yield Violation("B34", "messages", text)
    images = [(where, block) for where, block in found if block.get("type") == "image"]
    if len(images) <= MANY_IMAGES:
        return
    for where, block in images:
        picture = image_info_of(block)
        if picture is not None and picture.longest > MANY_PIXELS:
            words = "At least one of the image dimensions exceed max allowed size for many-image"
            text = f"{where}.image.source.base64.data: {words} requests: {MANY_PIXELS} pixels"
            yield Violation("B30", where, text)


def media_in(content: Iterable[object], where: str) -> Iterator[tuple[str, Block]]:
    """Yield the images and documents of one message's content, including those in tool results."""
    for index, item in enumerate(content):
        block = object_of(item)
        if block.get("type") in ("image", "document"):
            yield f"{where}.content.{index}", block
        elif block.get("type") == "tool_result":
            for inner, part in enumerate(list_of(block.get("content"))):
                if is_object(part) and part.get("type") in ("image", "document"):
                    yield f"{where}.content.{index}.tool_result.content.{inner}", part


def image_info_of(block: Block) -> ImageInfo | None:
    """Read the header of a base64 image; None if it cannot be read or its bytes are elsewhere."""
    data = object_of(block.get("source")).get("data")
    return base64_image_info(data) if isinstance(data, str) else None


def _base64_violations(source: dict[str, Any], where: str) -> Iterator[Violation]:
    path = f"{where}.image.source.base64"
    data, given = cast("str", source["data"]), source.get("media_type")
    if len(data) > MAX_BYTES:
        text = f"{path}: image exceeds 5 MB maximum: {len(data)} bytes > {MAX_BYTES} bytes"
        yield Violation("B31", where, text)
        return
    picture = image_info_of({"source": source})
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
