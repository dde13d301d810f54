"""Tells which build of the program this is, how it came onto the machine, and how to update it."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import tui
from tui.core.dataclass import dataclass
from tui.core.git.branch import commit_of
from tui.core.messages import object_of, string_of
from tui.core.paths import shorten
from tui.core.project import REPOSITORY

SOURCE: Final = f"git+{REPOSITORY}"
"""The newest commit of the repository, as installers take it."""
_PACKAGE: Final = Path(tui.__file__).parent


@dataclass(frozen=True, slots=True)
class Installation:
    """One way of installing, and the command that brings a newer version."""

    how: str
    update: str
    is_checkout: bool = False


def version_line() -> str:
    """The version, and the commit that it was built from where that is known. Reads a file or two,
    starts nothing."""
    return f"holdfast {tui.__version__}{_build()}"


def _build() -> str:
    built = _json(_PACKAGE / "data" / "build.json")
    if commit := string_of(built.get("commit")):
        changed = " with changes" if built.get("changed") is True else ""
        return f" (commit {commit[:9]} of {string_of(built.get('day'))}{changed})"
    if commit := commit_of(_PACKAGE.parent):
        return f" (a checkout at commit {commit[:9]})"
    return ""


def installation(prefix: Path | None = None) -> Installation:
    """Tell how this program was installed and how to update it, by the installer's own files in its
    environment (`prefix`). Asks no network."""
    prefix = prefix or Path(sys.prefix)
    if "Cellar" in prefix.parts:
        return Installation("with Homebrew", "brew upgrade holdfast")
    if prefix.parts[:3] == ("/", "nix", "store"):
        return Installation("with Nix", "nix profile upgrade holdfast")
    try:
        source: dict[str, Any] | None = _source()
    except metadata.PackageNotFoundError:
        source = None
    own = prefix / "bin" / "python"
    python = _typed(own if own.exists() else Path(sys.executable))
    folder = object_of((source or {}).get("dir_info"))
    if source is None or folder.get("editable") is True:
        place = _PACKAGE.parent
        update = f"cd {_typed(place)} && git pull && {python} -m pip install -e ."
        return Installation(f"from the checkout {shorten(place)}", update, is_checkout=True)
    newest = _newest(source)
    if (prefix / "uv-receipt.toml").exists():
        how, by_name = "with uv tool", "uv tool upgrade holdfast"
        by_place = f"uv tool install --force --reinstall {newest}"
    elif (prefix / "pipx_metadata.json").exists():
        how, by_name = "with pipx", "pipx upgrade holdfast"
        by_place = f"pipx install --force {newest}"
    else:
        how, by_name = "with pip", f"{python} -m pip install --upgrade holdfast"
        by_place = f"{python} -m pip install --force-reinstall {newest}"
    return Installation(how, by_place if newest else by_name)


def _typed(path: Path) -> str:
    """A path as a shell takes it, with ~ for the home folder."""
    short = shorten(path)
    home, rest = ("~/", short[2:]) if short.startswith("~/") else ("", short)
    return f"{home}{shlex.quote(rest)}"


def _newest(source: dict[str, Any]) -> str:
    """Name what to install for a newer one: the repository where a commit, a tag or an archive of
    it was installed, else the place that this one came from; "" for an index."""
    url = string_of(source.get("url"))
    if url.startswith(REPOSITORY):
        return SOURCE
    if url.startswith("file:///") and "vcs_info" not in source:
        return _typed(Path(unquote(url.removeprefix("file://"))))
    git = "git+" if object_of(source.get("vcs_info")).get("vcs") == "git" else ""
    return shlex.quote(f"{git}{url}") if url else ""


def _source() -> dict[str, Any]:
    """Return where the installer had the program from (PEP 610); {} where an index named it. Raises
    PackageNotFoundError where it runs without being installed."""
    distribution = metadata.distribution("holdfast")
    try:
        return _object(distribution.read_text("direct_url.json") or "{}")
    except (OSError, UnicodeDecodeError):
        return {}


def _json(path: Path) -> dict[str, Any]:
    try:
        return _object(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}


def _object(text: str) -> dict[str, Any]:
    try:
        return object_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}
