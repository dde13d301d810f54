"""The bytes of a changed text file, for every tool that writes one: as the file was.

Encoding, byte order mark and line endings stay, or the change is refused. What was kept is said in
words, and so is a format that the change breaks: the file was valid JSON, and is no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.tools.file_formats import format_name, format_problem
from tui.tools.text_decoding import DecodedText
from tui.tools.text_match import first_ending, flatten, with_endings


@dataclass(frozen=True, slots=True)
class NewContent:
    """New bytes of a file, and its text. `notes` are sentences about what was kept, and what
    broke."""

    data: bytes
    text: str = ""
    notes: tuple[str, ...] = ()


def new_content(
    old: DecodedText, text: str, path: Path, shown: str, *, kept: Sequence[str] = ()
) -> NewContent:
    """Return the content of a file that held `old` and is to hold `text`; `kept` is what else was
    kept. Raises ToolError if it cannot stay what it is."""
    data = old.encode(text, shown)
    words = [*old.form(), *kept]
    notes = [f"Kept its {_and(words)}."] if words else []
    why = format_problem(path.suffix, text) if old.text else ""
    if why and not format_problem(path.suffix, old.text):
        if path.suffix.lower() == ".ipynb":
            raise ToolError(
                f"{shown} would no longer be a notebook: {why}. Nothing was written.",
                hint="Change its cells with edit_file, which takes care of the JSON around them.",
            )
        notes.append(f"But {shown} was {format_name(path.suffix)} before and isn't now: {why}.")
    return NewContent(data, text, tuple(notes))


def whole_content(old: DecodedText, text: str, path: Path, shown: str) -> NewContent:
    """Return the content of a file that is replaced by `text` as a whole: its lines end as they did
    in the file, and so does the last one if it had no newline."""
    if old.bom:
        text = text.removeprefix("\ufeff")
    if "\r\n" in old.text:
        text = with_endings(old.text, flatten(text), first_ending(old.text))
    kept: list[str] = []
    unended = old.text and not old.text.endswith(("\n", "\r"))
    if unended and text.endswith("\n") and flatten(text) != f"{flatten(old.text)}\n":
        text = text.removesuffix("\n").removesuffix("\r")
        kept.append("missing last newline")
    return new_content(old, text, path, shown, kept=kept)


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
