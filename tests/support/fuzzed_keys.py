"""What a terminal never sends, or sends in pieces: sequences of bytes with pauses, from a seed.

By hand, from the root of the repository, so many of them, from a seed on:

    python -m tests.support.fuzzed_keys COUNT [SEED]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Protocol, TypeAlias, TypeVar

from textual import events
from textual.message import Message

from tests.support.clock import FakeClock
from tests.terminals import key_bytes, recorded
from tui.core.terminal_input import InputPart, TerminalInput
from tui.ui.toolkit.key_parser import KeyParser

Step: TypeAlias = bytes | float
"""What is read at once, or a pause in seconds."""

_ESC, _STRINGS = b"\x1b", b"]PX^_"
_PIECES: Final = (
    *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1bO", b"\x1b\\"),
    *(b"\x07", b"\x1b[M", b"\x1b[[", b"\x1b[200~", b"\x1b[201~", b"\x1b[<", b"\x1b[?", b"\x9b"),
    *(b"\xc2\x9b", b"\x9d", b"\x9c", b"\x18", b"\x1a", b"\r", b"\x03", b"\x00", b"\x7f", b";"),
    *(b":", b"$", b"u", b"~", b"M", b"m", b"t", b"R", b"y", b"97", b"1:1", b"99999999", b"-1"),
    *(b"a", b"\xc3", b"\xe6\x97"),
)
_PAUSES: Final = (0.0, 0.0, 0.05, 0.1, 2.5, 11.0)
_SHORTER: Final = (0.0, 0.05, 0.1, 0.4, 2.5, 9.9)
"""So late the rest of a sequence is still known for it."""
_TYPED: Final = frozenset({"text", "control", "alt", "paste"})
_Out_co = TypeVar("_Out_co", covariant=True)
_Any = TypeVar("_Any")


class _Source(Protocol[_Out_co]):
    def feed(self, data: bytes) -> Iterator[_Out_co]: ...
    def tick(self) -> Iterator[_Out_co]: ...
    @property
    def patience_s(self) -> float | None: ...


def fuzzed(make: random.Random) -> list[Step]:
    """A recorded reply with something done to it, or pieces of all kinds, cut and with pauses."""
    if make.random() < 0.5:
        data = bytearray(make.choice(_bytes()))
        for _ in range(make.randrange(4)):
            at = make.randrange(len(data) + 1)
            data[at : at + make.randrange(3)] = make.choice(_PIECES)
    else:
        data = bytearray(b"".join(make.choices(_PIECES, k=make.randrange(1, 12))))
    return _cut(bytes(data), make, _PAUSES)


@cache
def _bytes() -> tuple[bytes, ...]:
    replies = recorded("query", "mouse", "focus", "paste")
    return (*(one.data for one in replies), *key_bytes())


def begun(make: random.Random) -> tuple[bytes, list[Step]]:
    """A sequence with an end and any content, and the same in pieces, the first of which has its
    introducer and one byte more."""
    whole = _sequence(make)
    first = make.randrange(3, len(whole) + 1)
    return whole, [whole[:first], make.choice(_SHORTER), *_cut(whole[first:], make, _SHORTER)]


def _sequence(make: random.Random) -> bytes:
    def some(low: int, high: int, least: int, most: int) -> bytes:
        return bytes(make.randrange(low, high) for _ in range(make.randint(least, most)))

    kind = make.choice(("csi", "ss3", "mouse", "string", "string", "recorded"))
    if kind == "csi":
        between = some(0x20, 0x30, 0, 2).replace(b"$", b"")  # it ends a key of rxvt
        whole = b"\x1b[" + some(0x30, 0x40, 1, 50) + between + some(0x40, 0x7F, 1, 1)
        return whole if whole != b"\x1b[200~" else _sequence(make)
    if kind == "ss3":
        return b"\x1bO" + some(0x30, 0x3A, 1, 3) + some(0x40, 0x7F, 1, 1)
    if kind == "mouse":
        return b"\x1b[M" + some(0x20, 0x7F, 3, 3)
    if kind == "string":
        end = make.choice((b"\x07", b"\x1b\\", b"\xc2\x9c"))
        return b"\x1b" + make.choice((b"]", b"P", b"X", b"^", b"_")) + some(0x20, 0x7F, 1, 60) + end
    return make.choice(_recorded())


@cache
def _recorded() -> list[bytes]:
    """The replies of one sequence each: in others, a cut behind the Esc of the next is one key."""
    replies = [one.data for one in recorded("query", "mouse")]
    return [
        one for one in replies if len(one) > 3 and b"\x1b" not in one[1:].removesuffix(b"\x1b\\")
    ]


def _cut(data: bytes, make: random.Random, pauses: Sequence[float]) -> list[Step]:
    steps: list[Step] = []
    while data:
        size = make.randrange(1, len(data) + 1)
        steps += [data[:size], make.choice(pauses)]
        data = data[size:]
    return steps


def play(*steps: Step) -> list[InputPart]:
    """What the grammar makes of these. Nothing has come for a minute before."""
    clock = FakeClock()
    return list(_played(TerminalInput(clock.monotonic), clock, steps))


def heard(*steps: Step) -> list[Message]:
    """What the app hears of these, in the same way."""
    clock = FakeClock()
    return list(_played(KeyParser(str, now=clock.monotonic), clock, steps))


def _played(source: _Source[_Any], clock: FakeClock, steps: Sequence[Step]) -> Iterator[_Any]:
    clock.elapsed += 60
    for step in steps:
        if isinstance(step, bytes):
            yield from source.feed(step)
            continue
        until = clock.elapsed + step
        while (patience := source.patience_s) is not None and clock.elapsed + patience <= until:
            clock.elapsed += patience
            yield from source.tick()
        clock.elapsed = until


def _keys(messages: Sequence[Message]) -> list[str]:
    """The keys among them, with the pasted texts."""
    return [
        one.key if isinstance(one, events.Key) else one.text
        for one in messages
        if isinstance(one, events.Key | events.Paste)
    ]


def fault_of(seed: int) -> str:
    """What is wrong with how one sequence is heard, "" for nothing: one in two is whole but for
    its pieces, the others are anything."""
    make = random.Random(seed)
    if seed % 2:
        steps = fuzzed(make)
        ended = (*steps, 3.0, make.choice((b"\x03", b"\x1b")), 3.0, b"\x03", 3.0, b"z")
        held = play(*ended)[-1].text != "z" or _keys(heard(*ended))[-1:] != ["z"]
        return f"holds the keyboard: {steps}" if held else ""
    whole, steps = begun(make)
    alone = steps.count(b"\x1b")  # in a read of its own, at the end of a string, it is a key
    ended = (*steps, 0.2, b"z")
    typed = [part.text for part in play(*ended) if part.kind in _TYPED]
    keys = _keys(heard(*ended))
    if alone and "escape" in keys:
        keys.remove("escape")
    wanted = [*_keys(heard(whole)), "z"]
    return f"types {typed}, {keys}: {steps}" if typed != ["z"] or keys != wanted else ""


def main() -> None:
    """So many sequences; what is wrong with any is printed."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    faults = 0
    for seed in range(first, first + count):
        try:
            fault = fault_of(seed)
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            fault = f"raises {error!r}"
        if fault:
            faults += 1
            print(f"seed {seed}: {fault}", flush=True)
        if not (seed + 1 - first) % 100_000:
            print(f"{seed + 1 - first} sequences, {faults} faults", flush=True)
    print(f"{count} sequences from seed {first} on: {faults} faults")


if __name__ == "__main__":
    main()
