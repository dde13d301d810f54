"""The full copy with a row for searching all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tui.core.output_store import OutsideError, open_full_copy, why_missing
from tui.ui.widgets.dialog import TextField
from tui.ui.widgets.file_viewer.line_file import BLOCK, LineFile, MatchCounts
from tui.ui.widgets.file_viewer.view import FileView

_BLOCKS = 256
"""Blocks searched in a thread before checking whether to continue: 16 MB."""
_SLICE_S = 0.03


async def open_file_pane(path: Path, results: Path) -> tuple[LineFile | None, str]:
    """Open the full copy of an output, which is in the folder `results`; returns None and the
    reason if there is none."""
    try:
        return await asyncio.to_thread(_opened, path, results), ""
    except OutsideError:
        return None, "The full copy isn't in the folder of results, so it wasn't opened."
    except (OSError, ValueError) as error:
        gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
        why = await asyncio.to_thread(why_missing, path) if gone else ""
        reason = getattr(error, "strerror", None) or str(error)
        return None, why or f"Can't read the full copy: {reason}."


def _opened(path: Path, results: Path) -> LineFile:
    return LineFile(path, open_full_copy(path, results))


class FilePane(Vertical):
    """Shows a file; `/` searches it, n and N move between hits, Esc ends that.

    Capitals in the search text must match; small letters match capitals too, ASCII only.
    """

    DEFAULT_CSS = """
    FilePane { height: 1fr; }
    FilePane .search { height: 1; padding: 0 1; display: none; background: $panel; }
    FilePane.-search .search { display: block; }
    FilePane .search Static { width: auto; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", show=False),
        Binding("n", "next(1)", "Next", show=False),
        Binding("N", "next(-1)", "Previous", show=False),
        Binding("escape,ctrl+c", "end_search", "End search", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.view = FileView()
        self._words = TextField(placeholder="in this output")
        self._said = Static(markup=False)
        self._hits: MatchCounts | None = None
        self._here = -1
        self._turn = asyncio.Lock()  # each key press continues from the result of the one before

    def compose(self) -> ComposeResult:
        yield self.view
        with Horizontal(classes="search"):
            yield Static(Content.styled("/ ", "$text-secondary"), markup=False)
            yield self._words
            yield self._said

    def show(self, file: LineFile, *, at_end: bool = False) -> None:
        """Show another file, which is closed with the pane or before the next one."""
        self._forget()
        self.view.show(file, at_end=at_end)

    @property
    def follows(self) -> bool:
        """True if the end is visible and nothing is searched for or selected."""
        return self.view.follows and not self.has_class("-search")

    def clear(self) -> None:
        """Show nothing."""
        self._forget()
        self.view.clear()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        if action == "end_search":
            return self.has_class("-search")
        if action in {"next", "search"}:
            return not self._words.has_focus
        return True

    def action_search(self) -> None:
        """Ask for a text to search for."""
        self.add_class("-search")
        self._words.focus()

    def action_end_search(self) -> None:
        """Stop searching, and remove all marks."""
        self._forget()
        self.view.focus()

    def action_next(self, step: int) -> None:
        """Go to the next hit, or (negative) to the one before."""
        if self._hits is None:
            self.action_search()
            return
        self.run_worker(self._go(step), group="search")

    def _forget(self) -> None:
        self.workers.cancel_group(self, "search")  # pyright: ignore[reportUnknownMemberType]
        self._hits, self._here = None, -1
        self.remove_class("-search")
        self.view.mark(b"")

    @on(Input.Submitted)
    def _begin(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value
        if not text:
            self.action_end_search()
            return
        self._forget()
        self.add_class("-search")
        self.view.focus()
        fold = text == text.lower()
        self._hits = MatchCounts(self.view.file, text.encode("utf-8", "replace"), fold=fold)
        self._here = self.view.top - 1
        self.run_worker(self._search(), group="search")

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()

    async def _search(self) -> None:
        """Go to the first hit from here on, then count all."""
        hits = self._hits
        if hits is None:
            return
        await self._go(1)
        while await asyncio.to_thread(hits.go_on, _SLICE_S):
            self._say()
            await asyncio.sleep(0.005)
        self._say()

    async def _go(self, step: int) -> None:
        async with self._turn:
            hits, file = self._hits, self.view.file
            if hits is None:
                return
            turned = ""
            hit = await self._seek(hits, self._here + 1 if step > 0 else max(0, self._here), step)
            if hit is None:
                turned = "from the start" if step > 0 else "from the end"
                hit = await self._seek(hits, 0 if step > 0 else file.size, step)
            if hit is not None:
                self._here = hit
                self.view.mark(hits.needle, fold=hits.fold, at=hit)
            self._say(turned)

    async def _seek(self, hits: MatchCounts, at: int, step: int) -> int | None:
        """Return the next hit from byte `at` on, or the one before it; searched in slices, so that
        it can be cancelled."""
        size = self.view.file.size
        while at < size if step > 0 else at > 0:
            look, known = hits.after if step > 0 else hits.before, hits.seen
            hit = await asyncio.to_thread(look, at, _BLOCKS)
            if hit is not None:
                return hit
            if step > 0:
                at = (max(at, known) // BLOCK + _BLOCKS) * BLOCK
            else:
                at = ((at - 1) // BLOCK - _BLOCKS + 1) * BLOCK
            self._show_status(f"searching · {min(100, 100 * at // max(1, size))} %")
        return None

    def _say(self, turned: str = "") -> None:
        hits = self._hits
        if hits is None:
            return
        size = self.view.file.size
        if hits.unfinished:
            text = f"{hits.total:,} so far · {100 * hits.seen // max(1, size)} %"
        elif not hits.total:
            text = "not found"
        elif self._here >= 0:
            text = f"{hits.upto(self._here) + 1:,} of {hits.total:,}"
        else:
            text = f"{hits.total:,} found"
        self._show_status(" · ".join(filter(None, (text, turned))))

    def _show_status(self, text: str) -> None:
        self._said.update(Content.styled(f"  {text}", "$text-muted"))
