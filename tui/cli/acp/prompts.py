"""The prompts of an editor: its blocks as the text of a prompt and its attachments."""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from tui.app.attachments import mention
from tui.app.conversation import Conversation
from tui.context.untrusted import wrap
from tui.core.dataclass import dataclass, field
from tui.core.errors import UsageError
from tui.core.formatting import size
from tui.core.messages import object_of

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
_BLOCK: Final[TypeAdapter[Block]] = TypeAdapter(Block)
ATTACHED_MAX: Final = 10_000_000
"""Maximum characters of attached texts: more would fit no model's window."""
_LINES: Final = re.compile(r"L(\d+)(?:[:-]L?(\d+))?")


class PromptRequest(BaseModel):
    """A prompt whose blocks are checked one by one: a bad one costs no other."""

    session_id: str = Field(alias="sessionId")
    prompt: list[Any]


async def read(given: Sequence[Any], conversation: Conversation) -> tuple[str, str]:
    """Return the text of a prompt, in which images and files are named, and the texts attached to
    it. What can't be sent is left out: the person is told, and the text says so in its place.
    Raises UsageError if nothing else is there."""
    prompt = _Reading(conversation)
    for one in given:
        try:
            block = _BLOCK.validate_python(one)
            await prompt.add(block)
        except ValidationError:
            kind = object_of(one).get("type")
            prompt.leave_out(UsageError(f"A block of the prompt can't be read (type {kind!r})."))
        except UsageError as error:
            prompt.leave_out(error)
    if prompt.left_out and not prompt.sends:
        raise prompt.left_out[0]
    for error in prompt.left_out:
        if str(error) != getattr(conversation.frontend, "said", ""):
            conversation.frontend.say(error.message, "warning", hint=error.hint)
    return "".join(prompt.parts), "\n\n".join(prompt.attached)


@dataclass(slots=True)
class _Reading:
    """A prompt as far as it is read."""

    conversation: Conversation
    parts: list[str] = field(default_factory=list[str])
    attached: list[str] = field(default_factory=list[str])
    left_out: list[UsageError] = field(default_factory=list[UsageError])
    sends: bool = False
    """True if there is something to send."""

    async def add(self, block: Block) -> None:
        """Add a block. Raises UsageError for what can't be sent."""
        # An embedded file is linked in the text, and its content attached.
        match block:
            case schema.TextContentBlock(text=text):
                self.parts.append(text)
                self.sends |= bool(text.strip())
                return
            case schema.ImageContentBlock():
                name = Path(urlsplit(block.uri or "").path).name or "attached"
                text = await self._image(block.data, name)
            case schema.ResourceContentBlock(uri=uri):
                text = link(uri, self.conversation.services.workspace)
            case schema.EmbeddedResourceContentBlock(resource=resource):
                text = await self._embedded(resource)
            case schema.AudioContentBlock():
                raise UsageError("Sound can't be attached.", hint="Send text, images or files.")
        self._put(text)
        self.sends = True

    def leave_out(self, error: UsageError) -> None:
        self.left_out.append(error)
        self._put(f"[left out: {error.message}]")

    def _put(self, text: str) -> None:
        """Add a text, separated from the word before it."""
        apart = " " if self.parts and self.parts[-1][-1:].strip() else ""
        self.parts.append(f"{apart}{text} ")

    async def _embedded(
        self, resource: schema.TextResourceContents | schema.BlobResourceContents
    ) -> str:
        name = _name(resource.uri)
        if isinstance(resource, schema.TextResourceContents):
            if sum(map(len, self.attached)) + len(resource.text) > ATTACHED_MAX:
                raise UsageError(f"{name} is too large ({size(len(resource.text))}).")
            self.attached.append(wrap(resource.text, resource.uri))
            return f"[{name}]({resource.uri})"
        if (resource.mime_type or "").startswith("image/"):
            return await self._image(resource.blob, name)
        raise UsageError(
            f"{name} can't be attached ({resource.mime_type or 'no text'}).",
            hint="Name the file in the prompt: the model can read it.",
        )

    async def _image(self, data: str, name: str) -> str:
        images, frontend = self.conversation.images, self.conversation.frontend
        try:
            content = binascii.a2b_base64(data, strict_mode=True)
        except ValueError:
            raise UsageError(f"The image {name} isn't valid base64.") from None
        word = await images.of_image(content, name)
        if not word or not images.fits("".join((*self.parts, word))):
            reason = getattr(frontend, "said", "")
            raise UsageError(reason or f"The image {name} can't be attached.")
        return word


def link(uri: str, root: Path) -> str:
    """Return a link to a file of the workspace as a mention, whose file is read; any other as it
    is."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/"):
        return uri
    named = mention(Path(path), path, root)
    lines = _LINES.fullmatch(parts.fragment)
    if not lines or not named.startswith("@"):
        return named
    return f"{named}:{lines[1]}" + (f"-{lines[2]}" if lines[2] else "")


def _name(uri: str) -> str:
    return Path(unquote(urlsplit(uri).path)).name or uri
