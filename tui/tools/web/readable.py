"""A page's bytes as text: HTML as Markdown, other text as it is, images, and the rest by name.

The only module that imports html-to-markdown. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import base64
import codecs
import logging
import re
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.formatting import size
from tui.core.images import media_type
from tui.core.messages import Block, image_block
from tui.core.text_cleaning import clean
from tui.tools.pdf import is_pdf
from tui.tools.text_decoding import HEAD_BYTES, binary_kind, bom_of
from tui.tools.web.client import WebPage

log = logging.getLogger(__name__)

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_HTML_START = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_DECLARED = re.compile(
    rb"""(?:<meta[^>]+?charset|<\?xml[^>]+?encoding)\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE
)
_DECLARED_BYTES: Final = 4096

_CHARSETS: Final = frozenset({
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1250", "cp1251", "cp1252", "cp1253",
    "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp866", "cp874", "koi8-r", "koi8-u", "big5",
    "euc_jp", "euc_kr", "cp949", "gb2312", "gbk", "gb18030", "shift_jis", "cp932", "iso2022_jp",
    "mac-roman", *(f"iso8859-{number}" for number in (*range(2, 9), 10, 11, 13, 14, 15, 16)),
})  # fmt: skip
"""Charsets that a page may be in; Python has further codecs that are no charsets."""

_AS_BROWSERS: Final = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254"}
"""The real charset of pages that name these, as browsers read them."""

_NAVIGATION: Final = [
    "nav", "[role=navigation]", "[role=search]", "a.headerlink", "svg", "iframe", "button",
    # Line numbers and anchors as Pygments, Sphinx and rustdoc write them.
    ".linenos", "a.anchor",
]  # fmt: skip
"""Parts of a page that are not its text."""

_PRE_OR_LINK = re.compile(
    r"""<(?P<end>/?)(?P<name>pre|a)(?=[\s/>])(?:[^<>"']|"[^"]*"|'[^']*'){0,64}+>""", re.IGNORECASE
)

_FRONT_MATTER = re.compile(r"\A---\n(?:[\w:.-]+: .*\n)+---\n+")
_TITLE_CHARS: Final = 200
_NO_CODE = re.compile(r"""\sdata-nosnippet\b|\sclass=["']?(?:tooltip|linenos?)\b""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable part of a page. `kind` says in words what it is, `note` what is missing.

    For an image, `text` is "".
    """

    kind: str
    text: str = ""
    title: str = ""
    note: str = ""
    image: Block | None = None


def is_shown(head: bytes) -> bool:
    """True if a file that begins like this can be shown: text, an image of a known type, a PDF."""
    return binary_kind(head) is None or media_type(head) is not None or is_pdf(head)


def readable(page: WebPage) -> Readable:
    """Return the readable part of a page."""
    body, head = page.body, page.body[:HEAD_BYTES]
    total = page.full_size
    shown = size(total) if total is not None else f"more than {size(len(body))}"
    image = media_type(head)
    if image is not None and binary_kind(head) is not None:
        kind = f"{image.removeprefix('image/').upper()} image, {shown}"
        if page.cut:
            return Readable(kind, note="It is too large to show.")
        data = base64.b64encode(body).decode("ascii")
        return Readable(kind, image=image_block(image, data))
    kind = binary_kind(head)
    if is_pdf(head) and page.cut:
        note = "It is too large to read. A command can download it, and read_file read it."
        return Readable(f"PDF document, {shown}", note=note)
    if kind is not None:
        return Readable(f"{kind}, {shown}", note="It isn't shown.")
    # Everything else is text, in some charset.
    text = clean(_decoded(page))
    note = f"Only the first {size(len(body))} of the page were read." if page.cut else ""
    if page.content_type in _HTML_TYPES or (
        page.content_type in {"", "application/octet-stream"} and _HTML_START.match(head)
    ):
        return _markdown(text, page, note)
    return Readable(page.content_type or "text", text, note=note or _if_empty(text))


def _markdown(html: str, page: WebPage, note: str) -> Readable:
    from html_to_markdown import (  # noqa: PLC0415 - loaded with the first page
        ConversionOptions,
        PreprocessingOptions,
        convert,
    )

    options = ConversionOptions(
        base_url=str(page.address),
        exclude_selectors=_NAVIGATION,
        inline_data_media="alt_text_only",
        sup_symbol="^",  # otherwise 10<sup>6</sup> is 106
        sub_symbol="~",
        # Its guesses at what is no content drop the headings of some pages.
        preprocessing=PreprocessingOptions(enabled=False),
    )
    kind = page.content_type or "text/html"
    try:
        result = convert(_without_links_in_code(html), options)
    except BaseException:
        # A panic of the converter's own code is no Exception, and nobody stops a thread.
        log.exception("couldn't convert %s", page.address)
        return Readable(kind, html, note=note or "It couldn't be converted, so this is its HTML.")
    text = _FRONT_MATTER.sub("", result.content or "", count=1).strip()
    title = result.metadata.document.title if result.metadata else None
    if result.warnings and not note:
        note = "Parts of the page couldn't be converted: " + result.warnings[0].message
    return Readable(
        kind,
        text,
        " ".join((title or "").split())[:_TITLE_CHARS],
        note or _if_empty(text, html),
    )


def _without_links_in_code(html: str) -> str:
    """Return a page without the tags of links inside `pre`: the converter writes them into the code
    as Markdown (Go's, rustdoc's and Sphinx' pages link every name). Links that are no code, such as
    line numbers, go with their text."""
    depth, done, no_code = 0, 0, False
    parts: list[str] = []
    for tag in _PRE_OR_LINK.finditer(html):
        if tag["name"].lower() == "pre":
            depth = max(0, depth + (-1 if tag["end"] else 1))
            no_code = False
        elif depth:
            if not no_code:
                parts.append(html[done : tag.start()])
            done = tag.end()
            no_code = not tag["end"] and bool(_NO_CODE.search(tag[0]))
    return "".join([*parts, html[done:]])


def _if_empty(text: str, html: str = "") -> str:
    if text.strip():
        return ""
    if "<script" in html.lower():
        return "The page has no text without JavaScript, which Holdfast doesn't run."
    return "The page is empty."


def _charset(page: WebPage) -> str | None:
    """Return the charset of the header."""
    return _known(page.headers.get("content-type", "").lower().partition("charset=")[2])


def _known(label: str) -> str | None:
    """Return the codec of a charset; None for an unknown one."""
    label = label.partition(";")[0].strip(" \"'")
    try:
        name = codecs.lookup(label).name if label else ""
    except (LookupError, ValueError):
        return None
    name = _AS_BROWSERS.get(name, name)
    return name if name in _CHARSETS else None


def _decoded(page: WebPage) -> str:
    """Decode the text: by its byte order mark, the header, its own declaration, or what fits."""
    bom, name = bom_of(page.body)
    if bom:
        return page.body[len(bom) :].decode(name, "replace")
    declared = _DECLARED.search(page.body[:_DECLARED_BYTES])
    own = _known(declared[1].decode("ascii", "replace")) if declared else None
    if own and own.startswith("utf-16"):  # then it could not have been read
        own = "utf-8"
    for charset in dict.fromkeys((_charset(page), own, "utf-8")):
        if charset is not None:
            try:
                decoder = codecs.getincrementaldecoder(charset)()
                return decoder.decode(page.body, final=not page.cut)
            except UnicodeDecodeError:
                continue
    return page.body.decode("cp1252", "replace")
