"""What a person typed, on its way into the record: directives, images, and the queue.

Images that a prompt names with `@` are read when it is sent, where the file tools may read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from tui.agent import events
from tui.agent.directives import ParsedPrompt, acknowledgement
from tui.core import images
from tui.core.errors import HoldfastError, ImageError, ToolError
from tui.core.image_files import load
from tui.core.images import Image
from tui.core.messages import text_block
from tui.core.workspace import Workspace
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.agent.directives import DirectiveState

NO_IMAGES: Mapping[str, Image] = MappingProxyType({})

MENTIONS = 50
"""So many are looked at in one prompt."""

_MENTION = re.compile(r"(?:(?<=\s)|\A)@(?:\"([^\"\n]+)\"|'([^'\n]+)'|((?:\\.|[^\s\"'\\])+))")
_AFTER = ".,;:!?)]}>"
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class AgentPrompt:
    """A prompt on its way to the model."""

    parsed: ParsedPrompt
    images: Mapping[str, Image] = field(default_factory=lambda: NO_IMAGES)
    """Go along, by the words that stand for them in the text."""
    attached: str = ""
    """Goes behind what was typed."""


@dataclass(slots=True)
class PromptIntake:
    """Takes over what was typed: switches its directives, records the rest and shows it.

    What is typed while a turn runs waits here, in the order in which it came, and joins the turn
    once its tools are done. Until it is taken over it can be taken back; it is sent or given
    back, and never both.
    """

    ctx: AgentContext
    directives: DirectiveState
    _queue: list[AgentPrompt] = field(default_factory=list[AgentPrompt])

    @property
    def queue(self) -> tuple[str, ...]:
        """What waits, as it was typed."""
        return tuple(prompt.parsed.typed for prompt in self._queue)

    def add(self, prompt: AgentPrompt) -> None:
        self._queue.append(prompt)

    def take_back(self) -> tuple[str, ...]:
        """Take all that waits out of the queue; returns the texts."""
        texts, self._queue = self.queue, []
        return texts

    async def take(self, prompt: AgentPrompt) -> bool:
        """Take over a prompt. False if there was nothing for the model in it."""
        return await self._record(prompt, await self._with_mentioned(prompt))

    async def take_queued(self) -> bool:
        """Take over what was typed meanwhile, one text at a time: an interrupt loses none."""
        taken = False
        while self._queue:
            prompt = self._queue[0]
            found = await self._with_mentioned(prompt)
            if prompt in self._queue:  # it was not taken back while its images were read
                self._queue.remove(prompt)
                self.ctx.publish(events.QueueChanged(self.queue))
                taken |= await self._record(prompt, found)
        return taken

    async def _with_mentioned(self, prompt: AgentPrompt) -> Mapping[str, Image]:
        """The images of a prompt and those that it names with `@`; what is refused is shown."""
        found = await mentioned_images(
            prompt.parsed.text, self.ctx.workspace, prompt.images.values(), self.ctx.records
        )
        for error in found.refused:
            self.ctx.publish(events.Notice(str(error)))
        return {**prompt.images, **found.images} if found.images else prompt.images

    async def _record(self, prompt: AgentPrompt, attached: Mapping[str, Image]) -> bool:
        parsed = prompt.parsed
        shown: list[events.Event] = []
        if parsed.changes:
            self.directives.apply(parsed.changes)
            shown.append(events.DirectivesChanged(**self.directives.now.to_json()))
            shown.append(events.Notice(acknowledgement(parsed.changes)))
        own = images.with_words(parsed.text, attached)
        text = "\n\n".join(part for part in (own, prompt.attached) if part.strip())
        if text:
            content = [*(image.block for image in attached.values()), text_block(text)]
            named = {"images": list(attached)} if attached else {}
            self.ctx.recorder.append("user", content=content, text=parsed.text or text, **named)
            rest = text.removeprefix(own or text).lstrip("\n")
            shown.append(events.UserMessage(text, rest))
        await self.ctx.recorder.show(*shown)
        return bool(text)


@dataclass(slots=True)
class MentionedImages:
    """The images by their words, and for each that was not attached, why."""

    images: dict[str, Image] = field(default_factory=dict[str, Image])
    refused: list[HoldfastError] = field(default_factory=list[HoldfastError])


async def mentioned_images(
    text: str, workspace: Workspace, given: Collection[Image], records: Iterable[Record]
) -> MentionedImages:
    """The images that a prompt names. `given` come along already: they are not attached twice.

    What is no image stays a mention. A name outside the folders of the workspace is refused as
    the tools refuse it.
    """
    names = list(dict.fromkeys(_names(text)))[:MENTIONS] if "@" in text else []
    if not names:
        return MentionedImages()
    there = {image.data for image in given}
    found, refused = await asyncio.to_thread(_load, names, workspace, there)
    if not found:
        return MentionedImages(refused=refused)
    taken = [images.number_of(word) for word in images.words_in(text)]
    first = max([highest_image(records), *taken]) + 1
    words = {image.word(first + n): image for n, image in enumerate(found)}
    attached = MentionedImages(refused=refused)
    for word, image in words.items():
        try:
            images.check_together([*given, *attached.images.values(), image])
        except ImageError as error:
            attached.refused.append(error)
            break
        attached.images[word] = image
    return attached


def highest_image(records: Iterable[Record]) -> int:
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
