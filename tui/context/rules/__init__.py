"""The rules of the Messages API, each stated once: a code, a place, the API's own words.

    blocks   one content block by itself         pairs   calls and their results
    order    roles, thinking, how it may end     media   images
    request  everything besides the messages     json_safety  what JSON can contain

Each rule has the code of the damage that it detects, as `sessions check` prints it. Rules may be
stricter than today's API if gateways and older servers are.
"""

from __future__ import annotations

from tui.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. `where` is the path in the request, `text` the API's answer."""

    code: str
    where: str
    text: str
