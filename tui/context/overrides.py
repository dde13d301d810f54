"""Overrides: records that the model gets in another form than recorded. Pure.

The record never changes; an `overlay` record says how another one is sent. The last one for a
target wins, so undoing is one more record.

    full      as recorded
    clamped   a result within 50 KB and 2,000 lines, then within 400,000 characters
    imageless without its images and documents, or without some of them: a short text replaces
              each, or a smaller image
    pruned    a line that says how large an old result was
    masked    a short text that says what was there, how large it was, and how to get it back

A result above the clamp's limits is never sent whole, whatever its overlay. Ids, calls, the error
mark of results and thinking stay, so that pairs stay pairs and signatures stay valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from tui.context import untrusted
from tui.context.breaks import BREAK
from tui.context.rules.blocks import SERVER_RESULTS, THINKING, is_blank
from tui.core.dataclass import dataclass, field
from tui.core.facts import Overlay, OverlayView
from tui.core.images import names_in
from tui.core.messages import Block, blocks_of, list_of, object_of, string_of, text_block
from tui.session.records import Record
from tui.tools.limits.clamp import Room, cap_chars, clamp, share
from tui.tools.limits.receipt import Keep

RecordState: TypeAlias = Literal["full", "cut", "pruned", "masked", "summarised", "repaired"]
OVERLAY_VIEWS: Final[tuple[OverlayView, ...]] = ("full", "clamped", "imageless", "pruned", "masked")

SUMMARY: Final = "[Previous conversation summary]"
"""The first line of the message that replaces a compacted beginning."""

SPEAKING = frozenset({"user", "assistant", "tool_result", "interrupt", "notice"})
"""The record types that become part of a message."""

MEDIA = frozenset({"image", "document"})
"""The block types that are large in bytes."""

CROWD: Final = "more than the model takes"
"""The reason for leaving out the oldest images of too many."""

NO_DOCUMENTS: Final = "the server takes no documents"
"""The reason for leaving out all documents."""

MASKED: Final = "[Masked by the person"
"""The beginning of the text that replaces what the person masked."""

_AGE_MAX = 1_000_000
_KEPT = THINKING | SERVER_RESULTS | {"tool_use", "server_tool_use"}
_END_MATTERS = frozenset({"run_command", "command_status", "terminal"})


@dataclass(frozen=True, slots=True)
class Stand:
    """The stand-in of a record that is not sent as recorded.

    `blocks` replace the content of the record; for a result, the blocks inside it.
    """

    state: RecordState
    blocks: list[Block]


def overlay_in(record: Record) -> Overlay | None:
    """Decode the overlay in a record; None for other records, and for an invalid one."""
    if record.type != "overlay":
        return None
    data = record.data
    target, view = data.get("target"), data.get("view")
    if not isinstance(target, str) or view not in OVERLAY_VIEWS:
        return None
    by, reason, age, most = (data.get(name) for name in ("by", "reason", "age", "tokens"))
    turns = age if isinstance(age, int) and 0 < age < _AGE_MAX else 0
    size = most if isinstance(most, int) and most > 0 else 0
    places = (n for n in list_of(data.get("blocks")) if isinstance(n, int) and n >= 0)
    who = string_of(by) or "person"
    waits, given = data.get("wait") is True, object_of(data.get("images"))
    images = {place: block for place, one in given.items() if (block := object_of(one))}
    return Overlay(target, view, who, string_of(reason), turns, size, tuple(places), waits, images)


@dataclass(slots=True)
class Overlays:
    """The overlays of a growing branch. The last one for a target is in force; one that waits is,
    at its place, from the next break on."""

    _newest: dict[str, tuple[int, Overlay]] = field(default_factory=dict[str, tuple[int, Overlay]])
    _waiting: list[tuple[int, Overlay]] = field(default_factory=list[tuple[int, Overlay]])

    def take(self, place: int, record: Record) -> Iterable[str]:
        """Take in the record at a place; return the targets with another overlay in force."""
        if record.type == BREAK:
            waiting, self._waiting = self._waiting, []
            return [overlay.target for at, overlay in waiting if self._put(at, overlay)]
        overlay = overlay_in(record)
        if overlay is None:
            return ()
        if overlay.wait:
            self._waiting.append((place, overlay))
            return ()
        self._put(place, overlay)
        return (overlay.target,)

    def of(self, target: str) -> Overlay | None:
        """The overlay in force for a target; None if it is sent as recorded."""
        _, overlay = self._newest.get(target, _NO_OVERLAY)
        return None if overlay is None or overlay.view == "full" else overlay

    def restores(self, target: str) -> bool:
        """True if the person wants to see it as recorded: it is not pruned by age."""
        _, overlay = self._newest.get(target, _NO_OVERLAY)
        return overlay is not None and overlay.view == "full" and overlay.by == "person"

    def in_force(self) -> dict[str, Overlay]:
        """The overlay for each target that is not sent as recorded."""
        return {target: one for target in self._newest if (one := self.of(target))}

    def _put(self, place: int, overlay: Overlay) -> bool:
        known, _ = self._newest.get(overlay.target, _NO_OVERLAY)
        if known > place:
            return False
        self._newest[overlay.target] = place, overlay
        return True


_NO_OVERLAY: Final = (-1, None)


def overlays_of(records: Iterable[Record]) -> dict[str, Overlay]:
    """The overlay in force for each target; targets that are sent as recorded have none."""
    overlays = Overlays()
    for place, record in enumerate(records):
        overlays.take(place, record)
    return overlays.in_force()


def pending(records: Iterable[Record]) -> dict[str, Overlay]:
    """The overlays that wait for the next break, by target."""
    newest: dict[str, Overlay] = {}
    for record in records:
        if record.type == BREAK:
            newest.clear()
        elif overlay := overlay_in(record):
            newest[overlay.target] = overlay
    return {target: overlay for target, overlay in newest.items() if overlay.wait}


def pins_of(records: Iterable[Record]) -> frozenset[str]:
    """The records that the person wants to keep: nothing automatic removes them."""
    pinned: set[str] = set()
    for record in records:
        take_pin(record, pinned)
    return frozenset(pinned)


def take_pin(record: Record, pinned: set[str]) -> None:
    """Add the target of a pin, or take it away. Other records change nothing."""
    target = record.data.get("target") if record.type == "pin" else None
    if isinstance(target, str):
        (pinned.add if record.data.get("pinned") is True else pinned.discard)(target)


def stand(record: Record, overlay: Overlay | None, room: Room | None = None) -> Stand | None:
    """Return what replaces a record's content; None if it is sent as it is."""
    if overlay is not None and overlay.view == "masked":
        return _masked(record, overlay)
    if overlay is not None and overlay.view == "pruned" and record.type == "tool_result":
        blocks, failed = content_of(record), record.data.get("is_error") is True
        text = pruned_text(chars(blocks), overlay.age or 1, is_error=failed, path=copy_of(record))
        return Stand("pruned", shortened(blocks, text)) if blocks else None
    if overlay is not None and overlay.view == "imageless":
        return _imageless(record, room or Room(), overlay)
    if record.type != "tool_result":
        return None
    return _clamped(record, room or Room(), overlay.tokens if overlay else 0)


def content_of(record: Record) -> list[Block]:
    """The content of a record as blocks; for a result, the blocks inside it."""
    if record.type == "compaction":
        return [text_block(summary_text(record))]
    if record.type == "interrupt":
        partial = record.data.get("text")
        return [text_block(partial)] if isinstance(partial, str) and partial.strip() else []
    if record.type == "notice":
        return [text_block(string_of(record.data.get("text")))]
    return blocks_of(record.data.get("content")) if record.type in SPEAKING else []


def summary_text(record: Record) -> str:
    """The text of a compaction's summary in the request, as untrusted content."""
    return framed_summary(string_of(record.data.get("summary")))


def framed_summary(summary: str) -> str:
    """Frame a summary as it is sent."""
    text = summary.strip() or "(no summary)"
    return f"{SUMMARY}\n{untrusted.wrap(text, 'summary of earlier messages')}"


def chars(blocks: Iterable[Block]) -> int:
    """Count the characters of text in blocks."""
    return sum(len(string_of(block.get("text"))) for block in blocks if block.get("type") == "text")


def pruned_text(size: int, age: int, *, is_error: bool = False, path: str = "") -> str:
    """Word the text that replaces a pruned result of `size` characters, with the path of its full
    copy if there is one."""
    if is_error:
        ago = "1 turn ago" if age == 1 else f"{age} turns ago"
        sentence = (
            f"[Previous tool error truncated — {size:,} chars. Original error occurred {ago}.]"
        )
    else:
        sentence = (
            f"[Previous tool result truncated — {size:,} chars. Use read_file to re-read if"
            " needed.]"
        )
    return f"{sentence} The full output is in {path}." if path else sentence


def shortened(blocks: Iterable[Block], text: str) -> list[Block]:
    """Replace all texts of a result by one; its other blocks stay."""
    short: list[Block] = []
    replaced = False
    for block in blocks:
        if block.get("type") != "text":
            short.append(block)
        elif not replaced:
            short.append(text_block(text))
            replaced = True
    return short


def copy_of(record: Record) -> str:
    """The path of a result's full copy; "" if it has none."""
    return string_of(object_of(record.data.get("receipt")).get("path"))


def placeholder(record: Record, by: str = "person") -> str:
    """Word the text that replaces a masked record."""
    data, blocks = record.data, content_of(record)
    size = f"{chars(blocks):,} chars"
    kinds = [string_of(block.get("type")) for block in blocks]
    others = [kind for kind in kinds if kind not in _KEPT | {"text", "tool_result"}]
    one = " and a document" if others == ["document"] else " and an image" * len(others)
    size += f" and {len(others)} other blocks" if len(others) > 1 else one
    who = "by the person" if by == "person" else f"by {by}"
    if record.type != "tool_result":
        what = "a message of the person" if record.type == "user" else "an earlier answer"
        return f"[Masked {who}: {what}, {size}. Ask the person if you need it.]"
    kind = "error" if data.get("is_error") else "result"
    back = "Call the tool again, or ask the person, if you need it."
    if path := copy_of(record):
        back = f"Full copy: {path}. Use read_file to view it."
    return f"[Masked {who}: {string_of(data.get('name')) or 'tool'} {kind}, {size}. {back}]"


def _masked(record: Record, overlay: Overlay) -> Stand | None:
    blocks = content_of(record)
    replacement = text_block(placeholder(record, overlay.by))
    if record.type == "tool_result":
        return Stand("masked", [replacement]) if blocks else None
    masked: list[Block] = []
    hidden = False
    for block in blocks:
        if block.get("type") in _KEPT or block.get("type") == "tool_result":
            masked.append(block)
        elif block.get("type") != "text" or not is_blank(block.get("text")):
            masked += [] if hidden else [replacement]
            hidden = True
    return Stand("masked", masked) if hidden else None


def _imageless(record: Record, room: Room, overlay: Overlay) -> Stand | None:
    clamped = _clamped(record, room) if record.type == "tool_result" else None
    blocks = clamped.blocks if clamped else content_of(record)
    words = iter(names_in(record.data))
    shown: list[Block] = []
    for place, block in enumerate(blocks):
        word = next(words, "") if block.get("type") == "image" else ""
        hidden = block.get("type") in MEDIA and hides(overlay, place)
        smaller = overlay.images.get(str(place), block)
        shown.append(text_block(_omission_text(block, word, overlay)) if hidden else smaller)
    return clamped if shown == blocks else Stand("cut", shown)


def hides(overlay: Overlay, place: int) -> bool:
    """True if an imageless record is sent without the image at that place."""
    return place in overlay.blocks or not (overlay.blocks or overlay.images)


def _omission_text(block: Block, word: str, overlay: Overlay) -> str:
    """Word the text that replaces an image or document that is not sent."""
    if overlay.reason == NO_DOCUMENTS and block["type"] == "document":
        return f"[document left out: {NO_DOCUMENTS}. Read the file again to get its text.]"
    if overlay.reason == CROWD:
        return f"[{block['type']} left out: {CROWD}]"
    if overlay.by != "person":
        return f"[{block['type']} left out: too large to send]"
    what = word[1:-1] if word else str(block["type"])
    return f"{MASKED}: {what}. Ask the person if you need it.]"


def _clamped(record: Record, room: Room, most: int = 0) -> Stand | None:
    """Cut a result to `room`, and to `most` tokens if that is not 0."""
    blocks = content_of(record)
    texts = [string_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    keep = _keep(record)
    within = cap_chars(clamp(texts, room, keep))
    if most:
        within = share(within, most, keep)
    if within is texts:
        return None
    return Stand("cut", with_texts(blocks, within))


def with_texts(blocks: Iterable[Block], texts: Iterable[str]) -> list[Block]:
    """Replace the texts of blocks, in order; surplus text blocks are dropped."""
    replacements = iter(texts)
    changed: list[Block] = []
    for block in blocks:
        if block.get("type") != "text":
            changed.append(block)
        elif (text := next(replacements, None)) is not None:
            changed.append(block | {"text": text})
    return changed


def _keep(record: Record) -> Keep:
    """The part of a result that matters: by its receipt, otherwise by its tool."""
    kept = object_of(record.data.get("receipt")).get("kept")
    ends = record.data.get("name") in _END_MATTERS if kept is None else kept == "ends"
    return "ends" if ends else "head"
