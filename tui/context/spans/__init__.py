"""Folds the records of a session into OpenTelemetry spans. Pure. `SpanFold` is the way in.

A turn is a trace: its root is `invoke_agent`, with a link to the turn before it, and all spans of a
session have its id as `gen_ai.conversation.id`. In it are the requests (`chat MODEL`), the tools
(`execute_tool NAME`), the person's answers (`approval`), breaks, compactions, hooks and background
commands. A sub-agent's turns are in its parent's trace, in the call that ran it.

Ids are made of those of the records (`ids`), so that the same records give the same spans wherever
and how often they are folded, and so do the copies of a fork. Names are those of the conventions in
`CONVENTIONS`; what these lack begins with `holdfast.`. Costs add up: `holdfast.cost_usd` is only on
the request that was paid for. No text of a person, a model or a tool is in a span, nor a path,
unless `content` is set; keys are masked always.

`fold` says which record begins and ends what. The kinds of spans are in modules of their own:
`turn`, `chat`, `tool`, `breaks`, and in `single` those that one record tells whole. A new kind is a
function there, its attributes as `Fields`, and a line in the table of `fold`. `open_spans` has what
the kinds share.
"""

from tui.context.spans.attributes import AGENT, CONVENTIONS
from tui.context.spans.fold import SpanFold, spans_of
from tui.context.spans.open_spans import RunningCall

__all__ = ["AGENT", "CONVENTIONS", "RunningCall", "SpanFold", "spans_of"]
