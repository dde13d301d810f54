"""The form in which images are sent: decided and recorded before the first time, then fixed.

A person's images are shrunk where they are read, a tool's here. Older sessions and imported ones
have larger ones: with more than 20 images in a request the API refuses any above 2,000 pixels. Nor
may all of them together be too large. The newest, which were never sent, go first: that changes
nothing of what was. An older one goes where that is not enough, which is a break.

A server may take no documents at all: then all of them are left out.

A model takes so many images and pages of documents and no more, fewer where its window is small.
There the oldest go, and more of them than must: what was sent changes once, not with each image
that is added.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path
from typing import NamedTuple, cast

from tui.agent.agent_context import AgentContext
from tui.context.overrides import CROWD, MEDIA, NO_DOCUMENTS, content_of, overlays_of
from tui.context.record_index import RecordIndex
from tui.context.rules.media import MANY_IMAGES, image_info_of, most_media
from tui.context.view import View
from tui.core.documents import page_count
from tui.core.errors import ImageError, LargeImages, StorageError
from tui.core.facts import Notice, Overlay
from tui.core.formatting import plural, size
from tui.core.image_files import ENDINGS
from tui.core.image_resize import fitted_base64
from tui.core.images import MANY_PIXELS, Image, media_type
from tui.core.messages import Block, Message, ToolOutput, list_of, object_of, text_block
from tui.core.output_store import OutputStore
from tui.core.private_files import private_copy
from tui.provider.base import ModelInfo, Request
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

log = logging.getLogger(__name__)

REQUEST_BYTES = 24 * 1024 * 1024
"""Base64 text of all images of a request; one of 32 MB is refused, and texts need room too."""

_GONE = frozenset({"masked", "summarised"})
_PIXELS = f"over {MANY_PIXELS} pixels among many images"
"""A reason for leaving out an image, as it is recorded."""


class _Image(NamedTuple):
    """An image or a document: the number of its record, its place in it, the block."""

    number: int
    place: int
    block: Block


def image_records() -> RecordIndex:
    """An index of the records with images or documents."""
    return RecordIndex({"user", "tool_result"}, has_media)


def has_media(record: Record) -> bool:
    """True if a record holds an image or a document."""
    return any(block.get("type") in MEDIA for block in content_of(record))


def image_bytes(request_bytes: int) -> int:
    """The base64 text of all images that fits into a request of a server; 0 is the API."""
    return min(REQUEST_BYTES, request_bytes * 3 // 4) if request_bytes else REQUEST_BYTES


def keep_to_limits(
    ctx: AgentContext, view: View, model: ModelInfo, off: frozenset[str], with_images: RecordIndex
) -> bool:
    """Record which images and documents are left out of the next request. Returns True if any are.

    `off` are the features that its server lacks; `with_images` is an index of `image_records`: most
    sessions have none.
    """
    if not with_images.of(ctx.records):
        return False
    most = most_media(model.window)
    bytes_most = image_bytes(ctx.link.at(model.id).request_bytes)
    too_heavy = f"over {size(bytes_most * 3 // 4)} of images"
    beyond = _beyond_limits(
        ctx.records, view, most, bytes_most, too_heavy, documents="documents" not in off
    )
    for change in _overlays(ctx.records, beyond):
        ctx.record(change)
    refused = beyond.pop(NO_DOCUMENTS)  # said once, when the server refused them
    if crowd := beyond.pop(CROWD):
        what = _in_words(crowd)
        per = "images and pages" if "document" in what else ""
        text = f"{what}, the oldest, left out: {model.id} accepts at most {most}"
        ctx.publish(Notice(" ".join(filter(None, [text, per, "per request."]))))
    if others := [one for images in beyond.values() for one in images]:
        what = _in_words(others)
        why_of = {
            _PIXELS: f"for one above {MANY_PIXELS:,} pixels",
            too_heavy: f"for more than {size(bytes_most * 3 // 4)} of them",
        }
        whys = " and ".join(why_of[why] for why, images in beyond.items() if images)
        kind = "images and documents" if "document" in what else "images"
        text = f"{what} left out: the request has too many {kind} {whys}."
        ctx.publish(Notice(f"{text} Attach a smaller copy to include it."))
    return bool(refused or crowd or others)


def _in_words(images: Sequence[_Image]) -> str:
    """`2 images and 1 document`."""
    counts = Counter(str(one.block.get("type")) for one in images)
    return " and ".join(plural(counts[kind], kind) for kind in sorted(counts, reverse=True))


def _beyond_limits(
    records: Sequence[Record],
    view: View,
    most: int,
    bytes_most: int,
    too_heavy: str,
    *,
    documents: bool,
) -> dict[str, Sequence[_Image]]:
    """The images without which those of a view are within the limits, by the limit: `most` are
    taken, of no more than `bytes_most`; `too_heavy` says so."""
    shown = list(_images(records, view))
    refused = [one for one in shown if not documents and one.block.get("type") == "document"]
    shown = [one for one in shown if one not in refused] if refused else shown
    crowd = _surplus(shown, most)
    remaining = shown[len(crowd) :]
    sent = max((n for n, record in enumerate(records) if record.type == REQUEST), default=-1)
    order = sorted(remaining, key=lambda one: one.number <= sent)
    many = sum(one.block.get("type") == "image" for one in remaining) - MANY_IMAGES
    large = [one for one in order if _is_large(one.block)][: max(0, many)]
    places = {(one.number, one.place) for one in large}
    others = [one for one in order if (one.number, one.place) not in places]
    total = sum(_length(one.block) for one in others)
    heavy: list[_Image] = []
    for one in others:
        if total <= bytes_most:
            break
        heavy.append(one)
        total -= _length(one.block)
    return {NO_DOCUMENTS: refused, CROWD: crowd, _PIXELS: large, too_heavy: heavy}


def _surplus(images: Sequence[_Image], most: int) -> Sequence[_Image]:
    """The oldest, which are to go: where there are too many images and pages, all but three
    quarters of what is taken."""
    count = sum(map(_pages, images))
    if count <= most:
        return ()
    going = takewhile(lambda before: count - before > most * 3 // 4, _sums(map(_pages, images)))
    return images[: sum(1 for _ in going)]


def _sums(numbers: Iterable[int]) -> Iterator[int]:
    """For each number the sum of those before it."""
    return accumulate(numbers, initial=0)


def _pages(one: _Image) -> int:
    return page_count(one.block) if one.block.get("type") == "document" else 1


def _overlays(records: Sequence[Record], gone: Mapping[str, Sequence[_Image]]) -> list[Overlay]:
    """One change for each record, with all images of it that are left out, and why."""
    known = overlays_of(records)
    hidden: dict[int, set[int]] = {}
    reasons: dict[int, str] = {}
    for why, images in gone.items():
        for one in images:
            hidden.setdefault(one.number, set()).add(one.place)
            reasons.setdefault(one.number, why)
    changes: list[Overlay] = []
    for number, places in hidden.items():
        id_ = records[number].id
        before = known.get(id_, Overlay(id_, "full"))
        blocks = tuple(sorted(places | set(before.blocks)))
        why, smaller = reasons[number], before.images
        changes.append(Overlay(id_, "imageless", "limits", why, blocks=blocks, images=smaller))
    return changes


async def shrink_refused(
    ctx: AgentContext, view: View, refused: LargeImages, sent: Request
) -> bool:
    """Shrink the images that a server named as too large in a request; one that can't be shrunk is
    left out. False where none of them is in the view."""
    named = {data for path in refused.paths if (data := _data_at(sent.messages, path))}
    known, shrunk, left = overlays_of(ctx.records), 0, 0
    changes: dict[int, Overlay] = {}
    for one in [*_images(ctx.records, view)]:
        data = object_of(one.block.get("source")).get("data")
        if one.block.get("type") != "image" or not isinstance(data, str) or data not in named:
            continue
        id_ = ctx.records[one.number].id
        before = changes.get(one.number) or known.get(id_) or Overlay(id_, "full")
        try:
            image = await asyncio.to_thread(fitted_base64, data, "The image", refused.longest)
        except ImageError:
            image = None
        blocks, images = {*before.blocks}, {**before.images}
        if image is not None and image.info.longest <= refused.longest and image.change:
            images[str(one.place)] = image.block
            shrunk += 1
        else:
            blocks.add(one.place)
            left += 1
        why, gone = f"over {refused.longest} pixels a side", tuple(sorted(blocks))
        changes[one.number] = Overlay(id_, "imageless", "limits", why, blocks=gone, images=images)
    for change in changes.values():
        ctx.record(change)
    done = [f"{plural(shrunk, 'image')} shrunk"] * bool(shrunk)
    done += [f"{plural(left, 'image')} left out"] * bool(left)
    if done:
        most = f"The server takes images of at most {refused.longest:,} pixels a side"
        ctx.publish(Notice(f"{most}: {', '.join(done)}."))
    return bool(done)


def _data_at(messages: Sequence[Message], path: str) -> str | None:
    """The base64 text of the image at a path of a request, such as `messages.0.content.1`."""
    place: object = cast("object", {"messages": messages})
    for step in path.split("."):
        if step.isdecimal():
            steps = list_of(place)
            place = steps[int(step)] if int(step) < len(steps) else None
        else:
            place = object_of(place).get(step)
    data = object_of(object_of(place).get("source")).get("data")
    return data if isinstance(data, str) else None


async def fit_images(output: ToolOutput, spill: Path, outputs: OutputStore | None) -> ToolOutput:
    """A result with its images small enough to be sent; a text after each says what was done.

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
        # the file that it was read from is the original
        if not output.details.get("path"):
            where = await asyncio.to_thread(_save_original, image, spill, outputs)
        note = f"[The image was {image.change}.{f' The original is in {where}.' if where else ''}]"
        content += [image.block, text_block(note)]
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
        log.warning("couldn't keep the original of an image", exc_info=True)
        return ""
    if outputs:
        outputs.note(path)
    return str(path)


def _images(records: Sequence[Record], view: View) -> Iterator[_Image]:
    """The images and documents that a view holds, the oldest first."""
    known = overlays_of(records)
    for number, record in enumerate(records):
        overlay = known.get(record.id)
        if record.type not in {"user", "tool_result"} or view.states.get(record.id) in _GONE:
            continue
        hidden, smaller = set[int](), dict[str, Block]()
        if overlay is not None and overlay.view == "imageless":
            if not (overlay.blocks or overlay.images):
                continue
            hidden, smaller = set(overlay.blocks), overlay.images
        for place, block in enumerate(content_of(record)):
            if block.get("type") in MEDIA and place not in hidden:
                yield _Image(number, place, smaller.get(str(place), block))


def _is_large(block: Block) -> bool:
    picture = image_info_of(block)
    return picture is not None and picture.longest > MANY_PIXELS


def _length(block: Block) -> int:
    data = object_of(block.get("source")).get("data")
    return len(data) if isinstance(data, str) else 0
