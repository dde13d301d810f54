"""The program's folders: the platform's, or one folder named by HOLDFAST_HOME.

The only importer of platformdirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tui.core.dataclass import dataclass
from tui.core.workspace import checkout_of

APP = "holdfast"


@dataclass(frozen=True, slots=True)
class Folders:
    """The program's own folders. Asking for one does not create it."""

    data: Path
    config: Path
    cache: Path
    log: Path

    @property
    def sessions(self) -> Path:
        return self.data / "sessions"

    @property
    def outputs(self) -> Path:
        """The folder for full outputs of worktrees, and of workspaces that take none."""
        return self.data / "outputs"

    @property
    def running(self) -> Path:
        """The folder in which commands are kept while they run."""
        return self.data / "running"

    @property
    def checkpoints(self) -> Path:
        """The folder for copies of the workspaces' files."""
        return self.data / "checkpoints"

    @property
    def in_place(self) -> Path:
        """The folder for copies of files while they are written in place."""
        return self.data / "in-place"

    @property
    def plugins_file(self) -> Path:
        """The file that lists the plugins."""
        return self.config / "plugins.json"

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    def sessions_of(self, workspace: Path) -> Path:
        """Return the folder of the sessions of one workspace, including those in its worktrees."""
        return self.sessions / workspace_slug(checkout_of(workspace))


def folders(env: Mapping[str, str] | None = None) -> Folders:
    """Return the folders in force. HOLDFAST_HOME puts all four below one folder."""
    home = (os.environ if env is None else env).get("HOLDFAST_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Folders(root / "data", root / "config", root / "cache", root / "log")
    import platformdirs  # noqa: PLC0415 - only needed without HOLDFAST_HOME

    platform = platformdirs.PlatformDirs(APP, appauthor=False)
    return Folders(
        platform.user_data_path,
        platform.user_config_path,
        platform.user_cache_path,
        platform.user_log_path,
    )


def workspace_slug(workspace: Path) -> str:
    """Return a folder name for a workspace: readable, and unique by a hash of the whole path."""
    from hashlib import sha256  # noqa: PLC0415 - not for the first frame

    try:
        name = os.fsencode(workspace)
    except UnicodeEncodeError:  # a path from a record, which no folder can have
        name = str(workspace).encode("utf-8", "surrogatepass")
    digest = sha256(name).hexdigest()[:8]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", workspace.name).strip("-.")[:40] or "root"
    return f"{name}-{digest}"


def expanded(name: str) -> Path:
    """Return a path as a person types it, with `~` and `~user` replaced; an unknown user's is a
    plain name, like `~backup.py`."""
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path's raises for an unknown user


def shorten(path: Path | str) -> str:
    """Return a path for the screen: the home folder as `~`."""
    home = str(Path(os.path.expanduser("~")))  # noqa: PTH111 - never raises if there is none
    text = str(path)
    if text == home or text.startswith(home + os.sep):
        return "~" + text[len(home) :]
    return text
