"""The branches of a session: the ways from a first record to each last one of its file. Pure.

Where several records follow one, the oldest continues its branch, and each younger one begins a
branch of its own. So every record belongs to exactly one branch, and what is counted for each
adds up to the whole session. A rewind that led to nothing, and that the session has left again, is
no branch.

Parents must be sound, as `tui.session.reader` leaves them; their depth, their number and the times
of records don't matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tui.core.dataclass import dataclass, replace
from tui.core.errors import SessionError
from tui.session.reader import LoadedSession, active_branch, path_to
from tui.session.records import Record, is_prompt, title_of

_MOVES: Final = frozenset({"rewind", "title", "checkpoint"})
"""Types of the records that going from branch to branch leaves behind."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch. `leaf` is the id of its last record, `own` are the records since it left the
    branch `parent` (a leaf) after the record `fork`; both are None where it begins the file.
    `depth` is the number of branches below it; `current`: the session is there."""

    leaf: str
    fork: str | None
    parent: str | None
    own: tuple[Record, ...]
    depth: int = 0
    current: bool = False

    @property
    def prompts(self) -> int:
        """Number of its own prompts."""
        return sum(map(is_prompt, self.own))

    @property
    def first(self) -> str:
        """The first words of its own first prompt; "" where it has none."""
        return next((title_of(record.data) for record in self.own if is_prompt(record)), "")

    @property
    def updated(self) -> str:
        """The time at which something was last said on it."""
        said = [record.time for record in self.own if record.type not in _MOVES]
        return said[-1] if said else self.own[-1].time


def branches(records: Sequence[Record]) -> list[Branch]:
    """The branches of a session, each followed by those that left it, from its records in the order
    of their file."""
    chains = _chains(records)
    chain_of = {record.id: number for number, chain in enumerate(chains) for record in chain}
    current = chain_of[active_branch(records)[-1].id] if records else -1
    forks: dict[int, list[int]] = defaultdict(list)
    for number, chain in enumerate(chains):
        forks[chain_of.get(chain[0].parent or "", -1)].append(number)
    order: list[tuple[int, int]] = []
    waiting = [(number, 0) for number in reversed(forks[-1])]
    while waiting:
        number, depth = waiting.pop()
        order.append((number, depth))
        waiting += [(fork, depth + 1) for fork in reversed(forks[number])]
    listed: set[int] = set()
    for number, _ in reversed(order):  # what left a branch comes after it
        said = any(record.type not in _MOVES for record in chains[number])
        if said or number == current or not listed.isdisjoint(forks[number]):
            listed.add(number)
    return [
        _branch(chains, chain_of, number, depth, current=number == current)
        for number, depth in order
        if number in listed
    ]


def _chains(records: Sequence[Record]) -> list[list[Record]]:
    """Each record that begins a branch, with those that go on from it."""
    known = {record.id for record in records}
    following: dict[str, Record] = {}
    heads: list[Record] = []
    for record in records:
        parent = record.parent
        if parent is None or parent not in known or parent in following:
            heads.append(record)
        else:
            following[parent] = record
    chains: list[list[Record]] = []
    for head in heads:
        chain = [head]
        while (after := following.get(chain[-1].id)) is not None:
            chain.append(after)
        chains.append(chain)
    return chains


def _branch(
    chains: Sequence[Sequence[Record]],
    chain_of: Mapping[str, int],
    number: int,
    depth: int,
    *,
    current: bool,
) -> Branch:
    own = chains[number]
    fork = own[0].parent
    below = chain_of.get(fork or "")
    parent = None if below is None else chains[below][-1].id
    return Branch(own[-1].id, fork if parent else None, parent, tuple(own), depth, current)


def branch_named(found: Sequence[Branch], name: str) -> Branch:
    """The branch that is meant by its leaf, a beginning of that one's id, or any record of its own.
    Raises SessionError."""
    hint = "/tree or `holdfast sessions tree ID` lists the branches."
    name = name.strip().lower()
    matches = [branch for branch in found if name and branch.leaf.startswith(name)]
    exact = [branch for branch in matches if branch.leaf == name]
    exact = exact or [branch for branch in found if any(one.id == name for one in branch.own)]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise SessionError(f"{name} is the beginning of {len(matches)} branches.", hint=hint)
    raise SessionError(f"This session has no branch {name or 'without a name'}.", hint=hint)


def on_branch(loaded: LoadedSession, name: str) -> LoadedSession:
    """A session as read, with the records of one of its branches alone. Raises SessionError."""
    leaf = branch_named(branches(loaded.records), name).leaf
    path = path_to(loaded.records, leaf)
    lines = dict(zip((record.id for record in loaded.records), loaded.lines, strict=False))
    return replace(
        loaded,
        records=tuple(path),
        lines=tuple(lines[record.id] for record in path if record.id in lines),
    )


def branch_with(loaded: LoadedSession, id_: str) -> list[Record]:
    """The records of the branch that has one: the current one, else the one on which it was last
    continued. The current one where there is no such record."""
    branch = loaded.branch
    if any(record.id == id_ for record in branch):
        return branch
    below = dict.fromkeys([id_])
    for record in loaded.records:
        if record.parent in below:
            below[record.id] = None
    return path_to(loaded.records, [*below][-1]) or branch


def branch_of_each(records: Sequence[Record]) -> dict[str, str]:
    """The leaf of the branch for each record that the session hasn't on the one where it is."""
    active = {record.id for record in active_branch(records)}
    return {
        record.id: chain[-1].id
        for chain in _chains(records)
        for record in chain
        if record.id not in active
    }
