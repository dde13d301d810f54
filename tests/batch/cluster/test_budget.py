"""Money reserved for tasks on other machines."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tui.batch.cluster.budget import Budget, TaskBill, lost_answers
from tui.batch.cluster.entry import Losses, TaskEntry


def entry(key: str, **given: Any) -> TaskEntry:
    return TaskEntry(key=key, **given)


def test_as_many_run_as_reservations_fit() -> None:
    tasks = [entry(f"{n}", next_usd=0.1) for n in range(8)]
    budget = Budget(1.0, 4, tasks)
    caps: list[float] = []
    for task in tasks:
        cap = budget.cap_of(task)
        assert cap is not None
        caps.append(cap)
        if cap:
            budget.reserve(task, cap)
    assert caps[:2] == [0.25, 0.25]
    assert sum(caps) + 0.1 * sum(cap > 0 for cap in caps) <= 1.0
    assert caps[-1] == 0


def test_a_lost_attempt_stays_settled_at_what_it_may_have_paid() -> None:
    gone = entry("1", spent_usd=0.4, reserved_usd=0.6)
    assert Budget(1.0, 1, [gone, entry("2")]).cap_of(entry("2")) == 0


def test_without_a_limit_nothing_is_capped() -> None:
    assert Budget(None, 2, [entry("1", spent_usd=99.0)]).cap_of(entry("2")) is None


_MONEY = st.floats(0, 5, allow_nan=False)


@given(
    st.lists(
        st.tuples(_MONEY, _MONEY, st.sampled_from(["waiting", "running", "done"])), max_size=9
    ),
    st.integers(1, 6),
)
def test_what_may_be_spent_is_never_more_than_the_limit(
    made: list[tuple[float, float, str]], slots: int
) -> None:
    tasks = [
        entry(f"{n}", spent_usd=spent, reserved_usd=lost, state=state, cap_usd=spent)
        for n, (spent, lost, state) in enumerate(made)
    ]
    limit = 10.0
    budget = Budget(limit, slots, tasks)
    known = sum(spent + lost for spent, lost, _ in made)
    begun = 0.0
    for task in tasks:
        cap = budget.cap_of(task) if task.state == "waiting" else 0
        if cap:
            budget.reserve(task, cap)
            begun += cap - (task.spent_usd or 0.0)
    assert begun == 0 or known + begun <= limit * 1.0001


def test_answers_under_way_at_the_same_time_are_reserved_together() -> None:
    bill = TaskBill(1.0)
    first, second = bill.ask(0.5), bill.ask(0.5)
    assert (bill.spent_usd, bill.next_usd) == (1.0, 1.0)
    bill.settle(first, 0.25)
    assert (bill.spent_usd, bill.next_usd) == (1.25, 0.5)
    bill.settle(second)
    assert (bill.spent_usd, bill.next_usd) == (1.25, 0.0), "one that failed cost nothing"


def test_an_answer_that_was_cut_off_stays_reserved() -> None:
    bill = TaskBill()
    bill.ask(0.5)
    bill.settle(bill.ask(0.5), 0.25)
    assert (bill.spent_usd, bill.next_usd) == (0.25, 0.5)


def test_what_lost_workers_may_have_cost_is_said() -> None:
    entry = TaskEntry(key="00001", losses=Losses(count=1, in_all=1), reserved_usd=0.13)
    assert lost_answers([TaskEntry(key="00002")]) == ""
    assert lost_answers([entry]) == (
        "One worker was lost: the answer that it waited for may be paid and missing, $0.13 in all "
        "at most."
    )
    free = TaskEntry(key="00003", losses=Losses(count=1, in_all=4))
    assert lost_answers([free]) == (
        "4 workers were lost: of each, the answer that it waited for may be paid and missing."
    )
