"""web_fetch: a page of the web as text, read from this machine."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from tempfile import TemporaryFile
from threading import Event
from typing import TYPE_CHECKING, Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block, text_of
from tui.core.web_address import WebAddress
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread
from tui.tools.paging import PageLimits

if TYPE_CHECKING:
    from tui.tools.web.client import Resolve, WebLimits, WebPage
    from tui.tools.web.readable import Readable

_TITLE_CHARS = 60


class WebFetchParams(Params, frozen=True, kw_only=True):
    url: Annotated[str, about("The address of the page, with http:// or https://.", min_length=1)]
    pages: Annotated[
        str, about("Only for a PDF: the pages to read, such as 3 or 3-7; from the first without.")
    ] = ""


class WebFetch(Tool[WebFetchParams]):
    """Fetches one page. `limits` and `resolve` (which looks up a host's addresses) are for
    tests."""

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
        url = params.url.strip().removeprefix("https://")
        return f"{url} pages {params.pages}" if params.pages else url

    async def run(self, params: WebFetchParams, ctx: ToolContext) -> ToolOutput:
        """Fetch a page. An error of the server is an error too; its page is in the result."""
        await asyncio.to_thread(import_module, "tui.tools.web.readable")  # that takes long
        from tui.tools.web import client, readable  # noqa: PLC0415

        page = await client.fetch(
            WebAddress.parse(params.url),
            ctx.url_access,
            limits=self._limits or client.WebLimits(),
            wanted=readable.is_shown,
            resolve=self._resolve or client.resolve_host,
        )
        from tui.tools.pdf import is_pdf  # noqa: PLC0415 - start-up stays light

        if is_pdf(page.body) and not page.cut:
            content = await in_thread(partial(_pdf, page, params.pages, ctx))
        else:
            content = await asyncio.to_thread(readable.readable, page)
        return _output(page, content)


def _pdf(page: WebPage, pages: str, ctx: ToolContext, stop: Event) -> Readable:
    """Return pages of a PDF as text: in a document made by others, the model could not be told
    where it begins and ends. Raises ToolError."""
    from tui.tools.pdf import read_pdf  # noqa: PLC0415 - loaded by now
    from tui.tools.web.readable import Readable  # noqa: PLC0415 - loaded by now

    limits = PageLimits(ctx.guard.clamp_lines, ctx.read_page_bytes, ctx.guard.clamp_lines)
    kind = f"PDF document, {size(len(page.body))}"
    with TemporaryFile() as file:
        file.write(page.body)
        file.seek(0)
        try:
            read = read_pdf(file, str(page.address), pages, limits=limits, stop=stop)
        except ToolError as error:
            if pages:
                raise
            return Readable(kind, note=f"{error.message} {error.hint}".rstrip())
    return Readable(f"{kind}, {read.summary}", text_of(read.content))


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
