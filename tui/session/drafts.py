"""Drafts: work that is not sent or finished yet, recorded so that a crash does not lose it.

A `draft` record holds the prompt being typed, the queue, and the answer being streamed. Of the
answer it holds what came since the draft before: `answer` begins at the character `after`, so
that a long answer is written once and not once every few seconds. A later record of the same
thing (the prompt sent, the answer finished) makes that part of the draft void.

The person's own waiting commands have a field of their own, `commands`, left out if there are
none. If they were in `queue`, a program that knows only prompts would join them with the texts
around them, and the line after a command would be run with it.

Drafts are not part of the branch: no record names one as its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.messages import list_of, object_of, string_of

TYPED_EVERY_S = 1.0
ANSWER_EVERY_S = 5.0

_Typed: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The prompt, the queue, the commands."""

_ANSWER_OVER = frozenset({"assistant", "interrupt", "retry", "failover", "error"})


@dataclass(frozen=True, slots=True)
class UnsentWork:
    """Input and answer text from when a session was last written, typed, queued or streamed and not
    sent since. `images` maps the words for the images in the texts to the names of their files.
    `commands` are the person's own commands that waited to be run, as they were typed
    (`!pytest`)."""

    prompt: str = ""
    queue: tuple[str, ...] = ()
    answer: str = ""
    images: Mapping[str, str] = field(default_factory=dict[str, str])
    commands: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prompt.strip() or self.queue or self.answer or self.commands)


NOTHING = UnsentWork()


class DraftReader:
    """Follows the records of a file, in its order, to know what is unsent at its end."""

    def __init__(self) -> None:
        self._prompt = ""
        self._queue: list[str] = []
        self._commands: list[str] = []
        self._images: dict[str, str] = {}
        self._answer: list[str] = []
        self._length = 0

    def see(self, kind: object, data: dict[str, Any]) -> None:
        """Take note of one record; `data` holds its fields."""
        if kind == "draft":
            self._prompt = string_of(data.get("prompt"))
            self._queue = _texts(data.get("queue"))
            self._commands = _texts(data.get("commands"))
            self._images = _names(data.get("images"))
            self._add(string_of(data.get("answer")), data.get("after"))
        elif kind == "user":
            self._sent(string_of(data.get("text")))
        elif isinstance(kind, str) and kind in _ANSWER_OVER:
            self._forget()

    def unsent(self) -> UnsentWork:
        answer, commands = "".join(self._answer), tuple(self._commands)
        return UnsentWork(self._prompt, tuple(self._queue), answer, self._images, commands)

    def _add(self, piece: str, after: object) -> None:
        if not isinstance(after, int):
            return  # this draft has no answer
        if after != self._length:
            lost = after > 0
            self._forget()
            piece = f"…{piece}" if lost else piece
            self._length = after - lost
        self._answer.append(piece)
        self._length += len(piece)

    def _forget(self) -> None:
        self._answer.clear()
        self._length = 0

    def _sent(self, text: str) -> None:
        if text.strip() == self._prompt.strip():
            self._prompt = ""
        if text in self._queue:
            self._queue.remove(text)


class DraftWriter:
    """Decides when a draft is written, and what is in it. `now` is a monotonic time."""

    def __init__(self) -> None:
        self._typed: _Typed = ("", (), ())
        self._answer = ""
        self._written: _Typed = ("", (), ())
        self._images: Mapping[str, str] = {}
        self._typed_at = self._answer_at = float("-inf")

    @property
    def typed(self) -> bool:
        """True if there is something typed or queued."""
        prompt, queue, commands = self._typed
        return bool(prompt.strip() or queue or commands)

    def note(self, now: float, work: UnsentWork) -> tuple[dict[str, Any] | None, float]:
        """The fields of a draft to write now, if one is due, and when to come back, in seconds.

        0 seconds: nothing is waiting to be written.
        """
        self._typed, self._images = (work.prompt, work.queue, work.commands), work.images
        answer = work.answer
        if not answer:
            self._answer = ""
        fields: dict[str, Any] = {}
        waits: list[float] = []
        if answer != self._answer:
            wait = self._answer_at + ANSWER_EVERY_S - now
            if wait <= 0:
                after = len(self._answer) if answer.startswith(self._answer) else 0
                fields = {"answer": answer[after:], "after": after}
                self._answer, self._answer_at = answer, now
            else:
                waits.append(wait)
        if self._typed != self._written:
            wait = self._typed_at + TYPED_EVERY_S - now
            if wait > 0 and not fields and not self._queued_more():
                return None, min([wait, *waits])
            self._typed_at = now
        elif not fields:
            return None, min(waits, default=0.0)
        self._written = self._typed
        return {**self._fields(), **fields}, min(waits, default=0.0)

    def _queued_more(self) -> bool:
        """True if something waits that is not written yet: the person takes it for sent. What waits
        no longer is not urgent, and must not be void before it is recorded as sent."""
        _, *waiting = self._typed
        _, *written = self._written
        pairs = zip(waiting, written, strict=True)
        return any(text not in had for texts, had in pairs for text in texts)

    def last(self) -> dict[str, Any] | None:
        """The fields of what is typed and not written yet, None if there is nothing."""
        if self._typed == self._written:
            return None
        self._written = self._typed
        return self._fields()

    def _fields(self) -> dict[str, Any]:
        prompt, queue, commands = self._typed
        fields: dict[str, Any] = {"prompt": prompt, "queue": list(queue)}
        if commands:
            fields["commands"] = list(commands)
        if self._images:
            fields["images"] = dict(self._images)
        return fields


def _names(value: object) -> dict[str, str]:
    return {word: name for word, name in object_of(value).items() if isinstance(name, str)}


def _texts(value: object) -> list[str]:
    return [item for item in list_of(value) if isinstance(item, str)]
