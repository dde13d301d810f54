"""Checkpoints of the workspace: when they are taken, and their records.

One is taken at each prompt, once its request is on its way, and one before and after each call that
may change files in ways that only the disk shows: commands, and tools of MCP servers. In a run of
one turn the prompt's waits for the first call that may change a file: most of them answer without
one.
Sub-agents that work in the same folder share the session's. A checkpoint that can't be taken stops
nothing: it is reported once, and the next prompt tries again, but not in a folder with too many
files.

`checkpoint` records: `checkpoint` is the id, `files` the number of files that differ from the one
before, and `by` who changed them: "call", "job" where background commands ran meanwhile, "rewind",
and "" for anybody else, the file tools among them, whose own results name what they wrote.
`call_id` is the call that has just ended, or is about to begin, `prompt` the record of the prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui.agent.recorder import FactStream, Recorder
from tui.core.cancellation import to_the_end
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import CheckpointTaken, Notice
from tui.core.formatting import plural
from tui.core.messages import ToolOutput
from tui.session.checkpoints.entries import (
    Checkpoint,
    CheckpointError,
    CheckpointsDamagedError,
    CheckpointStoppedError,
    WorkspaceTooLargeError,
)
from tui.session.records import CHECKPOINT, Record
from tui.tools.jobs import Jobs

if TYPE_CHECKING:
    from tui.session.checkpoints.store import CheckpointStore

By: TypeAlias = Literal["", "call", "job", "rewind"]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CallChanges:
    """The changes of a call in files; None before it has ended, and where that isn't known."""

    checkpoint: Checkpoint | None = None

    def added_to(self, output: ToolOutput) -> ToolOutput:
        """The result of the call, with how many files it changed, for the person."""
        checkpoint = self.checkpoint
        if checkpoint is None or not checkpoint.files:
            return output
        what = f"{plural(checkpoint.files, 'file')} changed"
        summary = f"{output.summary} · {what}" if output.summary else what
        details = {**output.details, "changed_files": list(checkpoint.changed)}
        return replace(output, summary=summary, details=details)


@dataclass(slots=True)
class Checkpoints:
    """Takes the checkpoints of one session, whose background commands are `jobs`."""

    open_store: Callable[[], CheckpointStore]
    recorder: Recorder
    events: FactStream
    jobs: Jobs
    ahead: bool = True
    """True if a prompt's is taken while the model thinks; else what may change files begins it."""
    _problem: CheckpointError | None = None
    """The reason why there are none; None while there are."""
    _skipped: bool = False
    """True if the last one lacked room for some files."""
    _store: CheckpointStore | None = None
    _last: str = ""
    _jobs_ran: bool = False
    _due: str = ""
    """The record of a prompt whose checkpoint nobody has waited for yet; "" if there is none."""
    _turn: asyncio.Task[None] | None = None
    """Takes that of the prompt."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def store(self) -> CheckpointStore:
        """Return the store of the checkpoints. Blocks."""
        self._store = self._store or self.open_store()
        return self._store

    def resume(self, records: Iterable[Record]) -> None:
        """Go on from the last checkpoint of a record."""
        taken = [record for record in records if record.type == CHECKPOINT]
        self._last = str(taken[-1].data.get("checkpoint")) if taken else ""

    def begin(self, prompt: str) -> None:
        """Owe that of a prompt, named by its record; what may change files waits for it."""
        self._due = prompt
        if self._jobs_run():
            self._begin()

    def request_sent(self) -> None:
        """Take that of the prompt now: before, it would hold up the request."""
        if self._due and self.ahead:
            self._begin()

    def _jobs_run(self) -> bool:
        return any(not job.ended for job in self.jobs.list())

    def _begin(self) -> None:
        prompt, self._due = self._due, ""
        before = self._turn
        self._turn = asyncio.create_task(self._take_for_prompt(prompt, before), name="checkpoint")

    async def _take_for_prompt(self, prompt: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        taken = await self._take("", prompt=prompt)
        if taken is not None and before is None:
            with suppress(CheckpointError):
                await asyncio.to_thread(self._prune)

    async def ready(self) -> None:
        """Until the prompt's is taken: then files may change."""
        if self._due:
            self._begin()
        if self._turn is not None:
            await asyncio.wait({self._turn})

    @asynccontextmanager
    async def around(self, call_id: str) -> AsyncGenerator[CallChanges]:
        """Surround a call that may change files; how it ended says what it changed."""
        changes = CallChanges()
        await self.ready()
        await self._take("", call_id)
        try:
            yield changes
        finally:
            changes.checkpoint = await to_the_end(self._take("call", call_id))

    async def after(self, call_id: str) -> CallChanges:
        """Return the changes of a call that began in an earlier run of the program."""
        return CallChanges(await self._take("call", call_id))

    async def now(self) -> str:
        """The id of a checkpoint of the state now; "" where none can be taken."""
        taken = await self._take("")
        return taken.id if taken else ""

    async def after_rewind(self) -> None:
        """Take one of the files that were just restored."""
        await self._take("rewind")

    async def _take(self, by: By, call_id: str = "", *, prompt: str = "") -> Checkpoint | None:
        """Take one and record it where it differs from the last; a prompt's always."""
        async with self._lock:
            if self._problem and not (prompt and self._may_go_on()):
                return None
            # a job that ran since the last one may have changed the files
            jobs_run = self._jobs_run()
            if not by and (self._jobs_ran or jobs_run):
                by = "job"
            self._jobs_ran = jobs_run
            try:
                try:
                    taken = await asyncio.to_thread(self._take_now)
                # the damaged store was put aside: the second try begins a new one
                except CheckpointsDamagedError as error:
                    self.events.publish(Notice(error.message))
                    taken = await asyncio.to_thread(self._take_now)
            except CheckpointStoppedError:
                return None
            except CheckpointError as error:
                self._fail(error)
                return None
            if self._problem:
                self._problem = None
                self.events.publish(Notice("Checkpoints of the files are taken again."))
            self._say_skipped(taken.skipped)
            # without changes the last checkpoint still holds
            if prompt or taken.id != self._last:
                recorded = CheckpointTaken(taken.id, taken.files, call_id, by, prompt)
                self.recorder.write(recorded)
                if by == "call" and taken.files:
                    self.events.publish(recorded)
            self._last = taken.id
            return taken

    def _take_now(self) -> Checkpoint:
        return self.store().take()

    def _prune(self) -> None:
        self.store().prune()

    def _say_skipped(self, files: int) -> None:
        if files and not self._skipped:
            self.events.publish(
                Notice(
                    f"The disk is almost full: {plural(files, 'file')} didn't fit into the"
                    " checkpoint, so /rewind can't restore everything."
                )
            )
        self._skipped = files > 0

    def _may_go_on(self) -> bool:
        """True if the obstacle may be gone by now, such as a full disk."""
        return not isinstance(self._problem, WorkspaceTooLargeError)

    def _fail(self, error: CheckpointError) -> None:
        log.warning("no checkpoint: %s", error)
        known, self._problem = self._problem, error
        if known is None:
            until = "until the next prompt" if self._may_go_on() else "in this session"
            self.events.publish(
                Notice(
                    f"No checkpoints {until}: {error.message} /rewind restores only files that"
                    " Holdfast's own tools changed."
                )
            )

    async def close(self) -> None:
        """Let go of the store; a checkpoint that is being taken is given up."""
        self._due = ""
        if self._store is not None:
            self._store.stop()
        await self.ready()
        async with self._lock:
            if self._store is not None:
                await asyncio.to_thread(self._store.close)
