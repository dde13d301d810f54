"""Secrets stay out of child processes, logs and exports (decision 31)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_PRIVATE = re.compile(r"^(HOLDFAST_.*|ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN)$")

_SHAPES = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{16,}"
    r"|sk-[A-Za-z0-9_-]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{30,}"
    r"|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"
)


def child_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a tool's or server's process: ours without the program's own secrets."""
    source = os.environ if env is None else env
    return {name: value for name, value in source.items() if not _PRIVATE.match(name)}


def mask(text: str) -> tuple[str, int]:
    """`text` with keys of known shapes masked, and how many were found."""
    return _SHAPES.subn("[secret removed]", text)
