"""The rules of the Messages API, each stated once: a code, a place, the API's own words.

    blocks   one content block by itself         pairs   calls and their results
    order    roles, thinking, how it may end     media   images
    request  everything beside the messages      sound   what JSON can carry

Codes are the B-numbers of the damage that each rule is about. B27 also stands for a field of a
wrong type that has no number of its own, B56 for a message that is none, R6 for an unknown type
of block. Rules may be stricter than today's API where gateways and older servers are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken. `where` is the path in the request, `text` what the API answers."""

    code: str
    where: str
    text: str
