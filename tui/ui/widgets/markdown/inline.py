"""What stands inside a paragraph: emphasis, code, links. Nothing here is ever parsed as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style

from tui.ui.widgets.markdown.text import Span

if TYPE_CHECKING:
    from markdown_it.token import Token

    from tui.ui.widgets.markdown.styles import Styles

_OVERLAYS = {"strong_open": "strong", "em_open": "em", "s_open": "strike"}
_SAFE = ("http://", "https://")


def link(href: str, styles: Styles) -> Style:
    """The style of a link: one the terminal can open only where it leads to the web."""
    safe = href.lower().startswith(_SAFE) and href.isprintable()
    return styles["link"] + Style(link=href) if safe else styles["link"]


def spans(children: list[Token], base: Style, styles: Styles) -> list[Span]:
    """The spans of a parsed inline; a hard break is a newline."""
    drawn: list[Span] = []
    stack = [base]
    for token in children:
        style = stack[-1]
        match token.type:
            case "text" | "text_special":
                drawn.append((token.content, style))
            case "softbreak":
                drawn.append((" ", style))
            case "hardbreak":
                drawn.append(("\n", style))
            case "code_inline":
                drawn.append((token.content, style + styles["code"]))
            case "strong_open" | "em_open" | "s_open":
                stack.append(style + styles[_OVERLAYS[token.type]])
            case "link_open":
                stack.append(style + link(str(token.attrs.get("href", "")), styles))
            case "strong_close" | "em_close" | "s_close" | "link_close":
                if len(stack) > 1:
                    stack.pop()
            case "image":
                text = token.content or str(token.attrs.get("src", ""))
                look = link(str(token.attrs.get("src", "")), styles)
                drawn.append((f"[{text}]", style + look))
            case _:
                drawn.append((token.content, style + styles["muted"]))
    return [(text.replace("\t", " "), style) for text, style in drawn if text]


def plain(drawn: list[Span]) -> str:
    """The text of spans."""
    return "".join(text for text, _ in drawn)
