"""Images that are too large to be sent: shrunk once, or refused with words."""

from __future__ import annotations

import base64
import io
import os
import random
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow
from PIL.Image import Image as Picture

from tests.context.pictures import gif, jpeg, png, webp
from tui.core import image_resize, images
from tui.core.errors import ImageError
from tui.core.image_files import load, load_stored, store
from tui.core.image_resize import MAX_SOURCE, MAX_SOURCE_PIXELS, fitted, fitted_base64
from tui.core.images import MAX_FILE, Image, ImageInfo


def written(picture: Picture, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


def noise(width: int, height: int, mode: str = "RGB") -> Picture:
    size = width * height * len(Pillow.new(mode, (1, 1)).getbands())
    return Pillow.frombytes(mode, (width, height), random.Random(1).randbytes(size))


def shrunk(data: bytes, name: str = "photo.jpg") -> tuple[Image, Picture]:
    image = fitted(data, name)
    assert image
    found = images.base64_image_info(image.data)
    assert found
    assert found == image.info
    assert found.longest <= 2000
    assert image.bytes <= MAX_FILE
    assert image.source == data
    block = image.block["source"]
    assert block["media_type"] == image.info.media_type
    picture = Pillow.open(io.BytesIO(base64.b64decode(image.data)))
    picture.load()
    assert picture.size == (image.info.width, image.info.height)
    return image, picture


def test_a_photo_is_shrunk_and_says_from_what() -> None:
    image, _ = shrunk(written(Pillow.new("RGB", (4032, 3024), "teal"), "JPEG"))
    assert image.info == ImageInfo("image/jpeg", 2000, 1500)
    assert image.change == "shrunk from 4032×3024 to 2000×1500"
    word = image.word(3)
    assert word.startswith("[image 3: photo.jpg 2000×1500 ")
    assert word.endswith(", shrunk from 4032×3024]")
    assert images.words_in(f"look at {word}!") == [word]
    assert (images.name_in(word), images.shrunk_in(word)) == ("photo.jpg", "shrunk from 4032×3024")
    again = images.images_of_record({"content": [image.block], "images": [word]})[word]
    assert (again.name, again.shrunk, again.change) == (image.name, image.shrunk, image.change)
    assert again.word(3) == word


def test_the_same_bytes_give_the_same_bytes() -> None:
    data = written(noise(2100, 300), "PNG")
    assert shrunk(data)[0].data == shrunk(data)[0].data


@pytest.mark.parametrize("make", [png, gif, jpeg])
def test_what_is_small_enough_stays_to_the_byte(make: Any) -> None:
    data = make(2000, 1999)
    image = fitted(data, "a")
    assert image
    assert (image.shrunk, image.change, image.source) == ("", "", b"")
    assert base64.b64decode(image.data) == data


def test_what_is_small_enough_loads_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert fitted(webp(100, 100, b"VP8X"), "a")


def test_without_the_library_the_limits_of_the_api_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    image = fitted(png(2400, 100), "a")
    assert image
    assert image.info.width == 2400
    with pytest.raises(ImageError, match="8,000 pixels"):
        fitted(png(9000, 100), "a")


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7"])
def test_what_is_no_image_is_none(data: bytes) -> None:
    assert fitted(data, "a.png") is None
    assert fitted_base64("not base64!", "a.png") is None


def test_of_an_animation_the_first_frame_is_sent() -> None:
    frames = [Pillow.new("RGB", (3000, 1000), colour) for colour in ("red", "lime", "blue")]
    data = written(frames[0], "GIF", save_all=True, append_images=frames[1:])
    image, picture = shrunk(data, "a.gif")
    assert image.change == "first frame, shrunk from 3000×1000 to 2000×667"
    assert picture.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    assert images.shrunk_in(image.word(1)) == "first frame, shrunk from 3000×1000"


def test_cmyk_becomes_rgb() -> None:
    data = written(Pillow.new("CMYK", (2400, 600), (0, 255, 255, 0)), "JPEG")
    _, picture = shrunk(data)
    assert picture.mode == "RGB"
    red, green, blue = picture.getpixel((9, 9))  # type: ignore[misc]
    assert red > 200
    assert max(green, blue) < 60  # type: ignore[type-var]


def test_sixteen_bits_a_channel_keep_their_brightness() -> None:
    wide = Pillow.new("I;16", (2400, 600), 0x8000)
    _, picture = shrunk(written(wide, "PNG"), "scan.png")
    assert picture.mode == "L"
    assert picture.getpixel((9, 9)) == 0x80


def test_sixteen_bits_of_colour_are_read(tmp_path: Path) -> None:
    head = (2400).to_bytes(4) + (4).to_bytes(4) + b"\x10\x02\0\0\0"
    row = b"\0" + (0x8000).to_bytes(2) * 3 * 2400

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)

    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(row * 4)), chunk(b"IEND", b"")
    _, picture = shrunk(b"\x89PNG\r\n\x1a\n" + b"".join(parts), "scan.png")
    assert picture.getpixel((9, 1)) == (0x80, 0x80, 0x80)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_photo_is_sent_upright(orientation: int) -> None:
    upright = Pillow.new("RGB", (600, 2400), "white")
    upright.paste("black", (0, 0, 600, 100))  # at the top
    back = {
        2: Pillow.Transpose.FLIP_LEFT_RIGHT,
        3: Pillow.Transpose.ROTATE_180,
        4: Pillow.Transpose.FLIP_TOP_BOTTOM,
        5: Pillow.Transpose.TRANSPOSE,
        6: Pillow.Transpose.ROTATE_90,
        7: Pillow.Transpose.TRANSVERSE,
        8: Pillow.Transpose.ROTATE_270,
    }
    stored = upright.transpose(back[orientation]) if orientation in back else upright
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    image, picture = shrunk(written(stored, "JPEG", exif=exif))
    assert image.change == "shrunk from 600×2400 to 500×2000"
    assert picture.convert("L").getpixel((250, 20)) < 50  # type: ignore[operator]
    assert picture.convert("L").getpixel((250, 1900)) > 200  # type: ignore[operator]
    assert not picture.getexif()


@pytest.mark.parametrize(
    ("mode", "kind"), [("RGBA", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("RGBA", "WEBP")]
)
def test_transparency_stays(mode: str, kind: str) -> None:
    clear = Pillow.new("RGBA", (2400, 600), (255, 0, 0, 0))
    data = written(clear.convert(mode), kind, **({"transparency": 0} if mode == "P" else {}))
    _, picture = shrunk(data, "a.png")
    assert picture.convert("RGBA").getpixel((9, 9))[3] == 0  # type: ignore[index]


def test_a_jpeg_does_not_grow() -> None:
    data = written(noise(2100, 2100), "JPEG", quality=60)
    image, _ = shrunk(data)
    assert image.bytes <= len(data)


def test_where_it_must_grow_the_smallest_is_taken() -> None:
    data = written(noise(2010, 2010), "JPEG", quality=1)
    image, picture = shrunk(data)
    assert len(data) < image.bytes < len(written(picture, "JPEG", quality=50))


def test_too_many_bytes_of_few_pixels_are_shrunk() -> None:
    data = written(noise(1900, 1900), "PNG")
    assert len(data) > MAX_FILE
    image, _ = shrunk(data, "noise.png")
    assert image.info == ImageInfo("image/jpeg", 1900, 1900)
    assert image.change.startswith("shrunk from 10.3 MB to ")
    assert images.shrunk_in(image.word(1)) == image.shrunk


def test_many_bytes_of_transparency_are_shrunk() -> None:
    data = written(noise(1000, 1000, "RGBA"), "PNG", compress_level=1)
    image, picture = shrunk(data, "noise.png")
    assert picture.mode == "RGBA"
    assert image.info.longest <= 2000


def test_what_does_not_fit_in_any_quality_has_fewer_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_resize, "MAX_FILE", 40_000)
    image = fitted(written(noise(600, 300), "PNG"), "noise.png")
    assert image
    assert image.bytes <= 40_000
    assert image.info.longest < 600


def test_a_very_long_image_keeps_a_pixel_of_width() -> None:
    image, _ = shrunk(written(Pillow.new("L", (1, 9000)), "PNG"), "line.png")
    assert (image.info.width, image.info.height) == (1, 2000)


@cache
def wide(kind: str) -> bytes:
    return written(noise(2400, 300), kind)


@pytest.mark.parametrize("part", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_file_that_is_cut_off_is_refused(kind: str, part: float) -> None:
    data = wide(kind)
    with pytest.raises(ImageError, match="damaged or incomplete") as caught:
        fitted(data[: round(len(data) * part)], f"a.{kind}")
    assert f"Didn't attach a.{kind}: 2400×300" in str(caught.value)
    assert "smaller copy" in caught.value.hint


@pytest.mark.parametrize("make", [png, gif, jpeg])
def test_a_file_of_a_head_alone_is_refused(make: Any) -> None:
    with pytest.raises(ImageError, match="damaged or incomplete"):
        fitted(make(2400, 100), "a")


@pytest.mark.parametrize(
    "make",
    [
        lambda: png(60_000, 60_000),
        lambda: png(9_500, 9_500),
        lambda: webp(16_000, 16_000, b"VP8X"),
        lambda: written(Pillow.new("1", (10_000, 9_001)), "PNG"),
    ],
    ids=["by its size", "by its pixels", "webp", "whole"],
)
def test_more_pixels_than_fit_into_memory_are_refused(make: Callable[[], bytes]) -> None:
    data = make()
    assert len(data) < 100_000
    with pytest.raises(ImageError, match="too many pixels to shrink"):
        fitted(data, "bomb.png")


def test_a_frame_that_is_larger_than_the_file_says_is_refused() -> None:
    """A GIF says its size twice; the second may be far larger."""
    whole = bytearray(written(Pillow.new("P", (2400, 10)), "GIF"))
    frame = whole.index(b"\x2c")
    whole[frame + 5 : frame + 9] = (60_000).to_bytes(2, "little") * 2
    with pytest.raises(ImageError):
        fitted(bytes(whole), "bomb.gif")


def test_a_lot_of_pixels_is_no_warning_on_the_screen(recwarn: pytest.WarningsRecorder) -> None:
    width = MAX_SOURCE_PIXELS // 9_000 - 10
    shrunk(written(Pillow.new("1", (width, 9_000)), "PNG"), "plan.png")
    assert not recwarn.list


def test_a_file_that_is_too_large_to_shrink_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(10, 10))
    os.truncate(tmp_path / "a.png", MAX_SOURCE + 1)
    with pytest.raises(ImageError, match=r"Holdfast reads at most 50\.0 MB per image"):
        load(tmp_path / "a.png")


def test_what_is_stored_until_it_is_sent_is_the_original(tmp_path: Path) -> None:
    data = written(Pillow.new("RGB", (4000, 1000), "teal"), "PNG")
    image, _ = shrunk(data, "clipboard")
    name = store(tmp_path, image)
    assert (tmp_path / name).read_bytes() == data
    again = load_stored(tmp_path, name, images.name_in(image.word(1)))
    assert again == image
