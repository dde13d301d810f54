"""The token measure: exact where it can be, harmless where it cannot."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import lzma
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.context.tokenisers import encoding
from tui.tokens import cl100k
from tui.tokens import tokenizer as tokens
from tui.tokens.tokenizer import Tokenizer, TokenizerError

SHARED = Tokenizer(encoding)


def fresh() -> Tokenizer:
    return Tokenizer(encoding)


def raw(text: str) -> int:
    return len(encoding().encode_ordinary(text))


def quarter(text: str) -> int:
    return len(text.encode(errors="surrogatepass")) // 4


class Broken:
    """An encoding that fails after some calls, and counts how often it is asked."""

    def __init__(self, error: BaseException, after: int = 0) -> None:
        self.error = error
        self.left = after
        self.calls = 0

    def encode_ordinary(self, text: str) -> list[int]:
        self.calls += 1
        if self.left == 0:
            raise self.error
        self.left -= 1
        return encoding().encode_ordinary(text)

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        return encoding().decode_tokens_bytes(tokens)


class RustPanic(BaseException):
    """What a panic of the Rust side looks like from Python: not an Exception."""


# Texts that mix what tokenisers treat differently: words, runs, digits, scripts, blanks, controls.
FRAGMENTS = (
    st.sampled_from(
        ["the ", "foobar", "don't", "  ", "\n", "\n\n  ", "\t", "12345678", "====", "{}();"]
    )
    | st.sampled_from(["é", "日本語", "👩‍👩‍👧", "🇩🇪", "ẞ", "x" * 90, " " * 130])
    | st.sampled_from(["<|endoftext|>", "\0", "\x1b[31m", "\ud800", "\udfff"])
)
WILD = st.lists(FRAGMENTS | st.text(max_size=12), max_size=40).map("".join)


def test_the_rank_file_is_the_one_that_tiktoken_expects():
    packed = (files("tui") / "data" / "cl100k_base.tiktoken.xz").read_bytes()
    found = hashlib.sha256(lzma.decompress(packed)).hexdigest()
    assert found == "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    note = (files("tui") / "data" / "tiktoken.LICENSE").read_text(encoding="utf-8")
    assert "MIT License" in note
    assert found in note


def test_K7_counts_are_those_of_the_gpt4_encoding():
    # Known ids of cl100k_base, as published with tiktoken.
    assert encoding().encode_ordinary("hello world") == [15339, 1917]
    text = "The quick brown fox jumps over the lazy dog, 12345 times.\n" * 40
    assert fresh().count(text) == raw(text) > quarter(text) // 2


def test_K8_without_tiktoken_a_quarter_of_the_bytes_counts_and_one_warning_is_logged(
    caplog: pytest.LogCaptureFixture,
):
    tokenizer = Tokenizer(lambda: (_ for _ in ()).throw(ImportError("no module named tiktoken")))
    with caplog.at_level(logging.WARNING):
        assert tokenizer.count("x" * 4003) == 1000
        assert tokenizer.count("é" * 4) == 2
        assert tokenizer.prefix_within("é" * 100, 11) == "é" * 22
        assert tokenizer.prefix_within("aé" * 100, 1) == "aéa"
        assert tokenizer.prefix_within("short", 10) == "short"
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "no module named tiktoken" in caplog.text


def test_K9_the_first_failure_while_counting_can_be_seen_and_later_ones_are_silent():
    encoding = Broken(RuntimeError("boom"))
    tokenizer = Tokenizer(lambda: encoding)
    with pytest.raises(TokenizerError, match="boom"):
        tokenizer.count("some text", strict=True)
    assert tokenizer.count("x" * 40, strict=True) == 10
    assert encoding.calls == 1


def test_K9_the_first_failure_while_cutting_can_be_seen():
    tokenizer = Tokenizer(lambda: Broken(RuntimeError("boom"), after=1))
    assert tokenizer.count("fine") == 1
    with pytest.raises(TokenizerError, match="boom"):
        tokenizer.prefix_within("many words " * 100, 5, strict=True)
    assert tokenizer.prefix_within("many words " * 100, 5, strict=True) == "many words many word"


@pytest.mark.parametrize("error", [OSError("no file"), ValueError("odd"), RustPanic("panicked")])
def test_K14_K18_a_failing_build_is_tried_once_and_cached(error: BaseException):
    builds = 0

    def build() -> cl100k.Encoding:
        nonlocal builds
        builds += 1
        raise error

    tokenizer = Tokenizer(build)
    assert [tokenizer.count("x" * 400) for _ in range(3)] == [100, 100, 100]
    assert len(tokenizer.prefix_within("x" * 400, 10)) == 40
    assert builds == 1


def test_a_panic_of_the_tokeniser_is_caught_and_an_interrupt_is_not():
    assert Tokenizer(lambda: Broken(RustPanic("slice index"))).count("x" * 40) == 10
    for stop in (KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()):
        tokenizer = Tokenizer(lambda stop=stop: Broken(stop))
        with pytest.raises(type(stop)):
            tokenizer.count("text")
        with pytest.raises(type(stop)):
            tokenizer.prefix_within("a few words more than that", 1)


def test_K15_the_larger_of_both_measures_counts():
    assert fresh().count("x" * 200_000) == 50_000 > raw("x" * 1000) * 200
    hexadecimal = hashlib.sha256(b"dense").hexdigest()
    assert fresh().count(hexadecimal) == raw(hexadecimal) > quarter(hexadecimal)
    assert fresh().count("") == 0


def test_K16_special_tokens_are_plain_text():
    text = "<|endoftext|> and <|fim_prefix|> " * 50
    assert fresh().count(text) == raw(text)
    assert fresh().prefix_within(text, 20) == text[: len(fresh().prefix_within(text, 20))]


@given(WILD, WILD)
def test_counting_never_raises_and_never_falls_under_a_quarter(left: str, right: str):
    for text in (left, right, left + right):
        assert SHARED.count(text) >= quarter(text)
        assert SHARED.count(text) >= (1 if text else 0) or quarter(text) == 0
    assert SHARED.count(left + right) <= SHARED.count(left) + SHARED.count(right) + 2
    assert SHARED.ready


def longest_by_trying(text: str, room: int) -> str:
    return next(text[:n] for n in range(len(text), -1, -1) if SHARED.count(text[:n]) <= room)


@given(WILD, st.integers(min_value=-1, max_value=60))
@example("\u65e5\u672c\u8a9e\u306e\u6587\u7ae0" * 20, 7)
@example("👩‍👩‍👧" * 20, 13)
@example("a   b    c     d", 3)
def test_K5_K17_the_prefix_is_the_longest_that_fits(text: str, room: int):
    assert SHARED.prefix_within(text, room) == (longest_by_trying(text, room) if room > 0 else "")


@given(
    WILD.filter(bool),
    st.integers(min_value=1, max_value=1200),
    st.integers(min_value=1, max_value=5000),
)
def test_K5_long_texts_are_cut_within_the_room(text: str, times: int, room: int):
    text = (text * times)[:150_000]
    found = SHARED.prefix_within(text, room)
    assert text.startswith(found)
    assert SHARED.count(found) <= room
    assert found == text or SHARED.count(text[: len(found) + 1]) > room


@pytest.mark.parametrize("room", [1, 12_288, 16_384, 20_000, 30_720])
@pytest.mark.parametrize(
    "line",
    ["def parse(value: int) -> str:\n", "x" * 70_000, "0123456789abcdef ", "日本語の文章。", "\n"],
)
def test_K5_across_chunks_the_prefix_fits_and_one_more_character_does_not(line: str, room: int):
    text = line * (400_000 // len(line))
    found = SHARED.prefix_within(text, room)
    assert text.startswith(found)
    assert SHARED.count(found) <= room
    assert SHARED.count(text[: len(found) + 1]) > room


def test_chunks_cost_next_to_nothing_in_accuracy():
    source = "".join(f"def f{n}(a, b):\n    return a * {n} + b  # {n:x}\n\n" for n in range(8000))
    assert 300_000 < len(source) < cl100k.SAMPLE_CHARS
    assert abs(fresh().count(source) - raw(source)) <= len(source) // cl100k.CHUNK_CHARS + 1


def test_above_2_mb_the_count_is_extrapolated_from_all_over_the_text():
    words = "alpha beta gamma delta\n" * 80_000
    dense = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(40_000))
    text = words + dense
    assert len(text) > 2 * cl100k.SAMPLE_CHARS
    counting = Broken(AssertionError(), after=10_000)
    found = Tokenizer(lambda: counting).count(text)
    exact = sum(raw(text[i : i + 60_000]) for i in range(0, len(text), 60_000))
    assert abs(found - exact) <= exact * 0.05
    assert counting.calls * cl100k.CHUNK_CHARS <= cl100k.SAMPLE_CHARS * 1.05


def test_K24_counting_costs_little_more_than_encoding():
    text = ("    for index, value in enumerate(values):\n        total += value\n" * 800)[:50_000]
    tokenizer = fresh()
    tokenizer.load()

    def best(run: object) -> float:
        assert callable(run)
        times: list[float] = []
        for _ in range(15):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
        return min(times)

    ratios = [best(lambda: tokenizer.count(text)) / best(lambda: raw(text)) for _ in range(5)]
    assert min(ratios) <= 1.5


async def test_loading_is_lazy_and_no_count_does_without_it(monkeypatch: pytest.MonkeyPatch):
    dense = "0123456789abcdef" * 40
    monkeypatch.setattr(tokens, "default", fresh())
    assert tokens.count(dense) == raw(dense) > quarter(dense)
    monkeypatch.setattr(tokens, "default", fresh())
    assert not tokens.default.ready
    await tokens.load()
    assert tokens.default.ready
    assert tokens.count(tokens.prefix_within(dense, 9)) == 9


def test_importing_the_module_loads_no_tokeniser():
    code = "import sys, tui.tokens.tokenizer; sys.exit('tiktoken' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
