"""The launch of an agent: its options, its configuration, and its access to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.agent.limits import Limits
from tui.context.system_prompt import Source
from tui.core.clock import Clock
from tui.core.config import Config, model_of, profile_of, through
from tui.core.dataclass import dataclass, field, replace
from tui.core.paths import Folders
from tui.core.workspace import Workspace
from tui.permissions.policy import Policy
from tui.permissions.types import Mode
from tui.provider import model_list
from tui.provider.base import Provider
from tui.settings.agent_definitions import (
    AgentDefinition,
)
from tui.settings.credentials import Credential
from tui.settings.hook_files import Hook
from tui.settings.profiles import Profile
from tui.settings.sign_in import SignIn
from tui.settings.trust import Trust
from tui.tools.base import Tool

if TYPE_CHECKING:
    from tui.core.clouds import CloudAccess

PRACTICE = "practice"
"""The model name of the offline practice model."""

BARE = (
    "Started with --bare: no project files, memory, hooks, MCP servers, plugins, skills, checkers "
    "or commands of your own, and no settings of this folder. Rules that deny or ask still count."
)
"""What a session records, and a person reads, where it starts bare."""
BARE_HINT = "To start without it meanwhile: holdfast --bare."
"""Added to what to do about a broken set-up."""


@dataclass(frozen=True, slots=True)
class Access:
    """The access to the model: the practice model, or the configured server with a `key`, which
    never shows in a repr, or with the SDK's own sign-in where there is none.

    `profile` is the person's, whose key that is. `foreign_server`: the folder or the profile named
    the server, which gets nothing of the environment, neither key nor headers. `cloud` serves the
    models in the place of Anthropic, and signs by itself. `around` wraps the model, beneath the
    retries: a drill. `short_names`: the configuration had some, which are resolved here.
    """

    practice: bool = False
    practice_delay_s: float = 0.0
    script: Path | None = None
    key: str | None = field(default=None, repr=False)
    sign_in: SignIn | None = None
    profile: Profile = Profile()
    foreign_server: bool = False
    cloud: CloudAccess | None = None
    around: Callable[[Provider, Clock], Provider] | None = None
    short_names: bool = False
    others: Mapping[str, Launch] = field(default_factory=dict[str, "Launch"])
    """The same launch through each of the other profiles that its fallbacks name."""


@dataclass(frozen=True, slots=True)
class OwnParts:
    """The parts that come from whoever starts this run: tools that are offered beside the built-in
    ones, hooks, and kinds of sub-agents. `only` are the tools that the model has, None for all;
    `without` those that it doesn't have."""

    tools: tuple[Tool[Any], ...] = ()
    hooks: tuple[Hook, ...] = ()
    agents: tuple[AgentDefinition, ...] = ()
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def may_have(self, tool: str) -> bool:
        """True if the model may have a tool, by the tool's name."""
        mine = {one.name for one in self.tools}
        return tool not in self.without and (self.only is None or tool in self.only | mine)


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that decides what an agent is made of.

    `max_wait_s` bounds the waits that a server asks for, None by the retry policy; `notices` are
    the person's first notices; `boot` is a boot file that replaces the usual ones; `one_turn` says
    that nobody types any more, as in `-p` and a run. `effort` is how hard the model thinks, "" as
    configured; `trust` says which of the folder's own files count. `confined`: commands run in a
    sandbox, as the configuration says. `texts` go into the system prompt; they and the `own` parts
    come from whoever starts this run. `answers_only`: the model has no tools. `bare`: no files,
    hooks, servers, plugins, skills or checkers that a folder or the person has set up.
    `rules_lost`: not all of the person's rules could be read, so nothing is elevated.
    """

    workspace: Workspace
    config: Config
    folders: Folders
    access: Access = Access()
    elevated: bool = False
    mode: Mode = "ask"
    texts: tuple[Source, ...] = ()
    own: OwnParts = OwnParts()
    verbose: bool = False
    limits: Limits = field(default_factory=Limits)
    max_wait_s: float | None = None
    notices: tuple[str, ...] = ()
    boot: Path | None = None
    one_turn: bool = False
    effort: str = ""
    trust: Trust = field(default_factory=Trust)
    confined: bool = False
    answers_only: bool = False
    bare: bool = False
    rules_lost: bool = False

    def reached(self, **changed: Any) -> Launch:
        """The same with another way to the model: values of `Access` by name."""
        return replace(self, access=replace(self.access, **changed))

    def with_key(self, key: str | None) -> Launch:
        return self.reached(key=key, sign_in=None)

    def signed_by(self, credential: Credential | None) -> Launch:
        """The same with what signs its requests."""
        if isinstance(credential, SignIn):
            return self.reached(key=None, sign_in=credential)
        return self.with_key(credential.key if credential else None)

    @property
    def base_url(self) -> str:
        """The server that is asked: the cloud, the configured one, else that of a profile; "" for
        the API."""
        if self.access.cloud is not None:
            return self.access.cloud.address or self.access.cloud.cloud.kind
        signed = self.access.sign_in
        return self.config.base_url or (signed.base_url if signed else "")

    @property
    def others(self) -> Mapping[str, Launch]:
        """The same launch through other profiles, by their names."""
        return self.access.others

    def at(self, model: str) -> Launch:
        """The launch through which a model is asked."""
        return self.others.get(profile_of(model), self)

    def whole_name(self, name: str) -> str:
        """The model that a short name stands for; any other as it is. Blocks."""
        if profile := profile_of(name):
            own = model_of(name)
            return through(profile, self.at(name).whole_name(own)) if own else name
        return model_list.resolve(name, self.folders.cache, self.base_url)

    @property
    def model(self) -> str:
        return PRACTICE if self.access.practice else self.config.model


def policy_of(launch: Launch) -> Policy:
    """The policy that the configuration states."""
    permissions = launch.config.permissions
    policy = Policy.of(
        allow=permissions.allow,
        ask=permissions.ask,
        deny=permissions.deny,
        auto_grant=permissions.auto_grant,
        private=(launch.folders.config, launch.folders.data),
    )
    return replace(policy, lost=launch.rules_lost)
