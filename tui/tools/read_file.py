"""read_file: a page of a text, pages of a PDF, a notebook, an image, or the kind of a binary
file."""

from __future__ import annotations

import base64
import io
import os
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, BinaryIO, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import plural, size
from tui.core.image_resize import MAX_SOURCE
from tui.core.images import media_type
from tui.core.messages import ToolOutput, image_block
from tui.core.output_store import why_missing
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import (
    WHOLE_FILE_LIMIT,
    in_thread,
    missing,
    open_regular,
    os_failure,
    resolve,
)
from tui.tools.file_ledger import SeenFile
from tui.tools.paging import Page, PageLimits, read_page
from tui.tools.text_decoding import HEAD_BYTES, binary_kind, encoding_of, only_cr, printable

if TYPE_CHECKING:
    from tui.tools.notebook import Notebook

_LINES = 2000
"""Lines of one call that does not say how many."""
_READ_BYTES = 2 << 20
"""Files up to this size are read as a whole."""


class ReadFileParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, about("The file, relative to the workspace or absolute.")]
    offset: Annotated[int, about("The first line to read, counted from 1.", ge=1)] = 1
    limit: Annotated[int, about("The maximum number of lines to read.", ge=1)] = _LINES
    byte_offset: Annotated[
        int,
        about(
            "Start at this byte instead of a line. Only to continue inside a line "
            "larger than a page, with the number the previous page named.",
            ge=0,
        ),
    ] = 0
    pages: Annotated[
        str, about("Only for a PDF: the pages to read, such as 3 or 3-7; from the first without.")
    ] = ""
    raw: Annotated[
        bool, about("Only for a notebook (.ipynb): its JSON as it is, instead of its cells.")
    ] = False


class ReadFile(Tool[ReadFileParams]):
    name: ClassVar[str] = "read_file"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = ReadFileParams

    async def run(self, params: ReadFileParams, ctx: ToolContext) -> ToolOutput:
        path = await resolve(ctx, params.path)
        output, seen = await in_thread(partial(_read, params, ctx, path))
        ctx.files.note_seen(path, seen.stat, seen.sha256, seen.data)
        # The file and its state go into the record, so that a later change can be detected.
        stat = seen.stat
        fact = {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        link = await in_thread(partial(_link_to, path, ctx, params.path))
        return replace(output, details={**fact, "sha256": seen.sha256, **link, **output.details})

    def label(self, params: ReadFileParams) -> str:
        if params.pages:
            return f"{params.path} pages {params.pages}"
        if params.byte_offset:
            return f"{params.path} from byte {params.byte_offset}"
        if params.limit < _LINES:
            last = params.offset + params.limit - 1
            return f"{params.path} lines {params.offset}-{last}"
        return params.path if params.offset == 1 else f"{params.path} from line {params.offset}"


def _link_to(path: Path, ctx: ToolContext, named: str, _stop: Event) -> dict[str, str]:
    """Return the path that was asked for, if that is a link to the file, for the record."""
    asked = os.path.normpath(ctx.workspace.root / named)
    return {"link": asked} if asked != str(path) and os.path.realpath(asked) == str(path) else {}


def _read(
    params: ReadFileParams, ctx: ToolContext, path: Path, stop: Event
) -> tuple[ToolOutput, SeenFile]:
    """Return the output for the model, and the state of the file. In the details, `lines` are the
    first and the last of a text; `unseen`: the model gets nothing of the file's content."""
    shown = printable(ctx.workspace.show(path))
    if not os.path.lexists(path):
        if path.parent == ctx.spill_path.parent:
            raise ToolError(why_missing(path), hint="Run what produced the output again.")
        raise missing(ctx.workspace, path)
    from tui.tools.pdf import is_pdf  # noqa: PLC0415 - start-up stays light

    with open_regular(path, shown) as file:
        stat = os.fstat(file.fileno())
        try:
            head = file.read(HEAD_BYTES)
            if is_pdf(head):
                seen = _hashed(file, stat)
                return _pdf(params, ctx, file, shown, stop), seen
            if params.pages:
                raise ToolError(
                    f"pages is only for PDF files, and {shown} is none.",
                    hint="Leave it out; use offset and limit for a part of a text.",
                )
            kind = binary_kind(head)
            if kind is not None and (image := media_type(head)) is not None:
                return _image(file, head, image, stat, shown)
            # The output of a command was saved as text, even with NUL bytes in it.
            if kind is not None and path.parent != ctx.spill_path.parent:
                line = f"{shown} is a binary file: {kind}, {size(stat.st_size)}. Not shown."
                output = ToolOutput.text(line, summary=kind)
                return replace(output, details={"unseen": True}), SeenFile(stat, None)
            source, seen = _text(file, head, stat)
            notebook, why = None, ""
            if path.suffix.lower() == ".ipynb" and not params.raw:
                source, notebook, why = _cells(source)
            limits = PageLimits(
                ctx.guard.clamp_lines,
                ctx.read_page_bytes,
                params.limit,
                numbered=notebook is None,
            )
            page = read_page(
                source,
                line=params.offset,
                byte=params.byte_offset or None,
                limits=limits,
                stop=stop,
            )
        except OSError as error:
            raise os_failure("read", shown, error) from error
    output = _page_output(page, notebook)
    return output.with_lines([why] if why else []), seen


def _page_output(page: Page, notebook: Notebook | None) -> ToolOutput:
    """Return a page as the model gets it."""
    lines = page.text.count("\n") + (page.text != "" and not page.text.endswith("\n"))
    more = ", more follows" if page.next_line or page.next_byte else ""
    summary = f"{lines} line{'s' * (lines != 1)}{more}"
    output = ToolOutput.text(page.render(), summary=summary)
    if notebook is not None:
        images = notebook.images_in(page.text)
        summary = f"{plural(notebook.cells, 'cell')}{more}"
        return replace(output, content=[*output.content, *images], summary=summary)
    first = page.number or 1
    return replace(output, details={"lines": [first, first + max(lines, 1) - 1]})


def _pdf(
    params: ReadFileParams, ctx: ToolContext, file: BinaryIO, shown: str, stop: Event
) -> ToolOutput:
    if params.offset > 1 or params.byte_offset:
        raise ToolError(
            f"{shown} is a PDF: offset and byte_offset are only for text files.",
            hint="Name the pages to read, such as pages=3-7.",
        )
    from tui.tools.pdf import read_pdf  # noqa: PLC0415 - start-up stays light

    limits = PageLimits(ctx.guard.clamp_lines, ctx.read_page_bytes, params.limit)
    most = ctx.document_pages
    return read_pdf(file, shown, params.pages, limits=limits, document_pages=most, stop=stop)


def _cells(source: BinaryIO) -> tuple[BinaryIO, Notebook | None, str]:
    """Return a notebook as text and its cells; if that is not possible, the source and the
    reason."""
    from tui.tools.notebook import NotNotebookError, parse  # noqa: PLC0415 - on demand

    try:
        notebook = parse(source)
    except NotNotebookError as error:
        return source, None, f"[the notebook as it is, not as cells: {error}]"
    text = notebook.text.encode("utf-8", "replace")
    return io.BytesIO(text), notebook, ""


def _image(
    file: BinaryIO, head: bytes, image: str, stat: os.stat_result, shown: str
) -> tuple[ToolOutput, SeenFile]:
    kind = f"{image.removeprefix('image/').upper()} image, {size(stat.st_size)}"
    if stat.st_size > MAX_SOURCE:
        line = (
            f"{shown} is a {kind}: too large to look at (at most {size(MAX_SOURCE)}). "
            "Make a smaller copy with a command and read that."
        )
        output = ToolOutput.text(line, summary=kind)
        return replace(output, details={"unseen": True}), SeenFile(stat, None)
    whole = head + file.read(MAX_SOURCE)
    data = base64.b64encode(whole).decode("ascii")
    seen = SeenFile(stat, sha256(whole).hexdigest())
    return ToolOutput([image_block(image, data)], summary=kind), seen


def _text(file: BinaryIO, head: bytes, stat: os.stat_result) -> tuple[BinaryIO, SeenFile]:
    """Return the file as UTF-8 that can seek, and its state."""
    bom, encoding = encoding_of(head)
    if encoding == "utf-8" and stat.st_size > _READ_BYTES:
        return file, _hashed(file, stat)
    if stat.st_size > WHOLE_FILE_LIMIT:
        raise ToolError(
            f"The file is {encoding.upper()}, {size(stat.st_size)}: too large to convert.",
            hint="Convert it to UTF-8 with a command (iconv) and read the copy.",
        )
    data = head + file.read(WHOLE_FILE_LIMIT)
    seen = SeenFile(stat, sha256(data).hexdigest(), data)
    if encoding != "utf-8":
        data = data[len(bom) :].decode(encoding, "replace").encode()
    if b"\n" not in data and only_cr(data.decode("latin-1")):
        data = data.replace(b"\r", b"\n")
    return io.BytesIO(data), seen


def _hashed(file: BinaryIO, stat: os.stat_result) -> SeenFile:
    """Return the state of a file that is not read as a whole; with its hash if it isn't too
    large."""
    if stat.st_size > WHOLE_FILE_LIMIT:
        return SeenFile(stat, None)
    digest = sha256()
    file.seek(0)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    file.seek(0)
    return SeenFile(stat, digest.hexdigest())
