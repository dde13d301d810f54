"""The names in a prompt after `@`: images are attached to it, files and folders are read by the
tools, and so are the resources of MCP servers, named as `@server:uri`.

A file is read by a call of `read_file`, a folder by one of `list_dir`, recorded as if the model had
made them. So they pass the same rules and limits as all reading, have a card and a receipt, can be
pruned and undone; and what others wrote into a file is a tool's result to the model, not the
person's words (the Messages API's advice on text that others can edit).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui.agent.prompts import ParsedPrompt, highest_image
from tui.core import images
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, ImageError, ToolError
from tui.core.facts import Notice
from tui.core.image_files import load
from tui.core.images import Image
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block
from tui.core.workspace import Workspace
from tui.session.records import MENTIONED

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.permissions.reading_rules import ReadingRules

MENTIONS: Final = 50
"""Number of names that are looked at in one prompt."""
READS: Final = 20
"""Number of files and folders that are read for one prompt."""

_LINES = r":\d+(?:-\d+)?|\#L\d+(?:-L?\d+)?"
_MENTION = late_pattern(
    rf"""(?<![\w@./:\\-])@(?:"([^"\n]+)"({_LINES})?|'([^'\n]+)'({_LINES})?|((?:\\.|[^\s"'\\])+)"""
    r"""|"([^"\n]+/)(?=[ \t]*(?:\n|\Z)))""",  # a folder that was completed, its quote open
)
_AFTER = ".,;:!?)]}>"
_RANGE = late_pattern(r"(.+?)(?::|#L)(\d+)(?:-L?(\d+))?\Z", re.DOTALL)
_URI = late_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:\S")
_IMAGE_NAME = late_pattern(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Mentioned:
    images: list[Image] = field(default_factory=list[Image])
    reads: list[Block] = field(default_factory=list[Block])
    refused: list[HoldfastError] = field(default_factory=list[HoldfastError])


async def with_mentioned(prompt: ParsedPrompt, ctx: AgentContext) -> ParsedPrompt:
    """The prompt with the images that it names and the calls that read the rest; why something is
    not read is shown.

    What names nothing stays a mention, and an image that comes along already is not attached twice.
    A name outside the folders of the workspace is refused as the tools refuse it.
    """
    text = f"{prompt.text}\n{prompt.command.text}" if prompt.command else prompt.text
    names = list(dict.fromkeys(_names(text)))[:MENTIONS] if "@" in text else []
    if not names or ctx.parent is not None:  # a model wrote it, who has tools to read
        return prompt
    attached = dict(prompt.images)
    known = {image.data for image in attached.values()}
    servers = [server.name for server in ctx.toolbox.servers.all] if ctx.toolbox.servers else []
    reading = ctx.rules.gate.policy.reading(ctx.workspace)
    mentioned = await asyncio.to_thread(
        _resolve, names, ctx.workspace, known, ctx.toolbox.tools, servers=servers, reading=reading
    )
    taken = [images.number_of(word) for word in images.words_in(prompt.text)]
    first = max([highest_image(ctx.records), *taken]) + 1
    for number, image in enumerate(mentioned.images, first):
        try:
            images.check_together([*attached.values(), image])
        except ImageError as error:
            mentioned.refused.append(error)
            break
        attached[image.word(number)] = image
        if image.change:
            ctx.publish(Notice(f"Attached {images.display_name(image.name)}, {image.change}."))
    for error in mentioned.refused:
        ctx.publish(Notice(str(error)))
    if (left := len(mentioned.reads) - READS) > 0:
        what = f"Reads the first {READS} of the files that you named"
        ctx.publish(Notice(f"{what}; the model can read the other {left} itself."))
    return replace(prompt, images=attached, reads=mentioned.reads[:READS])


def named_files(text: str, workspace: Workspace) -> list[str]:
    """The names in a text that a conversation would read or attach, or refuse. Blocks."""
    names: list[str] = []
    for name in dict.fromkeys(_names(text)):
        try:
            named = _named(name, workspace) is not None
        except HoldfastError:
            named = True
        if named:
            names.append(name.rstrip(_AFTER))
    return names


def _names(text: str) -> Iterator[str]:
    for match in _MENTION.finditer(text):
        if quoted := match[1] or match[3] or match[6]:
            yield f"{quoted}{match[2] or match[4] or ''}"
        else:
            yield re.sub(r"\\(.)", r"\1", match[5])


def _resolve(
    names: Iterable[str],
    workspace: Workspace,
    known: Collection[str],
    tools: Container[str],
    *,
    servers: Iterable[str],
    reading: ReadingRules,
) -> _Mentioned:
    """Find what names stand for. Blocks."""
    mentioned = _Mentioned()
    for name in names:
        try:
            place = replace(workspace, temporary=None)  # the person's own /tmp
            one = _named(name, place, reading.denying)
            one = one or _resource(name, servers)
        except HoldfastError as error:
            mentioned.refused.append(error)
            continue
        if isinstance(one, Image):
            if one.data not in known:
                mentioned.images.append(one)
                known = {*known, one.data}
        elif one is not None and one["name"] in tools and one not in mentioned.reads:
            mentioned.reads.append(one)
    return mentioned


def _named(
    name: str, workspace: Workspace, denying: Callable[[Path], object] = lambda _: None
) -> Image | Block | None:
    """The image, or the call that reads it, of a name, or of the name less what ends a sentence
    after it. Where a rule is `denying` it, the call is refused. Raises ToolError and ImageError."""
    for tried in dict.fromkeys((name, name.rstrip(_AFTER))):
        path = _existing(tried, workspace)
        if path is not None:
            shown = images.display_name(workspace.show(path))
            return (None if denying(path) else load(path, shown, real=True)) or _read(
                path, tried, {}
            )
        ranged = _RANGE.fullmatch(tried)
        path = _existing(ranged[1], workspace) if ranged else None
        if ranged and path is not None and path.is_file():
            return _read(path, ranged[1], _part(path, int(ranged[2]), int(ranged[3] or 0)))
    return None


def _resource(name: str, servers: Iterable[str]) -> Block | None:
    """The call that reads a resource of an MCP server, named as `server:uri`."""
    name = name.rstrip(_AFTER)
    for server in servers:
        uri = name.removeprefix(f"{server}:")
        if uri != name and _URI.match(uri):
            return call("read_mcp_resource", {"server": server, "uri": uri})
    return None


def _existing(name: str, workspace: Workspace) -> Path | None:
    """The path of a name that is there. Raises ToolError for one outside the workspace."""
    try:
        path = workspace.resolve(name)
    except ToolError:
        if _IMAGE_NAME.search(name) or _is_there(name, workspace):
            raise
        return None
    with suppress(OSError, ValueError):  # of a name that is too long, or odd
        return path if path.exists() else None
    return None


def _is_there(name: str, workspace: Workspace) -> bool:
    with suppress(OSError, ValueError):
        return os.path.lexists(workspace.root / os.path.expanduser(name))  # noqa: PTH111 - an unknown ~user is a plain name
    return False


def _read(path: Path, name: str, part: dict[str, Any]) -> Block | None:
    """The call that reads a file or a folder; None for anything else."""
    if path.is_dir():
        return call("list_dir", {"path": name})
    return call("read_file", {"path": name, **part}) if path.is_file() else None


def _part(path: Path, first: int, last: int) -> dict[str, Any]:
    """A range of lines, or of a PDF's pages, as read_file takes it; without a last one, all from
    the first on."""
    first, last = max(1, first), max(0, last)
    if last:
        first, last = min(first, last), max(first, last)
    if path.suffix.lower() == ".pdf":
        return {"pages": f"{first}-{last or ''}"}
    return {"offset": first, **({"limit": last - first + 1} if last else {})}


def call(tool: str, arguments: dict[str, Any]) -> Block:
    """A call that the person's prompt makes."""
    return {"type": "tool_use", "id": MENTIONED, "name": tool, "input": arguments}
