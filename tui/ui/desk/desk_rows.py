"""The desk as data: its sessions in groups, its lines in any width, and the texts around them.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len
from textual.content import Content

from tui.app.door.lines import AskedLine, State
from tui.core.dataclass import dataclass
from tui.core.formatting import age, moment_of, money, plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line, visible
from tui.desk.host import DeskHost, DeskRow
from tui.permissions.asked import Asked, AskedCall, AskedPlan, AskedQuestions
from tui.tools.registry import title
from tui.ui.screens.session_rows import nearest_folders
from tui.ui.screens.table_screen import cell, whole_words
from tui.ui.widgets.row_list import Part

Group: TypeAlias = Literal["waiting", "working", "parked", "open", "ended", "saved"]
SessionKey: TypeAlias = tuple[str, str]
"""The host and the id of a session."""

GROUPS: Final[Mapping[Group, str]] = {
    "waiting": "Waiting for you",
    "working": "Working",
    "parked": "Waiting for the server",
    "open": "Open",
    "ended": "Ended",
    "saved": "Saved",
}
"""The groups in their order, and their titles."""

RUNNING: Final = frozenset[Group]({"waiting", "working", "parked"})
"""The groups of sessions with a turn that isn't over."""

_GROUP_OF: Final[Mapping[State, Group]] = {
    "waiting": "waiting",
    "working": "working",
    "parked": "parked",
    "idle": "open",
    "done": "ended",
    "failed": "ended",
    "stopped": "ended",
    "interrupted": "ended",
    "saved": "saved",
}
_SIGNS: Final[Mapping[State, Part]] = {
    "waiting": ("?", "warning"),
    "working": ("●", "primary"),
    "parked": ("◐", "secondary"),
    "idle": ("○", "muted"),
    "done": ("✓", "success"),
    "failed": ("✗", "error"),
    "stopped": ("–", "muted"),
    "interrupted": ("~", "warning"),
    "saved": ("·", "muted"),
}
_USUAL: Final[Mapping[State, str]] = {
    "working": "working",
    "parked": "waiting for the server",
    "idle": "at the prompt",
    "done": "done",
    "failed": "failed",
    "stopped": "stopped",
    "interrupted": "interrupted",
}
"""What is said of a session that says nothing of itself."""
_CHARS: Final = 1_000
"""Characters of a text that a line is made of; nobody sees more."""
_COLUMNS: Final = (
    ("for", 9, 40),
    ("cost", 9, 62),
    ("age", 9, 136),
    ("folder", 18, 92),
    ("branch", 14, 108),
    ("host", 14, 70),
)
"""The columns after the title and what it does: name, most cells, the width with room for it."""
_TEXTS: Final = frozenset({"folder", "branch", "host"})
"""Columns that begin at the left; figures end at the right."""
_GAP: Final = 2
_DOES_FROM: Final = 48
_DOES: Final = 26
"""Cells that say of most sessions what they do."""
_SIGN: Final = 2
_NAME: Final = 40
"""Cells of a title in a sentence."""


@dataclass(frozen=True, slots=True)
class ColumnCells:
    """The cells of the columns whose texts have a common length. With `hosts` each session says
    where it is."""

    hosts: bool = False
    folder: int = 18
    branch: int = 14
    host: int = 14

    @classmethod
    def of(cls, rows: Iterable[DeskRow], *, hosts: bool = False) -> ColumnCells:
        """Return columns that are as wide as the texts of these sessions need, at the most as the
        list has room for."""
        need = {name: len(name) for name in _TEXTS}
        for row in rows:
            for name, text in _places(
                row.cwd if row.host else shorten(row.cwd), row.branch, row.host
            ).items():
                need[name] = max(need[name], cell_len(text))
        return cls(hosts, **{name: min(_most(name), need[name] + _GAP) for name in _TEXTS})

    def cells(self, name: str) -> int:
        """Return the cells of a column, with the gap before it."""
        return getattr(self, name) if name in _TEXTS else _most(name)


@dataclass(frozen=True, slots=True)
class DeskLine:
    """A line of the list: the title of a group with its `count`, a session, its question, or none
    of them, to set groups apart."""

    kind: Literal["group", "session", "question", "space"]
    group: Group
    row: DeskRow | None = None
    count: int = 0
    folded: bool = False

    @property
    def name(self) -> tuple[str, str, str]:
        """The same for the same line of another time."""
        host, id_ = key_of(self.row) if self.row is not None else (self.group, "")
        return self.kind, host, id_

    def same(self, other: DeskLine) -> bool:
        """True if both show the same. A row that did not change is the same object."""
        mine, theirs = (self.kind, self.count, self.folded), (other.kind, other.count, other.folded)
        return self.row is other.row and mine == theirs and self.group == other.group


def key_of(row: DeskRow) -> SessionKey:
    return row.host, row.id


def group_of(row: DeskRow) -> Group:
    """Return the group of a session; one with an open question waits, whatever else it does."""
    return "waiting" if row.questions else _GROUP_OF[row.state]


def grouped(rows: Iterable[DeskRow]) -> dict[Group, list[DeskRow]]:
    """Return the sessions by group, in the order in which they are listed."""
    groups: dict[Group, list[DeskRow]] = {group: [] for group in GROUPS}
    for row in rows:
        groups[group_of(row)].append(row)
    for group, some in groups.items():
        # What works keeps its place while it goes from step to step.
        begins = group == "working"
        some.sort(key=lambda row: (row.started if begins else row.since, row.id), reverse=True)
    groups["ended"].sort(key=lambda row: row.seen)
    return groups


def lines_of(
    rows: Iterable[DeskRow], *, words: str = "", folded: bool = True, roomy: bool = False
) -> list[DeskLine]:
    """Return the lines of the sessions that contain every word.

    Saved ones are only counted while they are `folded`, unless they are all there is, or words are
    sought. `roomy` sets the groups apart.
    """
    groups = grouped(matching(rows, words))
    others = any(some for group, some in groups.items() if group != "saved")
    lines: list[DeskLine] = []
    for group, some in groups.items():
        if not some:
            continue
        if lines and roomy:
            lines.append(DeskLine("space", group))
        hides = group == "saved" and folded and others and not words.strip()
        lines.append(DeskLine("group", group, count=len(some), folded=hides))
        for row in () if hides else some:
            lines.append(DeskLine("session", group, row))
            if row.questions:
                lines.append(DeskLine("question", group, row))
    return lines


def matching(rows: Iterable[DeskRow], words: str) -> list[DeskRow]:
    """Return the sessions whose title, place, state or question contain every word."""
    sought = words.casefold().split()
    return [row for row in rows if not sought or all(word in _text(row) for word in sought)]


def _text(row: DeskRow) -> str:
    asked = [question_text(one.asked) for one in row.questions]
    place = (row.cwd, row.branch, row.host, row.id, row.model, row.profile)
    words = (row.state, GROUPS[group_of(row)], row.detail, row.problem, *asked)
    return "\n".join((row.title, *place, *words)).casefold()


# Words


def title_of(row: DeskRow) -> str:
    """Return the title of a session, safe to draw."""
    return _line(row.title) or f"session {_line(row.id)[:8]}"


def quoted(row: DeskRow) -> str:
    """Return the title of a session as a sentence names it: short, in quotation marks."""
    return f"“{whole_words(title_of(row), _NAME)}”"


def _line(text: str) -> str:
    return one_line(text[:_CHARS])


def question_text(asked: Asked) -> str:
    """Return a question in a line, safe to draw: nothing in it is hidden or disguised."""
    match asked:
        case AskedCall(call):
            agent = f"{call.agent}: " if call.agent else ""
            text = f"{agent}{title(call.tool, call.subject[:_CHARS])}"
        case AskedQuestions(questions):
            text = "  ".join(one.text[:_CHARS] for one in questions[:8])
        case AskedPlan(named, plan):
            text = f"Plan: {named[:_CHARS] or plan[:_CHARS]}"
    return one_line(visible(text[: 2 * _CHARS]))


def asks_words(questions: Sequence[AskedLine]) -> str:
    """Return the kind of question that waits; of several, how many there are."""
    if len(questions) > 1:
        return f"{len(questions)} questions"
    match questions[0].asked:
        case AskedCall(call, decision):
            risk = " · high-risk" if decision.risk == "high-risk" else ""
            kinds = {"run": "asks to run", "write": "asks to write", "fetch": "asks to fetch"}
            return f"{kinds.get(call.effect, 'asks')}{risk}"
        case AskedQuestions(asked):
            return "has a question" if len(asked) == 1 else f"has {len(asked)} questions"
        case AskedPlan():
            return "has a plan for you"


def does_words(row: DeskRow) -> str:
    """Return what a session does, waits for or ended with."""
    if row.problem:
        return _line(row.problem)
    if row.questions:
        return asks_words(row.questions)
    if row.state == "interrupted" and row.detail:
        return f"interrupted: {_line(row.detail)}"
    return _line(row.detail) or _USUAL.get(row.state, "")


def since_words(row: DeskRow, now: datetime) -> str:
    """Return for how long a session has been in its state; of one that is over, its age."""
    then = moment_of(row.since) or moment_of(row.started)
    if then is None:
        return ""
    seconds = int((now - then).total_seconds())
    lasts = group_of(row) in RUNNING
    return f"{max(0, seconds)} s" if lasts and seconds < 60 else age(then, now)


# Lines


_USUAL_COLUMNS: Final = ColumnCells()


def line_parts(
    line: DeskLine, now: datetime, width: int, columns: ColumnCells = _USUAL_COLUMNS
) -> list[Part]:
    """Return a line in `width` cells."""
    if line.kind == "space":
        return []
    if line.row is None:
        return _group_parts(line)
    if line.kind == "question":
        return _question_parts(line.row, width)
    return _session_parts(line.row, now, width, columns)


def _group_parts(line: DeskLine) -> list[Part]:
    parts: list[Part] = [(GROUPS[line.group], "heading"), (f"  {line.count:,}", "muted")]
    shows = " shows it" if line.count == 1 else " shows them"
    return [*parts, ("   f", "accent"), (shows, "muted")] if line.folded else parts


def _question_parts(row: DeskRow, width: int) -> list[Part]:
    asked = row.questions[0].asked
    risky = isinstance(asked, AskedCall) and asked.decision.risk == "high-risk"
    more = len(row.questions) - 1
    tail = f"  and {more} more" if more else ""
    room = max(4, width - _SIGN - 2 - cell_len(tail))
    text = whole_words(question_text(asked), room)
    look = "error" if risky else "warning"
    return [("  └ ", "muted"), (text, look), (tail, "muted")]


def _session_parts(row: DeskRow, now: datetime, width: int, columns: ColumnCells) -> list[Part]:
    began = moment_of(row.started)
    texts = {
        "title": title_of(row),
        "does": does_words(row),
        "for": since_words(row, now),
        "cost": money(row.cost_usd) if row.cost_usd is not None else "",
        "age": age(began, now) if began else "",
        **_places_of(row),
    }
    group = group_of(row)
    dim = group == "saved" or (group == "ended" and row.seen)
    looks = {"title": "muted" if dim else "text"}
    if row.problem or row.state == "failed":
        looks["does"] = "error"
    elif group == "working":
        looks["does"] = "text"
    if group == "waiting":
        sign, look = _SIGNS["waiting"]
    elif row.problem:
        sign, look = "!", "error"
    else:
        sign, look = _SIGNS[row.state]
    cells = _row_cells(texts, width, columns)
    return [(f"{sign} ", look), *((text, looks.get(name, "muted")) for name, text in cells)]


def _places_of(row: DeskRow) -> Mapping[str, str]:
    return _places(row.cwd if row.host else shorten(row.cwd), row.branch, row.host)


@lru_cache(maxsize=1_000)
def _places(folder: str, branch: str, host: str) -> Mapping[str, str]:
    """Return where a session is, as its row says it."""
    return {
        "folder": nearest_folders(_line(folder), _most("folder") - _GAP),
        "branch": _line(branch),
        "host": _line(host) or "here",
    }


def heading(width: int, columns: ColumnCells = _USUAL_COLUMNS) -> str:
    """Return the names of the columns over the sessions."""
    names = {name: name for name, *_ in _COLUMNS} | {"title": "title", "does": "what it does"}
    cells = _row_cells(names, width, columns)
    return " " * _SIGN + "".join(text for _, text in cells)


def _most(column: str) -> int:
    return next(cells for name, cells, _ in _COLUMNS if name == column)


def _row_cells(texts: Mapping[str, str], width: int, columns: ColumnCells) -> list[tuple[str, str]]:
    """Return the cells of a line with their column names; the title and what it does get what the
    others leave."""
    tail: list[tuple[str, str]] = []
    for name, _, least in _COLUMNS:
        if width < least or (name == "host" and not columns.hosts):
            continue
        cells = columns.cells(name)
        text = cell(texts[name], cells - _GAP)
        tail.append((name, f"  {text}" if name in _TEXTS else f"{text.rstrip():>{cells}}"))
    room = max(4, width - _SIGN - sum(cell_len(text) for _, text in tail))
    if width < _DOES_FROM:
        return [("title", cell(whole_words(texts["title"], room), room)), *tail]
    does = max(min(room // 2 - 1, _DOES), room * 2 // 5)
    name_room = room - does - _GAP
    return [
        ("title", cell(whole_words(texts["title"], name_room), name_room)),
        ("does", f"  {cell(whole_words(texts['does'], does), does)}"),
        *tail,
    ]


# Around the list


def desk_title(rows: Sequence[DeskRow], width: int) -> Content:
    """Return how many sessions wait, work and ended, and their cost, as far as it fits."""
    groups = grouped(rows)
    waiting = len(groups["waiting"])
    parts: list[tuple[str, str]] = []
    if waiting:
        words = "waits" if waiting == 1 else "wait"
        parts.append((f"{waiting:,} {words} for you", "bold $text-warning"))
    if working := len(groups["working"]):
        parts.append((f"{working:,} working", "$foreground"))
    if parked := len(groups["parked"]):
        parts.append((f"{parked:,} waiting for the server", "$text-muted"))
    if ended := len(groups["ended"]):
        parts.append((f"{ended:,} ended", "$text-muted"))
    costs = [row.cost_usd for row in rows if row.cost_usd and group_of(row) != "saved"]
    if costs:
        parts.append((money(sum(costs)), "$text-muted"))
    head = Content.styled("desk", "bold $text-primary")
    while parts and head.cell_length + 3 + len(" · ".join(text for text, _ in parts)) > width:
        parts.pop()
    facts = Content.styled(" · ", "$text-muted").join([Content.styled(*part) for part in parts])
    return Content.assemble(head, "   ", facts) if parts else head


def problem_lines(hosts: Iterable[DeskHost], width: int) -> Content:
    """Return a line for each machine that can't be reached: why, and what to do."""
    lines: list[Content] = []
    for host in hosts:
        if not host.problem:
            continue
        name = _line(host.name) or "this machine"
        what = f" Check that `ssh {name}` works; trying again." if host.name else ""
        said = f"{name}: {_line(host.problem).rstrip('.')}."
        line = Content.assemble(
            ("! ", "bold $text-warning"), (said, "$text-warning"), (what, "$text-muted")
        )
        lines.append(line.truncate(max(8, width), ellipsis=True))
    return Content("\n").join(lines)


def empty_text(words: str, *, reading: bool, count: int) -> str:
    """Explain why no session is listed, and what to do."""
    if count and words.strip():
        return f"No session matches “{one_line(words)}”.\nEsc clears the filter."
    if reading:
        return "Looking for sessions …"
    return (
        "No sessions yet.\n\n"
        "Press n to start one: it works in the background and asks you here.\n"
        "Sessions that you start in other terminals appear by themselves."
    )


def preview_title(row: DeskRow) -> Content:
    """Return which session a preview is of: its id, place and model."""
    where = shorten(Path(row.cwd)) if row.cwd and not row.host else row.cwd
    profile = f"profile {one_line(row.profile)}" if row.profile else ""
    facts = (row.id[:12], row.host, where, row.branch, row.model, profile)
    return Content.styled(" · ".join(filter(None, map(_line, facts))), "$text-muted")


def desk_keys(row: DeskRow | None, *, waiting: int, saved: int) -> list[tuple[str, str]]:
    """Return the keys that do something now, the most useful first; `waiting` and `saved` sessions
    are there."""
    keys: list[tuple[str, str]] = []
    if row is not None:
        group = group_of(row)
        keys.append(("enter", "open"))
        if row.questions:
            keys.append(("a", "answer"))
        if waiting > 1 or (waiting and not row.questions):
            keys.append(("w", "next waiting"))
        if group in RUNNING:
            keys.append(("s", "stop"))
        if group == "ended":
            keys.append(("d", "dismiss"))
    keys.append(("n", "new"))
    if row is not None:
        keys.append(("/", "filter"))
    if saved:
        keys.append(("f", "saved"))
    if row is not None:
        keys.append(("y", "copy"))
    return [*keys, ("esc", "leave")]


FILTER_KEYS: Final = (("enter", "list"), ("↑ ↓", "move"), ("esc", "clear"))
"""The keys while the filter is typed."""


def attach_command(row: DeskRow) -> str:
    """Return the command that opens a session, here or on its machine."""
    return f"holdfast attach ssh://{row.host}/{row.id}" if row.host else f"holdfast attach {row.id}"


def leaving_words(rows: Iterable[DeskRow]) -> str:
    """Return what is said of the sessions that run on once the desk is left; "" if none does."""
    running = sum(group_of(row) in RUNNING for row in rows)
    if not running:
        return ""
    verb = "runs" if running == 1 else "run"
    return f"{plural(running, 'session')} {verb} on. holdfast desk opens this again."
