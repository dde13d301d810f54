"""The whole output of a tool that the model saw only part of, read piece by piece."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from pathlib import Path

PIECE = 1 << 18
SHOWN_MAX = 32_000_000
"""Bytes that are read of one file: so many, half from each end."""


def pieces(path: Path, *, most: int = SHOWN_MAX) -> Iterator[str]:
    """The text of a file in pieces; the middle of a larger one is left out, and said to be.

    Raises OSError, also where it is not a regular file. Blocks: to be used in a thread.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - of a descriptor
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(f"{path} is not a regular file")
        skipped = max(0, state.st_size - most)
        left = most // 2 if skipped else state.st_size
        for part in range(2 if skipped else 1):
            if part:
                file.seek(-(most - most // 2), os.SEEK_END)
                left = most - most // 2
                yield f"\n… {skipped:,} bytes are not shown; all is in {path} …\n"
            while left > 0 and (data := file.read(min(PIECE, left))):
                left -= len(data)
                yield decoder.decode(data)
            yield decoder.decode(b"", final=True)
            decoder.reset()
