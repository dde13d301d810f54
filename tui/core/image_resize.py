"""Images made small enough before they are sent for the first time. The only module that imports
Pillow.

What was sent must never change, so the size is decided here, once: at most 2,000 pixels a side,
which is enough however many images a request gets, and the smallest limit of bytes of any server.
It takes time and memory: call it in a thread.
"""

from __future__ import annotations

import binascii
import io
import struct
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tui.core.errors import ImageError
from tui.core.formatting import size
from tui.core.images import (
    MANY_PIXELS,
    MAX_FILE,
    MAX_PIXELS,
    Image,
    ImageInfo,
    check,
    display_name,
    image_info,
    of_bytes,
)

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MAX_SOURCE: Final = 50 * 1024 * 1024
"""Maximum bytes of a file that is shrunk."""

MAX_SOURCE_PIXELS: Final = 90_000_000
"""Maximum pixels that are decoded; small files can claim far more than fits into memory."""

_QUALITIES = (85, 70, 50, 30)
_SMALLER = 0.7
"""Factor by which a side is made shorter if the bytes are still too many."""

_ORIENTATION = 0x0112
_TURNED = frozenset({5, 6, 7, 8})
_TRANSPARENT = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})
_DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)
"""Exceptions that Pillow raises for a file that is not what it claims to be."""

_LOSSY = frozenset({"image/jpeg", "image/webp"})


def fitted(data: bytes, name: str, longest: int = MANY_PIXELS) -> Image | None:
    """Return the image in `data`, shrunk if it is too large to be sent, at most `longest` pixels a
    side; None if it is not of a type that the API takes.

    One that is small enough stays as it is, to the byte. Raises ImageError for one that has too
    many pixels, or that cannot be read to its end.
    """
    info = image_info(data)
    if info is None:
        return None
    if not (info.width and info.height) or _is_small(info, len(data), longest):
        return of_bytes(data, name)
    try:
        return _shrunk(data, info, name, longest)
    except ImportError:  # not there for this system: the API's own limits hold
        return of_bytes(data, name)


def _is_small(info: ImageInfo, count: int, longest: int) -> bool:
    return info.longest <= longest and count <= MAX_FILE


def _shrunk(data: bytes, info: ImageInfo, name: str, longest: int) -> Image:
    from PIL import Image as Pillow  # noqa: PLC0415 - only where an image is too large

    Pillow.MAX_IMAGE_PIXELS = MAX_SOURCE_PIXELS // 2  # it refuses twice as many, and warns before
    warnings.filterwarnings("ignore", category=Pillow.DecompressionBombWarning)
    if info.width * info.height > MAX_SOURCE_PIXELS:
        raise _too_many_pixels(name, info)
    try:
        with Pillow.open(io.BytesIO(data), formats=("JPEG", "PNG", "GIF", "WEBP")) as picture:
            words = "first frame, " if getattr(picture, "is_animated", False) else ""
            turned = picture.getexif().get(_ORIENTATION) in _TURNED
            width, height = picture.size[::-1] if turned else picture.size
            encoded = _encoded(_reduced(picture, longest), info.media_type, len(data))
    except Pillow.DecompressionBombError as error:
        raise _too_many_pixels(name, info) from error
    except _DAMAGE as error:
        raise ImageError(
            f"Didn't attach {display_name(name)}: {_excess(info, len(data))}. It can't be"
            " shrunk because it is damaged or incomplete.",
            hint="Save it again in an image program as PNG or JPEG, or attach a smaller copy.",
        ) from error
    image = of_bytes(encoded, name)
    assert image is not None, "what was encoded has a type and a size"
    same = (image.info.width, image.info.height) == (width, height)
    before = size(len(data)) if same else f"{width}×{height}"
    shrunk = f"{words}shrunk from {before}"
    return check(Image(image.name, image.info, image.data, shrunk, data))


def _excess(info: ImageInfo, count: int) -> str:
    if count > MAX_FILE:
        return f"{size(count)}, and the API accepts at most {size(MAX_FILE)} per image"
    pixels = f"{info.width}×{info.height}"
    if info.longest > MAX_PIXELS:
        return f"{pixels}, and the API accepts at most {MAX_PIXELS:,} pixels per side"
    return f"{pixels}, and an image can have at most {MANY_PIXELS:,} pixels per side"


def _too_many_pixels(name: str, info: ImageInfo) -> ImageError:
    most = f"{MAX_SOURCE_PIXELS // 1_000_000} million"
    return ImageError(
        f"Didn't attach {display_name(name)}: {info.width}×{info.height} is too many pixels to"
        f" shrink (at most {most}).",
        hint="Attach a smaller copy, or just the part that matters.",
    )


def _reduced(picture: Picture, most: int) -> Picture:
    """Return the first frame of a picture as it is displayed, with at most `most` pixels a side, in
    8 bits a channel: gray, RGB, or RGB with transparency."""
    from PIL import ImageOps  # noqa: PLC0415 - as above
    from PIL.Image import Resampling  # noqa: PLC0415

    picture.draft(None, (2 * most, 2 * most))  # a JPEG is decoded at a part of its size
    turned = ImageOps.exif_transpose(picture)
    plain = _plain(turned)
    plain.thumbnail((most, most), Resampling.LANCZOS)
    return plain


def _plain(picture: Picture) -> Picture:
    mode = picture.mode
    if mode in {"L", "RGB", "RGBA"} and "transparency" not in picture.info:
        return picture.copy()
    if mode in _TRANSPARENT or "transparency" in picture.info:
        return picture.convert("RGBA")
    if mode.startswith("I"):  # 16 bits a channel: the upper ones, which stand second
        from PIL.Image import frombytes  # noqa: PLC0415 - as above

        return frombytes("L", picture.size, picture.convert("I;16").tobytes()[1::2])
    return picture.convert("L" if mode in {"1", "F"} else "RGB")


def _encoded(picture: Picture, media_type: str, before: int) -> bytes:
    """Encode a picture in bytes that can be sent, if possible no more than there were before."""
    while True:
        small = [one for one in _encodings(picture, media_type, before) if len(one) <= MAX_FILE]
        if small:
            return min(small, key=len) if len(small[-1]) > before else small[-1]
        picture = _reduced(picture, round(max(picture.size) * _SMALLER))


def _encodings(picture: Picture, media_type: str, before: int) -> Iterator[bytes]:
    """Yield encodings of a picture, the best first, until one is small enough."""
    if media_type not in _LOSSY:
        yield (lossless := _written(picture, "PNG", optimize=True))
        if len(lossless) <= MAX_FILE:
            return
    for quality in _QUALITIES:
        if picture.mode == "RGBA":
            made = _written(picture, "WEBP", quality=quality, alpha_quality=quality)
        else:
            made = _written(picture, "JPEG", quality=quality, optimize=True)
        yield made
        if len(made) <= min(before, MAX_FILE):
            return


def _written(picture: Picture, kind: str, **options: object) -> bytes:
    target = io.BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


def fitted_base64(data: str, name: str, longest: int = MANY_PIXELS) -> Image | None:
    """Return an image in base64 as `fitted` does; None also if it cannot be read."""
    try:
        return fitted(binascii.a2b_base64(data, strict_mode=True), name, longest)
    except ValueError:
        return None
