"""The result of a check, and its subject."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from tui.core.config import Config
from tui.core.dataclass import asdict, dataclass
from tui.core.errors import ConfigError
from tui.core.paths import Folders
from tui.settings import layers
from tui.settings.layers import IgnoredSetting
from tui.settings.profiles import Profile
from tui.settings.trust import trust_of

Status: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """`detail` says what was found, `fix` what can be done about it; both are one line."""

    name: str
    status: Status
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """The installation as seen from one folder.

    `config` are the settings in force, the defaults where they cannot be read: then `broken` says
    why. `bare`: nothing counts in the session that a folder or the person has set up. `ignored` is
    what a folder's own settings say and that does not count. `foreign_server`: they name the
    server, or the `profile` does; it gets no key of the environment. `profiles` are the names that
    there are.
    """

    workspace: Path
    folders: Folders
    env: Mapping[str, str]
    config: Config
    broken: ConfigError | None = None
    ignored: tuple[IgnoredSetting, ...] = ()
    foreign_server: bool = False
    bare: bool = False
    profile: Profile = Profile()
    profiles: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        workspace: Path,
        folders: Folders,
        env: Mapping[str, str],
        *,
        model: str = "",
        bare: bool = False,
        profile: str = "",
    ) -> Subject:
        """Reads the configuration; never raises. `model` and `profile` are those in use, where
        that is known."""
        given = {"model": model, "profile": profile}
        try:
            loaded = layers.load(
                folders=folders,
                workspace=workspace,
                allows=trust_of(folders, workspace).allows,
                env=env,
                overrides={key: value for key, value in given.items() if value},
            )
        except ConfigError as error:
            return cls(workspace, folders, env, Config(), error, bare=bare)
        return cls(
            workspace,
            folders,
            env,
            loaded.config,
            None,
            loaded.ignored,
            loaded.foreign_server or loaded.profile.has_own_server,
            bare,
            loaded.profile,
            loaded.profiles,
        )
