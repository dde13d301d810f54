"""The limit of cost of a run, shared by tasks that run at the same time on other machines. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tui.batch.cluster.entry import TaskEntry


class Budget:
    """Reserves money for tasks: each may cost its cap, and the dearest answer more, since a limit
    is noticed after an answer. What a lost attempt may have paid stays reserved.

    `limit` is the run's, None for none; `placed` are the keys of tasks that an engine has.
    """

    def __init__(
        self,
        limit: float | None,
        slots: int,
        entries: Iterable[TaskEntry],
        placed: Collection[str],
    ) -> None:
        self.limit, self._slots = limit, slots
        every = list(entries)
        self._dearest = max((one.next_usd for one in every), default=0.0)
        self._spent = sum(one.spent_usd or 0.0 for one in every)
        self._taken = sum(
            self._reservation(one) if _may_spend(one, placed) else _settled(one) for one in every
        )

    @property
    def reserved_usd(self) -> float:
        """The money that is set aside beyond what tasks are known to have cost."""
        return max(0.0, self._taken - self._spent)

    def _reservation(self, entry: TaskEntry) -> float:
        """The most that a task that may be running can have cost at its end."""
        cap = entry.cap_usd if entry.cap_usd is not None else entry.spent_usd or 0.0
        return max(cap, entry.spent_usd or 0.0) + entry.reserved_usd + self._dearest

    def cap_of(self, entry: TaskEntry) -> float | None:
        """The most that the attempts of a waiting task may cost together; None without a limit, 0
        where there is no money for it now."""
        if self.limit is None:
            return None
        spent = entry.spent_usd or 0.0
        free = self.limit - self._taken - self._dearest
        share = self.limit / self._slots
        more = min(share, free)
        return spent + more if more >= min(share, self.limit * 0.02) else 0.0

    def reserve(self, entry: TaskEntry, cap: float | None) -> None:
        """Count a task that begins now."""
        if cap is not None:
            self._taken += cap - (entry.spent_usd or 0.0) + self._dearest


def _settled(entry: TaskEntry) -> float:
    return (entry.spent_usd or 0.0) + entry.reserved_usd


def _may_spend(entry: TaskEntry, placed: Collection[str]) -> bool:
    return entry.state == "running" or (entry.key in placed and not entry.is_over)
