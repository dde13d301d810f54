"""Markup of a page: text of a session made safe, tables, and pictures with a table behind them."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tui.app.session_page.style import STYLE
from tui.core.dataclass import dataclass
from tui.core.formatting import shortened, size
from tui.core.redaction import mask
from tui.core.text_cleaning import clean, one_line

_TURNS_WRITING: Final = re.compile(
    "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]"
)
"""Characters that change the direction of what follows, and those that no page may hold."""
LABEL_CHARS: Final = 160


@dataclass(slots=True)
class PageText:
    """Makes text safe for a page: secrets masked, no control characters, markup escaped. `secrets`
    counts what was masked."""

    secrets: int = 0

    def __call__(self, text: str) -> str:
        masked, count = mask(text)
        self.secrets += count
        return _escaped(masked)

    def label(self, text: str, chars: int = LABEL_CHARS) -> str:
        """A text in one line, cut to a length."""
        masked, count = mask(one_line(text))
        self.secrets += count
        return _escaped(shortened(masked, chars))

    def drawn(self, text: str, widths: int) -> str:
        """A text in one line, cut to what it takes in a drawing: so many widths of a letter."""
        masked, count = mask(one_line(text))
        self.secrets += count
        room = float(widths)
        for place, letter in enumerate(masked):
            room -= _width(letter)
            if room < 0:
                return _escaped(f"{masked[: max(1, place - 1)]}…")
        return _escaped(masked)

    def long(self, text: str, chars: int) -> str:
        """A text as it is, cut to a length: what is left out is said."""
        masked, count = mask(text)
        self.secrets += count
        if len(masked) <= chars:
            return _escaped(masked)
        rest = len(masked) - chars
        return (
            f'{_escaped(masked[:chars])}<span class="left"> … {rest:,} more characters are left'
            f" out here ({size(len(text.encode('utf-8', 'replace')))} in all).</span>"
        )


def _width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    return 1.4 if letter.isupper() or letter in "mw@%" else 1.0


def _escaped(text: str) -> str:
    spelt = _TURNS_WRITING.sub(lambda found: f"\\u{ord(found[0]):04x}", clean(text))
    return html.escape(spelt)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of safe cells; the first one of each row names it, the others are numbers."""
    top = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{cells[0]}</th>{"".join(f"<td>{one}</td>" for one in cells[1:])}</tr>'
        for cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{caption}: table"><table>'
        f"<caption>{caption}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with its size in pixels. `title` and `told` say in words what is in it; both are
    safe. Who can't see it gets these and the table: the drawing itself is hidden from them."""

    name: str
    width: int
    height: int
    title: str
    told: str
    drawn: str

    def svg(self) -> str:
        """The drawing as SVG for a page."""
        size = f'viewBox="0 0 {self.width} {self.height}"'
        return f'<svg aria-hidden="true" class="{self.name}" {size}>{self.drawn}</svg>'


def figure(
    picture: Picture, behind: str, *, legend: str = "", wide: bool = False, opened: bool = False
) -> str:
    """A picture with the table behind it, which opens by keyboard, too; `opened`: it is open. A
    `wide` one doesn't shrink with a narrow page: it scrolls."""
    name, title, drawn = picture.name, picture.title, picture.svg()
    if wide:
        label = f'aria-label="{title}: picture"'
        drawn = f'<div class="scroll" tabindex="0" role="group" {label}>{drawn}</div>'
    shown = " open" if opened else ""
    return (
        f'<figure id="{name}" aria-labelledby="{name}-t" aria-describedby="{name}-d">'
        f'<figcaption id="{name}-t">{title}</figcaption>{legend}'
        f'<p class="unseen" id="{name}-d">{picture.told}</p>{drawn}'
        f"<details{shown}><summary>{title}: the numbers</summary>{behind}</details></figure>"
    )


def link(anchor: str, words: str) -> str:
    """A link to an anchor of the same page; only the words where there is none."""
    return f'<a href="#{anchor}">{words}</a>' if anchor else words


class Section(NamedTuple):
    """A part of a page. Its title and its body are safe."""

    name: str
    title: str
    body: str


def document(title: str, meta: Sequence[str], sections: Sequence[Section], footer: str) -> str:
    """A page of these parts, which loads nothing and runs nothing; its first link leads to the last
    part. All texts are safe."""
    last = sections[-1]
    return _PAGE.format(
        title=title,
        style=STYLE,
        last=last.name,
        last_title=last.title,
        meta="\n".join(f'<p class="meta">{line}</p>' for line in meta),
        nav="".join(f'<a href="#{one.name}">{one.title}</a>' for one in sections),
        body="\n".join(map(_section, sections)),
        footer=footer,
    )


def _section(one: Section) -> str:
    head = f'<h2 id="h-{one.name}">{one.title}</h2>'
    return f'<section id="{one.name}" aria-labelledby="h-{one.name}">{head}{one.body}</section>'


_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<a class="skip" href="#{last}">Skip to: {last_title}</a>
<h1>{title}</h1>
{meta}
<nav aria-label="Parts of the page">{nav}</nav>
</header>
<main>
{body}
<footer>{footer}</footer>
</main>
</body>
</html>
"""
