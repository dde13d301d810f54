"""The person's rules on searching the web, which the server does without asking anybody.

It is offered to the model only if a rule allows it: `web_search`, or `web_search(docs.rs)` for
pages of one domain and its subdomains. A rule that forbids names domains to be left out; one that
forbids or asks without a domain disables the search.
"""

from __future__ import annotations

from typing import Final

from tui.core.dataclass import dataclass
from tui.core.late_pattern import late_pattern
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule

TOOL: Final = "web_search"
_DOMAIN = late_pattern(r"[a-z0-9-]+(\.[a-z0-9-]+)+(/[!-~]*)?")


@dataclass(frozen=True, slots=True)
class SearchDomains:
    """The domains to search: the `allowed` ones, or all if there are none, but not the `blocked`
    ones. One of the two is empty, as the API requires."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


def search_domains(policy: Policy) -> SearchDomains | None:
    """The domains in which the person's rules let the server search; None for nowhere."""
    allow = [rule for rule in policy.allow if rule.tool == TOOL]
    against = [rule for rule in (*policy.deny, *policy.ask) if rule.names(TOOL)]
    if not allow or any(_domain(rule) is None for rule in against):
        return None
    blocked = sorted({_domain(rule) or "" for rule in against})
    if any(rule.glob is None for rule in allow):
        return SearchDomains(blocked=tuple(blocked))
    named = {domain for rule in allow if (domain := _domain(rule))}
    # The API accepts one list: a domain of which a part is forbidden is left out as a whole.
    usable = sorted(one for one in named if not any(_overlap(one, other) for other in blocked))
    return SearchDomains(allowed=tuple(usable)) if usable else None


def _domain(rule: Rule) -> str | None:
    """The domain that a rule names; None if it names none."""
    domain = (rule.glob or "").strip().lower().removeprefix("*.").removesuffix("/*")
    return domain if _DOMAIN.fullmatch(domain) else None


def _overlap(one: str, other: str) -> bool:
    """True if one of two domains is the other, or a part of it."""
    return f".{one}".endswith(f".{other}") or f".{other}".endswith(f".{one}")
