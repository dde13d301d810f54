"""Completion scripts for bash, zsh and fish, made from the parser's own data."""

from __future__ import annotations

from typing import Literal

from tui.cli.completion import bash, fish, zsh


def script(shell: Literal["bash", "zsh", "fish"]) -> str:
    """The completion script of a shell, to be sourced or put into its completions folder."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell].script()
