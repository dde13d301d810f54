"""The first line of the screen (folder, model, title) and the last (keys, turns, saving)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style

from tui.core.dataclass import dataclass, replace
from tui.core.formatting import plural, shortened
from tui.core.text_cleaning import one_line
from tui.ui.widgets import keys
from tui.ui.widgets.panes import CachedRender

GAP = 3
_LONGEST = 20
"""Characters of a profile's name in the header."""
_FIRST = 3
"""Hints before which the number of turns gives way."""
LEAST = 12
"""Cells that the model keeps beside a long folder; with less than half of them a folder is left
out."""


@dataclass(frozen=True, slots=True)
class HeaderState:
    """The content of the header.

    `folder` is in the person's form (`~/proj`); `mark` is a word that must not be overlooked;
    `effort` is the chosen level; `unconfined` is true if no sandbox confines commands. `profile` is
    the person's, "" for none.
    """

    folder: str = ""
    branch: str = ""
    model: str = ""
    title: str = ""
    think: bool = False
    verbose: bool = False
    elevated: bool = False
    effort: str = ""
    mark: str = ""
    unconfined: bool = False
    profile: str = ""


def header_line(state: HeaderState, width: int) -> Content:
    """Return the header in `width` cells. The least important parts give way first: title, name,
    branch."""
    texts = (one_line(text) for text in (state.folder, state.branch, state.model, state.title))
    folder, branch, model_name, title_text = texts
    profile = one_line(state.profile)
    profile = shortened(profile, _LONGEST)
    lamps = (
        (state.mark, f" {state.mark} ", "bold $background on $warning"),
        (profile, f"profile {profile}", "$text-accent"),
        (state.think, "think", "$text-secondary"),
        (state.effort, f"effort {state.effort}", "$text-secondary"),
        (state.verbose, "verbose", "$text-accent"),
        (state.unconfined, "no sandbox", "$text-warning"),
        (state.elevated, " ELEVATED ", "bold $background on $error"),
    )
    lights = Content("  ").join([Content.styled(text, look) for lit, text, look in lamps if lit])
    name = Content.styled("holdfast", "bold $text-primary")
    place = Content.assemble(
        (folder, "$foreground"), (f" ({branch})" if branch else "", "$text-muted")
    )
    model = Content.styled(model_name, "$text-muted")
    room = width - 2 - (lights.cell_length + GAP if lights else 0)

    def total(*parts: Content) -> int:
        shown = [p for p in parts if p]
        return sum(p.cell_length for p in shown) + GAP * (len(shown) - 1)

    # From here on, parts are dropped or cut until the rest fits.
    parts = [name, place, model]
    if total(*parts) > room:
        parts = [place, model]
    if total(*parts) > room and branch:
        return header_line(replace(state, branch=""), width)
    if total(*parts) > room:
        least = min(model.cell_length, max(LEAST, room // 3))
        keep = max(least, room - GAP - cell_len(folder))
        model = model.truncate(min(model.cell_length, keep), ellipsis=True)
        folder = _tail(folder, room - GAP - model.cell_length)
        parts = [Content.styled(folder, "$foreground"), model]
    if total(*parts) > room or not folder:
        parts = [model.truncate(max(0, room), ellipsis=True)]
    spare = room - total(*parts) - GAP
    if title_text and spare >= 12:
        title = Content.styled(f"“{title_text}”", "italic $foreground")
        parts.append(title.truncate(spare, ellipsis=True))
    left = Content(" " * GAP).join([p for p in parts if p])
    fill = max(0, width - 2 - left.cell_length - lights.cell_length)
    return Content.assemble(" ", left, " " * fill, lights, " ")


def _tail(path: str, keep: int) -> str:
    """Return the end of a path in that many cells, "" if that would be too short to be useful."""
    if cell_len(path) <= keep:
        return path
    while path and cell_len(path) >= keep:
        path = path[1:]
    return f"…{path}" if len(path) >= LEAST // 2 else ""


class HeaderBar(CachedRender):
    """Draws `state`; set it to change what is shown."""

    DEFAULT_CSS = "HeaderBar { height: 1; width: 1fr; background: $panel; color: $foreground; }"

    state: reactive[HeaderState] = reactive(HeaderState())

    def render(self) -> Content:
        return header_line(self.state, self.size.width)


WIDE = 100


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key and what it does. A click on it runs `action`; `[keys]` knows it by `name`."""

    key: str
    text: str
    action: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class StatusState:
    """The content of the status line.

    `trouble` says why nothing can be saved; `begun` is true if there is something to save; `own` is
    the output of the person's own command, `jobs` the number of commands in the background.
    """

    hints: tuple[KeyHint, ...] = ()
    turns: int = 0
    trouble: str = ""
    keeping: bool = True
    begun: bool = True
    own: str = ""
    jobs: int = 0


def status_line(state: StatusState, width: int) -> Content:
    """Return the line in `width` cells. The number of prompts gives way to the first hints, then
    those at the end of the list."""
    if state.trouble:
        room = width - 7 - _hints(state.hints[:2], width // 4).cell_length
        saved = Content.styled(_trouble(state.trouble, room), "bold $text-error")
        saved = saved.truncate(max(0, room), ellipsis=True)
    elif not state.keeping:
        saved = Content.styled("○ kept in memory only", "$text-muted")
    elif not state.begun:
        saved = Content("")
    else:
        saved = Content.assemble(("●", "$text-success"), (" saved", "$text-muted"))
    turns = f"{plural(state.turns, 'prompt')}   " if state.turns else ""
    jobs = Content.styled(f"{state.jobs} in background   " if state.jobs else "", "$text-accent")
    jobs = jobs.stylize(Style.from_meta({"hint": "app.command('jobs')"}))
    beside = jobs.cell_length + saved.cell_length + 5
    if _hints(state.hints[:_FIRST], width).cell_length + len(turns) + beside > width:
        turns = ""
    figures = Content.assemble(jobs, (turns, "$text-muted"))
    if state.own and not state.trouble:
        least = _hints(state.hints[:2], width).cell_length
        room = width - 2 - least - 2 * GAP - figures.cell_length - saved.cell_length
        own = Content.styled(state.own, "$foreground").truncate(max(0, room), ellipsis=True)
        figures = Content.assemble(own, " " * GAP if own else "", figures)
    right = Content.assemble(figures, saved).truncate(max(0, width - 2), ellipsis=True)
    left = _hints(state.hints, width - right.cell_length - 5)
    fill = max(0, width - 2 - left.cell_length - right.cell_length)
    return Content.assemble(" ", left, " " * fill, right, " ")


def _trouble(trouble: str, room: int) -> str:
    """Say why nothing is saved; if there is too little room, without the file named last."""
    why = one_line(trouble)
    if cell_len(said := f"● not saved: {why}") > room and (brief := why.rpartition(": ")[0]):
        return f"● not saved: {brief}"
    return said


def _hints(hints: Sequence[KeyHint], room: int) -> Content:
    line = Content("")
    for hint in hints:
        one = keys.hint(hint.key, hint.text)
        if hint.action:
            one = one.stylize(Style.from_meta({"hint": hint.action}))
        grown = Content.assemble(line, "   ", one) if line else one
        if grown.cell_length > room:
            break
        line = grown
    return line


class StatusLine(CachedRender):
    """Draws `state`; set it to change what is shown."""

    DEFAULT_CSS = "StatusLine { height: 1; width: 1fr; color: $text-muted; }"

    state: reactive[StatusState] = reactive(StatusState())

    def render(self) -> Content:
        return status_line(self.state, self.size.width)

    async def on_click(self, event: events.Click) -> None:
        if action := event.style.meta.get("hint"):
            await self.run_action(str(action))
