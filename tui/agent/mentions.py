"""Images that a prompt names with `@`: read when it is sent, where the file tools may read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from tui.core import images
from tui.core.errors import HoldfastError, ImageError, ToolError
from tui.core.image_files import load
from tui.core.images import Image
from tui.core.workspace import Workspace
from tui.session.records import Record

MOST = 50
"""Mentions that are looked at in one prompt."""

_MENTION = re.compile(r"(?:(?<=\s)|\A)@(?:\"([^\"\n]+)\"|'([^'\n]+)'|((?:\\.|[^\s\"'\\])+))")
_AFTER = ".,;:!?)]}>"
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)


@dataclass(slots=True)
class Mentioned:
    """The images by their words, and for each that was not attached, why."""

    images: dict[str, Image] = field(default_factory=dict[str, Image])
    refused: list[HoldfastError] = field(default_factory=list[HoldfastError])


async def look(
    text: str, workspace: Workspace, given: Collection[Image], records: Iterable[Record]
) -> Mentioned:
    """The images that a prompt names. `given` come along already: they are not attached twice.

    What is no image stays a mention. A name outside the folders of the workspace is refused as
    the tools refuse it.
    """
    names = list(dict.fromkeys(_names(text)))[:MOST] if "@" in text else []
    if not names:
        return Mentioned()
    there = {image.data for image in given}
    found, refused = await asyncio.to_thread(_load, names, workspace, there)
    if not found:
        return Mentioned(refused=refused)
    taken = [images.number_of(word) for word in images.words_in(text)]
    first = max([highest(records), *taken]) + 1
    words = {image.word(first + n): image for n, image in enumerate(found)}
    mentioned = Mentioned(refused=refused)
    for word, image in words.items():
        try:
            images.check_together([*given, *mentioned.images.values(), image])
        except ImageError as error:
            mentioned.refused.append(error)
            break
        mentioned.images[word] = image
    return mentioned


def highest(records: Iterable[Record]) -> int:
    """The highest number that an image of a session bears; 0 where there is none."""
    return max(
        (
            images.number_of(word)
            for record in records
            if record.type == "user" and "images" in record.data
            for word in images.names_in(record.data)
        ),
        default=0,
    )


def _names(text: str) -> Iterator[str]:
    for found in _MENTION.finditer(text):
        quoted = found[1] or found[2]
        yield quoted or re.sub(r"\\(.)", r"\1", found[3])


def _load(
    names: Iterable[str], workspace: Workspace, there: Collection[str]
) -> tuple[list[Image], list[HoldfastError]]:
    found: list[Image] = []
    refused: list[HoldfastError] = []
    for name in names:
        try:
            image = _image(name, workspace)
        except HoldfastError as error:
            refused.append(error)
            continue
        if image is not None and image.data not in there:
            found.append(image)
            there = {*there, image.data}
    return found, refused


def _image(name: str, workspace: Workspace) -> Image | None:
    """The image of a name, or of the name less what ends a sentence behind it."""
    for tried in dict.fromkeys((name, name.rstrip(_AFTER))):
        try:
            path = workspace.resolve(tried)
        except ToolError:
            if _IMAGE_NAME.search(tried):
                raise
            continue
        if image := load(path, images.display_name(workspace.show(path))):
            return image
    return None
