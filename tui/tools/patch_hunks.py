"""Finds the hunks of a patch in a text, and applies them.

All hunks of a file are searched for in the text as it is, then applied at once. Nothing is chosen
between two places: @@ lines, line numbers and the order of the hunks have to tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.tools.patch_format import FilePatch, Hunk
from tui.tools.text_match import TextMatch, find_matches, flatten, splice

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Patched:
    """A text with its hunks applied, with notes in words on what matched only nearly, and on what
    had changed elsewhere since the model saw it."""

    text: str
    notes: tuple[str, ...]
    changed_elsewhere: str = ""


def added_text(file: FilePatch) -> str:
    """Return the content of a file that a patch adds."""
    text = "".join(f"{line}\n" for hunk in file.hunks for line in hunk.new)
    unended = any(hunk.new_ends is False for hunk in file.hunks)
    return text.removesuffix("\n") if unended else text


def apply_hunks(file: FilePatch, text: str, shown: str) -> Patched:
    """Apply all hunks of a file to a text. Raises ToolError that names the one that can't be
    applied."""
    ends = not text or text.endswith(("\n", "\r"))
    ending = "\r\n" if "\r\n" in text else "\n"
    whole = text if ends else text + ending
    flat = flatten(whole)
    matches: list[TextMatch] = []
    notes: list[str] = []
    cursor, shift = 0, 0
    for number, hunk in enumerate(file.hunks, 1):
        name = f"Hunk {number} of {len(file.hunks)}" if len(file.hunks) > 1 else "The hunk"
        match = _Search(flat, hunk, f"{name} for {shown}").place(cursor, shift)
        if match.differences:
            from tui.tools.near_lines import near_miss  # noqa: PLC0415 - few edits miss

            notes.append(near_miss(flat, match, f"{name.lower()} for {shown}"))
        if hunk.line and hunk.old:
            shift = flat.count("\n", 0, match.start) + 1 - hunk.line
        cursor = match.end
        matches.append(match)
    in_order = sorted(matches, key=lambda match: (match.start, match.end))
    if any(after.start < before.end for before, after in pairwise(in_order)):
        raise ToolError(f"Two hunks for {shown} change the same lines.", hint="Make them one hunk.")
    changed, _ = splice(whole, in_order)
    return Patched(_with_end(changed, file.hunks, matches, flat, ends=ends), tuple(notes))


def _with_end(
    text: str, hunks: Sequence[Hunk], matches: Sequence[TextMatch], flat: str, *, ends: bool
) -> str:
    """Return the text with or without a newline at its end, as it was, or as the last hunk
    tells."""
    for hunk, match in zip(hunks, matches, strict=True):
        if match.end == len(flat):
            if hunk.new_ends is not None:
                ends = hunk.new_ends
            elif not match.new:
                ends = True
    return text if ends else text.removesuffix("\n").removesuffix("\r")


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the place of one hunk in a flat text, of which every line has its newline."""

    flat: str
    hunk: Hunk
    name: str

    def place(self, cursor: int, shift: int) -> TextMatch:
        """Find the place of the hunk. `cursor` is the end of the hunk before; `shift` the number of
        lines by which that one was off its header."""
        old, new = self._text(self.hunk.old), self._text(self.hunk.new)
        starts = self._anchored() if self.hunk.anchors else []
        if not old:
            return self._insertion(new, starts)
        matches = find_matches(self.flat, old, new, whole_lines=True)
        if self.hunk.at_end and (last := [m for m in matches if m.end == len(self.flat)]):
            matches = last
        if not matches:
            raise self._mismatch(old, new)
        if len(matches) == 1 or matches[0].differences:
            return self._only(matches)
        if self.hunk.anchors:
            first = (next((m for m in matches if m.end > start), None) for start in starts)
            matches = list(dict.fromkeys(match for match in first if match is not None))
        elif self.hunk.line is not None:
            line = self.hunk.line + shift
            stated = [m for m in matches if self._line(m.start) == line]
            return self._only(stated or matches)
        after = [match for match in matches if match.start >= cursor]
        return self._only(after if len(after) == 1 else matches)

    def _text(self, lines: Iterable[str]) -> str:
        return "".join(f"{line}\n" for line in lines)

    def _line(self, position: int) -> int:
        return self.flat.count("\n", 0, position) + 1

    def _only(self, matches: Sequence[TextMatch]) -> TextMatch:
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise ToolError(
                f"{self.name} doesn't apply: its lines don't come after its @@ line.",
                hint="Read the file and check the @@ line.",
            )
        lines = ", ".join(str(self._line(match.start)) for match in matches[:_LISTED])
        more = ", …" if len(matches) > _LISTED else ""
        nearly = f", though {' and '.join(d)}" if (d := matches[0].differences) else ""
        raise ToolError(
            f"{self.name} matches {len(matches)} places (lines {lines}{more}){nearly}.",
            hint="Add lines that stay around it, or an @@ line with its function or class.",
        )

    def _anchored(self) -> list[int]:
        """Return the starts of the lines that the last @@ line may mean."""
        lines = self.flat.split("\n")
        places: list[int] = []
        for anchor in self.hunk.anchors:
            hits = [n for n, line in enumerate(lines) if line.strip() == anchor]
            hits = hits or [n for n, line in enumerate(lines) if line.strip().startswith(anchor)]
            if anchor != self.hunk.anchors[0]:
                after = (next((n for n in hits if n > place), None) for place in places)
                hits = sorted({n for n in after if n is not None})
            if not hits:
                raise ToolError(
                    f"{self.name} doesn't apply: no line is {anchor!r}, as its @@ line says.",
                    hint="Copy a whole line of the file into the @@ line, or leave it out.",
                )
            places = hits
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        return [starts[place] for place in places]

    def _insertion(self, new: str, starts: Sequence[int]) -> TextMatch:
        """Return the place of lines that are only added: after an @@ line, or at the end."""
        if self.hunk.line is not None and self.flat:
            raise ToolError(
                f"{self.name} has no lines that stay, so it isn't sure where it belongs.",
                hint="Send some lines around it as well.",
            )
        if not starts:
            return TextMatch(len(self.flat), len(self.flat), new)
        ends = [self.flat.find("\n", start) + 1 for start in starts]
        return self._only([TextMatch(end, end, new) for end in ends])

    def _mismatch(self, old: str, new: str) -> ToolError:
        from tui.tools.near_lines import closest, excerpt, same_but_blanks  # noqa: PLC0415 - few edits miss

        message = f"{self.name} doesn't apply: its lines aren't in the file."
        old = old.removesuffix("\n")
        lines = self.flat.split("\n")
        if (span := same_but_blanks(lines, old)) is not None:
            shown = excerpt(lines, *span)
            message += f" Lines {span[0] + 1}-{span[1]} differ from them only in blanks:\n{shown}\n"
        elif new.strip() and new in self.flat:
            message += " But those it puts there are: it may have been applied already."
        elif (span := closest(lines, old)) is not None:
            shown = excerpt(lines, *span)
            message += f" The closest lines are {span[0] + 1}-{span[1]}:\n{shown}\n"
        return ToolError(message, hint="Read the file again and copy the lines exactly.")
