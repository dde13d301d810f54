"""The base class of all tools, and the context of a call.

A tool is a class with a `Params` struct, from which its schema is derived, and a description for
the model in a file of the same name (`read_file.md` for `read_file.py`). It never asks for
permission and never cuts its output for the context: the agent's dispatcher does both, for every
tool, in one place.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

import msgspec

from tui.core.clock import Clock
from tui.core.config import Guard
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.core.questions import SecretAnswer, SecretQuestion, UserAnswers, UserQuestion
from tui.core.workspace import Workspace
from tui.tools.limits.receipt import Keep

if TYPE_CHECKING:
    from tui.keeper.command import Starter
    from tui.tools.file_ledger import FileLedger
    from tui.tools.jobs import Jobs

Effect: TypeAlias = Literal["none", "read", "fetch", "write", "run"]
"""The side-effect class: nothing outside the program, reads, reads the web, writes files, runs a
command.

Calls of the first three may run at the same time; the others run alone and in order.
"""


def about(text: str, **limits: Any) -> msgspec.Meta:
    """Describe an argument to the model, and limit its values."""
    return msgspec.Meta(description=text, **limits)


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of a tool's parameters."""


# One item of the task list that the person sees. A docstring would go into the tool's schema.
class Todo(Params, frozen=True):
    text: Annotated[str, about("What to do, in a few words.", min_length=1)]
    status: Annotated[
        Literal["pending", "in_progress", "completed"],
        about("Keep one item in progress while there is work."),
    ]


@dataclass(frozen=True, slots=True)
class CallPreview:
    """The view of a call for the person who decides: a command, a unified diff, or plain text."""

    kind: Literal["command", "diff", "text"]
    text: str


@dataclass(frozen=True, slots=True)
class UrlAccess:
    """The permissions' answer for a web address that a call would visit.

    "site": the call may go there if it is on the site that it was allowed for. `private`: the
    address may be in the person's own network.
    """

    answer: Literal["allow", "site", "ask", "deny"]
    private: bool = False


Answer: TypeAlias = Literal["allow", "ask", "deny"]
"""The permissions' answer."""


class RunningProgram(Protocol):
    """A running program that leads a process group of its own."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int:
        """Wait until all of it has ended. Returns the exit code, negative for a signal."""
        ...


StartReader: TypeAlias = Callable[
    [Sequence[str], Path, Mapping[str, str], int, int], Awaitable[RunningProgram | None]
]
"""Starts a program of ours that only reads in a sandbox: its words, its folder, its environment,
and the files for its output and its errors. None if no sandbox can hide files from it."""


class CallHost(Protocol):
    """The agent, as a call that runs reaches it: whom it tells, and whom it asks."""

    @property
    def session_id(self) -> str:
        """Return the id of the agent's session."""
        ...

    @property
    def traceparent(self) -> str:
        """Return the span of the call, as W3C Trace Context writes it; "" where none is made."""
        ...

    def emit(self, text: str, picture: str = "") -> None:
        """Show text to the person while the tool works; `picture` is what a command draws over
        several lines now. May be called often, from the event loop only."""

    def set_todos(self, todos: Sequence[Todo]) -> None:
        """Show the task list to the person."""

    def leave(self, output: ToolOutput) -> None:
        """Keep the output so far: called before a tool that is cancelled raises."""

    def started(self, pid: int) -> None:
        """Record a process group that the call has started, by its id."""

    def waited(self) -> None:
        """Leave out the time until now, in which the call waited for the person."""

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        """Ask the person for what only a program may get; None if they don't answer, or nobody can
        be asked. Cancelling it withdraws the question."""
        ...

    async def ask(self, questions: Sequence[UserQuestion]) -> UserAnswers:
        """Put questions of others than the model to the person, one after the other. Cancelling it
        withdraws them."""
        ...

    def reading(self, path: Path) -> Answer:
        """Return the answer of the person's rules about reading a file, by its real path."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything that a tool may use. Made by the dispatcher, one per call.

    - `spill_path` is the file for the full raw output of this call (its folder need not exist, see
      `private_file` in `tui.core.private_files`), `kept` the folder where a command of it is kept.
    - `recorded`: the start of the call is on the disk.
    - `environment` is that of a command which nobody was asked about; None for the usual one.
    - `starter` starts commands in a sandbox; None for that of the jobs, which confines nothing.
      `walls` is the level of that sandbox, "" for none.
      `start_reader` starts a program that only reads in one; None if there is none.
    - `allowed` are the real paths that the call was allowed for; None if that is not decided yet.
    - `document_pages` is the number of pages of a PDF that the model takes as one document; 0 if it
      takes none.
    - `url_access` is the permissions' answer for an address.
    """

    call_id: str
    workspace: Workspace
    clock: Clock
    files: FileLedger
    jobs: Jobs
    spill_path: Path
    kept: Path
    host: CallHost
    read_page_bytes: int = 51_200
    guard: Guard = field(default_factory=Guard)
    recorded: bool = True
    environment: Mapping[str, str] | None = None
    starter: Starter | None = None
    walls: str = ""
    start_reader: StartReader | None = None
    allowed: frozenset[Path] | None = None
    document_pages: int = 0
    url_access: Callable[[str], UrlAccess] = lambda _: UrlAccess("deny")


P = TypeVar("P", bound=Params)
P_contra = TypeVar("P_contra", bound=Params, contravariant=True)


class Tool(ABC, Generic[P]):
    """Base class of a tool. Instances hold no state of a call.

    `effect` is the side-effect class, `keep` the part of a long output that matters.
    """

    name: ClassVar[str]
    effect: ClassVar[Effect]
    keep: ClassVar[Keep] = "head"
    params: ClassVar[type[Params]]

    @abstractmethod
    async def run(self, params: P, ctx: ToolContext) -> ToolOutput:
        """Execute a call. Raises ToolError with a message for the model. Can be cancelled."""

    async def resume(self, params: P, ctx: ToolContext) -> ToolOutput | None:
        """Return the result of a call that an earlier run of the program had begun, if that run
        left enough behind (`ctx.kept`, or a job); otherwise None: it is never run again here."""
        del params, ctx
        return None

    def effect_of(self, params: P) -> Effect:  # noqa: ARG002
        """Return the side-effect class of one call, which may be less than the tool's."""
        return self.effect

    def subject(self, params: P) -> str:
        """Return the text that permission rules match their globs against: the command or the
        path."""
        return str(getattr(params, "path", ""))

    def paths(self, params: P) -> tuple[str, ...]:
        """Return the paths, as the model named them, that the call reads or writes."""
        path = getattr(params, "path", None)
        return (path,) if isinstance(path, str) and path else ()

    async def preview(self, params: P, ctx: ToolContext) -> CallPreview:  # noqa: ARG002
        """Return the preview for the person who is asked. Raises ToolError if the call cannot work
        anyway."""
        return CallPreview("text", self.subject(params))

    def label(self, params: P) -> str:
        """Return a few words for the card of the call, after the tool's name."""
        return self.subject(params)

    @property
    def description(self) -> str:
        return _prose(type(self))

    def schema(self) -> dict[str, Any]:
        """Return the tool as the Messages API takes it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": input_schema(self.params),
        }

    def input_shown(self, params: P, given: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the input of a call as hooks and who is asked see it; `given` is the model's."""
        return given

    def parse(self, arguments: object) -> P:
        """Convert arguments of the model to Params. Raises ToolError that names the wrong
        argument."""
        if isinstance(arguments, dict) and set(cast("dict[str, Any]", arguments)) == {"raw_input"}:
            raise ToolError(
                f"The input of {self.name} wasn't valid JSON.", hint="Send one JSON object."
            )
        try:
            return cast("P", msgspec.convert(arguments, self.params, strict=False))
        except msgspec.ValidationError as error:
            known = ", ".join(f.name for f in msgspec.structs.fields(self.params))
            raise ToolError(
                f"Wrong arguments for {self.name}: {error}.", hint=f"Its arguments are: {known}."
            ) from error


class AgentPart(Protocol[P_contra]):
    """The part of the agent that carries out the calls of a tool."""

    async def run(self, params: P_contra, tool: ToolContext) -> ToolOutput:
        """Execute a call, as `Tool.run`."""
        ...


class AgentTool(Tool[P]):
    """Base class of a tool whose calls a part of the agent carries out."""

    def __init__(self, part: AgentPart[P]) -> None:
        self._part = part

    async def run(self, params: P, ctx: ToolContext) -> ToolOutput:
        return await self._part.run(params, ctx)


@cache
def _prose(tool: type[Tool[Any]]) -> str:
    return Path(inspect.getfile(tool)).with_suffix(".md").read_text(encoding="utf-8").strip()


@cache
def input_schema(params: type[Params]) -> dict[str, Any]:
    """Return the JSON schema of a params struct, flat: no references, no titles."""
    schema = msgspec.json.schema(params)
    definitions = cast("dict[str, Any]", schema.get("$defs", {}))

    def inline(value: Any) -> Any:
        if isinstance(value, list):
            return [inline(v) for v in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        node = cast("dict[str, Any]", value)
        if "$ref" in node:
            return inline(definitions[str(node["$ref"]).rsplit("/", 1)[-1]])
        return {k: inline(v) for k, v in node.items() if k != "title"}

    return cast("dict[str, Any]", inline({k: v for k, v in schema.items() if k != "$defs"}))
