"""The limit of cost of a run, shared by tasks that run at the same time on other machines, and what
one of them has paid. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tui.batch.cluster.entry import TaskEntry
from tui.core.dataclass import dataclass, field
from tui.core.formatting import money


@dataclass(slots=True)
class TaskBill:
    """The money of one task: `spent_usd` for answers, None where a price is missing, and the most
    that those may cost that are under way at the same time, as those to sub-agents are."""

    spent_usd: float | None = 0.0
    _under_way: dict[int, float] = field(default_factory=dict[int, float])
    _asked: int = 0

    @property
    def next_usd(self) -> float:
        """The most that the answers under way may cost. One that was cut off may have been paid,
        and stays among them."""
        return sum(self._under_way.values())

    def ask(self, most_usd: float) -> int:
        """Count a request that is made now, whose answer costs `most_usd` at most. Returns its
        number."""
        self._asked += 1
        self._under_way[self._asked] = most_usd
        return self._asked

    def settle(self, number: int, usd: float | None = 0.0) -> None:
        """The answer to a request is there, and cost `usd`; or it failed, and cost nothing."""
        self._under_way.pop(number, None)
        self.spent_usd = None if usd is None or self.spent_usd is None else self.spent_usd + usd


class Budget:
    """Reserves money for tasks: each may cost its cap, and the dearest answer more, since a limit
    is noticed after an answer. What a lost attempt may have paid stays reserved.

    `limit` is the run's, None for none. A task that has a cap and isn't over holds its reservation,
    also while it waits: an engine may have a worker for it that nobody knows of.
    """

    def __init__(self, limit: float | None, slots: int, entries: Iterable[TaskEntry]) -> None:
        self.limit, self._slots = limit, slots
        every = list(entries)
        self._dearest = max((one.next_usd for one in every), default=0.0)
        self._spent = sum(one.spent_usd or 0.0 for one in every)
        self._taken = sum(map(self._held, every))

    @property
    def reserved_usd(self) -> float:
        """The money that is set aside beyond what tasks are known to have cost."""
        return max(0.0, self._taken - self._spent)

    def _held(self, entry: TaskEntry) -> float:
        """The most that a task can have cost once no worker has it any more."""
        has_cap = entry.state == "running" or entry.cap_usd is not None
        if entry.is_over or not has_cap:
            return _known(entry)
        return self._reservation(entry, entry.cap_usd)

    def _reservation(self, entry: TaskEntry, cap: float | None) -> float:
        spent = entry.spent_usd or 0.0
        return max(cap or 0.0, spent) + entry.reserved_usd + self._dearest

    def cap_of(self, entry: TaskEntry) -> float | None:
        """The most that the attempts of a waiting task may cost together; None without a limit, 0
        where there is no money for it now."""
        if self.limit is None:
            return None
        others = self._taken - self._held(entry)
        free = self.limit - others - _known(entry) - self._dearest
        share = self.limit / self._slots
        more = min(share, free)
        return (entry.spent_usd or 0.0) + more if more >= min(share, self.limit * 0.02) else 0.0

    def reserve(self, entry: TaskEntry, cap: float | None) -> None:
        """Count a task that begins now."""
        if cap is not None:
            self._taken += self._reservation(entry, cap) - self._held(entry)


def _known(entry: TaskEntry) -> float:
    """The money that a task has cost, and what lost attempts may have paid."""
    return (entry.spent_usd or 0.0) + entry.reserved_usd


def lost_answers(entries: Iterable[TaskEntry]) -> str:
    """Say in a sentence what may have been paid for nothing: the answers that lost workers waited
    for. "" where no worker was lost."""
    every = list(entries)
    lost = sum(one.losses.in_all for one in every)
    usd = sum(one.reserved_usd for one in every)
    if not lost:
        return ""
    price = f", {money(usd)} in all at most" if usd else ""
    if lost == 1:
        return f"One worker was lost: the answer that it waited for may be paid and missing{price}."
    return (
        f"{lost} workers were lost: of each, the answer that it waited for may be paid and "
        f"missing{price}."
    )
