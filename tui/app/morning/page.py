"""A report over sessions as a page: one file that loads nothing and runs nothing.

The summary leads to the findings, each of them to its session's part, where the record's own words
are beside it. However much ran, the page has at most some 2.5 MB. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from tui.app.morning.findings import FIGURES, RED, TITLES, Kind, Morning, NightFinding, SessionNight
from tui.app.morning.words import (
    FROM_RECORDS,
    MOST,
    command_of,
    done_of,
    done_words,
    facts_of,
    files_words,
    money_lines,
    name_of,
    opening,
    place_of,
    row_words,
    span_words,
    times,
    verdict,
)
from tui.app.reports.usage_table import cost, table_of
from tui.app.session_page.markup import (
    PageText,
    Picture,
    Section,
    document,
    figure,
    link,
    table,
)
from tui.app.session_page.usage_pictures import usage_figure
from tui.core.dataclass import dataclass
from tui.core.formatting import local, moment_of, plural
from tui.session.export import Exported

_ROOM: Final = 1_400_000
"""Bytes for the parts of the sessions together."""
_ROWS: Final = 60
"""Most findings of a session, and of its prompts, that its part lists."""
_LISTED: Final = 1_000
"""Most sessions in the table."""
_DRAWN: Final = 60
"""Most sessions in the picture."""
_SIGNS: Final[Mapping[Kind, str]] = {
    "red": "✗",
    "claimed": "✗",
    "failed": "✗",
    "error": "✗",
    "died": "✗",
    "waiting": "?",
    "parked": "…",
    "unfinished": "…",
    "unchecked": "!",
    "refused": "⊘",
    "undone": "↶",
    "unknown": "?",
    "cache": "▲",
}
_ALWAYS: Final[tuple[Kind, ...]] = ("red", "waiting", "refused", "undone")
"""The kinds that have a figure even where there is none."""
_WIDTH: Final = 900
_LEFT: Final = 150
_LINE: Final = 22


@dataclass(frozen=True, slots=True)
class _Anchors:
    """The anchors of each session and each of its findings on the page: none is made of what is in
    a session."""

    sessions: Mapping[int, str]

    @classmethod
    def of(cls, shown: Sequence[SessionNight]) -> _Anchors:
        return cls({id(night): f"n{number}" for number, night in enumerate(shown, 1)})

    def session(self, night: SessionNight | None) -> str:
        return self.sessions.get(id(night), "")

    def row(self, night: SessionNight | None, row: NightFinding) -> str:
        """The anchor of a finding in its session's part, or of that."""
        anchor = self.session(night)
        if not anchor or night is None:
            return anchor
        number = next((n for n, one in enumerate(night.rows[:_ROWS]) if one is row), None)
        return anchor if number is None else f"{anchor}-{number}"


def morning_page(morning: Morning) -> Exported:
    """Make the page."""
    text = PageText()
    anchors, parts = _parts(morning, text)
    sections = [
        Section("glance", "At a glance", _glance(morning, anchors, text)),
        *([Section("time", "In time", _in_time(morning, anchors, text))] * bool(morning.sessions)),
        Section("money", "What it cost", _money(morning, anchors, text)),
        Section("sessions", "The sessions", parts or "<p>No session ran.</p>"),
    ]
    meta = [text.label(span_words(morning), 300)]
    if text.secrets:
        meta.append(f"{plural(text.secrets, 'secret')} removed from this page.")
    footer = f"Made by Holdfast at {text(local(morning.made))}. {FROM_RECORDS}"
    return Exported(document("What ran", meta, sections, footer), text.secrets)


# At a glance


def _glance(morning: Morning, anchors: _Anchors, text: PageText) -> str:
    counts = morning.counts()
    red = any(counts[kind] for kind in RED)
    tiles = "".join(_tiles(morning, counts))
    calm = "" if red else ' class="calm"'
    said = f"<p{calm}><strong>{text.label(verdict(morning), 600)}</strong></p>"
    said += f"<p>{text.label(done_words(morning), 600)}</p>"
    lists = "".join(_list(morning, kind, anchors, text) for kind in TITLES if counts[kind])
    return f'{said}<dl class="tiles">{tiles}</dl>{lists}'


def _tiles(morning: Morning, counts: Mapping[Kind, int]) -> Iterator[str]:
    for kind, name in FIGURES.items():
        count = counts[kind]
        if not count and kind not in _ALWAYS:
            continue
        look = "bad" if count and kind in {*RED, "waiting", "unknown"} else ""
        more = _checked(morning) if kind == "red" else ""
        figure_ = link(f"k-{kind}" if count else "", f"{count:,}")
        yield _tile(name[:1].upper() + name[1:], figure_, more, look)
    for name, count in (
        ("Asked", sum(len(one.work.asked) for one in morning.sessions)),
        ("Answered to the end", sum(one.work.answered for one in morning.sessions)),
        ("Questions", morning.exchanged("question")),
        ("Goals", morning.exchanged("goal")),
        ("Files changed", len({name for one in morning.sessions for name in one.work.files})),
        ("Commits", sum(len(one.work.commits) for one in morning.sessions)),
    ):
        yield _tile(name, f"{count:,}", "", "")
    total = morning.total()
    yield _tile("Cost", cost(total), "", "bad" * bool(total.unpriced))


def _checked(morning: Morning) -> str:
    ran = sum(one.work.checks > 0 for one in morning.sessions)
    return f"checks in {ran:,} of {plural(len(morning.sessions), 'session')}"


def _tile(name: str, number: str, more: str, look: str) -> str:
    said = f'<dd class="more">{more}</dd>'
    return f'<div class="tile {look}"><dt>{name}</dt><dd>{number}</dd>{said}</div>'


def _list(morning: Morning, kind: Kind, anchors: _Anchors, text: PageText) -> str:
    found = [(row, night) for row, night in morning.findings() if row.kind == kind]
    items = "".join(_item(row, night, anchors, text) for row, night in found[:MOST])
    if (more := len(found) - MOST) > 0:
        items += f"<li>{more:,} more of this kind</li>"
    count = sum(row.times for row, _ in found)
    look = "concerns" if kind in {*RED, "waiting", "unknown"} else "concerns quiet"
    return f'<h3 id="k-{kind}">{TITLES[kind]} ({count:,})</h3><ul class="{look}">{items}</ul>'


def _item(row: NightFinding, night: SessionNight | None, anchors: _Anchors, text: PageText) -> str:
    where = ""
    if night is not None:
        where = link(anchors.row(night, row), text.label(name_of(night), 110))
    command = f"<code>{text.label(command_of(row, night), 300)}</code>"
    return (
        f'<li><span class="sign" aria-hidden="true">{_SIGNS[row.kind]}</span>'
        f"<span>{text.label(row_words(row), 500)}"
        f' <span class="links">{where} {command}</span></span></li>'
    )


# In time


def _in_time(morning: Morning, anchors: _Anchors, text: PageText) -> str:
    drawn = [(night, *span) for night in morning.sessions if (span := _moments(night))]
    rows = [_cells(night, anchors, text) for night in morning.sessions[:_LISTED]]
    more = len(morning.sessions) - len(rows)
    left = f", the first {len(rows):,}" if more > 0 else ""
    head = (
        "session", "state", "red", "folder (branch)", "model", "started", "time", "prompts",
        "calls", "files", "commits", "cost",
    )  # fmt: skip
    behind = table(f"What ran{left}", head, rows)
    if not drawn:
        return behind
    return figure(_picture(morning, drawn[:_DRAWN], anchors, text), behind, wide=True, opened=True)


def _moments(night: SessionNight) -> tuple[datetime, datetime] | None:
    first, last = moment_of(night.first), moment_of(night.last)
    return (first, last) if first and last and first <= last else None


def _cells(night: SessionNight, anchors: _Anchors, text: PageText) -> list[str]:
    red = sum(night.count(kind) for kind in RED)
    return [
        link(anchors.session(night), text.label(name_of(night), 70)),
        text.label(night.state, 40),
        f'<b class="bad">{red:,}</b>' if red else "0",
        text.label(night.folder.rsplit("/", 1)[-1] + f" ({night.branch})" * bool(night.branch), 40),
        text.label(", ".join(night.models), 30),
        text.label(night.started_by, 30),
        text.label(times(night), 40),
        f"{len(night.work.asked):,}",
        f"{night.work.calls:,}",
        f"{len(night.work.files):,}",
        f"{len(night.work.commits):,}",
        cost(night.amount) if night.spent else "",
    ]


def _picture(
    morning: Morning,
    drawn: Sequence[tuple[SessionNight, datetime, datetime]],
    anchors: _Anchors,
    text: PageText,
) -> Picture:
    """A bar for each session, from its first record in the span to its last one."""
    start = min(first for _, first, _ in drawn)
    end = max(last for _, _, last in drawn)
    whole = max(1.0, (end - start).total_seconds())

    def x(then: datetime) -> float:
        part = (then - start).total_seconds() / whole
        return round(_LEFT + part * (_WIDTH - _LEFT - 10), 1)

    right = _WIDTH - 10
    pieces = [
        f'<text class="l" x="{_LEFT}" y="12">{text(_clock(start))}</text>',
        f'<text class="l" x="{right}" y="12" text-anchor="end">{text(_clock(end))}</text>',
    ]
    for number, (night, first, last) in enumerate(drawn):
        y = 20 + number * _LINE
        red = sum(night.count(kind) for kind in RED)
        kind = "bad" if red else "wait" if night.count("waiting") else "request"
        left, width = min(x(first), right - 3.0), max(3.0, x(last) - x(first))
        bar = f'<rect class="{kind}" x="{left}" y="{y}" width="{width:.1f}" height="13"/>'
        name = (
            f'<text class="l" x="0" y="{y + 11}">{text.label(night.title or night.id, 22)}</text>'
        )
        ticks = "".join(
            f'<path class="edge" d="M{x(then)} {y - 2}v17"/>'
            for one in night.work.asked[:_ROWS]
            if (then := moment_of(one.time)) is not None and start <= then <= end
        )
        sign = f'<text class="sign" x="{_LEFT - 12}" y="{y + 11}">✗</text>' if red else ""
        drawn_row = f"<title>{text.label(name_of(night), 80)}</title>{name}{sign}{bar}{ticks}"
        anchor = anchors.session(night)
        pieces.append(f'<a href="#{anchor}">{drawn_row}</a>' if anchor else f"<g>{drawn_row}</g>")
    told = f"{plural(len(drawn), 'session')}: a bar each, a line for each prompt, ✗ where red."
    if (more := len(morning.sessions) - len(drawn)) > 0:
        told += f" {plural(more, 'more session')} in the table only."
    height = 26 + len(drawn) * _LINE
    return Picture("night", _WIDTH, height, "What ran when", told, "".join(pieces))


def _clock(then: datetime) -> str:
    return f"{then.astimezone():%a %H:%M}"


# What it cost


def _money(morning: Morning, anchors: _Anchors, text: PageText) -> str:
    said = "".join(f"<li>{text.label(line, 400)}</li>" for line in money_lines(morning))
    amounts = {night.path: night.amount for night in morning.sessions if night.spent}
    if not amounts:
        return f"<ul>{said}</ul>"
    by_path = {night.path: night for night in morning.sessions}
    names = {path: by_path[path].title or by_path[path].id for path in amounts}
    figures = [
        usage_figure(
            table_of("session", amounts, names),
            text,
            lambda _, key: anchors.session(by_path.get(key)),
        ),
        usage_figure(table_of("model", morning.by_model()), text, lambda _by, _key: ""),
    ]
    return f'<ul>{said}</ul><div class="money">{"".join(figures)}</div>'


# The sessions


def _parts(morning: Morning, text: PageText) -> tuple[_Anchors, str]:
    """The parts of as many sessions as there is room for, those with findings first."""
    worst = sorted(
        morning.sessions, key=lambda night: not any(night.count(kind) for kind in FIGURES)
    )
    numbered = _Anchors.of(morning.sessions)
    parts: dict[int, str] = {}
    room = _ROOM
    for night in worst:
        part = _part(night, numbered, text)
        room -= len(part.encode())
        if room < 0:
            break
        parts[id(night)] = part
    shown = [night for night in morning.sessions if id(night) in parts]
    anchors = _Anchors({id(night): numbered.session(night) for night in shown})
    body = "".join(parts[id(night)] for night in shown)
    if (more := len(morning.sessions) - len(shown)) > 0:
        body += f'<p class="left">{plural(more, "more session")} in the table only.</p>'
    return anchors, body


def _part(night: SessionNight, anchors: _Anchors, text: PageText) -> str:
    anchor = anchors.session(night)
    facts = "".join(
        f'<p class="meta">{text.label(line, 400)}</p>'
        for line in (" · ".join(facts_of(night)), done_of(night))
        if line
    )
    body = [facts, f'<p class="meta"><code>{text.label(opening(night), 300)}</code></p>']
    if night.work.asked:
        items = "".join(
            f"<li>{text.label(one.words, 120)}"
            f" <small>{text.label(_at(one.time, one.record))}</small></li>"
            for one in night.work.asked[:_ROWS]
        )
        body.append(f"<h3>Asked</h3><ul>{items}{_more(len(night.work.asked))}</ul>")
    if exchanged := night.work.exchanges:
        items = "".join(
            f"<li>{text.label(one.line, 500)}"
            f" <small>{text.label(_at(one.time, one.record))}</small></li>"
            for one in exchanged[:_ROWS]
        )
        body.append(f"<h3>Questions and notes</h3><ul>{items}{_more(len(exchanged))}</ul>")
    done = [f"Changed: {files_words(night)}"] if night.work.files else []
    done += [f"Committed: {one.label}" for one in night.work.commits[:_ROWS]]
    if done:
        body.append(
            f"<h3>Done</h3><ul>{''.join(f'<li>{text.label(one, 900)}</li>' for one in done)}</ul>"
        )
    if night.rows:
        rows = "".join(
            f'<li id="{anchor}-{number}"><b>{TITLES[row.kind]}:</b>'
            f" {text.label(row_words(row), 500)}"
            f" <small>{text.label(place_of(row))}</small>{_evidence(row, text)}</li>"
            for number, row in enumerate(night.rows[:_ROWS])
        )
        body.append(f"<h3>Know this</h3><ul>{rows}{_more(len(night.rows))}</ul>")
    red = sum(night.count(kind) for kind in RED)
    bad = f' · <b class="bad">{red:,} red</b>' if red else ""
    name, state = text.label(name_of(night), 130), text.label(night.state, 60)
    return (
        f'<details class="turn" id="{anchor}" open><summary>{name} <small>{state}{bad}</small>'
        f"</summary>{''.join(body)}</details>"
    )


def _at(time: str, record: str) -> str:
    return place_of(NightFinding("unknown", "", record, time))


def _more(count: int) -> str:
    return f'<li class="left">{count - _ROWS:,} more</li>' if count > _ROWS else ""


def _evidence(row: NightFinding, text: PageText) -> str:
    return f"<pre>{text.long(row.evidence, 1_500)}</pre>" if row.evidence else ""
