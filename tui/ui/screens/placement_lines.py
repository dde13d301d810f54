"""The lines of the tasks screen about machines: who works, what is wrong, and where a task is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from textual.content import Content

from tui.batch.placement import RunPlacement, TaskPlacement
from tui.batch.state import TaskState
from tui.core.formatting import duration, moment, money, plural
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import whole_facts, whole_words

_PROBLEMS: Final = 2
"""Lines for what is wrong."""
_ENDS: Final = "these tasks end with this window"
_OUTLIVES: Final = "closing this window ends nothing"


def end_words(placement: RunPlacement) -> str:
    """Say what becomes of the tasks when the window is closed."""
    return _OUTLIVES if placement.outlives else _ENDS


def machine_lines(placement: RunPlacement, width: int, now: datetime) -> Content:
    """Return the hosts with the tasks that each runs, and below them what is wrong, if anything."""
    hosts = ", ".join(f"{one_line(host)} {count}" for host, count in placement.hosts.items())
    running = sum(placement.hosts.values())
    engine = "ssh" if placement.engine.startswith("ssh:") else one_line(placement.engine)
    text = f"{engine}: {running} of {plural(placement.slots, 'worker')}"
    lines = [
        Content.styled(whole_facts(f"{text} · {hosts}" if hosts else text, width), "$text-muted")
    ]
    problems = [*_problems(placement, now)]
    if more := len(problems) - _PROBLEMS:
        problems[_PROBLEMS - 1 :] = [f"{more + 1} more problems"] if more > 0 else problems[1:]
    lines += [Content.styled(whole_words(one, width), "$text-warning") for one in problems]
    return Content("\n").join(lines)


def _problems(placement: RunPlacement, now: datetime) -> Iterator[str]:
    if since := placement.unreachable_since:
        for_ = duration((now - since).total_seconds())
        why = one_line(placement.store_problem)
        yield f"The store can't be reached since {moment(since, now)} ({for_}): {why}"
    for model, seconds in placement.server_waits.items():
        yield f"The server wants no requests to {one_line(model)} for {duration(seconds)}."
    for host, why in placement.refusing.items():
        yield f"{one_line(host)} takes no tasks: {one_line(why.removeprefix(f'{host}: '))}"


def place_line(task: TaskState, place: TaskPlacement | None, width: int) -> Content:
    """Return where a task is, its attempts and its money, or why it is not done."""
    facts = [*_facts(task, place)]
    style = "$text-warning" if place and place.warning else "$text-muted"
    return Content.styled(whole_facts(" · ".join(facts), width), style)


def _facts(task: TaskState, place: TaskPlacement | None) -> Iterator[str]:
    yield f"task {task.index + 1}"
    if place is None:
        yield task.status
        if task.message:
            yield one_line(task.message)
        return
    if place.host:
        yield f"on {one_line(place.host)}"
    if place.why:
        yield one_line(place.why)
    if place.attempt:
        yield f"attempt {place.attempt}"
    if place.losses:
        yield f"{plural(place.losses, 'worker')} lost"
    if place.attempt:
        limit = f" of {money(place.cap_usd)}" if place.cap_usd is not None else ""
        cost = place.spent_usd
        yield "cost unknown" if cost is None else f"{money(cost)}{limit} so far"
    if place.ended:
        yield f"last attempt: {one_line(place.ended)}"
