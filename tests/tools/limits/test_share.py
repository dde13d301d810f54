"""K1–K19: the token share."""

from __future__ import annotations

import logging

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tui.tokens import tokenizer as tokens
from tui.tokens.tokenizer import Tokenizer
from tui.tools.limits.clamp import PLACEHOLDER, byte_length, share, threshold
from tui.tools.limits.receipt import Keep

LIMIT = threshold()


def one(text: str, limit: int = LIMIT, keep: Keep = "head") -> str:
    (cut,) = share([text], limit, keep)
    return cut


def warning(total: int, limit: int, *, ends: bool = False) -> str:
    room = int(limit * 0.8)
    shown = f"{room} tokens of both ends" if ends else f"first {room} tokens"
    return (
        f"\n\n⚠️ [Output truncated: {total} tokens exceeds limit of {limit}. Showing {shown}. "
        "Use pagination or filters to get specific data.]"
    )


class Broken:
    """An encoding that fails at everything."""

    def encode_ordinary(self, text: str) -> list[int]:
        raise RuntimeError("no more")

    def decode_tokens_bytes(self, tokens: object) -> list[bytes]:
        raise RuntimeError("no more")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "default", Tokenizer(Broken))


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "default", Tokenizer(_no_rank_file))


def test_K1_K2_thresholds() -> None:
    assert threshold() == 38_400
    assert threshold(128_000, 0.5) == 64_000


@pytest.mark.parametrize(("most", "part"), [(0, 0.3), (-1, 0.3), (1, 0), (1, 1.01), (1, -0.1)])
def test_K3_senseless_values_are_refused(most: int, part: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        threshold(most, part)


@pytest.mark.parametrize("text", ["", "short", "word " * 2400])
def test_K4_K11_what_fits_is_the_same_object(text: str) -> None:
    texts = [text]
    assert share(texts, 3001) is texts


def test_K5_K6_the_longest_prefix_and_the_literal_warning() -> None:
    text = "".join(f"line {n} of the output\n" for n in range(4000))
    cut = one(text, 3000)
    kept = cut.removesuffix(warning(tokens.count(text), 3000))
    assert kept != cut
    assert text.startswith(kept)
    assert tokens.count(kept) <= 2400
    assert tokens.count(text[: len(kept) + 12]) > 2400


def test_K12_K13_at_the_defaults() -> None:
    cut = one("x" * 200_000)
    assert len(cut) < 200_000
    assert "⚠️" in cut
    assert "Output truncated" in cut
    assert "50000" in cut
    cut = one(f"IMPORTANT_START{'x' * 200_000}END")
    assert cut.startswith("IMPORTANT_START")
    assert not cut.endswith("END")


@pytest.mark.usefixtures("missing")
def test_K8_K14_without_tiktoken_a_quarter_of_the_bytes_counts() -> None:
    assert one("x" * 200_000) == "x" * (30_720 * 4) + warning(50_000, LIMIT)


@pytest.mark.usefixtures("broken")
def test_K9_the_first_failure_counts_characters_and_later_results_bytes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "x" * 5000
    with caplog.at_level(logging.WARNING):
        assert (
            one(text, 1000) == "x" * 3200 + "\n\n⚠️ [Output truncated: ~5000 chars exceeds limit.]"
        )
        assert one(text, 1000) == "x" * 3200 + warning(1250, 1000)
        assert one(text, 1000) == "x" * 3200 + warning(1250, 1000)
    assert [record.name for record in caplog.records].count("tui.tokens.tokenizer") == 1


@pytest.mark.usefixtures("broken")
def test_K9_under_the_limit_of_characters_nothing_is_cut() -> None:
    texts = ["x" * 4000]
    assert share(texts, 1000) is texts


@pytest.mark.usefixtures("broken")
def test_K9_for_ends_both_ends_are_kept() -> None:
    cut = one("HEAD" + "x" * 5000 + "TAIL", 1000, "ends")
    assert cut.startswith("HEAD")
    assert cut.endswith("TAIL")
    assert "~5008 chars" in cut


@pytest.mark.usefixtures("broken")
def test_K10_where_nothing_works_the_original_goes_on() -> None:
    class Cursed(str):
        __slots__ = ()

        def __getitem__(self, _: object) -> str:
            raise RuntimeError("cursed")

    text = Cursed("x" * 5000)
    assert one(text, 1000) == "x" * 5000 + "\n\n⚠️ [Truncation failed: cursed]"


def test_K16_special_tokens_are_text() -> None:
    cut = one("<|endoftext|>" * 3000, 2000)
    assert cut.startswith("<|endoftext|><|endoftext|>")
    assert "⚠️" in cut


def test_K19_a_result_of_few_bytes_is_never_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Broken:
        raise AssertionError("tokenised")

    monkeypatch.setattr(tokens, "default", Tokenizer(never))
    texts = ["x" * 1000]
    assert share(texts, 1000) is texts
    assert not tokens.default.ready


def test_a_cut_between_two_blocks_has_its_warning_too() -> None:
    word = "word " * 800
    exactly = tokens.prefix_within(word, 800)
    assert tokens.count(exactly) == 800
    texts = [exactly, "more " * 900, "and more " * 900]
    cut = share(texts, 1000)
    assert list(cut) == [exactly, warning(sum(map(tokens.count, texts)), 1000), PLACEHOLDER]


def test_very_many_blocks_become_one_line() -> None:
    cut = share(["漢字" * 20] * 1000, 2000)
    assert cut[-1].startswith("[tool output truncated: ")
    assert cut[-1].endswith(" more blocks]")
    shown = len(cut) - 1
    assert cut[-1] == f"[tool output truncated: {1000 - shown} more blocks]"
    assert sum(map(tokens.count, cut)) <= 2000


pieces = st.sampled_from(
    ["word ", "x" * 30, "漢字", "🎉👩‍👩‍👧", "é", "\n", "=" * 50, "1234567", "a\ud800"]
)
texts_of_any_shape = st.lists(st.lists(pieces, max_size=400).map("".join), min_size=1, max_size=12)


@settings(deadline=None)
@given(texts_of_any_shape, st.integers(400, 1500), st.sampled_from(["head", "ends"]))
def test_K17_within_the_limit_and_no_character_is_split(
    texts: list[str], limit: int, keep: Keep
) -> None:
    cut = share(texts, limit, keep)
    if sum(map(tokens.count, texts)) <= limit:
        assert cut is texts
        return
    assert sum(map(tokens.count, cut)) <= limit
    assert sum("⚠️ [Output truncated: " in text for text in cut) == 1
    assert "\ufffd" not in "".join(cut)
    if len(texts) == 1 and keep == "ends":
        head, tail = cut[0].split("\n\n⚠️ [Output truncated: ")
        tail = tail.split("]\n\n", 1)[1]
        assert texts[0].startswith(head)
        assert texts[0].endswith(tail)
        assert head
        assert tail
    else:
        assert texts[0].startswith(cut[0].split("\n\n⚠️")[0])


runs = st.tuples(pieces, st.integers(1, 300)).map(lambda run: run[0] * run[1])
long_texts = st.lists(runs, min_size=4, max_size=16).map("".join)


@settings(deadline=None)
@given(long_texts, st.integers(200, 900))
def test_K17_for_ends_not_one_character_more_would_have_fitted(text: str, limit: int) -> None:
    assume(tokens.count(text) > limit)
    cut = one(text, limit, "ends")
    head, tail = cut.split(f"{warning(tokens.count(text), limit, ends=True)}\n\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    room = int(limit * 0.8)
    assert tokens.count(head) <= room // 2
    assert tokens.count(tail) <= room - room // 2 < tokens.count(text[-len(tail) - 1 :])
    assert tokens.count(cut) <= limit


@settings(deadline=None)
@given(long_texts, st.integers(200, 900))
def test_K8_for_ends_without_tiktoken_bytes_are_counted_at_both_ends(text: str, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "default", Tokenizer(_no_rank_file))
        total = tokens.count(text)
        assume(total > limit)
        head, tail = one(text, limit, "ends").split(f"{warning(total, limit, ends=True)}\n\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    room = int(limit * 0.8)
    for kept, most in ((head, room // 2), (tail, room - room // 2)):
        assert most * 4 - 3 <= byte_length(kept) <= most * 4 + 3


def test_for_ends_a_tail_ends_where_a_long_token_begins() -> None:
    text = "a b c " * 400 + " " * 3000 + "= END"
    cut = one(text, 400, "ends")
    assert cut.endswith(" = END")
    assert tokens.count(cut) <= 400


def _no_rank_file() -> Broken:
    raise OSError("no rank file")
