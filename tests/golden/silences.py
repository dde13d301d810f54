"""What each front end says nothing of, and why. Every class of events and every type of records
that leaves no trace in a form of the corpus is here, and nothing else is.

Each is meant, and its reason says why nobody misses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Reasons = Mapping[str, str]

_ENDS = "Its end is told, with what came of it."
_FIGURES = (
    "Figures for whoever looks into requests: stream-json, /context and the debug log have them."
)
_NO_PERSON = "Only a person at a screen or at plain lines does that."
_STDOUT = "The answer is what `-p` prints on standard output; stream-json has the steps."
_ASKED = "The front end puts the question itself: the approver has its words."
_WHOLE = "Of an answer each piece was shown."
_REWIND = (
    "/rewind and /diff show what it holds; by itself nothing happened that a person waits for."
)
_TITLE = "The front end shows the session's own title."
_QUEUE = "The front end shows the conversation's own queue."
_ALIVE = "A sign of life, for whoever counts the seconds."
_BEGINS = "The call is told as it begins."
_NOTICE = "A notice says in words what was switched."
_STARTED = "How a session starts is told in other words by whoever opened it."

SCREEN_LIVE: Final[Reasons] = {
    "checkpoint": _REWIND,
    "compaction_delta": _ENDS,
    "cost": "The meter has the cost of the session.",
    "job_started": "The card of its call says it, and the footer counts what runs.",
    "plan_approved": "The call's card is open while the plan is, and closes with it.",
    "plan_proposed": _ASKED,
    "queue_changed": _QUEUE,
    "request_extended": _FIGURES,
    "subagent_finished": "The card of its call ends with it; /agents has the figures.",
    "subagent_started": "The card of its call says it.",
    "title_changed": _TITLE,
}
PLAIN_LIVE: Final[Reasons] = {
    "alive": _ALIVE,
    "checkpoint": _REWIND,
    "compaction_delta": _ENDS,
    "cost": "/usage says it, and each turn would be too often to hear.",
    "directives_changed": _NOTICE,
    "permission_asked": _ASKED,
    "plan_approved": "Whoever approved it has just heard it; /plan show repeats it.",
    "plan_proposed": _ASKED,
    "question_asked": _ASKED,
    "queue_changed": _QUEUE,
    "request_extended": _FIGURES,
    "request_sent": "Said only of a wait that lasts.",
    "title_changed": _TITLE,
    "tool_input_delta": _BEGINS,
}
STDERR: Final[Reasons] = {
    "alive": _ALIVE,
    "assistant_message": _STDOUT,
    "checkpoint": _REWIND,
    "compaction_delta": _ENDS,
    "context_changed": _NO_PERSON,
    "context_measured": _FIGURES,
    "cost": _FIGURES,
    "debug": "With `--output-format text` it is printed: see `write_event`.",
    "directives_changed": _NOTICE,
    "loop_stopped": "The error that ends the turn says the same.",
    "permission_asked": "Nobody is asked: a refusal is told.",
    "plan_approved": _NO_PERSON,
    "plan_proposed": "It is the result of the run, which says so.",
    "question_asked": "Nobody is asked: that nobody could answer is told.",
    "queue_changed": _NO_PERSON,
    "request_extended": _FIGURES,
    "request_sent": _STDOUT,
    "session_started": _STARTED,
    "text_delta": _STDOUT,
    "thinking_delta": _STDOUT,
    "title_changed": "`sessions list` has it.",
    "todos_changed": _STDOUT,
    "tool_finished": _STDOUT,
    "tool_input_delta": _STDOUT,
    "tool_output": _STDOUT,
    "tool_started": _STDOUT,
    "turn_finished": "The exit code says it, and a notice or an error why.",
    "user_message": "Whoever runs it gave the prompt.",
}
ACP_LIVE: Final[Reasons] = {
    "alive": _ALIVE,
    "assistant_message": _WHOLE,
    "checkpoint": _REWIND,
    "compaction_delta": _ENDS,
    "context_changed": "The command that changes it answers in words.",
    "cost": "The usage that the editor gets has the cost of the session.",
    "debug": "Editors have no place for it; the log file has.",
    "directives_changed": _NOTICE,
    "error": "It is the reply to the prompt: see `tui.cli.acp.session`.",
    "loop_stopped": "The error that ends the turn says the same.",
    "permission_asked": _ASKED,
    "plan_approved": "The mode that it switches to is told, and the call ends.",
    "plan_proposed": _ASKED,
    "question_answered": "Whoever answered did so in the editor.",
    "question_asked": _ASKED,
    "queue_changed": "Editors send a prompt only when the one before is over.",
    "request_extended": _FIGURES,
    "session_started": "The reply to session/new and session/load says it.",
    "tool_input_delta": _BEGINS,
    "turn_finished": "The reply to the prompt has the reason why it stopped.",
    "user_message": "The editor shows what was typed into it.",
}

_FRAME = (
    "What every request begins with: `sessions view` shows it, and a notice what changed in it."
)
_REQUEST = "`sessions view`, `verify` and `replay` are about requests."
_PAID = "A part of the cost, which every front end tells."
_OF_CALL = "It belongs to a call, which is shown with how it ended."
_PROCESS = "How a command is found again after a crash; the call is shown, and the end of a job."
_FILES = "What a sub-agent did to files is in /diff and in the report; its call is shown."
_HEADING = "The title stands above."
_RESUMED_PLAIN = (
    "A session that is opened is summed up in a few lines, since a listener can't skip; "
    "/context and /export have the rest."
)

SCREEN_RESUMED: Final[Reasons] = {
    "checkpoint": _REWIND,
    "file_change": _FILES,
    "frame": _FRAME,
    "job": _PROCESS,
    "job_moved": _OF_CALL,
    "request": _REQUEST,
    "sub_agent": "The card of its call says how it ended; /agents has the figures.",
    "title": _TITLE,
    "unused": _PAID,
}
PLAIN_RESUMED: Final[Reasons] = {
    **{kind: why for kind, why in SCREEN_RESUMED.items() if kind != "title"},
    **dict.fromkeys(
        (
            *("error", "failover", "feature", "goal", "hook", "intent", "interrupt"),
            *("job_ended", "mcp", "note", "parked", "permission", "pin", "recovery", "repair"),
            *("retry", "rewind", "tool_result", "directive", "notice", "reload", "profile"),
            *("side_question", "cache_warmed"),
        ),
        _RESUMED_PLAIN,
    ),
}
_OF_TEXT: Final[Reasons] = {
    "checkpoint": _REWIND,
    "file_change": _FILES,
    "frame": _FRAME,
    "job": _PROCESS,
    "permission": _OF_CALL,
    "request": _REQUEST,
    "unused": _PAID,
}
ACP_LOADED: Final[Reasons] = {
    **_OF_TEXT,
    "sub_agent": _OF_CALL,
    "title": "The list of sessions has it.",
}
EXPORT: Final[Reasons] = {
    **{kind: why for kind, why in _OF_TEXT.items() if kind != "permission"},
    "intent": _OF_CALL,
    "title": _HEADING,
}
REPORT: Final[Reasons] = {
    "checkpoint": _REWIND,
    "frame": _FRAME,
    "job": _PROCESS,
    "job_ended": _OF_CALL,
    "job_moved": _OF_CALL,
}

SILENT: Final[Mapping[str, Reasons]] = {
    "screen-live": SCREEN_LIVE,
    "plain-live": PLAIN_LIVE,
    "stderr": STDERR,
    "acp-live": ACP_LIVE,
    "screen-resumed": SCREEN_RESUMED,
    "plain-resumed": PLAIN_RESUMED,
    "acp-loaded": ACP_LOADED,
    "export-md": EXPORT,
    "export-html": EXPORT,
    "report": REPORT,
}
"""By the name of a form."""
