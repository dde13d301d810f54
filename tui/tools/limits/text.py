"""Cutting text by bytes and lines without ever splitting a character."""

from __future__ import annotations


def encode(text: str) -> bytes:
    """UTF-8; lone surrogates pass as three bytes, so nothing raises (L28)."""
    return text.encode("utf-8", "surrogatepass")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(encode(text))


def line_count(text: str) -> int:
    """Lines split on newlines; a final newline does not begin another line (O8)."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def head_bytes(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` bytes."""
    if limit <= 0:
        return ""
    data = encode(text)
    if len(data) <= limit:
        return text
    end = limit
    while end and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def tail_bytes(text: str, limit: int) -> str:
    """The longest suffix of at most `limit` bytes."""
    if limit <= 0:
        return ""
    data = encode(text)
    if len(data) <= limit:
        return text
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")


def head_lines(text: str, limit: int) -> str:
    """The first `limit` lines, without the newline that ends the last of them when text follows."""
    if limit <= 0:
        return ""
    end = -1
    for _ in range(limit):
        end = text.find("\n", end + 1)
        if end < 0:
            return text
    return text if end == len(text) - 1 else text[:end]


def tail_lines(text: str, limit: int) -> str:
    """The last `limit` lines."""
    if limit <= 0:
        return ""
    end = len(text) - 1 if text.endswith("\n") else len(text)
    start = end
    for _ in range(limit):
        start = text.rfind("\n", 0, start)
        if start < 0:
            return text
    return text[start + 1 :]
