"""Headers of images of any size, as base64, made by code."""

from __future__ import annotations

import base64
import struct
from typing import Any


def png(width: int, height: int) -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR"
    return head + struct.pack(">II", width, height) + b"\x08\x02\0\0\0" + b"\0" * 8


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 8


def jpeg(width: int, height: int, *, before: int = 64) -> bytes:
    """A JPEG whose frame header stands behind `before` bytes of other segments."""
    segments = b""
    while len(segments) < before:
        segments += b"\xff\xe1" + struct.pack(">H", 60_002) + b"\0" * 60_000
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return b"\xff\xd8" + segments + frame


def webp(width: int, height: int, kind: bytes) -> bytes:
    match kind:
        case b"VP8 ":
            size = b"\0" * 6 + struct.pack("<HH", width, height)
        case b"VP8L":
            size = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\0" * 8
        case _:
            low = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
            size = b"\0" * 4 + low
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0" * 4 + size + b"\0" * 8


def image(data: bytes, media_type: str = "image/png") -> dict[str, Any]:
    packed = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": media_type, "data": packed}
    return {"type": "image", "source": source}
