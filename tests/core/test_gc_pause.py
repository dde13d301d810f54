"""One tuner of the collector: whoever overlaps, all is put back. And the length of thread turns."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from tests.support.collector import freeze, unfreeze
from tui.core import gc_pause


class Node:
    itself: Node


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = gc.isenabled()
    monkeypatch.setattr(gc, "freeze", freeze)
    monkeypatch.setattr(gc, "unfreeze", unfreeze)
    yield
    assert gc.isenabled() == before
    freeze()


def test_overlapping_pauses_are_counted_in_any_order() -> None:
    before = gc.isenabled()
    gc_pause.begin()
    with gc_pause.gc_pause():
        gc_pause.end()  # what began first may end first
        assert not gc.isenabled()
    assert gc.isenabled() == before


def test_a_program_that_answers_keys_asks_for_short_turns() -> None:
    before = sys.getswitchinterval()
    try:
        gc_pause.short_turns()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with gc_pause.gc_pause():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ValueError, match="anything"), gc_pause.gc_pause():
        raise ValueError("anything")


def test_garbage_of_a_later_pause_is_collected() -> None:
    with gc_pause.gc_pause():
        pass
    node = Node()
    node.itself = node
    gone = weakref.ref(node)
    del node
    with gc_pause.gc_pause():
        pass
    gc.collect()
    assert gone() is None


def test_what_is_loaded_for_good_is_not_looked_at_again() -> None:
    before = gc.get_freeze_count()
    with gc_pause.gc_pause(loading=True), gc_pause.gc_pause():
        loaded = [[str(n)] for n in range(1_000)]
    assert gc.get_freeze_count() >= before + len(loaded)


def test_what_was_loaded_for_good_and_is_garbage_goes_with_collect() -> None:
    with gc_pause.gc_pause(loading=True):
        node = Node()
        node.itself = node
        gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is not None
    gc_pause.collect()
    assert gone() is None
