"""A session as a document: Markdown, HTML or JSON lines. Secrets are masked. Pure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from tui.core import facts
from tui.core.dataclass import dataclass, replace
from tui.core.fact_words import words
from tui.core.formatting import utc
from tui.core.messages import Block, text_of
from tui.core.redaction import mask, mask_values
from tui.core.retold import retold, retold_lines
from tui.session.reader import LoadedSession
from tui.session.records import Record, encode, redacted

_IMAGE = re.compile(r"image/(?:png|jpeg|gif|webp)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True)
class Exported:
    """The document, and how many secrets were masked in it."""

    text: str
    secrets: int


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A piece of the conversation. `folded`: only some readers want to see it; `image` is a data
    URL; `named`: its text is in another piece, too."""

    who: str
    text: str
    folded: bool = False
    image: str = ""
    named: bool = False


def export(
    loaded: LoadedSession, format_: Literal["md", "html", "jsonl"], *, title: str = ""
) -> Exported:
    """The active branch as a document; for jsonl every record, unchanged but for the secrets."""
    if format_ == "jsonl":
        return _jsonl(loaded)
    return document(loaded, format_, _parts(loaded.branch), title=title)


def document(
    loaded: LoadedSession,
    format_: Literal["md", "html"],
    given: Iterable[DocumentPart],
    *,
    title: str = "",
    more: Sequence[str] = (),
) -> Exported:
    """Parts as a document with the facts of a session, and `more`, above them."""
    parts: list[DocumentPart] = []
    count = 0
    for part in given:
        text, masked = mask(part.text)
        count += masked
        parts.append(replace(part, text=text) if masked else part)
    name, masked = mask(title or loaded.header.id)
    count += masked
    head = [*_head(loaded, count), *more]
    text = (_markdown if format_ == "md" else _html)(name, head, parts)
    return Exported(text, count)


def _jsonl(loaded: LoadedSession) -> Exported:
    count = 0
    lines = [loaded.header.to_line()]
    for record in loaded.records:
        value, masked = mask_values(record.data)
        if masked:  # thinking with a secret in it goes: masked, its signature would not be valid
            value = redacted(record.data)
        count += masked
        head = {"type": record.type, "id": record.id, "parent": record.parent, "time": record.time}
        lines.append(encode(head | value))
    return Exported(b"".join(lines).decode(), count)


def _head(loaded: LoadedSession, count: int) -> list[str]:
    header = loaded.header
    lines = [f"session {header.id}", utc(header.created), header.cwd]
    if count:
        lines.append(f"{count} {'secret' if count == 1 else 'secrets'} removed")
    return [line for line in lines if line]


def _parts(branch: Sequence[Record]) -> Iterator[DocumentPart]:
    for _, fact in retold(branch):
        match fact:
            case facts.UserMessage(by="goal"):
                yield DocumentPart("Goal", fact.text)
            case facts.UserMessage(by="hook"):
                yield DocumentPart("Hook", fact.text)
            case facts.UserMessage(by="program"):
                yield from _blocks("Program", fact.content)
            case facts.UserMessage():
                yield from _prompt(fact)
            case facts.AssistantMessage():
                yield from _blocks(fact.model or "Assistant", fact.content)
            case facts.ToolFinished(content=content):
                name = f"Result of {fact.name or 'a call'}"
                failed = " (failed)" if fact.is_error else ""
                yield DocumentPart(name + failed, text_of(content), folded=True)
                yield from (part for part in _blocks(name, content) if part.image)
                titles = [one.get("title") for one in content if one.get("type") == "document"]
                yield from (DocumentPart(name, f"[{title or 'document'}]") for title in titles)
            case facts.TurnInterrupted(text=text):
                yield DocumentPart("Interrupted", text)
            case _ if lines := retold_lines(fact):
                who = "Error" if isinstance(fact, facts.ErrorRaised) else "Holdfast"
                yield DocumentPart(who, "\n".join(lines))
                if fact and (sentence := words(fact)) and sentence.detail and not sentence.open:
                    yield DocumentPart("Details", sentence.detail, folded=True)
            case _:
                pass


def _blocks(who: str, blocks: Sequence[Block]) -> Iterator[DocumentPart]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield DocumentPart(who, str(block.get("text") or ""))
            case "thinking":
                yield DocumentPart(
                    f"{who}, thinking", str(block.get("thinking") or ""), folded=True
                )
            case "tool_use":
                arguments = json.dumps(block.get("input"), ensure_ascii=False, indent=2)
                yield DocumentPart(f"Call to {block.get('name')}", arguments, folded=True)
            case "image":
                yield _image(who, block)
            case kind:
                yield DocumentPart(who, f"[{kind}]")


def _prompt(told: facts.UserMessage) -> Iterator[DocumentPart]:
    """Yield a prompt: the text with a word for each image, then the images."""
    words = iter(told.images)
    yield from _blocks("You", [block for block in told.content if block.get("type") != "image"])
    for block in told.content:
        if block.get("type") == "image":
            word = next(words, "")
            part = _image("You", block)
            yield DocumentPart("You", word or part.text, image=part.image, named=bool(word))


def _image(who: str, block: Block) -> DocumentPart:
    source: dict[str, Any] = block["source"] if isinstance(block.get("source"), dict) else {}
    media, data = source.get("media_type"), source.get("data")
    known = isinstance(media, str) and _IMAGE.fullmatch(media)
    bare = "".join(data.split()) if known and isinstance(data, str) else ""
    if _BASE64.fullmatch(bare):
        return DocumentPart(who, "[image]", image=f"data:{media};base64,{bare}")
    return DocumentPart(who, "[image]")


def _markdown(title: str, head: Sequence[str], parts: Iterable[DocumentPart]) -> str:
    lines = [f"# {_one_line(title)}", "", _one_line(" · ".join(head)), ""]
    for part in parts:
        if part.named:
            continue
        lines += [f"## {_one_line(part.who)}", ""]
        lines += _fenced(part.text) if part.folded else [part.text]
        lines.append("")
    return "\n".join(lines)


def _fenced(text: str) -> list[str]:
    fence = "```"
    if fence in text:  # which is seldom
        fence = "`" * (max(map(len, re.findall(r"`+", text))) + 1)
    return [fence, text, fence]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _html(title: str, head: Sequence[str], parts: Iterable[DocumentPart]) -> str:
    body = "\n".join(_html_part(part) for part in parts)
    return _PAGE.format(
        title=html.escape(title), head=html.escape(" · ".join(head)), style=_STYLE, body=body
    )


def _html_part(part: DocumentPart) -> str:
    who, text = html.escape(part.who), html.escape(part.text)
    if part.image:
        return f'<section><h2>{who}</h2><img alt="{text}" src="{part.image}"></section>'
    if part.folded:
        return f"<details><summary>{who}</summary><pre>{text}</pre></details>"
    kind = ' class="you"' if part.who == "You" else ""
    return f"<section{kind}><h2>{who}</h2><pre>{text}</pre></section>"


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{head}</p>
{body}
</main>
</body>
</html>
"""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem 1rem; }
main { max-width: 50rem; margin: auto; }
h2 { font-size: .85rem; opacity: .7; margin: 0 0 .3rem; }
section, details { margin: 0 0 1rem; padding: .6rem .9rem; border-radius: .4rem; }
section { border-left: 3px solid color-mix(in srgb, currentColor 25%, transparent); }
section.you { border-left-color: #4a7fd6; }
details { background: color-mix(in srgb, currentColor 6%, transparent); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: inherit; }
details pre { font: .85rem/1.45 ui-monospace, monospace; margin-top: .5rem; }
img { max-width: 100%; }
"""
