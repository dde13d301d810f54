"""Paging: the pages of any file, one after the other, are the file, and each fits."""

from __future__ import annotations

import io
from threading import Event

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tui.core.errors import ToolError
from tui.tools.paging import Page, PageLimits, number_lines, read_page, without_numbers


def pages(data: bytes, limits: PageLimits) -> list[Page]:
    """All pages, each asked for with what the one before named."""
    found: list[Page] = []
    line, byte = 1, None
    while True:
        page = read_page(io.BytesIO(data), line=line, byte=byte, limits=limits, stop=Event())
        found.append(page)
        if page.next_line is None and page.next_byte is None:
            return found
        line, byte = page.next_line or 1, page.next_byte
        assert len(found) <= 2 + 4 * len(data), "no progress"


lines = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(["", "\r", "é" * 200, "🜁" * 90, "x" * 1000, "\ufeff", "\0", "\ufffd"]),
    ),
    max_size=30,
)
some_limits = st.builds(
    PageLimits,
    lines=st.integers(2, 12),
    bytes=st.integers(216, 700),
    wanted=st.integers(1, 8) | st.just(2000),
    numbered=st.booleans(),
)


@settings(deadline=None)
@given(lines.map("\n".join), some_limits)
@example("a\n" * 12, PageLimits(12, 700, 2000))
@example("🜁" * 500, PageLimits(2, 217, 2000))
@example("é\n" + "🜁é" * 300 + "\nend", PageLimits(3, 219, 2000))
def test_the_pages_of_a_text_are_the_text(text: str, limits: PageLimits) -> None:
    found = pages(text.encode(), limits)
    assert "".join(page.text for page in found) == text.removeprefix("\ufeff")


@settings(deadline=None)
@given(st.binary(max_size=3000) | lines.map(lambda ls: "\n".join(ls).encode("utf-16")), some_limits)
@example(b"\x80" * 2000, PageLimits(3, 230, 2000))
@example(b"\xf0\x9f\x9c" * 700, PageLimits(3, 231, 2000))
@example(b"\xe2\x82" * 600 + b"\xac", PageLimits(3, 219, 2000))
def test_the_pages_of_any_bytes_are_their_decoding(data: bytes, limits: PageLimits) -> None:
    found = pages(data, limits)
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    assert "".join(page.text for page in found) == text


@settings(deadline=None)
@given(st.binary(max_size=3000) | lines.map(lambda ls: "\n".join(ls).encode()), some_limits)
def test_L21_every_page_fits_with_its_last_line(data: bytes, limits: PageLimits) -> None:
    for page in pages(data, limits):
        shown = page.render()
        assert len(shown.encode()) <= limits.bytes
        assert shown.count("\n") + (not shown.endswith("\n")) <= limits.lines
        assert page.text.count("\n") <= limits.wanted
        assert shown.strip()
        if page.next_line or page.next_byte:
            last = shown.rsplit("\n", 1)[-1]
            assert last.startswith("[")
            assert last == page.footer


@settings(deadline=None)
@given(
    st.text(st.sampled_from("ab\t7 "), max_size=8).flatmap(
        lambda t: st.lists(st.just(t) | st.text(st.sampled_from("xy\t1"), max_size=4), min_size=1)
    ),
    st.integers(1, 10**6),
)
def test_numbers_can_be_taken_away_again(rows: list[str], first: int) -> None:
    text = "\n".join(rows)
    assert without_numbers(number_lines(text, first)) == (text or None)


def test_text_that_only_looks_numbered_is_left_alone() -> None:
    for text in ("1\ta\n3\tb", "1\ta\nb", "12", "x", "", "1\n2\n3", "9" * 5000 + "\ta"):
        assert without_numbers(text) is None
    assert without_numbers("7\ta\n8\n9\tb") == "a\n\nb"
    assert number_lines("rest\nnext\n", 4, cut=True) == "rest\n5\tnext\n"


def page_of(data: bytes, line: int = 1, byte: int | None = None, **limits: int) -> Page:
    numbers = {"lines": 2000, "bytes": 51_200, "wanted": 2000, **limits}
    given_limits = PageLimits(numbers["lines"], numbers["bytes"], numbers["wanted"])
    return read_page(io.BytesIO(data), line=line, byte=byte, limits=given_limits, stop=Event())


def test_the_last_line_says_how_to_go_on() -> None:
    page = page_of(b"line\n" * 5000)
    assert page.footer == "[lines 1-1999 of 5000; continue with offset=2000]"
    assert page.next_line == 2000
    page = page_of(b"line\n" * 5000, line=4000, wanted=10)
    assert page.footer == "[lines 4000-4009 of 5000; continue with offset=4010]"


def test_a_file_of_exactly_one_page_has_no_last_line() -> None:
    assert page_of(b"x\n" * 2000).render() == "x\n" * 2000
    assert page_of(b"x" * 51_200).render() == "x" * 51_200
    assert page_of(b"x\n" * 2001).next_line == 2000
    assert page_of(b"x" * 51_201).next_byte is not None


def test_a_long_line_goes_on_at_a_byte_and_then_by_lines() -> None:
    data = b"first\n" + b"y" * 100_000 + b"\nthird\n" + b"z\n" * 5000
    page = page_of(data)
    assert (page.text, page.next_line) == ("first\n", 2)
    page = page_of(data, line=2)
    assert page.next_byte == 6 + len(page.text)
    assert page.footer == (
        f"[line 2, up to byte {page.next_byte} of {len(data)}; "
        f"continue with byte_offset={page.next_byte}]"
    )
    page = page_of(data, byte=page.next_byte)
    page = page_of(data, byte=page.next_byte or 100_000)
    assert page.text.endswith("y\nthird\n" + "z\n" * 1997)
    assert page.footer == "[lines 2-2000 of 5003; continue with offset=2001]"


def test_a_byte_inside_a_character_means_that_character() -> None:
    data = "aé🜁z".encode()
    assert page_of(data, byte=2).text == "é🜁z"
    for byte in (3, 4, 5, 6):
        assert page_of(data, byte=byte).text == "🜁z"
    assert page_of(data, byte=7).text == "z"


@pytest.mark.parametrize(
    ("data", "line", "lines"),
    [(b"a\nb\n", 3, "2 lines"), (b"a\nb", 3, "2 lines"), (b"a", 9, "1 line")],
)
def test_a_line_past_the_end_says_how_many_there_are(data: bytes, line: int, lines: str) -> None:
    with pytest.raises(ToolError, match=f"has {lines}\\."):
        page_of(data, line=line)


def test_a_byte_past_the_end_is_an_error() -> None:
    with pytest.raises(ToolError, match="has 3 bytes"):
        page_of(b"abc", byte=3)


def test_invalid_utf8_is_named() -> None:
    page = page_of(b"caf\xe9\n")
    assert page.text == "caf\ufffd\n"
    assert "not UTF-8" in page.footer
    assert page_of("a real \ufffd\n".encode()).footer == ""


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b"  \r\n", b"\xef\xbb\xbf"])
def test_a_page_is_never_blank(data: bytes) -> None:
    assert page_of(data).render().strip()


class Endless(io.RawIOBase):
    """A file of 1 TB of short lines that counts what is read of it."""

    def __init__(self) -> None:
        self.taken = 0
        self.at = 0

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.at = 1 << 40 if whence == 2 else offset
        return self.at

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 < size <= 1 << 20
        self.taken += size
        self.at += size
        return (b"1234567\n" * (size // 8 + 1))[:size]


def test_a_page_of_a_huge_file_reads_little_of_it() -> None:
    source = Endless()
    page = read_page(source, line=10_000, limits=PageLimits(2000, 51_200, 2000), stop=Event())  # pyright: ignore[reportArgumentType] - reads and seeks like a file
    assert page.next_line == 11_999
    assert page.footer.startswith("[lines 10000-11998; continue with offset=11999; up to byte ")
    assert page.footer.endswith(" of 1.0 TB]")
    assert source.taken < 2 << 20


def test_a_cancelled_search_for_a_line_ends() -> None:
    stop = Event()
    stop.set()
    with pytest.raises(InterruptedError):
        read_page(Endless(), line=10**12, limits=PageLimits(2000, 51_200, 2000), stop=stop)  # pyright: ignore[reportArgumentType]
