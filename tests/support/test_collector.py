"""What is collected between tests: much at once, and what stays only once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tests.support.collector import MUCH, collect_between_tests


class Node:
    itself: Node


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    """Only what the test calls collects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def lost() -> weakref.ref[Node]:
    """An object that nothing but itself refers to."""
    node = Node()
    node.itself = node
    return weakref.ref(node)


def test_much_is_freed_and_what_stays_is_looked_at_no_more() -> None:
    stays = [Node() for _ in range(MUCH)]
    gone = lost()
    collect_between_tests()
    assert gone() is None
    assert len(stays) == MUCH
    assert not any(isinstance(one, Node) for one in gc.get_objects())


def test_little_waits_for_the_next_test() -> None:
    waits = lost()
    collect_between_tests()
    assert waits() is not None
