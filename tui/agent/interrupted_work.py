"""Open work in a session when it is opened: calls without a result, running commands, damage.

Commands outlive the program only where it was killed. They are known by their process id and the
time of their birth, so that no other process that has got the number since is taken for one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tui.agent.prompts import Directives
from tui.agent.supervised_commands import ended_jobs, states_of, with_command_states
from tui.context.interrupted_calls import Interrupted, unsettled_calls, with_file, with_files
from tui.core import facts
from tui.core.dataclass import asdict, dataclass
from tui.core.errors import SessionError
from tui.core.fact_words import foreign_frame
from tui.core.files import open_real, safe_name, sha256_of
from tui.core.formatting import moment_of
from tui.core.messages import Block, blocks_of, string_of, tool_calls
from tui.core.process_birth import born
from tui.core.text_cleaning import one_line
from tui.keeper.command import Kept, lives
from tui.provider import catalogue
from tui.session.reader import read
from tui.session.records import GOAL, SUB_AGENT, Finding, Record, last_of_turn
from tui.session.session import file_of_child

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.agent.directive_state import DirectiveState
    from tui.agent.request.pruning import PruneSchedule
    from tui.agent.request.state import RequestState


_JOB = b'"type":"job"'
"""In the file of a session that has started a command."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A command that an earlier run of the session started and that still runs. `agent` is the
    kind of sub-agent that started it, "" for none."""

    pid: int
    born: str
    command: str
    started: str
    agent: str = ""

    @property
    def name(self) -> str:
        """Its process, and who started it."""
        by = f", started by sub-agent {self.agent}" if self.agent else ""
        return f"process {self.pid}{by}"


@dataclass(frozen=True, slots=True)
class InterruptedWork:
    """Calls that have no result and are not settled, and commands that still run."""

    calls: tuple[Interrupted, ...] = ()
    orphans: tuple[Orphan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.calls or self.orphans)

    @property
    def supervised(self) -> tuple[str, ...]:
        """The ids of the calls whose commands run on, or have ended with their results kept."""
        return tuple(call.call_id for call in self.calls if call.recovery == "result")

    @property
    def uncertain(self) -> InterruptedWork:
        """The same without those."""
        left = tuple(call for call in self.calls if call.recovery != "result")
        return InterruptedWork(left, self.orphans)

    @property
    def resumable(self) -> bool:
        """True if the turn can continue as if nothing had happened: the result of each call that
        had begun is kept, or comes."""
        known = all(call.recovery in {"result", "start"} for call in self.calls)
        return bool(self.supervised) and known and not self.orphans


def interrupted_work(
    records: Sequence[Record],
    root: Path,
    path: Path | None = None,
    kept: Path | None = None,
    jobs: Mapping[str, Kept] | None = None,
) -> InterruptedWork:
    """Find what the branch of a session left open, and its sub-agents left running. `root` is its
    workspace, `path` its file, `kept` the folder of its commands, `jobs` the states of the
    background commands that it has taken over, by their calls. Blocks: files are read."""
    left = [_with_file(call, root) for call in unsettled_calls(records)]
    known = states_of(ended_jobs(records)) if left else {}
    calls = with_command_states(left, kept, {**known, **(jobs or {})})
    orphans = (*_orphans(records, kept=kept), *_of_sub_agents(records, path))
    return InterruptedWork(calls, orphans)


def new_findings(records: Sequence[Record], findings: Sequence[Finding]) -> list[Finding]:
    """The findings that no repair record of the branch has: each is shown once."""
    if not findings:
        return []
    known = {
        (item.get("code"), item.get("where"), item.get("action"))
        for record in records
        if record.type == "repair" and "rung" not in record.data
        for item in dicts_of(record.data.get("findings"))
    }
    return [f for f in findings if (f.code, f.where, f.action) not in known]


def dicts_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list that was read from a file."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _with_file(call: Interrupted, root: Path) -> Interrupted:
    if call.effect != "write":
        return call
    if call.files:
        known: dict[str, str | None] = {}
        for file in call.files:
            with suppress(OSError):
                known[file.path] = _digest(root / file.path)
        return with_files(call, known)
    if not call.path:
        return call
    try:
        return with_file(call, _digest(root / call.path))
    except OSError:
        return call


def _digest(path: Path) -> str | None:
    """The SHA-256 of a regular file, None where there is none. Raises OSError."""
    try:
        return sha256_of(open_real(path, os.O_RDONLY | os.O_NONBLOCK))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _of_sub_agents(records: Sequence[Record], path: Path | None) -> list[Orphan]:
    """The commands of a session's sub-agents; those whose files can't be read are passed over."""
    started = (record.data for record in records if record.type == SUB_AGENT)
    orphans: list[Orphan] = []
    for data in {string_of(one.get("session")): one for one in started}.values():
        with suppress(OSError, SessionError):
            file = file_of_child(path, string_of(data.get("path")))
            if file is not None and _JOB in file.read_bytes():
                orphans += _orphans(read(file).branch, one_line(string_of(data.get("agent"))))
    return orphans


def _orphans(
    records: Sequence[Record], agent: str = "", *, kept: Path | None = None
) -> list[Orphan]:
    """The commands that run without anybody. Those that are kept are taken over."""
    orphans: list[Orphan] = []
    for record in records:
        if record.type != "job":
            continue
        pid, birth = record.data.get("pid"), record.data.get("born")
        if not isinstance(pid, int) or not isinstance(birth, str):
            continue
        if birth and born(pid) == birth and not _is_supervised(record, kept):
            command = str(record.data.get("command", ""))
            orphans.append(Orphan(pid, birth, command, record.time, agent))
    return orphans


def _is_supervised(record: Record, kept: Path | None) -> bool:
    call_id = string_of(record.data.get("call_id"))
    return kept is not None and lives(kept / safe_name(call_id))


def calls_of(records: Sequence[Record], ids: Collection[str]) -> list[Block]:
    """The calls of these ids, in the order in which they were made."""
    wanted, matching = set(ids), list[Block]()
    for record in records:
        if record.type == "assistant":
            calls = tool_calls(blocks_of(record.data.get("content")))
            matching += [call for call in calls if string_of(call.get("id")) in wanted]
    return matching


def turn_is_open(records: Sequence[Record]) -> bool:
    """True if the last turn of a session can continue: it neither came to its end nor failed."""
    last = last_of_turn(records)
    if last is None or last.type in {"error", GOAL}:
        return False
    return last.type != "assistant" or bool(tool_calls(blocks_of(last.data.get("content"))))


def parked_in(records: Sequence[Record]) -> facts.Parked | None:
    """Return the parking of a session, if nothing that belongs to a turn followed."""
    last = last_of_turn(records)
    if last is None or last.type != "parked" or moment_of(last.data.get("until")) is None:
        return None
    data = last.data
    status = data.get("status")
    return facts.Parked(
        str(data["until"]),
        str(data.get("reason") or ""),
        str(data.get("error_class") or "rate_limit"),
        status if isinstance(status, int) else None,
    )


async def publish_opening(
    ctx: AgentContext,
    requests: RequestState,
    directives: DirectiveState,
    pruning: PruneSchedule,
) -> None:
    """Publish what comes before the first turn, and put the session's settings in force."""
    from tui.agent.request.view import prepare  # noqa: PLC0415 - there is an agent by now

    session, root = ctx.session, str(ctx.workspace.root)
    path = str(session.path) if session.path else None
    started = facts.SessionStarted(
        session.id,
        path,
        ctx.link.model.id,
        root,
        session.resumed,
        ctx.config.profile or msgspec.UNSET,
    )
    ctx.publish(started)
    if files := [asdict(one) for one in ctx.sources.injected]:
        ctx.publish(facts.ContextFiles(tuple(files)))
    if session.resumed and (gone := await asyncio.to_thread(_gone_folder, ctx)):
        ctx.publish(facts.Notice(gone))
    view = (await asyncio.to_thread(prepare, requests)).view  # keys are answered meanwhile
    pruning.begin(view)
    if findings := new_findings(session.records, (*session.findings, *view.findings)):
        applied = facts.RepairApplied(tuple(finding.to_json() for finding in findings))
        ctx.publish(applied)
        session.with_next_prompt(applied)
    if ctx.sources.directives:
        directives.apply(ctx.sources.directives)
        await ctx.recorder.sync()
    if directives.now != Directives():
        ctx.publish(facts.DirectivesChanged(**directives.now.to_json()))
    if directives.was_elevated and not directives.now.elevated:
        ctx.publish(facts.Notice("This session was elevated. Send /elevated to turn it on again."))
    if requests.frame.is_foreign:
        from tui.agent.request.break_cost import foreign_frame_cost  # noqa: PLC0415 - there is an agent

        if cost := await asyncio.to_thread(foreign_frame_cost, requests):
            ctx.publish(foreign_frame(cost))
    going = catalogue.retirement(ctx.link.model, ctx.clock.now())
    ctx.publish(
        *map(facts.Notice, filter(None, (*ctx.sources.notices, going))), requests.meter.measure()
    )
    if parked := parked_in(session.records):
        ctx.publish(parked)


def _gone_folder(ctx: AgentContext) -> str:
    """Say where a session continues whose folder is gone; "" for others. Blocks."""
    from tui.session.copies import gone_folder  # noqa: PLC0415 - for resumed ones only

    header, here = ctx.session.header, ctx.workspace.root
    same = not header.cwd or header.cwd == str(here) or Path(header.cwd).is_dir()
    return "" if same else gone_folder(header, here, ctx.session.records)
