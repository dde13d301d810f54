"""The prompts of an editor: its blocks as the text of a prompt and its attachments."""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema

from tui.app.attachments import mention
from tui.app.conversation import Conversation
from tui.context.untrusted import wrap
from tui.core.errors import UsageError
from tui.core.formatting import size

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
ATTACHED_MAX: Final = 10_000_000
"""Maximum characters of attached texts: more would fit no model's window."""
_LINES: Final = re.compile(r"L(\d+)(?:[:-]L?(\d+))?")


async def read(blocks: Sequence[Block], conversation: Conversation) -> tuple[str, str]:
    """Return the text of a prompt, in which images and files are named, and the texts attached to
    it. Raises UsageError for what can't be sent."""
    root = conversation.services.workspace
    parts: list[str] = []
    attached: list[str] = []
    for block in blocks:
        # An embedded file is linked in the text, and its content attached.
        match block:
            case schema.TextContentBlock(text=text):
                parts.append(text)
            case schema.ImageContentBlock():
                name = Path(urlsplit(block.uri or "").path).name or "attached"
                parts.append(_apart(parts, await _image(conversation, block.data, name)))
            case schema.ResourceContentBlock(uri=uri):
                parts.append(_apart(parts, link(uri, root)))
            case schema.EmbeddedResourceContentBlock(resource=resource):
                uri = resource.uri
                if isinstance(resource, schema.TextResourceContents):
                    parts.append(_apart(parts, f"[{_name(uri)}]({uri})"))
                    attached.append(wrap(resource.text, uri))
                elif (resource.mime_type or "").startswith("image/"):
                    image = await _image(conversation, resource.blob, _name(uri))
                    parts.append(_apart(parts, image))
                else:
                    kind = resource.mime_type or "no text"
                    raise UsageError(
                        f"{_name(uri)} can't be attached ({kind}).",
                        hint="Name the file in the prompt: the model can read it.",
                    )
            case schema.AudioContentBlock():
                raise UsageError("Sound can't be attached.", hint="Send text, images or files.")
    total = sum(map(len, attached))
    if total > ATTACHED_MAX:
        raise UsageError(f"The attached texts are too large ({size(total)}).")
    return "".join(parts), "\n\n".join(attached)


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


def _apart(parts: Sequence[str], text: str) -> str:
    """Return a text separated from the word before it."""
    return f" {text} " if parts and parts[-1][-1:].strip() else f"{text} "


async def _image(conversation: Conversation, data: str, name: str) -> str:
    try:
        content = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        raise UsageError(f"The image {name} isn't valid base64.") from None
    word = await conversation.images.of_image(content, name)
    if not word:
        reason = getattr(conversation.frontend, "said", "")
        raise UsageError(reason or f"The image {name} can't be attached.")
    return word
