"""The place of a run under faults: a folder of its own with repository, settings and store."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.batch.cluster.real.model import task_name
from tests.batch.cluster.real.processes import Daemons

TOP = Path(__file__).resolve().parents[4]
DRIVERS_KEY = "sk-of-the-driver-that-does-not-travel"
MACHINES_KEY = "sk-of-the-machines-that-stays-there"


def git(repo: Path, *words: str) -> str:
    """Run git in a repository and return what it prints."""
    done = subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


@dataclass
class Scene:
    """The `folder` of a run with what `given` asks for."""

    folder: Path
    given: argparse.Namespace
    python: str = sys.executable
    daemons: Daemons = field(init=False)

    def __post_init__(self) -> None:
        self.folder.chmod(0o711)
        for name in ("logs", "home/config", "user"):
            (self.folder / name).mkdir(parents=True)
        self.daemons = Daemons(self.folder / "logs")
        config = self.folder / "home" / "config" / "config.toml"
        config.write_text(f"[batch]\nlease_s = {self.given.lease}\n")

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def store(self) -> Path:
        """The bare repository, where no engine wants it elsewhere."""
        return self.folder / "runs.git"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that all begin with: none of this machine's settings or keys."""
        return {
            "PATH": f"{Path(self.python).parent}:{os.environ['PATH']}:/usr/sbin:/sbin",
            "HOME": str(self.folder / "user"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "HOLDFAST_HOME": str(self.home),
        }

    def make_repository(self) -> None:
        """Make the repository, and its file of tasks."""
        self.repo.mkdir()
        git(self.repo, "init", "-q", "-b", "main")
        git(self.repo, "config", "user.name", "Ann")
        git(self.repo, "config", "user.email", "ann@example.org")
        for number in range(self.given.files):
            path = self.repo / f"src{number // 100}" / f"module{number}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"VALUE = {number}\n" * 20)
        tasks = "".join(f"- {task_name(one)}\n" for one in range(1, self.given.tasks + 1))
        (self.repo / "TASKS.md").write_text(f"# Tasks\n{tasks}")
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-qm", "base")

    def other_version(self) -> Path:
        """A copy of the program that says it is of another version; for PYTHONPATH."""
        tree = self.folder / "other-version"
        if not tree.exists():
            tree.mkdir()
            subprocess.run(["cp", "-r", str(TOP / "tui"), str(TOP / "themes"), tree], check=True)
            with (tree / "tui" / "__init__.py").open("a") as file:
                file.write('\n__version__ = "0.0.1+other"\n')
        return tree
