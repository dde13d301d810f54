"""The inputs of a front end: the services of the rest of the program, and what it opens with.

The program that starts it wires them: the command line (`tui.app.program`), or a test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tui.app.dialog_data import ModelRow, SessionRow, Setup
from tui.core.clipboard import Clip
from tui.core.clock import Clock
from tui.core.config import Config, Permissions
from tui.core.errors import HoldfastError
from tui.core.paths import Folders
from tui.permissions.types import Approver
from tui.provider.base import ModelInfo
from tui.settings.layers import LoadedSettings
from tui.settings.local_servers import LocalServer
from tui.settings.trust import Trust, TrustItem

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.options.arguments import Options
    from tui.core.facts import Fact


T = TypeVar("T")


class LiveSettings:
    """The settings in force, `now`, and what follows them: whoever uses one that counts right away
    registers the effect of a change where it is used."""

    def __init__(self, now: Config | None = None) -> None:
        self.now = now or Config()
        self._effects: list[tuple[Callable[[Config], Any], Callable[[Any], object]]] = []

    def follow(self, pick: Callable[[Config], T], effect: Callable[[T], object]) -> None:
        """Call `effect` with what `pick` takes of the settings, whenever that has changed."""
        self._effects.append((pick, effect))

    def apply(self, pick: Callable[[Config], T], effect: Callable[[T], object]) -> None:
        """The same, and once now."""
        effect(pick(self.now))
        self.follow(pick, effect)

    def change_to(self, config: Config) -> None:
        """Put other settings in force. Every effect is tried; raises HoldfastError for the first
        that fails."""
        before, self.now = self.now, config
        failed: HoldfastError | None = None
        for pick, effect in self._effects:
            if (value := pick(config)) != pick(before):
                try:
                    effect(value)
                except HoldfastError as error:
                    failed = failed or error
        if failed is not None:
            raise failed


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """The session to open: the file of an old one, or None for a new one.

    One that another program has open can be taken over from it, or only read.

    `message` is the id of the record to begin at; `foreign`: it is another agent's, to be copied.
    `attach`: a background process that has it hands it over; `go_on`: the turn that was paused
    there continues.
    """

    path: Path | None = None
    take_over: bool = False
    read_only: bool = False
    message: str = ""
    foreign: bool = False
    attach: bool = False
    go_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppServices:
    """The services that a front end uses.

    `make_agent` raises CredentialsError when there is no key, SessionError when the session cannot
    be opened, SessionInUseError when another program has it open. `set_up` keeps the answers of the
    welcome screen and says where, in a sentence; after it `make_agent` uses them, and `reconnect`
    lets an agent use them that is open. Both raise HoldfastError. `connection` says what is in use,
    and `profile` names the one of this machine that can be used, "" for none; both block.

    `models` are those that the server listed, or that are known; `refresh_models` asks it again
    where its list is older than a day. `whole_name` is the model that a short name stands for, and
    `asked_model` the one that a command asks for, None where the server has none of that name; both
    block.

    `undecided` is what the folder's own files would do and nobody decided about yet, `brought` all
    of it (it blocks); `trust` says what of them counts. `decide_trust` takes what was asked about
    and the names that are granted. `permissions` are the rules of the configuration.

    `run_options` are those of `holdfast run` with a task file. `read_settings` reads the settings
    of all layers again; it blocks and raises ConfigError. After `use_settings` new sessions begin
    with what it would read.

    `clipboard` returns the content of the system's clipboard, and blocks; without one it is empty.
    `settings` are those in force.
    """

    clock: Clock
    folders: Folders
    workspace: Path
    make_agent: Callable[[SessionChoice, Approver], Awaitable[Agent]]
    list_sessions: Callable[[], Awaitable[Sequence[SessionRow]]]
    set_up: Callable[[Setup], Awaitable[str]]
    reconnect: Callable[[Agent], Awaitable[Sequence[Fact]]]
    probe_servers: Callable[[], Awaitable[Sequence[LocalServer]]]
    model_info: Callable[[str], Awaitable[ModelInfo]]
    save_theme: Callable[[str], Awaitable[None]]
    decide_trust: Callable[[Sequence[TrustItem], Collection[str]], Awaitable[None]]
    connection: Callable[[], str] = str
    profile: Callable[[], str] = str
    models: Callable[[], Sequence[ModelRow]] = tuple
    refresh_models: Callable[[], Awaitable[None]] | None = None
    whole_name: Callable[[str], str] = str
    asked_model: Callable[[str], ModelInfo | None] = lambda _: None
    permissions: Callable[[], Permissions] = Permissions
    trust: Callable[[], Trust] = Trust
    brought: Callable[[], Sequence[TrustItem]] = tuple
    undecided: Sequence[TrustItem] = ()
    run_options: Callable[[Path], Options] | None = None
    background_options: Callable[[], Options] | None = None
    clipboard: Callable[[], Clip] = Clip
    read_settings: Callable[[], LoadedSettings] = lambda: LoadedSettings(Config(), {}, ())
    use_settings: Callable[[], Awaitable[None]] | None = None
    version: str = ""
    settings: LiveSettings = field(default_factory=LiveSettings)

    def other_model(self, model: str) -> str:
        """The model that is asked where `model` cannot answer, "" for none."""
        ranked = sorted((row.fallback, row.name) for row in self.models() if row.fallback)
        return next((name for _, name in ranked if name != model), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The opening state of the screen: `choice` is the session, None shows the browser first;
    `prompt` is sent as if it had been typed; with `verbose` the debug view is on top."""

    services: AppServices
    choice: SessionChoice | None = SessionChoice()
    prompt: str | None = None
    theme: str = Config().theme
    verbose: bool = False
