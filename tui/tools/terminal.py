"""terminal: run a program in a terminal of its own, see its screen, and type into it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_block
from tui.core.questions import SecretQuestion
from tui.keeper.command import TerminalSize
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.limits.receipt import Keep
from tui.tools.registry import TERMINAL
from tui.tools.terminal_keys import key_code, readable, text_code
from tui.tools.terminal_link import Refusal, TerminalLink, Typist

if TYPE_CHECKING:
    from tui.core.terminal_screen import TerminalScreen
    from tui.tools.jobs import Job

_SECRET_S: Final = 0.2
"""Seconds that a program reads without showing it, before that is taken for a question."""
_SHOWN_EVERY_S: Final = 0.15
_INTERRUPT: Final = "\x03"
_STARTING_S: Final = 2.0
_ANSWERING_S: Final = 1.0
"""Seconds that a program has to show something of its input, before its screen counts."""
_ASKED_AGAIN: Final = 5
"""Times that the person is asked for a secret in one call."""

_NOTHING_SHOWN: Final = "nothing has changed on the screen since you typed"
_DROPPED: Final = "another program had the terminal before there was room for them"
_WAITS: Final = "waits for a secret that the user hasn't given; ctrl+c ends the question"

End = Literal["", "ended", "secret", "found", "rest", "time"]
"""What ended a wait."""

_REFUSED: Final[dict[Refusal, str]] = {
    "keyboard": "The user has the keyboard of this terminal; nothing was typed. Use action=wait.",
    "changed": (
        "Nothing was typed: the program has changed since the input was judged. Look again with "
        "action=read."
    ),
    "full": "Nothing was typed: the program doesn't read its input. Use action=wait.",
    "ended": "Nothing was typed: the program has ended.",
    "secret": (
        "Nothing was typed: the program reads a secret, such as a password, which only the user "
        "may answer. Never ask the user to tell it to you."
    ),
}


class TerminalParams(Params, frozen=True, forbid_unknown_fields=True, kw_only=True):
    action: Annotated[Literal["start", "send", "read", "wait", "close"], about("What to do.")]
    command: Annotated[str, about("For start: the command line, for bash.")] = ""
    cwd: Annotated[str, about("For start: the folder; the workspace if left out.")] = ""
    rows: Annotated[int, about("For start.", ge=2, le=200)] = 24
    cols: Annotated[int, about("For start.", ge=2, le=500)] = 80
    terminal: Annotated[str, about("The id that start returned, for all else.")] = ""
    text: Annotated[str, about("For send: what to type, as it is; no Enter is added.")] = ""
    keys: Annotated[
        tuple[str, ...], about("For send: keys after the text, such as enter, up, ctrl+c.")
    ] = ()
    until: Annotated[
        tuple[str, ...], about("Wait until one of these texts newly appears, instead of for rest.")
    ] = ()
    rest: Annotated[
        float, about("Seconds without a change after which the screen counts.", ge=0, le=60)
    ] = 0.4
    timeout: Annotated[float, about("The most seconds to wait.", ge=0, le=3600)] = 10

    @property
    def background(self) -> bool:
        return self.action == "start"

    @property
    def typed(self) -> str:
        """Return the text and the keys as they are shown."""
        return self.text + "".join("⏎" if key == "enter" else f"<{key}>" for key in self.keys)


class TerminalTool(Tool[TerminalParams]):
    """`most` is how many may run at once."""

    name: ClassVar[str] = TERMINAL
    effect: ClassVar[Effect] = "run"
    keep: ClassVar[Keep] = "ends"
    params: ClassVar[type[Params]] = TerminalParams

    def __init__(self, most: int) -> None:
        self._most = most

    def effect_of(self, params: TerminalParams) -> Effect:
        return "run" if params.action in {"start", "send"} else "none"

    def subject(self, params: TerminalParams) -> str:
        return params.command or params.typed or params.terminal

    def paths(self, params: TerminalParams) -> tuple[str, ...]:
        return (params.cwd,) if params.cwd and params.action == "start" else ()

    def label(self, params: TerminalParams) -> str:
        if params.action == "start":
            return (params.command.strip().splitlines() or [""])[0]
        if params.action == "send":
            return f"{params.terminal} ← {' '.join(params.typed.split())}"
        return f"{params.action} {params.terminal}"

    async def preview(self, params: TerminalParams, ctx: ToolContext) -> CallPreview:
        if params.action == "start":
            await asyncio.to_thread(_folder, params, ctx)
            where = f"# in {params.cwd}\n" if params.cwd else ""
            return CallPreview("command", where + params.command)
        job, terminal = _terminal(params, ctx)
        what = f" ({terminal.program})" if terminal.program else ""
        typed = readable(input_of(params, terminal))
        return CallPreview("text", f"Into {job.id}{what}: {job.command}\n\n{typed.rstrip()}")

    async def run(self, params: TerminalParams, ctx: ToolContext) -> ToolOutput:
        """Carry out a call. Cancelling it leaves the terminal as it is."""
        if params.action == "start":
            job = await self._start(params, ctx)
            terminal = job.terminal
            assert terminal is not None
            return await _TerminalCall(job, terminal, params, ctx).settled()
        job, terminal = _terminal(params, ctx)
        look = _TerminalCall(job, terminal, params, ctx)
        match params.action:
            case "send":
                return await look.sent()
            case "wait":
                return await look.settled()
            case "close":
                await job.stop()
                return await look.output("closed")
            case _:
                await terminal.refresh()
                return await look.output("")

    async def resume(self, params: TerminalParams, ctx: ToolContext) -> ToolOutput | None:
        """Find the terminal that an earlier run of the program had started."""
        job = ctx.jobs.of_call(ctx.call_id)
        if params.action != "start" or job is None or job.terminal is None:
            return None
        if job.kept.end is not None:
            await job.wait(1.0)
        return await _TerminalCall(job, job.terminal, params, ctx).output("Holdfast was restarted")

    async def _start(self, params: TerminalParams, ctx: ToolContext) -> Job:
        if not params.command.strip():
            raise ToolError("There is no command to start.", hint='Such as "bash", "python3 -i".')
        running = [job for job in ctx.jobs.known if job.terminal is not None and not job.ended]
        if len(running) >= self._most:
            names = ", ".join(job.id for job in running)
            raise ToolError(
                f"{len(running)} terminals run, which is the limit: {names}.",
                hint="Close one with action=close.",
            )
        job = await ctx.jobs.start(
            params.command,
            cwd=await asyncio.to_thread(_folder, params, ctx),
            path=ctx.spill_path.with_name(f"terminal-{ctx.spill_path.stem}.cast"),
            folder=ctx.kept,
            limits=ctx.guard,
            env=ctx.environment,
            starter=ctx.starter,
            call_id=ctx.call_id,
            elsewhere=ctx.recorded,
            terminal=TerminalSize(params.rows, params.cols),
            walls=ctx.walls,
        )
        ctx.host.started(job.pid)
        return job


def input_of(params: TerminalParams, terminal: TerminalLink) -> str:
    """Return the characters that a call sends. Raises ToolError."""
    paste, cursor = terminal.modes.get("bracketed_paste"), terminal.modes.get("application_cursor")
    keys = (key_code(key, application_cursor=bool(cursor)) for key in params.keys)
    return text_code(params.text, bracketed_paste=bool(paste)) + "".join(keys)


@dataclass(slots=True, eq=False)
class _TerminalCall:
    """One call of a terminal that runs."""

    job: Job
    terminal: TerminalLink
    params: TerminalParams
    ctx: ToolContext
    before: dict[str, int] = field(default_factory=dict[str, int])
    """How often each of the texts to wait for was seen before."""
    lines: int = 0
    typed_at: int = -1
    """The version of the screen at which something was typed; -1 if nothing was."""
    dropped: int = 0
    secrets: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """What the person was asked for, and whether they answered; never what."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _changed_at: float = 0.0
    _shown_at: float = 0.0
    _version: int = -1

    def terminal_changed(self, terminal: TerminalLink) -> None:
        screen = terminal.screen
        if screen.version != self._version:
            self._version, self._changed_at = screen.version, self.ctx.clock.monotonic()
            if self._changed_at >= self._shown_at + _SHOWN_EVERY_S:
                self._shown_at = self._changed_at
                self.ctx.host.emit("", screen.text)
        self._news.set()

    async def sent(self) -> ToolOutput:
        """Type, then wait."""
        screen = await self.terminal.refresh()
        self.lines, self.dropped = screen.gone, self.terminal.dropped
        self.before = {text: _times(screen.text, text) for text in self.params.until}
        data = input_of(self.params, self.terminal)
        if not data:
            raise ToolError("There is nothing to type.", hint="Give text or keys.")
        refused = await self._type(data.encode(), "model")
        if refused == "secret":
            return await self.settled(_REFUSED["secret"])
        if refused:
            return await self.output(_REFUSED.get(refused, refused), error=True)
        self.typed_at = screen.version
        return await self.settled(asks=data != _INTERRUPT)

    async def settled(self, note: str = "", *, asks: bool = True) -> ToolOutput:
        """Wait as the call says, and have the person answer what only they may, if it `asks`."""
        asked = 0
        while True:
            end = await self._wait(asks=asks)
            if end != "secret":
                break
            asked += 1
            answered = asked <= _ASKED_AGAIN and await self._ask()
            if not answered:
                return await self.output(note, end, error=bool(note))
            note = ""
        return await self.output(note, end, error=bool(note))

    async def output(self, note: str, end: End = "", *, error: bool = False) -> ToolOutput:
        """Return the result: what has left at the top, the screen, and the state."""
        job, terminal = self.job, self.terminal
        screen = await terminal.refresh(since=terminal.seen_lines)
        if terminal.ended:
            await job.wait(1.0)
        parts = _scrolled(screen, terminal.seen_lines)
        terminal.seen_lines = screen.gone
        parts += [_head(screen), screen.text or "(an empty screen)"]
        if terminal.typed:
            parts.append("[the user typed in this terminal; what isn't on the screen is unknown]")
            terminal.typed = False
        state = f"running{f' {terminal.program}' if terminal.program else ''}"
        ended = terminal.ended or job.ended
        state = job.state() if ended else state
        late = f"not yet after {self.params.timeout:g} s" if end == "time" else ""
        same = "" if ended or screen.version != self.typed_at else _NOTHING_SHOWN
        lost = terminal.dropped - self.dropped if self.typed_at >= 0 else 0
        dropped = f"the last {lost} bytes were not typed: {_DROPPED}" if lost else ""
        words = [job.id, state, *filter(None, [late, same, dropped, note])]
        if screen.secret and not ended:
            words.insert(2, _WAITS)
        if ended and job.output_note:
            words.append(job.output_note)
        parts.append(f"[{' · '.join(words)}]")
        code = job.exit_code if job.ended else None
        return ToolOutput(
            [text_block("\n".join(parts))],
            is_error=error or (bool(code) and not job.stopped),
            summary=f"{job.id} {state}",
            details={
                "job": job.id,
                "pid": job.pid,
                "exit_code": code,
                "running": not ended,
                "secret": screen.secret,
                **({"secrets": self.secrets} if self.secrets else {}),
                "size": [screen.rows, screen.cols],
                "walls": job.kept.call.get("walls", ""),
            },
        )

    async def _type(self, data: bytes | bytearray, by: Typist) -> Refusal:
        self._changed_at = self.ctx.clock.monotonic()
        return await self.terminal.type(data, by, call_id=self.ctx.call_id)

    async def _wait(self, *, asks: bool) -> End:
        """Wait until something has happened that ends a wait; a question does if it `asks`."""
        clock, terminal = self.ctx.clock, self.terminal
        self._changed_at = clock.monotonic()
        until = clock.monotonic() + self.params.timeout
        terminal.watch(self)
        try:
            while True:
                self._news.clear()
                now = clock.monotonic()
                if terminal.ended or self.job.ended:
                    return "ended"
                quiet = now - self._changed_at
                secret = asks and terminal.screen.secret
                if secret and quiet >= _SECRET_S:
                    return "secret"
                if self.params.until and await self._appeared():
                    return "found"
                if not self.params.until and quiet >= self._rest:
                    return "rest"
                if now >= until:
                    return "time"
                due = [until - now]
                if not self.params.until:
                    due.append(max(self._rest - quiet, 0.01))
                if secret:
                    due.append(max(_SECRET_S - quiet, 0.01))
                await self._news_or(min(due))
        finally:
            terminal.unwatch(self)

    @property
    def _rest(self) -> float:
        """The seconds without a change that end the wait: a program whose screen is empty is still
        starting, and one that has shown nothing of its input may be busy."""
        rest, screen = self.params.rest, self.terminal.screen
        if self.params.action == "start" and not screen.text:
            return max(rest, _STARTING_S)
        return max(rest, _ANSWERING_S) if rest and screen.version == self.typed_at else rest

    async def _news_or(self, seconds: float) -> None:
        """Wait for a change, at most so long."""
        waits = {
            asyncio.ensure_future(self._news.wait()),
            asyncio.ensure_future(self.ctx.clock.sleep(seconds)),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _appeared(self) -> bool:
        """True if one of the texts is seen that was not there, or once more often."""
        screen = await self.terminal.refresh(since=self.lines)
        seen = "\n".join([*screen.recent, screen.text])
        return any(
            _times(seen, text) > self.before.get(text, 0) for text in self.params.until if text
        )

    async def _ask(self) -> bool:
        """Have the person answer a question of the program, which nobody else gets to know. False
        if nobody did."""
        screen = self.terminal.screen
        rows = screen.text.split("\n")
        prompt = rows[screen.cursor[0]] if screen.cursor[0] < len(rows) else ""
        question = SecretQuestion(
            self.job.id,
            self.job.command,
            prompt.strip(),
            self.terminal.program,
            readable(self.terminal.line),
        )
        asking = asyncio.ensure_future(self.ctx.host.ask_secret(question))
        asked = {"prompt": question.prompt, "answer": "not answered"}
        self.secrets.append(asked)
        self.terminal.watch(self)
        try:
            while not asking.done() and self.terminal.screen.secret and not self.terminal.ended:
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                await asyncio.wait({asking, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
            if not asking.done():  # it was answered at the terminal itself, or by nobody
                over = self.terminal.ended
                asked["answer"] = "the program ended" if over else "answered in the terminal"
                return True
            answer = asking.result()
        finally:
            self.terminal.unwatch(self)
            asking.cancel()
        if answer is None:
            return False
        try:
            answer.data.append(0x0D)
            asked["answer"] = "answered"
            await self._type(answer.data, "secret")
        finally:
            answer.wipe()
        return True


def _terminal(params: TerminalParams, ctx: ToolContext) -> tuple[Job, TerminalLink]:
    """Return the terminal that a call names. Raises ToolError."""
    job = ctx.jobs.get(params.terminal)
    if job.terminal is None:
        raise ToolError(
            f"{job.id} is a command without a terminal.", hint="Use command_status for it."
        )
    return job, job.terminal


def _folder(params: TerminalParams, ctx: ToolContext) -> Path:
    folder = ctx.workspace.resolve(params.cwd) if params.cwd else ctx.workspace.root
    if not folder.is_dir():
        raise ToolError(f"{params.cwd} isn't a folder.", hint="Use list_dir to find it.")
    return folder


def _times(seen: str, text: str) -> int:
    """Return how often a text is seen. Lines have lost the spaces at their end, which the text may
    have: a shell's "$ "."""
    spaces = " " * (len(text) - len(text.rstrip(" ")))
    return f"{seen}\n".replace("\n", f"{spaces}\n").count(text)


def _scrolled(screen: TerminalScreen, known: int) -> list[str]:
    """The lines that have left at the top since the model looked last."""
    count = screen.gone - known
    if count <= 0:
        return []
    lost = count - len(screen.recent)
    head = f"[{count} lines scrolled by"
    head += f"; the first {lost} of them are only in the recording]" if lost > 0 else "]"
    return [head, *screen.recent[-count:]]


def _head(screen: TerminalScreen) -> str:
    row, col = screen.cursor
    title = f" · title {screen.title!r}" if screen.title else ""
    shown = "" if screen.cursor_shown else " (hidden)"
    crashed = " · something on it couldn't be understood, so it began empty" * bool(screen.crashes)
    place = f"cursor at row {row + 1}, column {col + 1}{shown}"
    return f"[screen {screen.rows}×{screen.cols} · {place}{title}{crashed}]"
