"""Puts `tui/data/build.json` into the wheel and the sdist: the commit that they were built from."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "tui/data/build.json"


class BuildHook(BuildHookInterface):
    """Called by hatchling, which finds it by its type."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A checkout asks git, an archive of one reads what `git archive` wrote into it, and an
        sdist has the file already. An editable install is the checkout itself."""
        root = Path(self.root)
        found = commit(root)
        if version == "editable" or (root / PLACE).exists() or found is None:
            return
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name) / "build.json"
        made.write_text(json.dumps(found), encoding="utf-8")
        build_data["force_include"][str(made)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        del version, build_data, artifact_path
        if folder := getattr(self, "_folder", None):
            folder.cleanup()


def commit(root: Path) -> dict[str, Any] | None:
    """The commit, its day, and whether tracked files differ from it; None where nobody knows."""
    if (root / ".git").exists():
        try:
            said = _git(root, "log", "-1", "--format=%H %cs")
            changed = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
        except (OSError, subprocess.CalledProcessError):
            return None
    else:
        archived = root / ".git_archival.txt"
        said = archived.read_text(encoding="utf-8").strip() if archived.exists() else "$"
        changed = False
    if said.startswith("$"):  # not from git archive
        return None
    name, _, day = said.partition(" ")
    return {"commit": name, "day": day, "changed": changed}


def _git(root: Path, *words: str) -> str:
    asked = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return asked.stdout.strip()
