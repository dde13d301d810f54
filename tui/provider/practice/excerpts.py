"""Paths, commands and results as the practice model shows them in its answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.core.formatting import shortened, size
from tui.core.images import of_block
from tui.core.messages import Block
from tui.core.text_cleaning import printed_text

_LINES = 12
_COLUMNS = 160
_OPENING = 400
_FOOTER = re.compile(
    r"\[(?:lines? \d|the file is empty|nothing but blanks|bytes that are not UTF-8).*\]"
)
_NUMBER = re.compile(r"^\d+\t", re.MULTILINE)
_END = re.compile(r"^Exit code: -?\d+\. Last \d+ bytes:\n((?: .*\n?)*)", re.MULTILINE)
"""The end of a long output of which the model gets only parts."""
_LANGUAGES = {"md": "markdown", "py": "python", "sh": "bash", "toml": "toml", "diff": "diff"}


def code(text: str) -> str:
    """Format a short text as inline code of markdown, on one line, whatever it contains."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    if "`" not in shown:
        return f"`{shown}`" if shown else "` `"
    return f"`` {shown} ``" if "``" not in shown else "`" + shown.replace("`", "'") + "`"


def fence(text: str, path: str = "", *, tail: bool = False) -> str:
    """Format the first lines of a text as a code block, or with `tail` the last that are not
    blank."""
    lines = text.rstrip("\n").split("\n")
    if tail:
        end = _END.search(text)
        if end:
            lines = [line[1:] for line in end[1].splitlines()]
        else:
            lines = (printed_text(text) or text).split("\n")
        lines = [line for line in lines if line.strip()]
    more = len(lines) - _LINES
    if more > 1:
        lines = lines[-_LINES:] if tail else lines[:_LINES]
    shown = [line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]}…" for line in lines]
    if more > 1:
        note = f"… {more:,} {'earlier' if tail else 'more'} lines"
        shown.insert(0 if tail else _LINES, note)
    body = "\n".join(shown)
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", body)), default=0))
    return f"{marks}{_LANGUAGES.get(path.rpartition('.')[2].lower(), '')}\n{body}\n{marks}"


def first_line(text: str) -> str:
    """The first line of a result, as a sentence."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    line = line if len(line) <= 300 else line[:299] + "…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def page_of(result: str) -> tuple[str, str]:
    """Split a result of read_file into the file's text (without line numbers) and the note below
    it."""
    text, _, last = result.rpartition("\n")
    if not _FOOTER.fullmatch(last):
        return _NUMBER.sub("", result), ""
    return _NUMBER.sub("", f"{text}\n") if text else "", last


def headings(path: str, text: str) -> list[str]:
    """The headings of a markdown file; none for other files."""
    if not path.endswith(".md"):
        return []
    plain = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#{1,3} +(.+?)\s*#*$", plain, re.MULTILINE)


def readme_of(listing: str) -> str | None:
    """The README in a listing of list_dir; None if there is none."""
    names = (line.split("  ")[0].strip() for line in listing.splitlines())
    return next((one for one in names if re.fullmatch(r"readme(\.\w+)?", one, re.IGNORECASE)), None)


def opening(text: str) -> str:
    """The first paragraph of a text that is neither a heading nor a picture, on one line."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines() if not line.startswith("#")]
        line = " ".join(" ".join(lines).split())
        if line and not line.startswith(("![", "[![", "<", "```", "---", "===")):
            return shortened(line, _OPENING)
    return ""


def about_images(blocks: Sequence[Block]) -> str:
    """Describe images without seeing them: type, pixels, bytes."""
    lines: list[str] = []
    for block in blocks:
        image = of_block(block, "")
        if image is None:
            lines.append("- an image whose header I cannot read")
            continue
        picture, kind = image.info, image.info.media_type.removeprefix("image/").upper()
        lines.append(f"- {kind}, {picture.width} × {picture.height} pixels, {size(image.bytes)}")
    what = "an image" if len(blocks) == 1 else f"{len(blocks)} images"
    listed = "\n".join(lines)
    return (
        f"I was given {what}:\n\n{listed}\n\nThat is what the header says. I'm the practice"
        " model, rules without eyes: I can't tell what is in it."
    )
