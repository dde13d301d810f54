"""One session of an editor: a conversation, its prompts, modes and settings."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final, Literal

from acp import RequestError, schema
from acp.connection import Connection
from acp.helpers import update_available_commands, update_current_mode

from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.app.api import HeadlessConversation, opened
from tui.app.commands import find, split
from tui.app.commands.table import HEADLESS
from tui.app.dialog_data import ModelRow
from tui.app.mcp_offers import prompts_of
from tui.app.models import rows, use_model
from tui.app.options.arguments import Options
from tui.app.outcome import Outcome
from tui.app.router import route
from tui.app.session_path import workspace_of
from tui.cli.acp.editor import EditorApprover, EditorFrontend, Outbox
from tui.cli.acp.prompts import read
from tui.cli.acp.updates import SessionUpdates, info, notice
from tui.core import facts
from tui.core.config import profile_of
from tui.core.dataclass import dataclass, field
from tui.core.errors import UsageError
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact
from tui.core.text_cleaning import one_line
from tui.permissions.types import MODE_NAMES

_ABOUT_MODE: Final = {
    "ask": "Reading runs; changes and commands ask.",
    "accept_edits": "Files are written without asking; commands ask.",
    "plan": "Nothing is changed until you approve a plan.",
    "elevated": "Nothing asks; blocked commands stay blocked.",
}
_STOPS: Final[dict[str, Literal["max_tokens", "refusal"]]] = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
}


@dataclass(slots=True)
class PromptWatch:
    """The outcome of a prompt, from the events of its turns."""

    outcome: Outcome = field(default_factory=Outcome)
    stop: str = ""
    over: bool = False
    error: facts.ErrorRaised | None = None

    def see(self, event: Fact) -> None:
        self.outcome.see(event)
        match event:
            case facts.AssistantMessage():
                self.stop, self.error = event.stop_reason, None
            case facts.ErrorRaised():
                self.error = event
            case facts.TurnFinished():
                self.over = True
            case _:
                pass


class EditorSession:
    """A session that an editor has open."""

    def __init__(self, connection: Connection, options: Options, *, form: bool) -> None:
        self.options = options
        self.outbox = Outbox(connection)
        self.updates = SessionUpdates(workspace_of(options))
        self.editor = EditorApprover(self.outbox, self.updates, form=form)
        self.conversation: HeadlessConversation
        self._stack = AsyncExitStack()
        self._prompts = 0
        self._cancelled = False
        self._told: dict[str, Any] = {}

    @property
    def agent(self) -> Agent:
        agent = self.conversation.agent
        if agent is None:
            raise UsageError("The session is closed.")
        return agent

    @property
    def id(self) -> str:
        return self.outbox.session_id

    async def open(self) -> None:
        """Open the conversation. Raises what opening a session raises."""
        opening = opened(self.options, self.editor, see=self._see, frontend=EditorFrontend)
        self.conversation = await self._stack.enter_async_context(opening)
        self.outbox.session_id = self.agent.session.id

    async def close(self) -> None:
        """Stop what runs, as an interruption, and let go of the session."""
        self._stop_waiting()
        await self._stack.aclose()

    async def replay(self) -> None:
        """Send the history, and what was said while the session was opened after it."""
        updates = self.outbox.hold()
        for update in self.updates.replayed(self.agent.session.records):
            self.outbox.put(update)
        if title := self.agent.session.title:
            self.outbox.put(info(title))
        for update, key in updates:
            self.outbox.put(update, key)
        await self.outbox.flush()

    async def settings(self) -> dict[str, Any]:
        """Return what the answers to opening a session say about it; from now on its updates are
        sent."""
        agent = self.agent
        self._told = {"mode": self.mode, "title": agent.session.title}
        config = await self.config()
        self._told["config"] = config
        await self._tell_commands()
        self.outbox.release()
        return {"modes": self.modes(), "config_options": config}

    def _see(self, event: Fact) -> None:
        if isinstance(event, facts.ErrorRaised) and not self._prompts:
            self.outbox.put(notice(fact_lines(event)))
        for update, key in self.updates.of(event):
            self.outbox.put(update, key)
        if self._told and self.conversation.agent and self._told["mode"] != self.mode:
            self._told["mode"] = self.mode
            self.outbox.put(update_current_mode(self.mode))

    # Prompts

    async def prompt(self, blocks: list[Any]) -> schema.PromptResponse:
        """Send a prompt, or carry out the command that it is; one that comes while a turn runs
        joins it. Raises HoldfastError or RequestError."""
        conversation, watch = self.conversation, PromptWatch()
        self._cancelled = self._cancelled and self._prompts > 0
        self._prompts += 1
        unwatch = conversation.watch(watch.see)
        try:
            text, attached = await read(blocks, conversation)
            if not (text.strip() or attached):
                raise UsageError("The prompt is empty.")
            if not self._cancelled:
                if await self._send(text, attached) == "refused":
                    raise UsageError(getattr(conversation.frontend, "said", "") or "Refused.")
                await conversation.quiet()
        finally:
            unwatch()
            self._prompts -= 1
        await self.settle()
        return self._response(watch)

    async def _send(self, text: str, attached: str) -> str | None:
        if parse(text).changes.get("elevated") and not self.options.permissions.yolo:
            raise UsageError("Only holdfast acp -y can be elevated.", hint="Nothing was sent.")
        if split(text.strip()) is None:
            return self.conversation.submit(text, attached)
        if attached:
            self.conversation.queue.hear(attached)  # with the prompt that the command sends
        return await route(self.conversation, text.strip())

    def cancel(self) -> None:
        """End what runs. What waits is not sent."""
        self._stop_waiting()
        self.conversation.cancel()

    def _stop_waiting(self) -> None:
        self._cancelled = True
        self.editor.take_back()
        self.conversation.take_back()

    def _response(self, watch: PromptWatch) -> schema.PromptResponse:
        used, outcome = watch.outcome.usage, watch.outcome.outcome
        read_, written = (used.get(f"cache_{n}_input_tokens", 0) for n in ("read", "creation"))
        put, out = used.get("input_tokens", 0), used.get("output_tokens", 0)
        usage = schema.Usage(
            input_tokens=put,
            output_tokens=out,
            cached_read_tokens=read_,
            cached_write_tokens=written,
            total_tokens=put + out + read_ + written,
        )
        stop: Any = "end_turn"
        if self._cancelled or (watch.over and outcome == "interrupted"):
            stop = "cancelled"
        elif watch.over and outcome == "limit":
            stop = "max_turn_requests"
        elif watch.over and outcome == "failed":
            stop = self._failed(watch)
        elif watch.over:
            stop = _STOPS.get(watch.stop, "end_turn")
        return schema.PromptResponse(stop_reason=stop, usage=usage)

    def _failed(self, watch: PromptWatch) -> str:
        error = watch.error
        if error is None:
            raise RequestError(-32603, "The turn failed; details are in the log file.")
        if error.error_class == "refusal":
            return "refusal"
        code = -32000 if error.error_class == "auth" else -32603
        text = f"{error.message} {error.hint}".strip()
        raise RequestError(code, text, {"class": error.error_class})

    async def settle(self) -> None:
        """After a prompt, tell what it changed about the session, and send all that waits."""
        if self.conversation.agent is not None:
            title = self.agent.session.title
            if title and title != self._told["title"]:
                self._told["title"] = title
                self.outbox.put(info(title))
            config = await self.config()
            if config != self._told["config"]:
                self._told["config"] = config
                self.outbox.put(
                    schema.ConfigOptionUpdate(
                        session_update="config_option_update", config_options=[*config]
                    )
                )
            await self._tell_commands()
        await self.outbox.flush()

    # Commands

    async def _tell_commands(self) -> None:
        commands = await self._commands()
        if commands != self._told.get("commands"):
            self._told["commands"] = commands
            self.outbox.put(update_available_commands(commands))

    async def _commands(self) -> list[schema.AvailableCommand]:
        """The program's commands that need no screen, the person's own, skills, and the prompts of
        MCP servers."""
        own = self.conversation.user_commands
        await asyncio.to_thread(own.load)
        commands: dict[str, tuple[str, str]] = {}
        for name in (*HEADLESS, "think", *(["elevated"] if self.options.permissions.yolo else [])):
            if command := find(name):
                commands[name] = (command.help, command.argument)
        for name, one in own.commands.items():
            commands[name] = (one.description, one.argument)
        for name, (server, prompt) in prompts_of(self.conversation).items():
            words = " ".join(arg.upper() for arg, _ in prompt.arguments)
            commands[name] = (prompt.description or f"a prompt of {server.name}", words)
        return [
            schema.AvailableCommand(
                name=name,
                description=one_line(about) or name,
                input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint))
                if hint
                else None,
            )
            for name, (about, hint) in commands.items()
        ]

    # Modes and settings

    @property
    def mode(self) -> str:
        return "elevated" if self.agent.directives.elevated else self.agent.permissions.mode

    def modes(self) -> schema.SessionModeState:
        ids: dict[str, str] = {**MODE_NAMES}
        if self.options.permissions.yolo or self.mode == "elevated":
            ids["elevated"] = "elevated"
        return schema.SessionModeState(
            current_mode_id=self.mode,
            available_modes=[
                schema.SessionMode(
                    id=id_, name=name[:1].upper() + name[1:], description=_ABOUT_MODE[id_]
                )
                for id_, name in ids.items()
            ],
        )

    async def use_mode(self, wanted: str) -> None:
        """Raises UsageError for a mode that is not offered."""
        offered = [one.id for one in self.modes().available_modes]
        if wanted not in offered:
            raise UsageError(f"There is no mode {wanted!r}.", hint=f"Use {', '.join(offered)}.")
        elevated = wanted == "elevated"
        if elevated != self.agent.directives.elevated:
            during = self.conversation.busy  # it counts from the turn's next request on
            self.conversation.submit(f"/elevated {'on' if elevated else 'off'}")
            if not during:
                await self.conversation.quiet()
        if not elevated:
            mode: Any = wanted
            self.agent.permissions.mode = mode
        if self._told["mode"] != self.mode:
            self._told["mode"] = self.mode
            self.outbox.put(update_current_mode(self.mode))

    async def _model_rows(self, agent: Agent) -> list[ModelRow]:
        """The models that an editor may choose: those of another profile, a person types."""
        own = profile_of(agent.models.current)
        every = await rows(self.conversation.services, agent)
        return [row for row in every if profile_of(row.name) in ("", own)]

    async def config(self) -> list[schema.SessionConfigOptionSelect]:
        """The mode, the model, and how deep it thinks: an editor that knows settings shows these,
        and not the modes."""
        agent = self.agent
        modes = [
            schema.SessionConfigSelectOption(
                value=mode.id, name=mode.name, description=mode.description
            )
            for mode in self.modes().available_modes
        ]
        models = [
            schema.SessionConfigSelectOption(value=row.name, name=row.name, description=row.price)
            for row in await self._model_rows(agent)
        ]
        options = [
            _select("mode", "Mode", "mode", self.mode, modes),
            _select("model", "Model", "model", agent.models.current, models),
        ]
        if agent.models.efforts and agent.models.effort:
            levels = [
                schema.SessionConfigSelectOption(value=e, name=e) for e in agent.models.efforts
            ]
            options.append(
                _select("effort", "Effort", "thought_level", agent.models.effort, levels)
            )
        return options

    async def configure(self, option: str, value: str) -> list[schema.SessionConfigOptionSelect]:
        """Take another model or level. Raises UsageError where that can't be."""
        agent, conversation = self.agent, self.conversation
        match option:
            case "mode":
                await self.use_mode(value)
            case "model":
                models = {row.name: row for row in await self._model_rows(agent)}
                if value not in models:
                    raise UsageError(f"There is no model {value!r}.", hint=", ".join(models))
                if not models[value].fits:
                    raise UsageError(
                        f"The session is too long for {value}.", hint="Use /compact first."
                    )
                if value != agent.models.current:
                    await use_model(conversation, value)
            case "effort":
                if value not in agent.models.efforts:
                    raise UsageError(f"{agent.models.current} has no effort level {value!r}.")
                if conversation.busy and agent.models.effort_cost(value) is not None:
                    raise UsageError(
                        "Another effort would write the context again.", hint="Wait for the turn."
                    )
                for event in await agent.models.use_effort(value):
                    conversation.frontend.show(event)
            case _:
                raise UsageError(
                    f"There is no setting {option!r}.", hint="Use mode, model or effort."
                )
        self._told["config"] = config = await self.config()
        await self.outbox.flush()
        return config


def _select(
    id_: str,
    name: str,
    category: Literal["mode", "model", "thought_level"],
    value: str,
    options: list[schema.SessionConfigSelectOption],
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        type="select", id=id_, name=name, category=category, current_value=value, options=options
    )
