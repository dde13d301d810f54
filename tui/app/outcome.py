"""The outcome of a headless run, gathered from its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact
from tui.tools.present_plan import PresentPlan
from tui.tools.submit_result import REMINDER, SubmitResult

NO_RESULT: Final = "The model handed over no result that fits the schema."


@dataclass(slots=True)
class Outcome:
    """The outcome of prompts, gathered from the events of their turns.

    `result` is the model's last answer; `value` the result that was asked for by a schema, where
    `given`. `error` is what the turn failed with, "" where it did not fail, and `error_class` its
    class (see `tui.core.errors`). `outcome` is done, interrupted, failed or limit. `cuts` are the
    receipts of results that were cut.
    """

    session_id: str | None = None
    model: str = ""
    result: str = ""
    value: Any = None
    given: bool = False
    error: str = ""
    error_class: str | None = None
    category: str = ""
    explanation: str = ""
    outcome: str = "failed"
    usage: dict[str, int] = field(default_factory=dict[str, int])
    sources: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    cuts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unsaved: bool = False
    plan: str = ""
    """One that nobody could approve, which is the result of a run in plan mode."""
    _presented: str = ""
    _costs: list[float | None] = field(default_factory=list[float | None])

    @property
    def cost_usd(self) -> float | None:
        """In US dollars; None where no price is known."""
        known = [usd for usd in self._costs if usd is not None]
        return sum(known) if known and len(known) == len(self._costs) else None

    def prompts(self, text: str, result: SubmitResult | None) -> Iterator[str]:
        """Yield the prompts to send, one after the other: the given one, and a reminder where the
        result that was asked for is missing when its turn is done. Takes over the result at the
        end."""
        if result is None:
            yield text
            return
        result.given, result.value = False, None
        for prompt in (text, REMINDER):
            yield prompt
            if result.given or self.outcome != "done":
                break
        self.given, self.value = result.given, result.value
        if self.outcome == "done" and not result.given:
            self.outcome, self.error_class = "failed", "unknown"
            self.error = NO_RESULT

    def see(self, event: Fact) -> None:
        match event:
            case facts.SessionStarted():
                self.session_id, self.model = event.session_id, event.model
            case facts.RequestSent():
                self.model = event.model
            case facts.AssistantMessage():
                self.result = event.text or self.result
            case facts.ToolStarted(name=PresentPlan.name, input=arguments):
                self._presented = str(arguments.get("plan") or "").strip()
            case facts.QuestionAnswered(name=PresentPlan.name, by="default"):
                self.plan, self.result = self._presented, ""
            case facts.SourcesCited(pages):
                self.sources += [page for page in pages if page not in self.sources]
            case facts.ToolFinished(receipt=receipt) if receipt:
                self.cuts.append(receipt)
            case facts.ErrorRaised() | facts.GoalChanged():
                self._see_failure(event)
            case facts.StorageChanged():
                self.unsaved = not event.saved
            case facts.TurnFinished():
                self.outcome = event.outcome
                for name, count in event.usage.to_json().items():
                    self.usage[name] = self.usage.get(name, 0) + count
                self._costs.append(event.cost_usd)
            case _:
                pass

    def _see_failure(self, event: facts.ErrorRaised | facts.GoalChanged) -> None:
        match event:
            case facts.ErrorRaised():
                self.error, self.error_class = event.message, event.error_class
                self.category, self.explanation = event.category, event.explanation
            case facts.GoalChanged(state="limit" | "stuck" | "blocked", why=why):
                self.error = f"The goal isn't met: {why}"
            case _:
                pass

    @property
    def answer(self) -> str:
        """The plan, if there is one, and the model's last answer."""
        return "\n\n".join(filter(None, (self.plan, self.result)))

    @property
    def _refusal(self) -> dict[str, str | None]:
        return {"category": self.category or None, "explanation": self.explanation or None}

    def to_json(self, *, turns: int, duration_ms: int) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "result": self.answer,
            **({"structured_output": self.value} if self.given else {}),
            "is_error": self.outcome != "done",
            "error_class": self.error_class,
            **({"refusal": self._refusal} if self.error_class == "refusal" else {}),
            "turns": turns,
            "usage": self.usage,
            "cost_usd": self.cost_usd,
            "duration_ms": duration_ms,
            "model": self.model,
            "cuts": self.cuts,
            **({"sources": self.sources} if self.sources else {}),
        }
