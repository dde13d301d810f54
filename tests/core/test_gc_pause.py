"""One tuner of the collector: whoever overlaps, all is put back. The length of thread turns, and
who waits for a key."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest

from tests.support.clock import ManualClock
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


@pytest.fixture
def answers_keys() -> Iterator[None]:
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc_pause.short_turns()
    yield
    sys.setswitchinterval(before)
    gc.set_threshold(*thresholds)


def test_a_program_that_answers_keys_asks_for_short_turns() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    try:
        gc_pause.short_turns()
        assert sys.getswitchinterval() < before[0]
    finally:
        sys.setswitchinterval(before[0])
        gc.set_threshold(*before[1])


def _long_collections() -> tuple[list[str], Callable[[str, dict[str, int]], None]]:
    begun: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            begun.append(phase)

    gc.callbacks.append(note)
    return begun, note


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="old objects are collected piece by piece")
@pytest.mark.usefixtures("answers_keys")
def test_old_objects_are_collected_at_rest_not_while_an_answer_comes() -> None:
    gc.collect()
    begun, note = _long_collections()
    try:
        answer = [[str(n)] for n in range(150_000)]  # some twenty collections of young ones
        assert not begun
        gc_pause.rest()
        assert len(begun) == 1
        gc_pause.rest()  # not due any more
        assert len(begun) == 1
        with gc_pause.gc_pause():
            answer += [[str(n)] for n in range(150_000)]
            gc_pause.rest()
        assert len(begun) == 1
    finally:
        gc.callbacks.remove(note)


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


def test_a_key_is_waited_for_until_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    monkeypatch.setattr(gc_pause, "monotonic", clock.monotonic)
    clock.elapsed += 1
    gc_pause.key_read()
    assert gc_pause.key_pending()
    clock.elapsed += 0.001
    gc_pause.key_drawn()
    assert not gc_pause.key_pending()
    clock.elapsed += 1
    gc_pause.key_read()
    assert gc_pause.key_pending()
    clock.elapsed += gc_pause.KEY_S
    assert not gc_pause.key_pending()


def test_keys_that_draw_nothing_hold_up_an_answer_for_half_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(gc_pause, "monotonic", clock.monotonic)
    gc_pause.key_drawn()
    held_up = 0
    for _ in range(1000):  # a second, with a key held down
        clock.elapsed += 0.001
        if round(clock.elapsed * 1000) % 16 == 0:
            gc_pause.key_read()
        held_up += gc_pause.key_pending()
    assert 300 < held_up < 520
    gc_pause.key_drawn()
