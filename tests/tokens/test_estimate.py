"""What content weighs, and the ratio of a model: within bounds, and kept between sessions."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.tokenisers import CONTENT, encoding
from tui.core.errors import StorageError
from tui.core.messages import Message, text_block
from tui.tokens import estimate, tokenizer
from tui.tokens.estimate import BOUNDS, block_weight, content_weight, json_weight, smoothed, weight


@pytest.mark.parametrize("make", CONTENT)
def test_text_weighs_about_what_a_tokeniser_counts(
    make: Callable[[random.Random, int], str],
) -> None:
    text = make(random.Random(11), 6000)
    assert 0.55 < weight(text) / len(encoding().encode_ordinary(text)) < 1.35


OUTPUTS = {
    "numbers": "".join(f"{n}\n" for n in range(9000)),
    "log": "".join(f"07:00:{n % 60:02d} INFO {n} at /usr\n" for n in range(900)),
    "build": "".join(f"gcc -O2 -Wall -c src/file{n}.c -o build/file{n}.o\n" for n in range(900)),
    "hash": "".join(f"{sha256(b'%d' % n).hexdigest()}  file{n}\n" for n in range(500)),
    "one letter": "x" * 30_000,
    "source": Path(__file__).read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_the_estimate_of_an_output_is_near_its_count(output: str) -> None:
    assert 0.75 < estimate.tokens(output) / tokenizer.count(output) < 1.25


def test_the_estimate_is_never_under_a_quarter_of_the_bytes() -> None:
    assert estimate.tokens(" " * 4000) == 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = ("text", "thinking", "data", "input", "name", "content", "source")
KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "odd")


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_K16_lone_surrogates_nul_and_special_tokens_are_text(one: str, other: str) -> None:
    assert weight(f"{one}\ud800\0<|endoftext|>{other}") > 3


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_no_text_weighs_less_by_more_being_said(one: str, other: str) -> None:
    assert max(weight(one), weight(other)) <= weight(one + other) + 1e-9


@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.sampled_from(KINDS),
)
def test_any_block_weighs_something_and_raises_nothing(block: dict[str, Any], kind: str) -> None:
    assert block_weight({**block, "type": kind}) >= 0


def test_blocks_messages_and_requests_add_up() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.py"}}
    bare = {"type": "tool_result", "tool_use_id": "t1", "content": "line\n" * 50}
    listed = bare | {"content": [text_block("line\n" * 50)]}
    assert block_weight(text_block("hello there")) == weight("hello there")
    assert block_weight(call) >= weight("read_file") + weight('{"path":"a.py"}')
    assert block_weight(bare) == block_weight(listed) >= weight("line\n" * 50)
    assert block_weight({"type": "tool_result", "tool_use_id": "x"}) > 0
    thought = {"type": "thinking", "thinking": "hm " * 40, "signature": "s" * 900}
    assert block_weight(thought) == weight("hm " * 40)
    assert block_weight({"type": "redacted_thinking", "data": "x" * 40}) == 10
    assert block_weight({"type": "novel", "text": "y" * 400}) > 50
    pdf = {"type": "document", "source": {"type": "base64", "data": "A" * 1_000_000}}
    assert block_weight(pdf) < 50_000, "by its pages, not as text"
    assert content_weight([]) == 0

    message = Message(role="user", content=[listed, text_block("continue")])
    tool = {"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object"}}
    system = [text_block("You are helpful.")]
    parts = content_weight(system) + json_weight(tool) + content_weight(message["content"])
    whole = estimate.request_weight(system, [tool], [message])
    assert whole == parts + estimate.MESSAGE_TOKENS
    counted = estimate.request_weight(system, [], [message], tokenizer.count)
    texts = (
        tokenizer.count("You are helpful.")
        + tokenizer.count("line\n" * 50)
        + tokenizer.count("continue")
    )
    assert counted == texts + estimate.CALL_TOKENS + estimate.MESSAGE_TOKENS


def png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\0" * 20
    return base64.b64encode(head).decode()


def gif(width: int, height: int) -> str:
    return base64.b64encode(b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 9).decode()


def jpeg(width: int, height: int) -> str:
    exif = b"\xff\xe1" + struct.pack(">H", 5002) + b"\0" * 5000
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return base64.b64encode(b"\xff\xd8" + exif + frame).decode()


def webp(width: int, height: int) -> str:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return base64.b64encode(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + size).decode()


@pytest.mark.parametrize("make", [png, gif, jpeg, webp])
def test_images_cost_their_pixels_by_750_and_at_most_1600(make: Callable[[int, int], str]) -> None:
    def cost(width: int, height: int) -> float:
        source = {"type": "base64", "media_type": "image/x", "data": make(width, height)}
        return block_weight({"type": "image", "source": source})

    assert cost(300, 250) == 100
    assert cost(100, 100) == 14
    assert cost(4000, 3000) == estimate.IMAGE_TOKENS


@pytest.mark.parametrize(
    "source",
    [
        None,
        {},
        {"type": "url", "url": "https://example.com/a.png"},
        {"type": "base64", "data": "not base64!"},
        {"type": "base64", "data": "AAAA"},
        {"type": "base64", "data": base64.b64encode(b"\xff\xd8" + b"\xff\xe0\0\0" * 99).decode()},
    ],
)
def test_an_image_of_unknown_size_costs_the_most(source: object) -> None:
    assert block_weight({"type": "image", "source": source}) == estimate.IMAGE_TOKENS


@pytest.mark.parametrize("true", [0.5, 0.8, 1.4, 2.0])
def test_a_ratio_is_found_from_few_reports(true: float) -> None:
    ratio = estimate.UNKNOWN
    for size in (4000, 300, 2500, 900, 5000, 1200):
        ratio = smoothed(ratio, size, true * size)
    assert abs(ratio / true - 1) < 0.13


def test_a_large_report_counts_more_than_a_small_one() -> None:
    small, large = smoothed(1.0, 200, 400), smoothed(1.0, 40_000, 80_000)
    assert 1 < small < 1.2 < 1.8 < large < 2


REPORTS = st.tuples(st.floats(0, 1e9), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(REPORTS, max_size=12))
def test_a_ratio_stays_within_bounds_whatever_is_reported(reports: list[tuple[float, float]]):
    ratio = estimate.UNKNOWN
    for size, reported in reports:
        ratio = smoothed(ratio, size, reported)
    low, high = BOUNDS
    assert low - 1e-9 <= ratio <= high + 1e-9
    assert BOUNDS == (1 / 3, 3)


@pytest.mark.parametrize("reported", [1e9, -1e9, 0, float("nan"), float("inf"), 300, 3100])
def test_a_report_far_off_changes_nothing(reported: float) -> None:
    assert smoothed(1.2, 1000, reported) == 1.2
    assert smoothed(1.2, 10, 20) == 1.2  # nor one on next to nothing


DAMAGED = [
    b"",
    b"not json",
    b"[]",
    b"null",
    b"{}",
    b'{"ratio": "x"}',
    b'{"ratio": null}',
    b'{"ratio": NaN}',
    b'{"ratio": 40}',
    b'{"version": 2, "answers": 3, "gram": [], "moment": []}',
    b'{"ratio": 1.1}' + b" " * 2000,
    b"\xff\xfe",
    b"[" * 10_000,
]


@pytest.mark.parametrize("kept", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_as_none_and_said_in_the_log(
    tmp_path: Path, kept: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    estimate.save_ratio(tmp_path, "m", 1.1)
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(kept)
    assert estimate.load_ratio(tmp_path, "m") is None
    assert "is not used" in caplog.text


def test_no_file_is_nothing_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert estimate.load_ratio(tmp_path, "m") is None
    assert not caplog.records


def test_the_ratio_is_kept_by_model(tmp_path: Path) -> None:
    estimate.save_ratio(tmp_path, "vendor/model:1", 1.25)
    assert estimate.load_ratio(tmp_path, "vendor/model:1") == 1.25
    assert estimate.load_ratio(tmp_path, "another") is None


def test_names_of_models_make_no_paths(tmp_path: Path) -> None:
    estimate.save_ratio(tmp_path, "../../etc/passwd", 1.25)
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "calibration"]
    assert estimate.load_ratio(tmp_path, "../../etc/passwd") == 1.25


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "calibration").write_text("in the way")
    with pytest.raises(StorageError, match="can't write"):
        estimate.save_ratio(tmp_path, "m", 1.1)
