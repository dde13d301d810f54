"""The active branch of a file whose records name their parents, whatever became of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.session.jsonl import Findings


@dataclass(slots=True)
class Node:
    """A record in the tree. `parent` is None where it names none; `where` is its place."""

    key: str
    parent: str | None
    where: str
    speaks: bool = True


def active_branch(nodes: Sequence[Node], findings: Findings) -> list[str]:
    """The keys from the root to the last leaf that speaks, in the order of the links.

    `nodes` stand in the order of the file and have unique keys. Where a parent is lost, missing,
    or part of a circle, the node before it in the file takes its place (B53): so no more is left
    out than what hangs on another branch.
    """
    parents = _sound_parents(nodes, findings)
    has_more: set[str] = set()  # something on the way down from here speaks
    leaf: str | None = None
    for node in nodes:
        if not node.speaks:
            continue
        above = parents[node.key]
        while above is not None and above not in has_more:
            has_more.add(above)
            above = parents[above]
    for node in nodes:
        if node.speaks and node.key not in has_more:
            leaf = node.key
    branch: list[str] = []
    while leaf is not None:
        branch.append(leaf)
        leaf = parents[leaf]
    branch.reverse()
    return branch


def _sound_parents(nodes: Sequence[Node], findings: Findings) -> dict[str, str | None]:
    """Every node's parent, such that every way up ends. The first that names none is the root."""
    places = {node.key: place for place, node in enumerate(nodes)}
    root = next((node for node in nodes if node.parent is None), None)
    parents: dict[str, str | None] = {}

    def bridge(place: int) -> None:
        parents[nodes[place].key] = nodes[place - 1].key if place else None

    for place, node in enumerate(nodes):
        if node is root or (node.parent in places and node.parent != node.key):
            parents[node.key] = node.parent
        else:
            bridge(place)
            findings.add("B53", node.where, "linked to the record before it: its own is lost")
    rooted: set[str] = set()
    for node in nodes:
        way: dict[str, None] = {}
        key: str | None = node.key
        while key is not None and key not in rooted:
            if key in way:  # a circle: it is cut at the record that stands first in the file
                circle = list(way)[list(way).index(key) :]
                first = min(places[member] for member in circle)
                bridge(first)
                findings.add("B53", nodes[first].where, "linked to the record before it: a circle")
                for member in circle:
                    del way[member]
                continue
            way[key] = None
            key = parents[key]
        rooted.update(way)
    return parents
