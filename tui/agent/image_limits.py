"""How images are sent: decided and recorded before the first time, then fixed.

A person's images are shrunk where they are read, a tool's here. Older sessions and imported ones
have larger ones: with more than 20 images in a request the API refuses any above 2,000 pixels.
Nor may all of them together be too large. The newest, which were never sent, go first: that
changes nothing of what was. An older one goes where that is not enough, which is a break.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui.agent.agent_context import AgentContext
from tui.agent.events import Notice
from tui.context.overrides import Overlay, content_of, overlays_of
from tui.context.rules.media import MANY_IMAGES, image_info_of
from tui.context.view import View
from tui.core.errors import ImageError, StorageError
from tui.core.files import private_copy
from tui.core.formatting import plural, size
from tui.core.image_files import ENDINGS
from tui.core.image_resize import fitted_base64
from tui.core.images import MANY_PIXELS, Image, media_type
from tui.core.messages import Block, ToolOutput, object_of, text_block
from tui.core.output_store import OutputStore
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

log = logging.getLogger(__name__)

REQUEST_BYTES = 24 * 1024 * 1024
"""Base64 text of all images of a request; one of 32 MB is refused, and texts need room too."""

_GONE = frozenset({"masked", "summarised"})
_PIXELS = f"over {MANY_PIXELS} pixels among many images"
_BYTES = f"over {size(REQUEST_BYTES * 3 // 4)} of images"
_WHY = {
    _PIXELS: f"for one above {MANY_PIXELS:,} pixels",
    _BYTES: f"for more than {size(REQUEST_BYTES * 3 // 4)} of them",
}
"""Why an image is left out, as it is recorded, and for the person."""


def keep_to_limits(ctx: AgentContext, view: View) -> bool:
    """Record which images are left out of the next request. Whether there is one."""
    changes = overlays(ctx.records, view)
    for change in changes:
        ctx.recorder.append("overlay", **change.to_json())
    if changes:
        count = plural(len(changes), "image")
        whys = " and ".join(dict.fromkeys(_WHY[change.reason] for change in changes))
        text = f"{count} left out: the request has too many images {whys}."
        ctx.publish(Notice(f"{text} Attach a smaller copy to have it seen."))
    return bool(changes)


def overlays(records: Sequence[Record], view: View) -> list[Overlay]:
    """The changes after which the images of a view are within the limits."""
    shown = list(_images(records, view))
    sent = max((n for n, record in enumerate(records) if record.type == REQUEST), default=-1)
    order = [*(one for one in shown if one[0] > sent), *(one for one in shown if one[0] <= sent)]
    surplus = max(0, len(shown) - MANY_IMAGES)
    hidden = {(n, place): _PIXELS for n, place, block in order if _is_large(block)}
    hidden = dict(list(hidden.items())[:surplus])
    total = sum(_length(block) for n, place, block in shown if (n, place) not in hidden)
    for n, place, block in order:
        if total > REQUEST_BYTES and (n, place) not in hidden:
            hidden[n, place] = _BYTES
            total -= _length(block)
    known = overlays_of(records)
    changes: list[Overlay] = []
    for number in dict.fromkeys(number for number, _ in hidden):
        id_, places = records[number].id, {place for n, place in hidden if n == number}
        before = known[id_].blocks if id_ in known else ()
        blocks = tuple(sorted(places | set(before)))
        why = next(why for (n, _), why in hidden.items() if n == number)
        changes.append(Overlay(id_, "imageless", "limits", why, blocks=blocks))
    return changes


async def fit_images(output: ToolOutput, spill: Path, outputs: OutputStore | None) -> ToolOutput:
    """A result with its images small enough to be sent; a text behind each says what was done.

    What was shrunk is kept in a file next to `spill`, unless the tool has read it from one.
    """
    if not any(block.get("type") == "image" for block in output.content):
        return output
    content: list[Block] = []
    changes: list[str] = []
    for block in output.content:
        data = object_of(block.get("source")).get("data")
        if block.get("type") != "image" or not isinstance(data, str):
            content.append(block)
            continue
        try:
            image = await asyncio.to_thread(fitted_base64, data, "The image")
        except ImageError as error:
            content.append(text_block(f"[{error}]"))
            changes.append("left out")
            continue
        if image is None or not image.change:
            content.append(block)
            continue
        where = ""
        if not output.details.get("path"):
            where = await asyncio.to_thread(_save_original, image, spill, outputs)
        said = f"[The image was {image.change}.{f' The original is in {where}.' if where else ''}]"
        content += [image.block, text_block(said)]
        changes.append(image.change)
    if not changes:
        return output
    summary = ", ".join(dict.fromkeys([*filter(None, [output.summary]), *changes]))
    return replace(output, content=content, summary=summary)


def _save_original(image: Image, spill: Path, outputs: OutputStore | None) -> str:
    """Keep the original of an image that is nowhere else. Its path; "" where it cannot be kept."""
    kind = media_type(image.source) or image.info.media_type
    try:
        with private_copy(spill.with_suffix(f".{ENDINGS[kind]}")) as file:
            file.write(image.source)
            path = Path(str(file.name))
    except (OSError, StorageError):
        log.warning("the original of an image could not be kept", exc_info=True)
        return ""
    if outputs:
        outputs.note(path)
    return str(path)


def _images(records: Sequence[Record], view: View) -> Iterator[tuple[int, int, Block]]:
    """The images that a view holds: the number of the record, the place in it, the block."""
    known = overlays_of(records)
    for number, record in enumerate(records):
        overlay = known.get(record.id)
        if record.type not in {"user", "tool_result"} or view.states.get(record.id) in _GONE:
            continue
        hidden = set[int]()
        if overlay is not None and overlay.view == "imageless":
            if not overlay.blocks:
                continue
            hidden = set(overlay.blocks)
        for place, block in enumerate(content_of(record)):
            if block.get("type") == "image" and place not in hidden:
                yield number, place, block


def _is_large(block: Block) -> bool:
    picture = image_info_of(block)
    return picture is not None and picture.longest > MANY_PIXELS


def _length(block: Block) -> int:
    data = object_of(block.get("source")).get("data")
    return len(data) if isinstance(data, str) else 0
