"""A workspace and an environment of its own for every program that is started here."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.program import Program
from tests.support.server import LoopbackServer
from tests.support.serving import serving

Serve: TypeAlias = Callable[..., LoopbackServer]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "README.md").write_text("# Demo\n\nThe demo project.\n")
    return folder


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_HOME": str(home), "HOME": str(home.parent)}


@pytest.fixture
def holdfast(work: Path, env: dict[str, str]) -> Program:
    """The program without a terminal, and without a key."""
    return Program(work, env)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Writes a practice script and names its file."""

    def write(text: str) -> str:
        path = tmp_path / "script.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def config(home: Path) -> Callable[[str | bytes], Path]:
    """Writes the user's config.toml."""

    def write(text: str | bytes) -> Path:
        path = home / "config" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def serve() -> Generator[Serve]:
    """Starts a loopback server with the turns, and other keys, of a script."""
    with ExitStack() as stack:

        def start(*turns: dict[str, Any], **more: Any) -> LoopbackServer:
            return stack.enter_context(serving({"turns": list(turns), **more}))

        yield start
