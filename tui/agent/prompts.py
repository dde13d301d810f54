"""A prompt as typed, and the directives that it begins with.

Directives (/think, /verbose, /elevated) are recognized only at the start; everything else stays as
it was, byte for byte. What a prompt names with `@` is found by `mentions`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from tui.core import images
from tui.core.dataclass import dataclass, field, fields, replace
from tui.core.images import Image
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block
from tui.core.partly_typed import count_typed
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.permissions.rules import Rule
    from tui.provider.base import ModelInfo

log = logging.getLogger(__name__)

NO_IMAGES: Mapping[str, Image] = MappingProxyType({})

HOOKS_SAY: Final = "My hooks say:"
"""The beginning of a text that hooks add to a prompt."""

_LEADING = late_pattern(
    r"\s*/(?:(think|verbose|elevated)(?=\s|$)(?:[ \t]+(on|off)(?=\s|$))?"
    r"|effort[ \t]+(low|medium|high|xhigh|max)(?=\s|$))",
    re.IGNORECASE,
)

_BETWEEN = late_pattern(r"\A(?:\s+\Z|\s*\n|\s+)")
"""The space between a directive and its text: a line's indentation belongs to the text."""


@dataclass(frozen=True, slots=True)
class Directives:
    """The directives that are on; `effort` is the level that was chosen, "" for the configured
    one."""

    think: bool = False
    verbose: bool = False
    elevated: bool = False
    effort: str = ""

    def to_json(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def with_changes(self, changes: Mapping[str, bool | str]) -> Directives:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class CommandTurn:
    """The effects of a command that the person wrote on its turn, beside its text.

    `runs` are commands that are run with the prompt, as calls of the model would be. `rules` allow
    more while the turn lasts; `model` is asked in it, None for the usual one.
    """

    name: str
    path: str
    text: str
    runs: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    model: ModelInfo | None = None

    def to_json(self) -> dict[str, Any]:
        """For the record; the text and the calls are there in any case."""
        rules = {"allowed": [str(rule) for rule in self.rules]} if self.rules else {}
        model = {"model": self.model.id} if self.model else {}
        return {"name": self.name, "path": self.path, **rules, **model}


@dataclass(frozen=True, slots=True)
class GoalWish:
    """A goal that the person sets, or, without `text`, continues. `command` checks it, "" for a
    model. Limits that are None are the configured ones, or those that it had; `usd` 0 is none."""

    text: str = ""
    command: str = ""
    rounds: int | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """A prompt on its way to the model: what was typed, read once."""

    typed: str
    text: str
    """The text that remains after the directives."""
    changes: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    """The settings that the directives switch."""
    attached: str = ""
    """Goes after what was typed and is never read for directives."""
    images: Mapping[str, Image] = field(default_factory=lambda: NO_IMAGES)
    """Go along, by the words that stand for them in the text."""
    reads: Sequence[Block] = ()
    """Calls of tools that read what it names with `@`."""
    command: CommandTurn | None = None
    """The command that the person wrote, whose text is what is `attached`."""
    waits: bool = False
    """True if the costly effect of the directives is put off until the next break."""
    pasted: str = ""
    """The directive at its beginning that switches nothing, since it was not typed."""
    goal: GoalWish | None = None
    """The goal that it sets: its turn goes on until that is met."""
    by: str = ""
    """Says in the record who sends it, where nobody does: see `tui.session.records`."""


def parse(typed: str, attached: str = "", images: Mapping[str, Image] = NO_IMAGES) -> ParsedPrompt:
    """Take the leading directives off what was typed. `/think off` switches off; an `on` counts as
    a word of the directive where nothing but directives follows it on its line.

    A directive counts only where each of its characters was typed: see `PartlyTyped`.
    """
    changes: dict[str, bool | str] = {}
    end, limit = 0, count_typed(typed)
    while match := _LEADING.match(typed, end, limit):
        if typed[match.end() : match.end() + 1].strip():
            break  # pasted text continues the word
        if match[3]:
            changes["effort"] = match[3].lower()
        else:
            changes[match[1].lower()] = (match[2] or "on").lower() == "on"
        end = match.end(1) if _begins_a_sentence(typed, match) else match.end()
    text = _BETWEEN.sub("", typed[end:], count=1) if changes else typed
    left = _LEADING.match(typed, end)
    pasted = left[0].strip() if left else ""
    return ParsedPrompt(str(typed), str(text), changes, attached, images, pasted=pasted)


def _begins_a_sentence(typed: str, found: re.Match[str]) -> bool:
    """True if the `on` after a directive is the text's own, as in `/think on the design of x`.

    `off` always switches off: nobody loses a safeguard to a sentence.
    """
    following = typed[found.end() :].partition("\n")[0].strip()
    return (found[2] or "").lower() == "on" and bool(following) and not following.startswith("/")


def from_json(value: Any) -> Directives:
    """Directives from a record. Anything odd counts as off, and is logged."""
    known = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    effort = known.get("effort", "")
    switches = [f.name for f in fields(Directives) if f.name != "effort"]
    values = {name: known.get(name) for name in switches}
    if odd := [name for name, on in values.items() if not isinstance(on, bool)]:
        log.warning("the session's directives are damaged (%s) and count as off", ", ".join(odd))
    on = {name: value is True for name, value in values.items()}
    return Directives(**on, effort=effort if isinstance(effort, str) else "")


def highest_image(records: Iterable[Record]) -> int:
    """The highest number that an image of a session bears; 0 where there is none."""
    return max(
        (
            images.number_of(word)
            for record in records
            if record.type == "user" and "images" in record.data
            for word in images.names_in(record.data)
        ),
        default=0,
    )
