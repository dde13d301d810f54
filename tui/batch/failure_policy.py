"""What follows a failed attempt, by the class of its failure (A12 to A17, decision 29). Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from tui.batch.attempt import Attempt
from tui.core.errors import ErrorClass
from tui.provider.task_error_class import TASK_CLASS, TaskClass, classify_text

Answer: TypeAlias = Literal["give_up", "stop_run", "go_on", "summarise", "analyse"]
"""`go_on` in the same session, where the work so far stands; `summarise` into a fresh one;
`analyse` asks the small model whether to begin the task anew. `stop_run`: every other task would
fail as well."""


def class_of(made: Attempt) -> TaskClass:
    """What kind of failure an attempt ended with: its class, else the text of its error (A19)."""
    kind = TASK_CLASS.get(cast("ErrorClass", made.error_class), "unknown")
    return classify_text(made.message) if made.error_class in {None, "unknown"} else kind


def answer_to(kind: TaskClass, *, met_before: bool, last: bool) -> Answer:
    """What to do. `met_before`: the task has failed this way already; `last`: it has no attempt
    left."""
    match kind:
        case "auth":
            return "stop_run"
        case _ if last:
            return "give_up"
        case "timeout" | "context_overflow" if met_before:
            return "give_up"
        case "context_overflow":
            return "summarise"
        case "unknown":
            return "analyse"
        case "rate_limit" | "network" | "timeout":
            return "go_on"
