"""The state of each file as the model last saw it, and the files that have changed since. Pure.

The details of a result say what it showed of which file: see `tui.context.file_changes` for writes;
for reads they are `path`, `sha256` (of the whole file), `size`, `mtime_ns` and `lines`, and `link`
is the requested name if that is a link to the file. A refused edit has the same, since it showed
what had changed.

A notice of the kind "changed" tells the model that files have changed, one of the kind "difference"
shows how: `seen` has the state of each file in it.

A state is the SHA-256 of a file; its size and time if the record has no hash, because the file was
too large for one; or one of `NO_TEXT`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

from tui.context import untrusted
from tui.context.notices import NOTICE
from tui.context.overrides import RecordState, content_of
from tui.context.record_index import continues
from tui.core.dataclass import dataclass, field
from tui.core.messages import list_of, object_of, string_of, tool_calls
from tui.session.records import Record

FileState: TypeAlias = str

GONE: Final = "gone"
LINK: Final = "link"
OTHER: Final = "other"
UNREADABLE: Final = "unreadable"
NO_TEXT: Final[Mapping[FileState, str]] = {
    GONE: "deleted",
    LINK: "a link to another file now",
    OTHER: "not a file now",
    UNREADABLE: "can't be read now",
}
"""The states in which there is no text to compare, in words."""
NAMED: Final = 12
"""Number of files that a notice names; the others are only counted."""
NAME_CHARS: Final = 160
COMMAND_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a file that one result showed, or a notice of the kind "difference", which has no
    `call`.

    `state` is the state of the whole file at that time, `lines` the first and the last line shown,
    if known; `wrote`: the lines were written.
    """

    record: str
    call: str
    path: str
    state: FileState
    lines: tuple[int, int] | None = None
    link: str = ""
    wrote: bool = False

    @property
    def hashed(self) -> bool:
        """True if the state is a hash of the content, not size and time."""
        return " " not in self.state


@dataclass(slots=True)
class _FileHistory:
    """Everything about one file on a branch, in order."""

    excerpts: list[Excerpt] = field(default_factory=list[Excerpt])
    told: list[tuple[str, FileState]] = field(default_factory=list[tuple[str, FileState]])
    """Pairs of a notice's id and the state that it reported."""
    command: tuple[str, str, str] = ("", "", "")
    """The last command that changed it: the id of its result, its text, and the time."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The model's knowledge of a file.

    `excerpts` are those it still sees of the last state it saw, the newest first; `told` is the
    state reported since, None if there was no report. `by` says what has changed the file since, at
    the latest at `by_time`, as in the record; "" if that isn't known.
    """

    excerpts: tuple[Excerpt, ...]
    told: FileState | None = None
    by: str = ""
    by_time: str = ""

    @property
    def last(self) -> Excerpt:
        return self.excerpts[0]

    @property
    def known(self) -> FileState:
        """The state that the model knows of."""
        return self.last.state if self.told is None else self.told


class SeenFiles:
    """The files that the model has seen on one growing branch. `place` resolves the name of a file
    in the workspace to a path."""

    def __init__(self, place: Callable[[str], str]) -> None:
        self._place = place
        self._files: dict[str, _FileHistory] = {}
        self._commands: dict[str, str] = {}
        self._count = 0
        self._last: Record | None = None

    def follow(self, records: Sequence[Record]) -> None:
        """Read the new records. A branch is read again if it was rewound, or if it gets back what a
        summary had replaced."""
        fresh = range(self._count, len(records))
        if not continues(records, self._count, self._last) or any(
            records[place].type == "uncompaction" for place in fresh
        ):
            self._files, self._commands, fresh = {}, {}, range(len(records))
        for place in fresh:
            self._take(records[place])
        self._count = len(records)
        self._last = records[-1] if records else None

    def _take(self, record: Record) -> None:
        data = record.data
        match record.type:
            case "assistant":
                for call in tool_calls(content_of(record)):
                    if command := string_of(object_of(call.get("input")).get("command")):
                        self._commands[str(call.get("id"))] = command
            case "tool_result":
                for excerpt in excerpts_of(record):
                    self._files.setdefault(excerpt.path, _FileHistory()).excerpts.append(excerpt)
                self._blame(record)
            case "notice":
                for path, state in object_of(data.get("seen")).items():
                    history = self._files.get(path)
                    if history is not None and data.get("kind") == "difference":
                        history.excerpts.append(Excerpt(record.id, "", path, str(state)))
                    elif history is not None:
                        history.told.append((record.id, str(state)))
            case _:
                pass

    def _blame(self, record: Record) -> None:
        """Note the files that a command changed, as far as a checkpoint shows."""
        command = self._commands.pop(string_of(record.data.get("call_id")), "")
        for name in list_of(object_of(record.data.get("details")).get("changed_files")):
            history = self._files.get(self._place(str(name)))
            if history is not None and command:
                history.command = (record.id, " ".join(command.split()), record.time)

    def beliefs(
        self,
        state_of: Callable[[str], RecordState | None],
        is_sent: Callable[[str], bool] = lambda _: True,
    ) -> dict[str, Belief]:
        """Return the model's knowledge of each file, by path.

        `state_of` returns the state of a record in the window, None if it is not in it; `is_sent`
        says by a notice's id if it is sent.
        """
        beliefs, forgotten = dict[str, Belief](), list[str]()
        for path, history in self._files.items():
            visible = (
                one
                for one in reversed(history.excerpts)
                if _visible(one, state_of) and (one.call or is_sent(one.record))
            )
            if (last := next(visible, None)) is None:
                # Records behind a summary never return, unless the summary is undone.
                if all(state_of(one.record) == "summarised" for one in history.excerpts):
                    forgotten.append(path)
                continue
            same = takewhile(lambda one, last=last: one.state == last.state, visible)
            reports = [one for one in history.told if one[0] > last.record and is_sent(one[0])]
            since, state = reports[-1] if reports else (last.record, None)
            ended, command, time = history.command
            by = f"a command: {quoted(command, COMMAND_CHARS)}" if ended > since else ""
            beliefs[path] = Belief((last, *same), state, by, time if by else "")
        for path in forgotten:
            del self._files[path]
        return beliefs


def _visible(excerpt: Excerpt, state_of: Callable[[str], RecordState | None]) -> bool:
    """True if the model sees an excerpt, or the call that wrote it."""
    state = state_of(excerpt.record)
    return state is not None and (
        state != "summarised" if excerpt.wrote else state not in {"summarised", "masked", "pruned"}
    )


def excerpts_of(record: Record) -> Iterator[Excerpt]:
    """Yield the parts of files that a result shows."""
    details, call = object_of(record.data.get("details")), string_of(record.data.get("call_id"))
    several = [object_of(one) for one in list_of(details.get("files"))]
    for one in several or [details]:
        path, after = one.get("path"), one.get("after_sha256")
        if not isinstance(path, str) or not path.startswith("/") or one.get("unseen"):
            continue
        if "after_sha256" in one and not record.data.get("is_error"):
            yield Excerpt(record.id, call, path, after or GONE, wrote=True)
        elif state := _read_state(one):
            link = string_of(one.get("link"))
            yield Excerpt(record.id, call, path, state, _lines(one.get("lines")), link)


def _read_state(details: Mapping[str, Any]) -> FileState:
    sha256, size, time = (details.get(name) for name in ("sha256", "size", "mtime_ns"))
    if isinstance(sha256, str):
        return sha256
    return f"{size} {time}" if isinstance(size, int) and isinstance(time, int) else ""


def _lines(value: object) -> tuple[int, int] | None:
    match list_of(value):
        case [int(first), int(last)]:
            return first, last
        case _:
            return None


@dataclass(frozen=True, slots=True)
class FileNews:
    """A file that is not as the model knows it. `state` is its current state."""

    belief: Belief
    state: FileState

    @property
    def path(self) -> str:
        return self.belief.last.path

    @property
    def back(self) -> bool:
        """True if it is again as the model last saw it, after a change was reported."""
        return self.state == self.belief.last.state

    @property
    def calls(self) -> list[str]:
        """The calls whose results are outdated, or no longer are."""
        return [one.call for one in self.belief.excerpts if one.call]

    @property
    def word(self) -> str:
        """The change in one word: changed, gone or back."""
        return "back" if self.back else "gone" if self.state == GONE else "changed"

    @property
    def why(self) -> str:
        """The change in words; "" if it has another text and the author is not known."""
        by = f"by {self.belief.by}" if self.belief.by else ""
        return ", ".join(filter(None, (NO_TEXT.get(self.state), by)))


def news(beliefs: Iterable[Belief], now: Mapping[str, FileState]) -> list[FileNews]:
    """The files that are not as the model knows them, sorted; `now` has current states, by path."""
    every = [FileNews(one, now.get(one.last.path, one.known)) for one in beliefs]
    return sorted((one for one in every if one.state != one.belief.known), key=lambda one: one.path)


def outdated(beliefs: Iterable[Belief], now: Mapping[str, FileState]) -> list[FileNews]:
    """The files that are not as the model last saw them, whether that was reported or not."""
    every = [FileNews(one, now.get(one.last.path, one.last.state)) for one in beliefs]
    return [one for one in every if not one.back]


def notice_of(found: Sequence[FileNews], show: Callable[[str], str]) -> dict[str, Any]:
    """Build the fields of a notice about files that have changed. `show` names a path."""
    return {
        "kind": "changed",
        "text": sentences(found, show, "you"),
        "seen": {one.path: one.state for one in found},
        "calls": [call for one in found if not one.back for call in one.calls],
        "again": [call for one in found if one.back for call in one.calls],
    }


def sentences(found: Sequence[FileNews], show: Callable[[str], str], who: str) -> str:
    """Describe the changes in one line; `who` has seen the files: "you" or "the model"."""
    changed = [one for one in found if not one.back]
    back = [one for one in found if one.back]
    gone = all(one.state == GONE for one in changed)
    parts: list[str] = []
    if changed:
        parts.append(f"Changed since {who} last saw {_them(changed)}: {_named(changed, show)}.")
        if who == "you" and not gone:
            parts.append(f"Read {_them(changed)} again before you rely on {_them(changed)}.")
    if back:
        parts.append(f"Back to what {who} last saw: {_named(back, show)}.")
    return " ".join(parts)


def _them(files: Sequence[FileNews]) -> str:
    return "it" if len(files) == 1 else "them"


def _named(files: Sequence[FileNews], show: Callable[[str], str]) -> str:
    """List the files, each with its change, or with the change once if all have the same."""
    whys = ["" if one.back else one.why for one in files]
    all_alike = len(files) > 1 and len(set(whys)) == 1
    names = [
        f"{quoted(show(one.path))}{f' ({why})' if why and not all_alike else ''}"
        for one, why in zip(files[:NAMED], whys, strict=False)
    ]
    more = len(files) - NAMED
    listed = ", ".join(names) + (f" and {more:,} more" if more > 0 else "")
    return f"{listed} (all {whys[0]})" if all_alike and whys[0] else listed


def quoted(name: str, most: int = NAME_CHARS) -> str:
    """Quote a name that others may have chosen: on one line, shortened, with nothing in it that
    hides or opens a tag. The end of a path is kept, since it says most."""
    if len(name) > most:
        name = f"{name[: most // 3]}…{name[-(most - most // 3) :]}"
    plain = (c if c.isprintable() and c != "<" else f"\\u{ord(c):04x}" for c in name)
    return json.dumps("".join(plain), ensure_ascii=False).replace("\\\\u", "\\u")


def difference_of(path: str, state: FileState, shown: str, text: str) -> dict[str, Any]:
    """Build the fields of a notice that shows how a file has changed; its content is data."""
    wrapped = untrusted.wrap(text, shown)
    lead = f"{quoted(shown)} has changed since you last saw it. The difference:"
    return {"kind": "difference", "text": f"{lead}\n{wrapped}", "seen": {path: state}}


def outdated_calls(records: Iterable[Record]) -> set[str]:
    """The calls whose results are outdated by the record."""
    outdated_ids: set[str] = set()
    for record in records:
        if record.type == NOTICE:
            outdated_ids.update(map(str, list_of(record.data.get("calls"))))
            outdated_ids.difference_update(map(str, list_of(record.data.get("again"))))
    return outdated_ids
