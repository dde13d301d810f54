"""The inputs of a front end: the services of the rest of the program, and what it opens with.

The program that starts it wires them: the command line (`tui.app.program`), or a test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tui.app.dialog_data import Account, ModelRow, ProfileRow, SessionRow, Setup
from tui.core.clipboard import Clip
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.dataclass import dataclass
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
    there continues; `same`: it is open already, and goes on
    with another of its branches, or another profile.
    """

    path: Path | None = None
    take_over: bool = False
    read_only: bool = False
    message: str = ""
    foreign: bool = False
    attach: bool = False
    go_on: bool = False
    same: bool = False


class AppServices(Protocol):
    """The rest of the program, as a front end asks it. `tui.app.program.Program` is the real one.

    `settings` are those in force. `bare`: nothing counts that a folder or the person has set up.
    """

    @property
    def clock(self) -> Clock: ...
    @property
    def folders(self) -> Folders: ...
    @property
    def workspace(self) -> Path: ...
    @property
    def version(self) -> str: ...
    @property
    def settings(self) -> LiveSettings: ...
    @property
    def bare(self) -> bool: ...

    async def make_agent(self, choice: SessionChoice, approver: Approver, /) -> Agent:
        """Open a session with an agent for it. Raises CredentialsError when there is no key,
        SessionError when the session cannot be opened, SessionInUseError when another program has
        it open."""
        ...

    async def list_sessions(self) -> Sequence[SessionRow]:
        """Return the sessions of the workspace."""
        ...

    async def set_up(self, setup: Setup, /) -> str:
        """Keep what the welcome screen was told for `make_agent`, and say where, in a sentence.
        Raises HoldfastError."""
        ...

    async def reconnect(self, agent: Agent, /) -> Sequence[Fact]:
        """Let an agent that is open use what was set up. Raises HoldfastError."""
        ...

    def connection(self) -> str:
        """Say how a model is reached now, in a sentence. Blocks."""
        ...

    def set_up_elsewhere(self) -> bool:
        """True once another program has set up another way to reach a model than the one that this
        one knows. Blocks."""
        ...

    def account(self) -> Account:
        """Return the profile in use, and what can be used in its place. Blocks."""
        ...

    def profiles(self) -> Sequence[ProfileRow]:
        """Return the person's profiles, "default" first; none where there is no other. Blocks;
        raises ConfigError."""
        ...

    async def probe_servers(self) -> Sequence[LocalServer]:
        """Return the servers of models that run on this machine."""
        ...

    async def model_info(self, name: str, /) -> ModelInfo:
        """Return what is known of a model."""
        ...

    def models(self) -> Sequence[ModelRow]:
        """Return the models that the server listed, or that are known."""
        ...

    async def refresh_models(self) -> None:
        """Ask the server for its models again where its list is older than a day."""
        ...

    def whole_name(self, name: str, /) -> str:
        """Return the model that a short name stands for. Blocks."""
        ...

    def asked_model(self, name: str, /) -> ModelInfo | None:
        """Return the model that a command asks for, None where the server has none of that name.
        Blocks."""
        ...

    def trust(self) -> Trust:
        """Return which of the folder's own files count."""
        ...

    def brought(self) -> Sequence[TrustItem]:
        """Return all that the folder's own files would do. Blocks."""
        ...

    def undecided(self) -> Sequence[TrustItem]:
        """Return what of it nobody has decided about yet. Blocks."""
        ...

    async def decide_trust(self, about: Sequence[TrustItem], granted: Collection[str], /) -> None:
        """Take the answer: what was asked about, and the names that are granted."""
        ...

    def run_options(self, tasks: Path, /) -> Options:
        """Return the options of `holdfast run` with a task file."""
        ...

    def background_options(self) -> Options | None:
        """Return the options of another session that works as this one would; None where nothing
        can run in the background."""
        ...

    def clipboard(self) -> Clip:
        """Return what the system's clipboard holds. Blocks."""
        ...

    async def save_theme(self, name: str, /) -> None:
        """Keep the chosen theme."""
        ...

    def read_settings(self) -> LoadedSettings:
        """Read the settings of all layers again. Blocks; raises ConfigError."""
        ...

    async def use_settings(self) -> None:
        """Let new sessions begin with what `read_settings` would read. Raises HoldfastError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The opening state of the screen: `choice` is the session, None shows the browser first;
    `prompt` is sent as if it had been typed; with `verbose` the debug view is on top."""

    services: AppServices
    choice: SessionChoice | None = SessionChoice()
    prompt: str | None = None
    theme: str = Config().theme
    verbose: bool = False
