"""The report of a session as a page: one file that loads nothing and runs nothing. At a glance, in
time, where the money went, and the record that all of it leads to.

`glance` has the headline figures, `timeline_picture` and `usage_pictures` the drawings, `record`
the prompts with their steps, `markup` what makes text safe, `style` how it looks. However long a
session is, the page has at most some 2.5 MB. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tui.app.reports.timeline import KINDS, step_words, timeline_report
from tui.app.reports.timeline_picture import PARTS
from tui.app.reports.usage_table import cut_off, unknown_prices
from tui.app.session_page.glance import concerns, glance, other_records, outcome_of, tiles
from tui.app.session_page.markup import (
    PageText,
    Section,
    document,
    figure,
    link,
    table,
)
from tui.app.session_page.record import PageRecord, TurnSteps, page_record, record_parts
from tui.app.session_page.timeline_picture import timeline_picture
from tui.app.session_page.usage_pictures import SHOWN, usage_figures
from tui.app.session_report import cost, models, turns
from tui.context.timeline import SessionTimeline, inner_timelines
from tui.context.usage.attribution import Attribution, attribute
from tui.core.config import Price
from tui.core.formatting import money, plural, tokens, utc
from tui.core.gc_pause import gc_pause
from tui.core.two_processes import in_fork
from tui.session.export import Exported
from tui.session.reader import LoadedSession
from tui.session.records import Record

_ALONE: Final = 8_000
"""Records that are looked at before a second process is worth its start."""
_MARKED: Final = 150
"""Most rows of the table of what broke, turned or went wrong."""


def session_page(
    loaded: LoadedSession,
    prices: Mapping[str, Price],
    *,
    title: str = "",
    state: str = "",
    sub_agents: Mapping[str, Sequence[Record]] | None = None,
) -> Exported:
    """Make the page. `prices` are the configured ones; `state` says whether the file is what was
    written; `sub_agents` are the records of their sessions, by id."""
    with gc_pause():
        return _page(loaded, prices, title, state, sub_agents or {})


def _page(
    loaded: LoadedSession,
    prices: Mapping[str, Price],
    title: str,
    state: str,
    sub_agents: Mapping[str, Sequence[Record]],
) -> Exported:
    def shared(records: Sequence[Record]) -> bytes:
        return attribute(records, prices, cwd=loaded.header.cwd, by=SHOWN).to_bytes()

    branch, worth = loaded.branch, len(loaded.records) > _ALONE
    with in_fork(shared, [loaded.records], worth=worth) as shares:
        timeline = SessionTimeline(prices, loaded.header.cwd)
        timeline.extend(branch)
        inner = inner_timelines(branch, sub_agents, prices)
        all_turns = [*turns(branch)]
        text = PageText()
        record = page_record(timeline, all_turns, inner)
        parts = [*record_parts(record, prices, text)]
        outcome = outcome_of(all_turns, timeline.steps)
        told = [*concerns(loaded, outcome, timeline)]
        time = _in_time(timeline, record, text)
        spent = cost(loaded.records, branch, prices)
        found = Attribution.of_bytes(next(shares))
    seen = glance(tiles(outcome, timeline), told, text, record)
    if behind := other_records(loaded):
        seen += f'<p class="note">{text.label(behind, 400)}</p>'
    body = [
        Section("glance", "At a glance", seen),
        Section("time", "In time", time),
        Section("money", "Where the money went", _money(loaded, found, record, text)),
        Section("record", "The record", "".join(parts) or "<p>No message is in it.</p>"),
    ]
    header = loaded.header
    lines = [f"session {header.id}", utc(header.created), header.cwd, ", ".join(models(all_turns))]
    lines += [spent, state]
    meta = " · ".join(text.label(line, 300) for line in lines if line)
    name = text.label(title or header.id)
    hidden = f"{plural(text.secrets, 'secret')} removed from this page." if text.secrets else ""
    page = document(name, [meta, hidden], body, f"Made by Holdfast from the record alone. {_TIMES}")
    return Exported(page, text.secrets)


# In time


def _in_time(timeline: SessionTimeline, record: PageRecord, text: PageText) -> str:
    """The picture with its tables, and what it shows in words."""
    report = timeline_report(timeline)
    lines = [line for line in report.lines if not line.startswith("  ")]
    words = "".join(f"<li>{text.label(line, 300)}</li>" for line in lines)
    if not timeline.steps:
        return f"<ul>{words}</ul>"
    picture = timeline_picture(timeline, text, record.anchor, record.inner)
    legend = "".join(f'<li><i class="{part}"></i>{part}</li>' for part in reversed(PARTS))
    legend += (
        '<li><i class="pale"></i>pale, below the line: from the cache</li>'
        '<li><i class="full"></i>full: new</li><li>▲ cache restarted</li><li>▼ compacted</li>'
        "<li>✗ ✓ checks turned red, green</li>"
    )
    if record.inner:
        legend += '<li><i class="thin messages"></i>below a sub-agent: its requests</li>'
    behind = table("By prompt", _COLUMNS, _rows(record, text)) + _marked(timeline, record, text)
    legend = f'<ul class="legend">{legend}</ul>'
    return figure(picture, behind, legend=legend, wide=True) + f"<ul>{words}</ul>"


_COLUMNS: Final = (
    "prompt", "requests", "calls", "went wrong", "largest input", "cached", "output", "files",
    "cost",
)  # fmt: skip


def _rows(record: PageRecord, text: PageText) -> Iterator[list[str]]:
    gap: list[TurnSteps] = []
    for n, turn in enumerate(record.turns):
        if n in record.left:
            gap.append(turn)
            continue
        if gap:
            yield _row(record, gap, record.left[n - 1], text)
            gap = []
        yield _row(record, [turn], record.turn_anchor(n), text)
    if gap:
        yield _row(record, gap, record.left[len(record.turns) - 1], text)


def _row(record: PageRecord, some: Sequence[TurnSteps], anchor: str, text: PageText) -> list[str]:
    steps = [record.timeline.steps[place] for one in some for place in one.steps]
    sent = [step.sent for step in steps if step.sent]
    first, last = some[0], some[-1]
    name = f"Prompts {first.number:,} to {last.number:,}"
    if len(some) == 1:
        label = next((step.label for step in steps if step.kind == "prompt"), "")
        name = f"{first.number}. {label}" if first.number else "before the first prompt"
    counted = [one for one in sent if one.counted]
    read, whole = sum(one.cached for one in counted), sum(one.tokens for one in counted)
    usd, unpriced = sum(one.usd for one in some), any(one.unpriced for one in some)
    price = "unknown" if unpriced and not usd else money(usd) + " + ?" * unpriced
    files = {name for step in steps for name in step.files}
    return [
        link(anchor, text.label(name, 100)),
        f"{sum(step.kind == 'request' for step in steps):,}",
        f"{sum(step.kind == 'call' for step in steps):,}",
        f"{sum(one.bad for one in some):,}",
        tokens(max((one.tokens for one in sent), default=0)),
        f"{100 * read / whole:.0f} %" if whole else "",
        tokens(sum(one.output for one in sent)),
        f"{len(files):,}",
        price,
    ]


def _marked(timeline: SessionTimeline, record: PageRecord, text: PageText) -> str:
    """The steps that the picture has signs for: what broke, was compacted, turned, or failed."""
    steps = timeline.steps
    places = {
        *timeline.marks["context"].steps,
        *timeline.marks["trouble"].steps,
        *(place for place in timeline.marks["check"].steps if steps[place].turned),
    }
    if not places:
        return ""
    shown = sorted(places)[-_MARKED:]
    rows = [
        [
            link(record.anchor(place), text.label(step_words(steps[place]))),
            KINDS[steps[place].kind] if not steps[place].check else steps[place].verdict,
            text.label(steps[place].time[:19].replace("T", " ")),
        ]
        for place in shown
    ]
    earlier = f", the last {len(shown):,} of {len(places):,}" if len(places) > len(shown) else ""
    return table(f"Signs in the picture{earlier}", ("sign", "kind", "time (UTC)"), rows)


# Where the money went


def _money(loaded: LoadedSession, found: Attribution, record: PageRecord, text: PageText) -> str:
    figures = [*usage_figures(found, text, _row_anchor(loaded, record))]
    notes = [unknown_prices([*found.unknown])]
    if len(loaded.records) > len(loaded.branch):
        notes.append("All branches of the session are in these sums.")
    notes.append(cut_off(found.cut_off))
    said = "".join(f'<p class="note">{text(note)}</p>' for note in notes if note)
    if not figures:
        why = "No request was answered, so nothing was paid."
        if len(record.timeline.requests):
            why = "The record has no count of tokens, so what was paid isn't known."
        return f"{said}<p>{why}</p>"
    legend = (
        '<ul class="legend"><li><i class="cached" style="opacity:.45"></i>from the cache</li>'
        '<li><i class="new"></i>new to the model</li><li><i class="output"></i>written by the'
        " model</li>"
        "</ul>"
    )
    return f'{said}{legend}<div class="money">{"".join(figures)}</div>'


def _row_anchor(loaded: LoadedSession, record: PageRecord) -> Callable[[str, str], str]:
    """Find where the record has the last of what a row is about: its prompt, the call that changed
    the file, the model's request, the sub-agent."""
    steps = record.timeline.steps
    known: dict[tuple[str, str], int] = {}
    for place, step in enumerate(steps):
        for file in step.files:
            known["file", file] = place
        if step.kind == "request":
            known["model", step.model] = place
        elif step.kind == "agent":
            known["agent", step.label] = place
    one_branch = len(loaded.records) == len(loaded.branch)

    def anchor(by: str, key: str) -> str:
        if by in {"prompt", "brought"} and one_branch and key.isdecimal():
            first = record.turns[0].number
            return record.turn_anchor(int(key[:9]) - first)
        if by == "break" and key:
            marks = record.timeline.marks["context"].steps
            places = [place for place in marks if steps[place].kind == "break"]
            return record.anchor(places[-1]) if places else ""
        place = known.get((by, key))
        if place is None and by == "file":
            place = next((n for (_, name), n in known.items() if name.endswith(f"/{key}")), None)
        return record.anchor(place) if place is not None else ""

    return anchor


_TIMES: Final = "Times are UTC. Prices of models are those configured and known today."
