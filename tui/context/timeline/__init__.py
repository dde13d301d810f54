"""The timeline of a session: what happened when, folded from its record. Pure.

SessionTimeline(prices).extend(records)       steps in order, bars by lane, marks, sums
inner_timelines(records, children, prices)    the same of the sub-agents' own sessions
outline(records)                              about how large its requests were, at once
"""

from tui.context.timeline.check_line import check_in, without_texts
from tui.context.timeline.check_runs import CheckRun
from tui.context.timeline.fold import MARKS, SessionTimeline
from tui.context.timeline.inner import inner_timelines
from tui.context.timeline.lanes import Lane, LaneGroup, Sums
from tui.context.timeline.request_outline import SizedRequest, outline
from tui.context.timeline.sizes import Parts
from tui.context.timeline.steps import LANES, Kind, Marks, RequestInput, TimelineStep, next_around

__all__ = [
    "LANES",
    "MARKS",
    "CheckRun",
    "Kind",
    "Lane",
    "LaneGroup",
    "Marks",
    "Parts",
    "RequestInput",
    "SessionTimeline",
    "SizedRequest",
    "Sums",
    "TimelineStep",
    "check_in",
    "inner_timelines",
    "next_around",
    "outline",
    "without_texts",
]
