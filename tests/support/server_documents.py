"""What the real API would reject of the PDFs in a request."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

from pypdf import PdfReader

from tests.support.server_bodies import blocks_of
from tests.support.server_script import Json, part
from tui.context.rules.media import media_in

_SMALL_WINDOW = 1_000_000
_MOST_PAGES, _MOST_PAGES_SMALL = 600, 100


def document_violations(body: Json, window: int) -> Iterator[str]:
    """PDFs that cannot be read or are encrypted, and more pages than the model takes."""
    total = 0
    for number, message in enumerate(body["messages"]):
        for where, block in media_in(blocks_of(message), f"messages.{number}"):
            source = part(block, "source")
            if block["type"] != "document" or source.get("type") != "base64":
                continue
            try:
                reader = PdfReader(io.BytesIO(base64.b64decode(source["data"], validate=True)))
                if reader.is_encrypted:
                    yield f"{where}.document.source.base64.data: The PDF is password protected."
                    continue
                total += len(reader.pages)
            except Exception:  # noqa: BLE001 - a damaged file raises anything
                yield f"{where}.document.source.base64.data: The PDF specified was not valid."
    most = _MOST_PAGES if window >= _SMALL_WINDOW else _MOST_PAGES_SMALL
    if total > most:
        yield f"A maximum of {most} PDF pages may be provided."
