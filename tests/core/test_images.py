"""What an image's bytes say, the limits of the API, and the word that stands for one."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.pictures import gif, jpeg, png, webp
from tui.core import images
from tui.core.errors import ImageError
from tui.core.image_files import STORED_DAYS, load, load_stored, store
from tui.core.images import Image, ImageInfo


def image(width: int = 1280, height: int = 800, name: str = "shot.png", more: int = 0) -> Image:
    found = images.of_bytes(png(width, height) + b"\0" * more, name)
    assert found
    return found


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(1280, 800), "image/png"),
        (gif(1280, 800), "image/gif"),
        (jpeg(1280, 800), "image/jpeg"),
        (jpeg(1280, 800, before=200_000), "image/jpeg"),
        (webp(1280, 800, b"VP8 "), "image/webp"),
        (webp(1280, 800, b"VP8L"), "image/webp"),
        (webp(1280, 800, b"VP8X"), "image/webp"),
    ],
)
def test_type_and_size_come_from_the_bytes(data: bytes, kind: str) -> None:
    found = images.of_bytes(data, "picture.txt")
    assert found
    assert found.info == ImageInfo(kind, 1280, 800)
    source = found.block["source"]
    assert source["media_type"] == kind
    assert base64.b64decode(source["data"]) == data
    assert found.bytes == len(data)


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7", b"RIFF\0\0\0\0WAVEfmt " + b"\0" * 30])
def test_what_is_no_image_is_none(data: bytes) -> None:
    assert images.of_bytes(data, "shot.png") is None


def test_the_word_says_name_pixels_and_size() -> None:
    word = image(more=84 * 1024).word(3)
    assert word == "[image 3: shot.png 1280×800 84 KB]"
    assert images.words_in(f"see {word} and {word}.") == [word]
    assert images.number_of(word) == 3
    assert images.without_words(f"see {word}") == "see"


@given(st.text(max_size=80), st.integers(1, 999_999))
def test_any_name_makes_a_word_that_is_found_again(name: str, number: int) -> None:
    word = Image(name, ImageInfo("image/png", 1, 2), "AAAA").word(number)
    assert images.words_in(f"a {word} b") == [word]
    assert images.number_of(word) == number


def test_an_image_above_five_megabytes_is_refused_with_advice() -> None:
    image(more=images.MAX_FILE - len(png(1, 1)))
    with pytest.raises(ImageError, match=r"Didn't attach big\.png: 3\.8 MB") as caught:
        image(name="big.png", more=images.MAX_FILE)
    assert "smaller copy" in caught.value.hint


def test_an_image_above_eight_thousand_pixels_is_refused() -> None:
    image(8000, 1)
    with pytest.raises(ImageError, match="8,000 pixels"):
        image(8001, 1)


def test_an_image_without_a_size_is_refused() -> None:
    with pytest.raises(ImageError, match="can't be read"):
        image(0, 10)


def test_a_prompt_takes_twenty_images_and_twenty_megabytes() -> None:
    images.check_together([image()] * 20)
    with pytest.raises(ImageError, match="21 images are too many"):
        images.check_together([image()] * 21)
    with pytest.raises(ImageError, match="too much for one prompt"):
        images.check_together([image(more=images.MAX_FILE - 100)] * 5)


def test_a_record_gives_its_images_back_by_their_words() -> None:
    one, two = image(), image(10, 20, "b.png")
    words = [one.word(1), two.word(2)]
    content = [one.block, two.block, {"type": "text", "text": "x"}]
    data = {"content": content, "text": "x", "images": words}
    found = images.images_of_record(data)
    assert list(found) == words
    assert [each.data for each in found.values()] == [one.data, two.data]
    assert found[words[1]].name == "b.png"
    assert images.prompt_of(data) == f"x\n{words[0]} {words[1]}"
    assert images.images_of_record({"content": [one.block], "images": "no list"}) == {}
    assert images.images_of_record({"content": "text", "images": words}) == {}


def test_a_file_is_read_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_bytes(png(3, 4))
    (tmp_path / "no.png").write_text("no image")
    found = load(tmp_path / "odd.txt")
    assert found
    assert (found.name, found.info.width) == ("odd.txt", 3)
    assert load(tmp_path / "no.png") is None
    assert load(tmp_path / "missing.png") is None
    assert load(tmp_path) is None


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.png"
    with file.open("wb") as out:
        out.write(png(10, 10))
        out.truncate(1 << 34)
    with pytest.raises(ImageError, match=r"16\.0 GB"):
        load(file)


def test_what_is_not_sent_is_kept_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "attached"
    name = store(folder, image())
    assert store(folder, image()) == name, "the same image once"
    assert (folder / name).stat().st_mode & 0o777 == 0o600
    again = load_stored(folder, name, "shot.png")
    assert again == image()
    assert load_stored(folder, "gone.png", "x") is None
    assert load_stored(folder, "../attached/" + name, "x") is None


def test_what_was_kept_for_long_goes(tmp_path: Path) -> None:
    import os  # noqa: PLC0415 - for this test only

    old = store(tmp_path, image())
    long_ago = (tmp_path / old).stat().st_mtime - (STORED_DAYS + 1) * 86_400
    os.utime(tmp_path / old, (long_ago, long_ago))
    new = store(tmp_path, image(5, 5))
    assert [entry.name for entry in tmp_path.iterdir()] == [new]
