"""A session that a program drives by Claude Code's stream: its prompts, one after the other, and
its control requests at any time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import tui
from tui.agent.agent import Agent
from tui.app.api import HeadlessConversation, HeadlessFrontend
from tui.app.commands import find, split
from tui.app.commands.table import HEADLESS
from tui.app.dialog_data import ChoiceQuestion, Question
from tui.app.models import use_model
from tui.app.router import route, route_own
from tui.cli.claude_stream import tool_names
from tui.cli.claude_stream.approver import DriverApprover
from tui.cli.claude_stream.command_line import MODES, DriverOptions
from tui.cli.claude_stream.link import UNSUPPORTED, DriverLink, Line
from tui.cli.claude_stream.mcp_servers import DriverServer
from tui.cli.claude_stream.output import VERSION, StreamWriter, init_line
from tui.cli.event_output import to_stderr
from tui.cli.stream_input import prompt_text
from tui.core.config import profile_of
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, UsageError
from tui.core.messages import object_of, string_of
from tui.permissions.types import Mode
from tui.provider.prices import ModelPrice, price_of
from tui.tools.submit_result import REMINDER

_OUR_MODES: Final[Mapping[str, Mode]] = {
    "ask": "ask", "edits": "accept_edits", "plan": "plan",
}  # fmt: skip
_THEIR_MODES: Final[Mapping[Mode, str]] = {
    "ask": "default", "accept_edits": "acceptEdits", "plan": "plan",
}  # fmt: skip
_EVERY_MODE: Final = "acceptEdits, bypassPermissions, default, dontAsk, plan"


class DriverFrontend(HeadlessFrontend):
    """A front end whose commands can't ask: one that the driver sent does what it is for, where
    there is only that to choose."""

    async def choose(self, question: Question) -> str | None:
        if not isinstance(question, ChoiceQuestion) or question.unasked or question.warning:
            return await super().choose(question)
        if len(question.options) != 1:
            names = ", ".join(one.label for one in question.options)
            self.say(f"{question.title} Name it after the command: {names}.", "warning")
            return None
        return question.options[0].name


class RefusedRequestError(HoldfastError):
    """A control request that can't be carried out; `code` is Claude Code's word for why."""

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


@dataclass(slots=True)
class DriverSession:
    """Carries out what the driver asks of one open conversation."""

    conversation: HeadlessConversation
    link: DriverLink
    writer: StreamWriter
    approver: DriverApprover
    driver: DriverOptions
    servers: tuple[DriverServer, ...] = ()
    budget: float | None = None
    """US dollars that the run may cost."""
    _prompts: asyncio.Queue[Line] = field(default_factory=asyncio.Queue[Line])
    _stops: bool = False
    _asked: int = 0

    @property
    def agent(self) -> Agent:
        assert self.conversation.agent is not None
        return self.conversation.agent

    # What the driver says

    async def take(self, line: Line) -> None:
        """Do what a line says. One that isn't understood is said on standard error."""
        match line.get("type"):
            case "user":
                self._prompts.put_nowait(line)
            case "control_request":
                await self._control(line)
            case "keep_alive" | "control_cancel_request":
                pass
            case other:
                to_stderr(sys.stderr, f"Ignored a line from the driver: its type is {other!r}.")

    async def work(self) -> None:
        """Send the prompts, each once the one before has its result, until cancelled."""
        while True:
            line = await self._prompts.get()
            await self._prompt(object_of(line.get("message")).get("content"))
            self._prompts.task_done()
            if self._prompts.empty():
                self.writer.state("idle")

    async def settled(self) -> None:
        """Wait until every prompt has its result."""
        await self._prompts.join()
        await self.conversation.quiet()

    async def _prompt(self, content: object) -> None:
        self.writer.begin()
        result = self.conversation.result
        if result is not None:
            result.given, result.value = False, None
        command = ""
        try:
            text = await prompt_text(self.conversation, content)
            command = _command(text)
            send = route if command else route_own
            if await send(self.conversation, text) == "refused":
                raise UsageError(self._answer() or "The prompt was refused.")
            await self.conversation.quiet()
            if result is not None and self.writer.reminds:
                await route_own(self.conversation, REMINDER)
                await self.conversation.quiet()
        except HoldfastError as error:
            self.writer.refused(str(error))
        if self.writer.turn is not None:
            self.writer.command_done(command, self._answer())

    def _answer(self) -> str:
        return string_of(getattr(self.conversation.frontend, "said", ""))

    # Control requests

    async def _control(self, line: Line) -> None:
        """Answer a request: none stays without an answer."""
        id_, request = string_of(line.get("request_id")), object_of(line.get("request"))
        subtype = string_of(request.get("subtype"))
        handler = _HANDLERS.get(subtype)
        if handler is None:
            why = f"Unsupported control request subtype: {subtype}"
            self.link.refuse(id_, why, UNSUPPORTED)
            return
        try:
            answer = await handler(self, request)
        except RefusedRequestError as error:
            self.link.refuse(id_, error.message, error.code)
            return
        except HoldfastError as error:
            self.link.refuse(id_, str(error))
            return
        self.link.accept(id_, answer)
        if subtype == "set_permission_mode":
            self.writer.system("status", status=None, permissionMode=self.mode)

    async def initialized(self, request: Line) -> Line:  # noqa: ARG002 - as every handler
        """Answer `initialize`: what there is to choose from."""
        own = self.conversation.user_commands
        await asyncio.to_thread(own.load)
        agents = await asyncio.to_thread(self.agent.find_agents)
        commands = [(name, one.help, one.argument) for name in HEADLESS if (one := find(name))]
        commands += [(name, one.description, one.argument) for name, one in own.commands.items()]
        models = self.conversation.services.models()
        return {
            "commands": [
                {"name": name, "description": about, "argumentHint": hint}
                for name, about, hint in commands
            ],
            "agents": [
                {"name": one.name, "description": one.description} for one in agents.all.values()
            ],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [
                {"value": row.name, "displayName": row.name, "description": row.price}
                for row in models
            ],
            "account": {},
            "claude_code_version": VERSION,
            "current_permission_mode": self.mode,
            "hook_on_failure_supported": True,
            "holdfast_version": tui.__version__,
        }

    async def interrupt(self, request: Line) -> Line:  # noqa: ARG002 - as every handler
        self.conversation.cancel()
        return {"still_queued": []}

    async def set_mode(self, request: Line) -> Line:
        mode = string_of(request.get("mode"))
        if why := self.use_mode(mode):
            code = "bypass_not_launched" if mode == "bypassPermissions" else "invalid_mode"
            raise RefusedRequestError(f"Can't set the permission mode: {why}", code)
        return {"mode": mode}

    async def set_model(self, request: Line) -> Line:
        services = self.conversation.services
        wanted = string_of(request.get("model"))
        if not wanted or wanted == "default":
            wanted = services.settings.now.model
        if profile_of(wanted):
            raise RefusedRequestError("Another profile isn't chosen here: only a person does that.")
        name = await asyncio.to_thread(services.whole_name, wanted)
        fit = self.agent.models.fits(await services.model_info(name))
        if not fit.ok:
            raise RefusedRequestError(f"The session is too long for {name}.")
        if name != self.agent.models.current:
            await use_model(self.conversation, name)
        return {"model": name}

    async def mcp_status(self, request: Line) -> Line:  # noqa: ARG002 - as every handler
        return {"mcpServers": self._servers(whole=True)}

    async def mcp_reconnect(self, request: Line) -> Line:
        name = string_of(request.get("serverName"))
        server = next((one for one in self.agent.mcp.all if one.name == name), None)
        if server is None:
            raise RefusedRequestError(f"Server not found: {name}")
        await server.connection.stop()
        server.connection.start()
        await server.connection.settled()
        if server.state != "ready":
            raise RefusedRequestError(f"{name}: {server.detail}")
        return {}

    async def usage(self, request: Line) -> Line:  # noqa: ARG002 - as every handler
        measured = self.agent.context.measure()
        parts = [
            {"name": name, "tokens": count, "kind": "used"}
            for name, count in measured.parts.items()
        ]
        window = measured.window or self.agent.models.window
        return {
            "categories": parts,
            "totalTokens": measured.tokens,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": round(100 * measured.tokens / window) if window else 0,
            "model": self.agent.models.current,
            "mcpTools": [],
            "memoryFiles": [],
            "gridRows": [],
            "isAutoCompactEnabled": True,
            "apiUsage": None,
        }

    # What answers of the driver's change

    @property
    def mode(self) -> str:
        """The mode by Claude Code's name."""
        if self.agent.directives.elevated and self.agent.permissions.mode != "plan":
            return "bypassPermissions"
        return _THEIR_MODES[self.agent.permissions.mode]

    def use_mode(self, mode: str) -> str:
        """Take over a mode. Returns why not, "" where it was."""
        if mode == "bypassPermissions":
            if not self.driver.may_elevate:
                return "the session was not launched with --dangerously-skip-permissions"
            self._elevate("on")
            return ""
        if mode not in MODES:
            return f"must be one of {_EVERY_MODE}"
        if self.agent.directives.elevated:
            self._elevate("off")
        self.agent.permissions.mode = _OUR_MODES[MODES[mode]]
        self.approver.asks = self.driver.asks and mode != "dontAsk"
        return ""

    def _elevate(self, word: str) -> None:
        """Only where the person started the program so; see `use_mode`."""
        self.conversation.submit(f"/elevated {word}")

    def add_folder(self, folder: Path) -> None:
        real = folder.expanduser().resolve()
        if real.is_dir():
            self.agent.permissions.add_dir(real)
        else:
            to_stderr(sys.stderr, f"{folder} isn't a folder, so it wasn't added.")

    def stop(self) -> None:
        self.writer.interrupts = True
        asyncio.get_running_loop().call_soon(self.conversation.cancel)

    def waits(self, *, begins: bool) -> None:
        self._asked += 1 if begins else -1
        self.writer.state("requires_action" if self._asked else "running")

    # What the stream tells of the session

    def describe(self) -> Line:
        """The line that begins a turn."""
        own = sorted(self.conversation.user_commands.commands)
        return init_line(
            session_id=self.agent.session.id,
            cwd=self.conversation.services.workspace,
            model=self.agent.models.current,
            mode=self.mode,
            tools=tool_names.names_offered(list(self.agent.permissions.tools)),
            servers=self._servers(),
            commands=[*HEADLESS, *own],
            agents=[*self.agent.find_agents().all],
            skills=[],
            version=tui.__version__,
        )

    def cost(self) -> float | None:
        return self.agent.spending().session.usd

    def price_of(self, model: str) -> ModelPrice | None:
        return price_of(model, self.conversation.services.settings.now.prices)

    def over_budget(self) -> str:
        most, spent = self.budget, self.agent.spent.usd
        if most is None or spent is None or spent < most:
            return ""
        return f"Reached the limit of ${most:g} (${spent:.2f} spent)."

    def _servers(self, *, whole: bool = False) -> list[Line]:
        states = {"ready": "connected", "starting": "pending", "needs sign-in": "needs-auth"}
        rows: list[Line] = []
        for one in self.agent.mcp.all:
            row: Line = {"name": one.name, "status": states.get(one.state, "failed")}
            if whole:
                row["tools"] = [{"name": tool.own_name} for tool in one.tools]
                row |= {"error": one.detail} if one.state == "failed" else {}
            rows.append(row)
        for mine in self.servers:
            row = {"name": mine.name, "status": "failed" if mine.problem else "connected"}
            if whole:
                row["tools"] = [{"name": tool.name.rpartition("__")[2]} for tool in mine.tools]
                row |= {"error": mine.problem} if mine.problem else {"serverInfo": mine.info}
            rows.append(row)
        return rows


Handler = Callable[[DriverSession, Line], Awaitable[Line | None]]


async def _no_budget(session: DriverSession, _: Line) -> None:
    model = session.agent.models.current
    raise RefusedRequestError(f"Holdfast sets no thinking budget for {model}: use --effort.")


async def _no_task(_: DriverSession, request: Line) -> None:
    task = string_of(request.get("task_id"))
    raise RefusedRequestError(f"There is no running task {task}: sub-agents end with their turn.")


_HANDLERS: Final[Mapping[str, Handler]] = {
    "initialize": DriverSession.initialized,
    "interrupt": DriverSession.interrupt,
    "set_permission_mode": DriverSession.set_mode,
    "set_model": DriverSession.set_model,
    "set_max_thinking_tokens": _no_budget,
    "mcp_status": DriverSession.mcp_status,
    "mcp_reconnect": DriverSession.mcp_reconnect,
    "get_context_usage": DriverSession.usage,
    "stop_task": _no_task,
}


def _command(text: str) -> str:
    """Return the name of a command of the program's that a prompt is, "" for any other text."""
    named = split(text.strip())
    command = find(named[0]) if named else None
    return command.name if command and command.name in HEADLESS and not command.directive else ""
