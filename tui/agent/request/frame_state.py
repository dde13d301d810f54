"""The frame of one agent's session, and the notices about what changed since."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import tui
from tui.agent.agent_context import AgentContext
from tui.agent.request.stale_files import StaleFiles
from tui.agent.server_features import ServerFeatures
from tui.agent.skills import SKILL_LIST
from tui.context import effort, job_endings, notices, seen_files, system_prompt
from tui.context.frame import FRAME, Frame, canonical, frame_in, is_sealed, last_frame, sealed
from tui.context.job_endings import unreported
from tui.context.notices import NOTICE, Form, ModelKnowledge
from tui.context.overrides import SPEAKING, content_of
from tui.context.project_files import nested, nested_again, source_of
from tui.context.record_index import RecordIndex
from tui.context.request_trail import has_thinking
from tui.context.rules.blocks import is_paused
from tui.context.system_prompt import Source, environment, hash_of, newer_version
from tui.core.facts import ContextBroken, FrameMade, ModelNotice, Notice, ThinkingBroken
from tui.core.formatting import plural
from tui.core.git.branch import branch_of
from tui.core.messages import list_of, text_of, tool_calls
from tui.core.redaction import mask_values
from tui.core.server_results import CALL, is_result
from tui.permissions.search_domains import search_domains
from tui.permissions.types import Mode
from tui.provider.base import ModelInfo
from tui.provider.server_tools import WEB_SEARCH, is_server_tool, web_search
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.settings.rule_files import RuleFile
from tui.tools.base import Tool
from tui.tools.limits.clamp import Room
from tui.tools.registry import SEARCH_INSTALLED, TERMINAL
from tui.tools.skill import Skill

log = logging.getLogger(__name__)

_MODES: Mapping[Mode, str] = {
    "ask": "ask: writes and commands ask for permission",
    "accept_edits": "accept edits: files in the workspace are written without asking",
    "plan": "plan: read-only, nothing is written or run",
}
_PLAN_ENDS = "; when your plan is ready, show it with present_plan"
"""Of a conversation: a sub-agent that only reads ends with its answer."""
RELOAD = "reload"
"""The type of the record: the next compaction brings a new frame."""

_OF_SKILLS: Final = frozenset({Skill.name, SEARCH_INSTALLED})
"""Tools that are there only if there is something for them."""
_LAYERS_OF_RULES = frozenset({"security"})


class FrameState:
    """Keeps the frame of a session, and records what changed since it was made.

    `think` is whether the person wants the model to think more; `effort` the level that they chose,
    "" for the configured one; `covered` is the id of the last record that a summary stands for (ids
    sort by time), `pins` are pinned records that it covers and that are to be said again, `joined`
    the tools that it brings along; `summary` is its record. `untrusted` are the notices of the
    record that this installation did not make. `stale` knows which files have changed.
    """

    def __init__(self, ctx: AgentContext, features: ServerFeatures) -> None:
        self.think = False
        self.effort = ""
        self.covered = ""
        self.pins: Sequence[Record] = ()
        self.summary: Record | None = None
        self.joined: frozenset[str] = frozenset()
        self.untrusted = notices.untrusted(ctx.records, ctx.key)
        self.stale = StaleFiles(ctx)
        self._ctx = ctx
        self._features = features
        # Skills come and go: a frame without their tools, or with them, is replayed all the same.
        self._builtin = frozenset(ctx.toolbox.tools) - _OF_SKILLS
        self._schemas = {name: tool.schema() for name, tool in ctx.toolbox.tools.items()}
        self._index = RecordIndex({FRAME, NOTICE, RELOAD})
        self._frames, self._ended = RecordIndex({FRAME}), RecordIndex({"job_ended"})
        self._known: tuple[Record, Frame | None] | None = None
        self._now: Frame | None = None
        self._files: list[dict[str, Any]] = []
        self._to_say: list[dict[str, Any]] = []
        self._waiting: frozenset[str] = frozenset()
        self._outdated = ""
        self._looked: set[Path] = set()

    @property
    def current(self) -> Frame:
        """The frame in force; before the first request the one that it would have."""
        return self._recorded() or self._fresh()

    @property
    def record(self) -> str:
        """The id of the record of the frame in force, "" before the first request."""
        found = self._last_frame()
        return found.id if found else ""

    @property
    def replays(self) -> bool:
        """True if there is a frame of the record that can be sent again to the byte."""
        return self._recorded() is not None

    @property
    def is_foreign(self) -> bool:
        """True if another installation made the frame of the record: it is whole, and its seal is
        not ours."""
        record = self._last_frame()
        if record is None or self.replays or is_sealed(record, self._ctx.key):
            return False
        return frame_in(record) is not None

    def known_tools(self) -> frozenset[str]:
        """The names of the tools that requests have listed so far; none before the first one."""
        link, frame = self._ctx.link, self._recorded()
        if frame is None:
            return frozenset()
        form = form_of(link.model, first_party=link.first_party, lacks=link.lacks)
        return frozenset(self._knowledge(form, frame).tools)

    def exchange(self, gone: Collection[str], tools: Iterable[Tool[Any]]) -> None:
        """Other tools of servers are there now; `gone` are names."""
        for name in gone:
            self._schemas.pop(name, None)
        self._schemas |= {tool.name: tool.schema() for tool in tools}
        self._now = None

    def say(self, data: dict[str, Any]) -> None:
        """Say a notice with the next request, by its fields."""
        self._to_say.append(data)

    def renew(self, reason: str) -> None:
        """Make a new frame with the next request, which is a break."""
        self._outdated = reason

    @property
    def waits(self) -> bool:
        """True if tools wait for a new frame, or the person wants one with the next compaction."""
        wanted = [r.type for r in self._index.of(self._ctx.records) if r.type in {FRAME, RELOAD}]
        return bool(self._waiting) or wanted[-1:] == [RELOAD]

    async def read_files(self) -> None:
        """Look whether a file of the prompt has changed; the next request says so."""
        if self._ctx.sources.find_files is None or self._recorded() is None:
            return
        sources = await asyncio.to_thread(self._ctx.sources.find_files)
        self._ctx.open_skills()
        await asyncio.to_thread(self._join_search, sources)
        caps = self._ctx.config.bootstrap
        told = self._known_files()
        known = {source.name for source in sources}
        # Instructions of a folder, and rules of some files, are said once a call went there.
        below = [name for name in told if told[name] and name not in known]
        again = [*await asyncio.to_thread(self._nested_again, below)]
        again += [source_of(rule) for rule in await self._rules() if rule.name in below]
        sources = [*sources, *(source for source in again if source.name in below)]
        own = any(record.type == "memory" for record in self._ctx.records)
        found: list[dict[str, Any]] = []
        # A file may only have another name than in an old frame, where it was a path.
        gone = told.keys() - {source.name for source in sources}
        renamed = {told[name]: name for name in gone}
        for source in sources:
            same = told.get(source.name) == hash_of(source)
            if same or (own and source.origin == "memory"):
                continue
            if source.name not in told and hash_of(source) in renamed:
                gone -= {renamed[hash_of(source)]}
                continue
            lead = f"{source.name} has changed. It now says:"
            text = f"{lead}\n\n{newer_version(source, caps)}"
            files = {source.name: hash_of(source)}
            found.append({"kind": "file", "text": text, "files": files})
        for name in gone:
            if told[name]:
                text = f"{name} is gone. What it said no longer applies."
                found.append({"kind": "file", "text": text, "files": {name: ""}})
        self._files = found

    def _join_search(self, sources: Sequence[Source]) -> None:
        """Offer the search for what is installed once a list has outgrown its room. Blocks."""
        skills, tools = self._ctx.toolbox.skills, self._ctx.toolbox.tools
        if skills is None or SEARCH_INSTALLED in tools:
            return
        lists = [one.text for one in sources if one.origin in {"skills", "agents"}]
        if any(SEARCH_INSTALLED in text for text in lists):
            found = skills.tools().get(SEARCH_INSTALLED)
            if found is not None:
                tools[found.name] = found
                self.exchange((), [found])

    async def _read_nested(self) -> None:
        """Look for instructions of the folders that calls went to; the next request says them."""
        ctx = self._ctx
        fresh, self._looked = ctx.toolbox.touched - self._looked, ctx.toolbox.touched | self._looked
        if not fresh or ctx.sources.find_files is None:
            return
        told, root = self._known_files(), ctx.workspace.root
        found = [
            (one, "the files in its folder") for one in await asyncio.to_thread(self._nested, fresh)
        ]
        found += [
            (source_of(rule), ", ".join(rule.paths))
            for rule in await self._rules()
            if rule.holds_for(fresh, root)
        ]
        for source, where in found:
            if source.name not in told and source.text:
                text = f"{source.name} holds for {where}. It says:"
                text = f"{text}\n\n{newer_version(source, ctx.config.bootstrap)}"
                files = {source.name: hash_of(source)}
                self._files.append({"kind": "file", "text": text, "files": files})
                told = {**told, **files}

    def _nested(self, touched: Iterable[Path]) -> Sequence[Source]:
        """Read the instructions of the folders of some files. Blocks."""
        ctx = self._ctx
        if not ctx.sources.nested:
            return ()
        reads = ctx.rules.gate.policy.reads_freely(ctx.workspace)
        return nested(ctx.workspace, touched, reads)

    def _nested_again(self, names: Iterable[str]) -> Sequence[Source]:
        """Read such instructions again, by their names. Blocks."""
        if not self._ctx.sources.nested:
            return ()
        reads = self._ctx.rules.gate.policy.reads_freely(self._ctx.workspace)
        return nested_again(self._ctx.workspace, names, reads)

    async def _rules(self) -> Sequence[RuleFile]:
        """The rules that hold for some files only, as they are now."""
        find = self._ctx.sources.find_rules
        return await asyncio.to_thread(find) if find else ()

    def level(self, model: ModelInfo) -> str:
        """The depth at which a model is to think now; "" where it has no levels."""
        chosen = self.effort or self._ctx.config.effort
        return effort.level(model, chosen, think=self.think)

    def last_effort(self) -> str:
        """The level that the model was told within the conversation; "" for none."""
        marks = self._index.of(self._ctx.records)
        gone = {record.id for record in marks if record.id <= self.covered}
        return effort.last_level(marks, gone | self.untrusted)

    def supposed(self, ctx: AgentContext) -> FrameState:
        """The same for a context whose record goes on in another way."""
        other: FrameState = copy(self)
        other._ctx, other._schemas = ctx, {**self._schemas}
        other._index, other._frames = self._index.copy(), self._frames.copy()
        other._ended = self._ended.copy()
        return other

    async def make(self) -> None:
        """Record a frame where there is none to be sent again, or another one is wanted."""
        if self._outdated:
            await self._compose()
        self.make_of_known()

    def make_of_known(self) -> None:
        """As `make`, from the files as they were read last."""
        before = self._recorded()
        if before is None or self._outdated:
            self._record_frame(before)

    async def settle(self, form: Form, started: str) -> Frame:
        """Record what the next request needs: a frame where there is none, and what changed.
        Returns the frame in force.

        `started` is the level that the request itself asks for.
        """
        await self.make()
        frame = self.current
        if server_waits(self._ctx.records):
            return frame  # nothing may be said before its result is there
        await self._note_news(form)
        told = self._knowledge(form, frame)
        if self._ctx.sources.prompt is not None:
            facts = await self._facts()
            if changed := notices.state(told.facts, facts):
                self._note(changed)
        if told.think != self.think:
            self._note_think()
        wanted = self.level(self._ctx.link.model)
        if form.turn_effort and wanted and wanted != (self.last_effort() or started):
            self._note(notices.effort(wanted))
        self._announce(form, told)
        return frame

    async def _note_news(self, form: Form) -> None:
        """Say what has happened outside the conversation: jobs that ended, files that changed."""
        # most sessions have no commands that end by themselves: no walk through the record for them
        records = self._ctx.records
        if self._ended.of(records) and (ended := unreported(records)):
            self._note(job_endings.notice_of(ended))
        if ends_with_the_model(self._ctx.records):
            self._note(notices.go_on())
        await self._read_nested()
        for data in [*self._files, *self._to_say]:
            if SKILL_LIST not in data.get("files", ()) or self._loads_skills(form):
                self._note(data)
        self._files, self._to_say = [], []
        self._note_verbatim()
        self._note_pins()
        await self._note_stale()

    async def _note_stale(self) -> None:
        """Say which files are not as the model last saw them."""
        for data in self.stale.take_differences():
            self._note(data)
        found = await self.stale.news(self.is_sent)
        if found:
            self._note(seen_files.notice_of(found, self.stale.show))
            await self._ctx.recorder.show(self.stale.event(found))

    def is_sent(self, notice: str) -> bool:
        """True if the model is sent a notice, by its id."""
        return notice > self.covered and notice not in self.untrusted

    def _loads_skills(self, form: Form) -> bool:
        """True if the model has the tool that loads skills, or gets it now."""
        told = form.tool_additions or Skill.name in self._knowledge(form, self.current).tools
        return told and Skill.name in self._ctx.toolbox.tools

    def _announce(self, form: Form, told: ModelKnowledge) -> None:
        """Tell the model, or else the person, of tools that joined."""
        fresh = sorted(self._schemas.keys() - told.tools)
        if fresh and form.tool_additions:
            self._note(notices.joined([self._schemas[name] for name in fresh]))
            fresh = []
        servers = {str(tool["name"]) for tool in self._server_tools()}
        fresh += sorted(servers - told.tools)
        if fresh and self._waiting != frozenset(fresh):
            self._waiting = frozenset(fresh)
            some = plural(len(fresh), "new tool")
            verb, them = ("waits", "it") if len(fresh) == 1 else ("wait", "them")
            names = ", ".join(fresh[:5])
            self._ctx.publish(Notice(f"{some} {verb} ({names}). /reload takes {them} now."))

    async def _compose(self) -> None:
        """Write the system prompt again, from the files as they are now."""
        ctx = self._ctx
        if ctx.sources.find_files is None:
            return
        sources = await asyncio.to_thread(ctx.sources.find_files)
        ctx.open_skills()
        self._exchange_skill()
        ctx.sources.prompt = system_prompt.compose(
            ctx.workspace,
            today=ctx.clock.now().astimezone().date(),
            auto_grant=ctx.config.permissions.auto_grant,
            branch=await asyncio.to_thread(branch_of, ctx.workspace.root),
            sources=sources,
            caps=ctx.config.bootstrap,
        )
        self._now = None

    def _exchange_skill(self) -> None:
        """Offer in a new frame the tools of the skills that there are now."""
        skills, tools = self._ctx.toolbox.skills, self._ctx.toolbox.tools
        for name in _OF_SKILLS:
            tools.pop(name, None)
        fresh = skills.tools() if skills else {}
        tools.update(fresh)
        self.exchange(_OF_SKILLS, fresh.values())

    def _recorded(self) -> Frame | None:
        """The frame of the branch, if it can be replayed."""
        record = self._last_frame()
        if record is None:
            return None
        if self._known is None or self._known[0] is not record:
            read = last_frame([record], self._ctx.key)
            self._known = record, read[1] if read and self._replayable(read[1]) else None
        frame = self._known[1]
        return frame if frame and self._may_offer(frame) else None

    def _last_frame(self) -> Record | None:
        frames = self._frames.of(self._ctx.records)
        return frames[-1] if frames else None

    def _replayable(self, frame: Frame) -> bool:
        """True if the rules and the built-in tools are still those of this program."""
        now = self._fresh()
        rules = [text for name, text in now.layers if name in _LAYERS_OF_RULES]
        if rules != [text for name, text in frame.layers if name in _LAYERS_OF_RULES]:
            return False
        tools = {str(tool.get("name")): canonical(tool) for tool in frame.tools}
        # One without terminals is replayed once they are switched on: the tool joins.
        needed = self._builtin if TERMINAL in tools else self._builtin - {TERMINAL}
        return all(tools.get(name) == canonical(self._schemas[name]) for name in needed)

    def _may_offer(self, frame: Frame) -> bool:
        """True if what a frame offers of the server's own tools is still to be offered."""
        framed = [tool for tool in frame.tools if is_server_tool(tool)]
        offered = list(map(canonical, self._server_tools())) if framed else []
        return all(canonical(tool) in offered for tool in framed)

    def _server_tools(self) -> list[dict[str, Any]]:
        """The tools of the server's own that are offered: where the person's rules allow that, and
        the server is not known to refuse them."""
        ctx = self._ctx
        if (
            not ctx.link.first_party
            or not ctx.link.model.web_search
            or not ctx.toolbox.may_have(WEB_SEARCH)
        ):
            return []
        if WEB_SEARCH in self._features.off(ctx.link.model.id):
            return []
        # Every fallback gets the frame as well, and what only this server may read of a search.
        if any(one.host != ctx.link.own.host for one in ctx.link.others.values()):
            return []
        domains = search_domains(ctx.rules.gate.policy)
        return [web_search(domains.allowed, domains.blocked)] if domains else []

    def _fresh(self) -> Frame:
        """The frame that would be made now."""
        offered = self._server_tools()
        if self._now is None or offered != list(filter(is_server_tool, self._now.tools)):
            ctx, guard = self._ctx, self._ctx.config.guard
            prompt = ctx.sources.prompt
            layers = [(one.name, one.text) for one in prompt.layers] if prompt else []
            self._now = Frame(
                tuple(layers or [("prompt", text_of(ctx.sources.system))]),
                [*self._schemas.values(), *offered],
                {**prompt.facts, "Mode": _MODES["ask"]} if prompt else {},
                dict(prompt.files) if prompt else {},
                Room(guard.clamp_bytes, guard.clamp_lines),
                ctx.link.cache_life,
                prompt.ends if prompt else (),
            )
        return self._now

    def _record_frame(self, before: Frame | None) -> None:
        """Record a new frame. What was thought after another one is left out from here on."""
        frame, ctx = self._fresh(), self._ctx
        reason, self._outdated = self._outdated or "new", ""
        if before is not None and before.says_the_same(frame):
            return
        if ctx.session.redact:
            masked, _ = mask_values({"layers": dict(frame.layers), "tools": frame.tools})
            frame = replace(frame, layers=tuple(masked["layers"].items()), tools=masked["tools"])
        thoughts = sum(has_thinking(content_of(r)) for r in ctx.records if r.type == "assistant")
        why_new = self._why_new() if thoughts and before is None else ""
        sent = any(record.type == REQUEST for record in ctx.records)
        damaged = before is None and sent and self._is_damaged()
        reason = "repair" if damaged else reason
        data = frame.to_json() | {"reason": reason, "version": tui.__version__}
        record = ctx.record(FrameMade(**sealed(data, ctx.key)))
        if not ctx.session.redact:  # as made, it is what the record says: a frame to be counted
            self._known = record, replace(frame)
        if why_new:
            kind = "repair" if damaged else "reload"
            ctx.record(ThinkingBroken(kind, "program", why=why_new))
            if not sent:  # else the request that breaks says so, with its price
                ctx.publish(ContextBroken(kind, "program", 0, thoughts))
        self._waiting = frozenset()

    def _is_damaged(self) -> bool:
        """True if the frame of what was sent is gone from the record, or not what it was."""
        record = self._last_frame()
        return record is None or frame_in(record) is None

    def _why_new(self) -> str:
        """The reason why what was sent before cannot be replayed, in words for the person."""
        record = self._last_frame()
        if record is None:
            return "the session has no frame of its own yet"
        if (read := last_frame([record], self._ctx.key)) is None:
            return "this installation did not make its frame, or it is damaged"
        if not read[1].tools:
            return "the session began without tools"
        if not self._may_offer(read[1]):
            return "searching the web is not allowed or not possible any more"
        return "the program's rules or tools are newer"

    def _note(self, data: dict[str, Any]) -> None:
        if self._ctx.session.redact:
            data, _ = mask_values(data)
        self._ctx.record(ModelNotice(**sealed(data, self._ctx.key)))
        if data["kind"] != "continue":
            self._ctx.debug(f"[DEBUG] Said at the end: {data['text']}")

    def _note_think(self) -> None:
        """Say that /think changed. Where that fails the conversation stays as it was."""
        try:
            self._note(notices.think(on=self.think))
        except Exception as error:
            log.exception("couldn't add the /think text")
            problem = f"Couldn't add the /think text: {type(error).__name__}: {error}"
            self._ctx.publish(Notice(problem))

    async def _facts(self) -> dict[str, str]:
        ctx = self._ctx
        root = ctx.workspace.root
        branch = await asyncio.to_thread(branch_of, root)
        today = ctx.clock.now().astimezone().date()
        facts = environment(ctx.workspace, today, ctx.config.permissions.auto_grant, branch)
        ends = _PLAN_ENDS if ctx.state.mode == "plan" and ctx.parent is None else ""
        return facts | {"Mode": f"{_MODES[ctx.state.mode]}{ends}"}

    def _knowledge(self, form: Form, frame: Frame) -> ModelKnowledge:
        marks = self._index.of(self._ctx.records)
        gone = {record.id for record in marks if record.id <= self.covered}
        told = notices.knowledge(frame, marks, gone | self.untrusted, form)
        return replace(told, tools=told.tools | self.joined)

    def _note_verbatim(self) -> None:
        """Say what the summary in force lacks, once."""
        summary = self.summary
        if summary is None or not list_of(summary.data.get("verbatim")):
            return
        said = (r for r in self._index.of(self._ctx.records) if r.type == NOTICE)
        if not any(r.data.get("summary") == summary.id and self.is_sent(r.id) for r in said):
            self._note(notices.verbatim(summary))

    def _note_pins(self) -> None:
        """Say again what the person pinned and a summary covers, once."""
        if not self.pins:
            return
        said: set[object] = set()
        for record in self._index.of(self._ctx.records):
            if record.type == NOTICE and record.id > self.covered:
                said.update(list_of(record.data.get("pins")))
        if fresh := [record for record in self.pins if record.id not in said]:
            self._note(notices.pinned(fresh))

    def _known_files(self) -> Mapping[str, str]:
        told = dict(self.current.files)
        for record in self._index.of(self._ctx.records):
            known = record.id > self.covered and record.id not in self.untrusted
            if record.type == NOTICE and known:
                told |= record.data.get("files") or {}
        return told


def server_waits(records: Sequence[Record]) -> bool:
    """True if the last answer called a tool of the server's whose result comes in the next one:
    until then the model gets the results of its other calls, and nothing else."""
    last = next((one for one in reversed(records) if one.type == "assistant"), None)
    blocks = content_of(last) if last else []
    waiting = {block.get("id") for block in blocks if block.get("type") == CALL}
    return bool(waiting - {block.get("tool_use_id") for block in blocks if is_result(block)})


def ends_with_the_model(records: Sequence[Record]) -> bool:
    """True if the last word is the model's, with nothing that it waits for."""
    last = next((record for record in reversed(records) if record.type in SPEAKING), None)
    if last is None or last.type not in {"assistant", "interrupt"}:
        return False
    said = content_of(last)
    return bool(said) and not tool_calls(said) and not is_paused(said)


def form_of(model: ModelInfo, *, first_party: bool, lacks: Collection[str] = frozenset()) -> Form:
    """The features that a model and its server know; `lacks` are those that this server doesn't."""
    if not first_party:
        return notices.PLAIN
    return Form(
        model.system_messages and "system_messages" not in lacks,
        model.tool_additions and "tool_additions" not in lacks,
        model.turn_effort and "turn_effort" not in lacks,
        compaction_blocks=model.compacts and "compaction_blocks" not in lacks,
    )
