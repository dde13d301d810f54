"""The encoding cl100k_base, and counting and cutting texts with an encoding, in chunks.

The rank file ships with the package and nothing is ever downloaded. Everything that an encoding
raises is raised here, too, including a panic of its Rust code.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Protocol

CHUNK_CHARS = 65_536
"""The most that is tokenized in one call, so that other threads get their turn."""
_SOFT_CHARS = 49_152
"""From here on a chunk ends at the first newline. The end depends only on the text before it, so
the chunks of a prefix are those of the whole text, and counts of prefixes agree."""
SAMPLE_CHARS = 2_000_000
"""Longer texts are extrapolated from samples of this size in total."""

_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


class Encoding(Protocol):
    """The part of a tiktoken encoding that is used."""

    def encode_ordinary(self, text: str) -> list[int]: ...
    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]: ...


def build_cl100k() -> Encoding:
    """Build the encoding cl100k_base from the shipped rank file. Takes about 0.1 s."""
    import lzma  # noqa: PLC0415  as below

    import tiktoken  # noqa: PLC0415  heavy, and only needed here

    packed = (Path(__file__).parents[1] / "data" / "cl100k_base.tiktoken.xz").read_bytes()
    lines = BytesIO(lzma.decompress(packed))  # read one by one: a list of them takes 5 MB
    ranks = {a2b_base64(line.partition(b" ")[0]): rank for rank, line in enumerate(lines)}
    return tiktoken.Encoding(
        "cl100k_base", pat_str=_CL100K_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )


def count(encoding: Encoding, text: str) -> int:
    """Count by the encoding, extrapolated above SAMPLE_CHARS."""
    if len(text) <= SAMPLE_CHARS:
        return sum(len(encoding.encode_ordinary(chunk)) for chunk in _chunks(text))
    samples = SAMPLE_CHARS // CHUNK_CHARS
    step = (len(text) - CHUNK_CHARS) // (samples - 1)
    starts = range(0, samples * step, step)
    sampled = sum(len(encoding.encode_ordinary(text[i : i + CHUNK_CHARS])) for i in starts)
    return round(sampled * len(text) / (samples * CHUNK_CHARS))


def chars_within(text: str, size: int) -> int:
    """The number of whole characters of a text that fit into `size` bytes of UTF-8."""
    if text.isascii():
        return min(size, len(text))
    return len(text[:size].encode()[:size].decode(errors="ignore"))


def longest_within(encoding: Encoding, text: str, tokens: int) -> int:
    """The length of the longest prefix of at most `tokens` tokens, in characters."""
    text = text[: chars_within(text, tokens * 4 + 3)]
    length = 0
    for chunk in _chunks(text):
        ids = encoding.encode_ordinary(chunk)
        if len(ids) > tokens:
            return length + _in_chunk(encoding, chunk, ids, tokens)
        tokens -= len(ids)
        length += len(chunk)
    return length


def _chunks(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _SOFT_CHARS:
        newline = text.find("\n", start + _SOFT_CHARS, start + CHUNK_CHARS)
        if newline < 0 and len(text) - start <= CHUNK_CHARS:
            break
        end = newline + 1 if newline >= 0 else start + CHUNK_CHARS
        yield text[start:end]
        start = end
    yield text[start:] if start else text


_LOOK_AHEAD = 8
_LOOK_BEHIND = 64


def _in_chunk(encoding: Encoding, chunk: str, ids: list[int], room: int) -> int:
    """Do the same within one chunk, whose `ids` are more than `room` tokens.

    A longer prefix may have fewer tokens than a shorter one ("fo", "foo"), so the end is searched
    downwards from some tokens beyond the room. The count of a candidate is first guessed from its
    last tokens, then checked on the whole.
    """
    raw = chunk.encode()
    ends = [0, *accumulate(map(len, encoding.decode_tokens_bytes(ids[: room + _LOOK_AHEAD])))]

    def chars(token: int) -> int:
        return len(raw[: ends[min(token, len(ends) - 1)]].decode(errors="ignore"))

    behind = max(0, room - _LOOK_BEHIND)
    while ends[behind] < len(raw) and raw[ends[behind]] & 0xC0 == 0x80:
        behind -= 1
    start = chars(behind)
    for end in range(chars(room + _LOOK_AHEAD), 0, -1):
        guess = behind + len(encoding.encode_ordinary(chunk[start:end]))
        if guess <= room + 1 and len(encoding.encode_ordinary(chunk[:end])) <= room:
            return end
    return 0
