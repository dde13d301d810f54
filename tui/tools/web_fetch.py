"""web_fetch: a page of the web as text, read from this machine."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, ClassVar

from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.core.web_address import WebAddress
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about

if TYPE_CHECKING:
    from tui.tools.web.client import Resolve, WebLimits, WebPage
    from tui.tools.web.readable import Readable

_TITLE_CHARS = 60


class WebFetchParams(Params, frozen=True, kw_only=True):
    url: Annotated[str, about("The address of the page, with http:// or https://.", min_length=1)]


class WebFetch(Tool[WebFetchParams]):
    """Fetches one page. `limits` and `resolve` (which names a host's addresses) are for tests."""

    name: ClassVar[str] = "web_fetch"
    effect: ClassVar[Effect] = "fetch"
    params: ClassVar[type[Params]] = WebFetchParams

    def __init__(self, limits: WebLimits | None = None, resolve: Resolve | None = None) -> None:
        self._limits = limits
        self._resolve = resolve

    def subject(self, params: WebFetchParams) -> str:
        return str(WebAddress.parse(params.url))

    async def preview(self, params: WebFetchParams, ctx: ToolContext) -> CallPreview:  # noqa: ARG002
        return CallPreview("text", self.subject(params))

    def label(self, params: WebFetchParams) -> str:
        return params.url.strip().removeprefix("https://")

    async def run(self, params: WebFetchParams, ctx: ToolContext) -> ToolOutput:
        """An error of the server is an error too; its page is in the result."""
        await asyncio.to_thread(import_module, "tui.tools.web.readable")  # that takes long
        from tui.tools.web import client, readable  # noqa: PLC0415

        page = await client.fetch(
            WebAddress.parse(params.url),
            ctx.url_access,
            limits=self._limits or client.WebLimits(),
            wanted=readable.is_text,
            resolve=self._resolve or client.resolve_host,
        )
        content = await asyncio.to_thread(readable.readable, page)
        return _output(page, content)


def _output(page: WebPage, content: Readable) -> ToolOutput:
    status = f"{page.status} {page.reason}".strip()
    facts = {
        "URL": str(page.address),
        "Status": status if page.is_error else "",
        "Title": content.title,
        "Type": content.kind,
        "Note": content.note,
    }
    head = "\n".join(f"{name}: {value}" for name, value in facts.items() if value)
    blocks = [text_block(f"{head}\n\n{content.text}".rstrip())]
    if content.image is not None:
        blocks.append(content.image)
    named = content.title[:_TITLE_CHARS] or content.kind
    read = size(len(content.text.encode())) if content.text else ""
    return ToolOutput(
        blocks,
        is_error=page.is_error,
        summary=", ".join(filter(None, (status if page.is_error else "", read, named))),
        details={
            "url": str(page.address),
            "status": page.status,
            "content_type": page.content_type,
            "bytes": len(page.body),
        },
        source=str(page.address),
    )
