"""The state that changes while an agent works."""

from __future__ import annotations

from msgspec.structs import replace

from tui.agent.limits import SpendingCounter, Spent
from tui.agent.pause import Pause
from tui.agent.prompts import ParsedPrompt
from tui.core.dataclass import dataclass, field
from tui.core.facts import GoalChanged
from tui.core.formatting import money, wait_time
from tui.permissions.types import Mode


@dataclass(frozen=True, slots=True)
class WorkedGoal:
    """The goal that this run of the program works on: as it was at a moment of the clock, when the
    run had cost `usd`."""

    now: GoalChanged
    at: float
    usd: float | None

    def spent(self, usd: float | None, moment: float) -> GoalChanged:
        """The goal with what it has taken up to another moment."""
        known = None not in (usd, self.usd, self.now.spent_usd)
        more = (usd or 0.0) - (self.usd or 0.0)
        return replace(
            self.now,
            spent_usd=(self.now.spent_usd or 0.0) + more if known else None,
            spent_s=round(self.now.spent_s + moment - self.at, 1),
        )

    @staticmethod
    def limit(goal: GoalChanged) -> str:
        """The limit of money or time that a goal has reached, in words; "" for none."""
        if goal.usd is not None and goal.spent_usd is None:
            return "its limit of money can't be kept: this model has no known price"
        if goal.usd is not None and (goal.spent_usd or 0.0) >= goal.usd:
            return f"it has cost {money(goal.spent_usd)} of {money(goal.usd)}"
        if goal.spent_s >= goal.seconds:
            return f"it has taken its {wait_time(goal.seconds)}"
        return ""


@dataclass(slots=True)
class TurnState:
    """The mode, the queue and the cost of one agent; a sub-agent's follows its `parent`'s."""

    parent: TurnState | None = None
    verbose: bool = field(default=False, init=False)
    turn_ends: bool = field(default=False, init=False)
    """True once a call of the current answer left the model nothing to do."""
    queue: list[ParsedPrompt] = field(default_factory=list[ParsedPrompt], init=False)
    """Prompts typed while a turn runs, in the order in which they came.

    They join the turn once its tools are done. Until one is taken over it can be taken back; it is
    sent or given back, and never both.
    """
    pause: Pause = field(default_factory=Pause, init=False)
    """Stops the turn for another process, that of sub-agents too."""
    spent_in_run: Spent = field(default_factory=Spent, init=False)
    """The cost of this run of the program so far, as answers come: what its limits bound. What is
    told as a cost is counted from the record, by `spending`."""
    spending: SpendingCounter = field(default_factory=SpendingCounter, init=False)
    goal: WorkedGoal | None = field(default=None, init=False)
    """None where none is worked on; the record may still have one."""
    _mode: Mode = field(default="ask", init=False)
    _elevated: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.parent is not None:
            self.pause = self.parent.pause

    @property
    def mode(self) -> Mode:
        """A sub-agent's is that of its parent, unless it is read-only by itself."""
        if self.parent is None or self._mode == "plan":
            return self._mode
        return self.parent.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode

    @property
    def elevated(self) -> bool:
        return self.parent.elevated if self.parent is not None else self._elevated

    @elevated.setter
    def elevated(self, elevated: bool) -> None:
        self._elevated = elevated

    def spend(self, one: Spent) -> None:
        """Add what a request cost, for the parent too."""
        self.spent_in_run += one
        if self.parent is not None:
            self.parent.spend(one)
