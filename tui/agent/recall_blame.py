"""Lines of a file as the model is told of them: the prompts, calls and models that wrote them.

Prompts and commands are quoted of sessions that `recall` reads, those of this workspace, and not
where the person hid them from the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

import msgspec

from tui.agent.recall import RecallSources
from tui.context.blame import FileBlame, RecordedStep, blame_file, line_range, words
from tui.context.overrides import SPEAKING, overlays_of
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError, SessionError, ToolError
from tui.core.formatting import plural, ranges
from tui.core.messages import blocks_of, string_of, tool_calls
from tui.core.redaction import mask
from tui.session import catalog
from tui.session.reader import read
from tui.session.records import Record
from tui.tools.file_access import in_thread

_SOURCES: Final = 20
"""Most sources that one answer names, and below most steps that one of them may be."""
_SAID_CHARS: Final = 300
_CANDIDATES: Final = 10


async def blamed(
    sources: RecallSources, path: Path, lines: str, prices: Mapping[str, Price]
) -> tuple[str, str]:
    """The text about some lines of a file, and what it is in a few words. Raises HoldfastError
    where there is no answer."""

    def work(stop: Event) -> tuple[str, str]:
        return _answer(sources, path, lines, prices, stop)

    return await in_thread(work)


def _answer(
    sources: RecallSources, path: Path, asked: str, prices: Mapping[str, Price], stop: Event
) -> tuple[str, str]:
    if sources.folders is None:
        raise ToolError("No session is kept here.", hint="Ask git: git blame.")

    def still_wanted(_done: int, _of: int) -> None:
        if stop.is_set():
            raise ToolError("Stopped.")

    try:
        found, lines = blame_file(path, sources.folders, still_wanted)
        first, last = line_range(asked, len(lines), path.name)
    except ToolError:
        raise
    except HoldfastError as error:
        raise ToolError(error.message, hint=error.hint) from error
    of: dict[int, list[int]] = {}
    for line in range(first - 1, last):
        of.setdefault(found.of[line], []).append(line)
    reader = _Reader(sources)
    blocks = [_source(reader, found, numbers, prices) for numbers in [*of.values()][:_SOURCES]]
    if (more := len(of) - _SOURCES) > 0:
        blocks.append(f"[{plural(more, 'more source')}; ask about fewer lines]")
    blocks += [f"[{note}]" for note in found.notes]
    return "\n".join(blocks), plural(len(of), "source")


def _source(
    reader: _Reader, found: FileBlame, lines: Sequence[int], prices: Mapping[str, Price]
) -> str:
    line = lines[0]
    one = found.origins[found.of[line]]
    makers, certain = found.makers(line), found.certain(line)
    texts = [f"--- line{'s' * (len(lines) > 1)} {ranges(n + 1 for n in lines)} ---"]
    if not certain:
        texts.append(f"Uncertain: {one.why}. It may be one of these:")
    for step in makers[:_CANDIDATES]:
        texts += words(reader.seen(step), found.commit_of(lines) if certain else None, prices)
        if step.session:
            texts.append(reader.place(step))
    if (more := len(makers) - _CANDIDATES) > 0:
        texts.append(f"or {plural(more, 'other step')}")
    texts += [
        f"reformatted by {words(reader.seen(found.steps[n]), None, prices)[0]}"
        for n in one.formatters
    ]
    return "\n".join(texts)


@dataclass(frozen=True, slots=True)
class _ReadSession:
    """The part of a session that the model may read: its messages' numbers by their records, and
    what the person hid, by the ids of records and calls."""

    numbers: Mapping[str, int]
    hidden: frozenset[str]


class _Reader:
    """The sessions that steps were made in, as far as `recall` reads them."""

    def __init__(self, sources: RecallSources) -> None:
        self._sources = sources
        self._read: dict[str, _ReadSession | None] = {}
        self._own = catalog.id_of(sources.path) if sources.path else ""
        self._files: dict[str, Path] = {}
        if sources.folders is not None and sources.workspace is not None:
            for scan in (catalog.scan, catalog.scan_children):
                for _, path, _ in scan(sources.folders, sources.workspace):
                    self._files[catalog.id_of(Path(path))] = Path(path)

    def seen(self, step: RecordedStep) -> RecordedStep:
        """The step as the model may see it: nothing quoted of other workspaces' sessions, and
        nothing that the person hid."""
        prompts = self._prompts(step.session)
        hides = prompts is None and bool(step.session)
        hidden = prompts.hidden if prompts else frozenset[str]()
        return msgspec.structs.replace(
            step,
            said="" if hides or step.prompt in hidden else mask(step.said)[0][:_SAID_CHARS],
            label="" if hides or step.call in hidden else mask(step.label)[0],
        )

    def place(self, step: RecordedStep) -> str:
        """The place where the step's prompt is to be read, by its address for `recall`."""
        prompts = self._prompts(step.session)
        if prompts is None:
            return "in a session that can't be read from here"
        number = prompts.numbers.get(step.prompt)
        if number is None or step.prompt in prompts.hidden:
            return f"in session {step.session}"
        own = step.session == self._own
        return f"prompt: message {number if own else f'{step.session}:{number}'}"

    def _prompts(self, session: str) -> _ReadSession | None:
        if session and session not in self._read:
            self._read[session] = self._prompts_of(session)
        return self._read.get(session)

    def _prompts_of(self, session: str) -> _ReadSession | None:
        if session == self._own:
            return _prompts_in(self._sources.records)
        path = self._files.get(session)
        if path is None:
            return None
        with suppress(SessionError, OSError):
            return _prompts_in(read(path).branch)
        return None


def _prompts_in(records: Sequence[Record]) -> _ReadSession:
    speaking = [record for record in records if record.type in SPEAKING]
    masked = {
        id_
        for id_, one in overlays_of(records).items()
        if one.view == "masked" and one.by == "person"
    }
    calls = [
        string_of(block.get("id"))
        for record in speaking
        if record.id in masked
        for block in tool_calls(blocks_of(record.data.get("content")))
    ]
    calls += [string_of(one.data.get("call_id")) for one in speaking if one.id in masked]
    numbers = {one.id: n for n, one in enumerate(speaking, 1)}
    return _ReadSession(numbers, frozenset((*masked, *filter(None, calls))))
