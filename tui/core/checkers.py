"""The language servers and linters that are known by name, and those that a project brings."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from tui.core.config import CheckerSettings


def _known(command: str, *files: str) -> CheckerSettings:
    return CheckerSettings(command=command, files=files)


_PYTHON: Final = ("*.py", "*.pyi")
_SCRIPTS: Final = ("*.ts", "*.tsx", "*.mts", "*.cts", "*.js", "*.jsx", "*.mjs", "*.cjs")
_C: Final = ("*.c", "*.h", "*.cc", "*.hh", "*.cpp", "*.hpp", "*.cxx", "*.hxx", "*.m", "*.mm")

KNOWN: Final[Mapping[str, CheckerSettings]] = MappingProxyType(
    {
        "basedpyright": _known("basedpyright-langserver --stdio", *_PYTHON),
        "pyright": _known("pyright-langserver --stdio", *_PYTHON),
        "ty": _known("ty server", *_PYTHON),
        "ruff": _known("ruff server", *_PYTHON),
        "pylsp": _known("pylsp", *_PYTHON),
        "typescript": _known("typescript-language-server --stdio", *_SCRIPTS),
        "gopls": _known("gopls", "*.go"),
        "rust-analyzer": _known("rust-analyzer", "*.rs"),
        "clangd": _known("clangd", *_C),
        "zls": _known("zls", "*.zig"),
        "lua": _known("lua-language-server", "*.lua"),
        "bash": _known("bash-language-server start", "*.sh", "*.bash"),
    }
)
"""In order of preference: of those for the same files, the first one that exists is started."""


class KnownMistake(NamedTuple):
    """A text with a mistake that a server finds, unless it lacks what it `needs`."""

    ending: str
    text: str
    needs: str


MISTAKES: Final[Mapping[str, KnownMistake]] = MappingProxyType(
    {
        "pylsp": KnownMistake(".py", "def (:\n", "its linters (such as pyflakes) aren't installed"),
        "bash": KnownMistake(".sh", "#!/bin/bash\nif true; then\n", "shellcheck isn't installed"),
    }
)
"""For servers whose lists are empty without programs that are installed apart."""

LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".py": "python", ".pyi": "python", ".ts": "typescript", ".mts": "typescript",
        ".cts": "typescript", ".tsx": "typescriptreact", ".js": "javascript",
        ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact", ".rs": "rust",
        ".h": "c", ".cc": "cpp", ".hh": "cpp", ".hpp": "cpp", ".cxx": "cpp", ".hxx": "cpp",
        ".m": "objective-c", ".mm": "objective-cpp", ".sh": "shellscript", ".bash": "shellscript",
    }
)  # fmt: skip
"""The protocol's names for the language of a file, if it is not the ending itself."""

PROGRAM_FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Folders in which a project has programs of its own."""


def configured(given: CheckerSettings, name: str) -> CheckerSettings:
    """Complete a person's settings of a checker with those of the known one of that name."""
    known = KNOWN.get(name, CheckerSettings())
    return CheckerSettings(
        command=given.command or known.command,
        files=given.files or known.files,
        settings=given.settings,
        options=given.options,
        off=given.off,
    )


def language_of(name: str) -> str:
    """Return the protocol's name for the language of a file, by its name."""
    ending = Path(name).suffix.lower()
    return LANGUAGES.get(ending, ending.removeprefix(".") or "plaintext")


def program_of(
    config: CheckerSettings, root: Path, brought: Collection[str], search_path: str
) -> str:
    """Return the full path of a checker's program, "" if it does not exist: one of `brought`, by
    path relative to the root, otherwise one of a PATH. Blocks."""
    name = next(iter(config.words), "")
    if "/" in name:
        path = root / Path(name).expanduser()
        return str(path) if path.is_file() else ""
    for folder in PROGRAM_FOLDERS:
        if f"{folder}/{name}" in brought:
            return str(root / folder / name)
    return (shutil.which(name, path=search_path) or "") if name else ""


def brought_programs(root: Path) -> tuple[str, ...]:
    """Return the known checkers that a folder brings along, by relative path. Blocks."""
    programs = sorted({known.words[0] for known in KNOWN.values()})
    return tuple(
        f"{folder}/{program}"
        for folder in PROGRAM_FOLDERS
        for program in programs
        if (root / folder / program).is_file()
    )
