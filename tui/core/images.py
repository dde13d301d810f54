"""Images that a person attaches: their type and size, the API's limits, their word in a text.

Pure. Type and size are read from the first bytes, never from a file's name. In the text of a
prompt, an image is represented by a word such as `[image 1: shot.png 1280×800 84 KB]`.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from tui.core.dataclass import dataclass, field
from tui.core.errors import ImageError
from tui.core.formatting import plural, size
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, blocks_of, image_block

MAX_BYTES: Final = 5 * 1024 * 1024
"""Longest base64 text of one image that the API takes."""

MAX_FILE: Final = MAX_BYTES // 4 * 3
"""Maximum bytes of an image file: base64 makes it a third longer."""

MAX_PIXELS: Final = 8000

MANY_PIXELS: Final = 2000
"""Maximum pixels a side if a request has many images. Each is made to fit before it is sent."""

MEDIA_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

PROMPT_IMAGES: Final = 20
"""Images in one prompt: with more, the API refuses any above 2,000 pixels."""

PROMPT_BYTES: Final = 20 * 1024 * 1024
"""Base64 text of all images in one prompt: a request of 32 MB is refused as a whole."""

WORD: Final = late_pattern(r"\[image (\d{1,6}): [^\[\]\n]{1,200}\]")
"""The word that represents an image in a text."""

_SHRUNK = late_pattern(r", ((?:first frame, )?shrunk from [^,\]]{1,40})\]?\Z")
_NAME_CHARS = 60
_HEAD = 64 * 1024  # base64 characters; a JPEG whose size stands later is decoded whole


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """The type and the size in pixels of an image, according to its first bytes."""

    media_type: str
    width: int
    height: int

    @property
    def longest(self) -> int:
        return max(self.width, self.height)


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is sent. `data` is base64, `name` the person's name for it.

    If it was shrunk, `shrunk` tells its former size, and `source` is the original if it is at hand.
    """

    name: str
    info: ImageInfo
    data: str
    shrunk: str = ""
    source: bytes = field(default=b"", repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """The size of the image itself."""
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    @property
    def block(self) -> Block:
        """The content block, in the API's own shape."""
        return image_block(self.info.media_type, self.data)

    def word(self, number: int) -> str:
        """Return its word in a text: `[image 1: shot.png 1280×800 84 KB]`; if it was shrunk,
        `[image 2: photo.jpg 2000×1500 612 KB, shrunk from 4032×3024]`."""
        end = f", {self.shrunk}" if self.shrunk else ""
        return f"[image {number}: {display_name(self.name)} {facts(self)}{end}]"

    @property
    def change(self) -> str:
        """The change that was made to it, as part of a sentence; "" for none."""
        if not self.shrunk:
            return ""
        pixels = f"{self.info.width}×{self.info.height}"
        return f"{self.shrunk} to {pixels if '×' in self.shrunk else size(self.bytes)}"


def facts(image: Image) -> str:
    """Format the pixels and the size, without a fraction from 10 on: `1280×800 84 KB`, `8.4 KB`."""
    count, _, unit = size(image.bytes).partition(" ")
    rounded = count if len(count) < 4 else f"{float(count):.0f}"
    return f"{image.info.width}×{image.info.height} {rounded} {unit}"


def display_name(name: str) -> str:
    """Return a name that fits into a word: no brackets, no control characters, not too long."""
    plain = "".join(c if c.isprintable() and c not in "[]" else "_" for c in name)
    plain = " ".join(plain.split()) or "unnamed"
    return plain if len(plain) <= _NAME_CHARS else f"…{plain[1 - _NAME_CHARS :]}"


def of_bytes(data: bytes, name: str) -> Image | None:
    """Return the image in `data`; None if it is not of a type that the API takes.

    Raises ImageError for an image that is too large or cannot be read.
    """
    picture = image_info(data)
    if picture is None:
        return None
    return check(Image(name, picture, binascii.b2a_base64(data, newline=False).decode("ascii")))


def check(image: Image) -> Image:
    """Return the image, if it is within the API's limits for one. Raises ImageError."""
    picture, name = image.info, display_name(image.name)
    if not (picture.width and picture.height):
        raise ImageError(
            f"Didn't attach {name}: it can't be read as an image.",
            hint="Open it in an image program and save it as PNG or JPEG.",
        )
    if len(image.data) > MAX_BYTES:
        raise too_large(image.name, image.bytes)
    if picture.longest > MAX_PIXELS:
        raise ImageError(
            f"Didn't attach {name}: {picture.width}×{picture.height}, and the API accepts at most"
            f" {MAX_PIXELS:,} pixels per side.",
            hint="Attach a smaller copy, or just the part that matters.",
        )
    return image


def too_large(name: str, count: int, most: int = MAX_FILE) -> ImageError:
    """Return the error for an image above a limit of bytes."""
    who = "the API accepts" if most == MAX_FILE else "Holdfast reads"
    return ImageError(
        f"Didn't attach {display_name(name)}: {size(count)}, and {who} at most"
        f" {size(most)} per image.",
        hint="Attach a smaller copy, or save it as JPEG.",
    )


def check_together(images: Sequence[Image]) -> None:
    """Raises ImageError if there are more images than one prompt may bring."""
    if len(images) > PROMPT_IMAGES:
        raise ImageError(
            (
                f"{plural(len(images), 'image')} are too many for one prompt (at most "
                f"{PROMPT_IMAGES})."
            ),
            hint="Send some of them with your next prompt.",
        )
    total = sum(len(image.data) for image in images)
    if total > PROMPT_BYTES:
        raise ImageError(
            f"{plural(len(images), 'image')} with {size(total * 3 // 4)} are too much for one "
            f"prompt"
            f" (at most {size(PROMPT_BYTES * 3 // 4)}).",
            hint="Send some of them with your next prompt, or attach smaller copies.",
        )


def words_in(text: str) -> list[str]:
    """Return the images' words in a text, in order, each once."""
    if "[image " not in text:
        return []
    return list(dict.fromkeys(match[0] for match in WORD.finditer(text)))


def number_of(word: str) -> int:
    """Return the number in a word; 0 if it has none."""
    match = WORD.fullmatch(word)
    return int(match[1]) if match else 0


def name_in(word: str) -> str:
    """Return the name in an image's word."""
    return _SHRUNK.sub("", word).partition(": ")[2].rsplit(" ", 3)[0]


def shrunk_in(word: str) -> str:
    """Return how an image was shrunk, according to its word; "" if it was not."""
    match = _SHRUNK.search(word)
    return match[1] if match else ""


def with_words(text: str, words: Iterable[str]) -> str:
    """Return a prompt with the missing ones of `words` added, on a line of their own."""
    missing = [word for word in words if word not in text]
    return (
        "\n".join(part for part in (text.rstrip(), " ".join(missing)) if part) if missing else text
    )


def without_words(text: str) -> str:
    """Return a text without the images' words."""
    return WORD.sub("", text).strip() if "[image " in text else text


def names_in(data: Mapping[str, Any]) -> list[str]:
    """Return the words of the images in a prompt's record, in the order of their blocks."""
    given: object = data.get("images")
    items = cast("list[object]", given) if isinstance(given, list) else []
    return [item for item in items if isinstance(item, str)]


def images_of_record(data: Mapping[str, Any]) -> dict[str, Image]:
    """Return the images of a prompt's record by their words; damaged ones are left out."""
    blocks = [block for block in blocks_of(data.get("content")) if block.get("type") == "image"]
    images: dict[str, Image] = {}
    for word, block in zip(names_in(data), blocks, strict=False):
        if image := of_block(block, word):
            images[word] = image
    return images


def of_block(block: Block, word: str) -> Image | None:
    """Return the image of a content block; `word` is its word in the text."""
    source: object = block.get("source")
    data = cast("dict[str, Any]", source).get("data") if isinstance(source, dict) else None
    picture = base64_image_info(data) if isinstance(data, str) else None
    if picture is None:
        return None
    return Image(name_in(word) or "image", picture, cast("str", data), shrunk_in(word))


def prompt_of(data: Mapping[str, Any]) -> str:
    """Return a prompt as it is shown and restored: its text, and a word for each image."""
    text = data.get("text")
    return with_words(text if isinstance(text, str) else "", names_in(data))


def base64_image_info(data: str) -> ImageInfo | None:
    """Return type and size of an image in base64; None if they cannot be read."""
    if len(data) % 4 or not data.isascii():
        return None
    for length in (_HEAD, len(data)):
        try:
            head = binascii.a2b_base64(data[:length], strict_mode=True)
        except ValueError:
            return None
        if info := image_info(head):
            return info if info.width and info.height else None
        if media_type(head) != "image/jpeg":
            return None
    return None


def image_info(head: bytes) -> ImageInfo | None:
    """Return type and size from the first bytes of a PNG, GIF, WebP or JPEG; None for anything
    else."""
    match media_type(head):
        case "image/png" if len(head) >= 24:
            return ImageInfo("image/png", _big(head[16:20]), _big(head[20:24]))
        case "image/gif" if len(head) >= 10:
            return ImageInfo("image/gif", _little(head[6:8]), _little(head[8:10]))
        case "image/webp" if len(head) >= 30:
            return _webp(head)
        case "image/jpeg":
            return _jpeg(head)
        case _:
            return None


def media_type(head: bytes) -> str | None:
    """Return the media type of an image that the Messages API takes, by its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def _webp(head: bytes) -> ImageInfo | None:
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
    return ImageInfo("image/webp", width, height)


def _jpeg(head: bytes) -> ImageInfo | None:
    """Walk the segments to the frame header, which holds the size."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return ImageInfo("image/jpeg", _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7]))
        if marker == 0xFF:  # fill byte
            at += 1
        else:
            at += 2 + _big(head[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
