"""The environment of a confined command: without secrets, and without ways to run something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import translate
from functools import lru_cache

from tui.core.late_pattern import late_pattern
from tui.core.redaction import SESSION_VARIABLE

# fmt: off
_SECRET = (
    "*_KEY", "*_KEY_ID", "*TOKEN*", "*SECRET*", "*PASSW*", "*_PAT", "*CREDENTIAL*", "*_DSN",
    "AWS_*", "AZURE_*", "GOOGLE_*", "GCP_*", "GH_*", "GITHUB_*", "GITLAB_*", "ANTHROPIC_*",
    "OPENAI_*", "HOLDFAST_*", "NPM_CONFIG_*AUTH*", "DATABASE_URL",
)
_EXECUTED = (
    "BASH_ENV", "ENV", "BASH_FUNC_*", "LD_PRELOAD", "LD_AUDIT", "PROMPT_COMMAND", "GIT_DIR",
    "GIT_CONFIG*", "XDG_CONFIG_HOME", "ZDOTDIR",
)
_SOCKETS = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_*", "DISPLAY", "WAYLAND_DISPLAY",
    "XAUTHORITY", "TMUX", "TMUX_PANE", "DOCKER_HOST", "XDG_RUNTIME_DIR",
)
# fmt: on
_REMOVED = late_pattern("|".join(map(translate, (*_SECRET, *_EXECUTED, *_SOCKETS))))
_URL_WITH_PASSWORD = late_pattern(r"://[^/\s:@]*:[^/\s@]+@")


def clean_environment(environment: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """Remove what a confined command must not have; names in `keep` stay."""
    return {
        name: value
        for name, value in environment.items()
        if name in keep or name == SESSION_VARIABLE or not _is_removed(name.upper(), value)
    }


def caches_elsewhere(temporary: str) -> dict[str, str]:
    """Variables that make read-only tools keep their caches in `temporary`, since the project's
    folder cannot be written."""
    return {
        "CARGO_TARGET_DIR": f"{temporary}/.cargo-target",
        "GOCACHE": f"{temporary}/.go-build",
        "MYPY_CACHE_DIR": f"{temporary}/.mypy_cache",
        "PYTEST_ADDOPTS": f"-o cache_dir={temporary}/.pytest_cache",
        "PYTHONPYCACHEPREFIX": f"{temporary}/.pycache",
        "RUFF_CACHE_DIR": f"{temporary}/.ruff_cache",
    }


def without_own_caches(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without the folders of `caches_elsewhere` that the person chose: a program that
    only reads cannot write there."""
    own = caches_elsewhere("")
    return {name: value for name, value in environment.items() if name not in own}


def without_server_info(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with git not writing `.git/info` after `git gc`: it is read-only, and only old
    web servers read what git puts there (git 2.36; older ones warn)."""
    count = environment.get("GIT_CONFIG_COUNT", "0")
    if not count.isdecimal():
        return dict(environment)
    setting = {f"GIT_CONFIG_KEY_{count}": "repack.updateServerInfo"}
    value = {f"GIT_CONFIG_VALUE_{count}": "false"}
    return {**environment, **setting, **value, "GIT_CONFIG_COUNT": str(int(count) + 1)}


@lru_cache(1000)
def _is_named(name: str) -> bool:
    return bool(_REMOVED.match(name))


def _is_removed(name: str, value: str) -> bool:
    return bool(_is_named(name) or ("://" in value and _URL_WITH_PASSWORD.search(value)))
