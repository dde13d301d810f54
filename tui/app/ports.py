"""What the full screen asks of the rest of the program; who starts it wires them.

That is the command line (`tui.app.program`), or a test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tui.agent.events import Event
from tui.app.dialog_data import ModelRow, SessionRow, Setup
from tui.core.clipboard import Clip
from tui.core.clock import Clock
from tui.core.config import Config, Permissions
from tui.core.images import Image
from tui.core.paths import Folders
from tui.permissions.types import Approver, Mode
from tui.provider.base import ModelInfo
from tui.session.drafts import UnsentWork
from tui.session.records import Finding, Header, Record
from tui.settings.layers import LoadedSettings
from tui.settings.local_servers import LocalServer

if TYPE_CHECKING:
    from tui.agent.compaction import CompactionPreview
    from tui.agent.limits import SessionCost
    from tui.agent.request_builder import Fit
    from tui.agent.tool_results import ShellOutput
    from tui.app.options.arguments import Options
    from tui.context.overrides import Overlay
    from tui.context.repair_levels import RepairLevel
    from tui.context.token_ledger import Ledger
    from tui.context.view import View
    from tui.provider.base import Request
    from tui.tools.mcp import Server as McpServer


class SessionPort(Protocol):
    """What the screen reads of a session."""

    @property
    def id(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def title(self) -> str: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def header(self) -> Header: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def lost(self) -> str: ...
    async def recheck(self) -> str: ...
    def append(self, type_: str, **data: Any) -> Record: ...
    async def rewind(self, target: str) -> Record: ...
    @property
    def unsent(self) -> UnsentWork: ...
    def draft(
        self,
        prompt: str,
        queue: Sequence[str] = (),
        answer: str = "",
        images: Mapping[str, str] = ...,
        *,
        commands: Sequence[str] = (),
    ) -> float: ...


class AgentPort(Protocol):
    """What the screen asks of an agent; `tui.agent.agent.Agent` says what each does."""

    @property
    def mode(self) -> Mode: ...
    @mode.setter
    def mode(self, mode: Mode) -> None: ...
    @property
    def session(self) -> SessionPort: ...
    @property
    def queue(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> str: ...
    @property
    def window(self) -> int: ...
    @property
    def was_elevated(self) -> bool: ...
    async def start(self) -> list[Event]: ...
    def send(
        self, text: str, /, *, attached: str = "", images: Mapping[str, Image] = ...
    ) -> AsyncIterator[Event]: ...
    def steer(self, text: str, /, images: Mapping[str, Image] = ...) -> None: ...
    def unqueue(self) -> tuple[str, ...]: ...
    def cancel(self) -> None: ...
    def use_model(self, info: ModelInfo) -> object: ...
    def fits(self, info: ModelInfo) -> Fit: ...
    def go_on(self, again: Collection[str] = ()) -> AsyncIterator[Event]: ...
    async def close_calls(self, ids: Collection[str]) -> Sequence[Event]: ...
    def retry_now(self) -> bool: ...
    def other_model(self) -> bool: ...
    def offers(self) -> Sequence[RepairLevel]: ...
    async def repair(self, rung: RepairLevel) -> Sequence[Event]: ...
    @property
    def ledger(self) -> Ledger: ...
    def spending(self) -> SessionCost: ...
    def view(self) -> View: ...
    def fixed_texts(self) -> Mapping[str, str]: ...
    def next_request(self, *, prompt_follows: bool = False) -> Request: ...
    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]: ...
    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]: ...
    def plan_compaction(self, focus: str = "") -> CompactionPreview | None: ...
    def compact(self, focus: str = "") -> AsyncIterator[Event]: ...
    async def uncompact(self) -> Sequence[Event]: ...
    def flush_memory(self) -> AsyncIterator[Event]: ...
    @property
    def memory_pending(self) -> bool: ...
    @property
    def folders(self) -> tuple[Path, ...]: ...
    def add_dir(self, folder: Path) -> bool: ...
    @property
    def servers(self) -> Sequence[McpServer]: ...
    def switch_tool(self, server: McpServer, tool: str, *, on: bool) -> Sequence[Event]: ...
    def take_up(self, config: Config) -> None: ...
    @property
    def keeping(self) -> ShellOutput | None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """Which session to open: the file of an old one, or None for a new one.

    One that another program has open can be taken over from it, or only read.
    `message` is the id of the record to begin at; `foreign`: it is another agent's, to be copied.
    """

    path: Path | None = None
    take_over: bool = False
    read_only: bool = False
    message: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppServices:
    """What the full screen asks of the rest of the program.

    `make_agent` raises CredentialsError when there is no key, SessionError when the session
    cannot be opened, SessionInUseError when another program has it open. `set_up` keeps what the
    welcome screen was told and says where, in a sentence; after it `make_agent` uses it.
    `models` are those that are known, whether or not the server has them.
    `untrusted` are the files that a folder brings along and nobody decided about yet; `trusted`
    says whether such files count. `permissions` are the rules of the configuration.
    `run_options` are those of `holdfast run` with a task file. `read_settings` reads the settings
    of all layers anew; it blocks and raises ConfigError. After `use_settings` new sessions begin
    with what it would read.
    `clipboard` asks what the system's clipboard holds, and blocks; without one it is empty.
    `notify`: whoever looks elsewhere is called. `calm`: nothing moves by itself.
    """

    clock: Clock
    folders: Folders
    workspace: Path
    make_agent: Callable[[SessionChoice, Approver], Awaitable[AgentPort]]
    list_sessions: Callable[[], Awaitable[Sequence[SessionRow]]]
    set_up: Callable[[Setup], Awaitable[str]]
    probe_servers: Callable[[], Awaitable[Sequence[LocalServer]]]
    model_info: Callable[[str], Awaitable[ModelInfo]]
    save_theme: Callable[[str], Awaitable[None]]
    decide_trust: Callable[[bool], Awaitable[None]]
    models: Callable[[], Sequence[ModelRow]] = tuple
    permissions: Callable[[], Permissions] = Permissions
    trusted: Callable[[], bool] = lambda: False
    untrusted: tuple[str, ...] = ()
    run_options: Callable[[Path], Options] | None = None
    clipboard: Callable[[], Clip] = Clip
    read_settings: Callable[[], LoadedSettings] = lambda: LoadedSettings(Config(), {}, ())
    use_settings: Callable[[], Awaitable[None]] | None = None
    version: str = ""
    notify: bool = True
    calm: bool = False

    def other_model(self, model: str) -> str:
        """The model that is asked where `model` cannot answer, "" for none."""
        ranked = sorted((row.fallback, row.name) for row in self.models() if row.fallback)
        return next((name for _, name in ranked if name != model), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the screen opens with: `choice` is the session, None shows the browser first;
    `prompt` is sent as if it had been typed; with `verbose` the debug view stands on top."""

    services: AppServices
    choice: SessionChoice | None = SessionChoice()
    prompt: str | None = None
    theme: str = Config().theme
    verbose: bool = False
