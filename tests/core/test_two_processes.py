"""Work that two processes share gives what one alone would make."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

import pytest

from tui.core import two_processes
from tui.core.two_processes import in_fork, in_two

HERE = os.getpid()


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_processes, "_can_fork", lambda: True)


def made(number: int) -> bytes:
    return str(number).encode() * number * 1000


def by_whom(_number: int) -> bytes:
    return str(os.getpid()).encode()


def dying(number: int) -> bytes:
    """Fall over in the fork at the third number that it gets."""
    if number == 5 and os.getpid() != HERE:
        os._exit(1)
    return made(number)


def cut_off(number: int) -> bytes:
    """Let the fork write only a part of the third result."""
    if number == 5 and os.getpid() != HERE:
        os.closerange(3, 64)
    return made(number)


@pytest.mark.parametrize("work", [made, dying, cut_off])
def test_results_come_in_order_whatever_becomes_of_the_fork(work: Callable[[int], bytes]) -> None:
    assert [*in_two(work, range(20))] == [*map(made, range(20))]
    with in_fork(work, range(8)) as results:
        assert [*results] == [*map(made, range(8))]


def test_every_second_result_is_of_a_fork() -> None:
    some = [*in_two(by_whom, range(6))]
    assert set(some[::2]) == {by_whom(0)}
    assert len(set(some)) == 2
    assert {*in_two(by_whom, range(6), worth=False)} == {by_whom(0)}


def test_what_is_wrong_is_said_by_this_process() -> None:
    def broken(number: int) -> bytes:
        return made(number // (3 - number))

    with pytest.raises(ZeroDivisionError):
        list(in_two(broken, range(6)))


def test_the_fork_never_outlives_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, forks = os.fork, list[int]()

    def noted() -> int:
        forks.append(fork())
        return forks[-1]

    monkeypatch.setattr(os, "fork", noted)
    with closing(in_two(made, range(1000))) as results:
        next(results)
    with pytest.raises(KeyError), in_fork(made, range(1000)):
        raise KeyError
    assert len(forks) == 2
    for one in forks:
        with pytest.raises(ChildProcessError):
            os.waitpid(one, os.WNOHANG)
