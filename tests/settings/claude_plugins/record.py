"""Install plugins with Claude Code and write down what it keeps:
`python -m tests.settings.claude_plugins.record`.

Not a part of the suite. Installs the pinned program in a temporary folder (`CLAUDE_CODE=PATH` takes
one that is there), gives it a home and two marketplaces there, one a folder and one a git
repository, and writes `seen.json`: its files after that, what `plugin list --json` says of each,
and what is in plugins whose folder is their marketplace's. `{home}`, `{shop}` and `{work}` stand
for the folders.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.settings.claude_code.record import VERSION

SEEN: Final = Path(__file__).parent / "seen.json"
_KEPT: Final = (
    "settings.json",
    "plugins/installed_plugins.json",
    "plugins/known_marketplaces.json",
)
_ADDRESS: Final = "https://git.example.org/far.git"
_LISTED: Final = ("id", "scope", "enabled", "readFromFolder", "projectPath")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("CLAUDE_CODE")
        if program is None:
            package = f"@anthropic-ai/claude-code@{VERSION}"
            subprocess.run(["npm", "install", "--prefix", folder, "--silent", package], check=True)
            program = f"{folder}/node_modules/.bin/claude"
        SEEN.write_text(json.dumps(_seen(program, Path(folder)), indent=1) + "\n")


def _seen(program: str, folder: Path) -> dict[str, object]:
    home, shop, far, work = (folder / name for name in ("home", "shop", "far", "work"))
    _marketplace(shop, "shop", ("on", "off", "here"))
    _marketplace(far, "far", ("fetched", "lost"))
    claude = _Claude(program, home, work, far)
    claude.plugin("marketplace", "add", str(shop))
    claude.plugin("marketplace", "add", _ADDRESS)
    for name in ("on@shop", "off@shop", "fetched@far", "lost@far"):
        claude.plugin("install", name)
    claude.plugin("install", "here@shop", "--scope", "project")
    claude.plugin("disable", "off@shop")
    listed = json.loads(claude.plugin("list", "--json"))
    files = {name: (home / ".claude" / name).read_text() for name in _KEPT}
    rows = [{key: one[key] for key in _LISTED if key in one} for one in listed]
    rows = [one for one in rows if not one["id"].endswith("@builtin")]
    own = _seen_of_own_folder(program, folder)
    text = json.dumps({"version": VERSION, "files": files, "listed": rows, "own": own})
    for name, path in {"home": home, "shop": shop, "far": far, "work": work}.items():
        text = text.replace(str(path), f"{{{name}}}")
    return json.loads(text)


def _seen_of_own_folder(program: str, folder: Path) -> dict[str, object]:
    """Plugins whose folder is their marketplace's: what is in each."""
    root = folder / "own"
    for name in ("a", "b", "c"):
        (root / "skills" / name).mkdir(parents=True)
        skill = f"---\nname: {name}\ndescription: about {name}\n---\nDo it.\n"
        (root / "skills" / name / "SKILL.md").write_text(skill)
    (root / "commands").mkdir()
    (root / "commands/cc.md").write_text("Do it.\n")
    (root / ".claude-plugin").mkdir()
    usual: dict[str, object] = {"source": "./", "description": "d", "strict": False}
    entries = [
        usual | {"name": "docs", "skills": ["./skills/a", "./skills/b"]},
        usual | {"name": "other", "skills": ["./skills/c"]},
        usual | {"name": "all"},
    ]
    whole = {"name": "own", "owner": {"name": "a"}, "plugins": entries}
    (root / ".claude-plugin/marketplace.json").write_text(json.dumps(whole))
    claude = _Claude(program, folder / "home2", folder / "work2", root)
    claude.plugin("marketplace", "add", _ADDRESS)
    found: dict[str, list[str]] = {}
    for name in ("docs", "other", "all"):
        claude.plugin("install", f"{name}@own")
        (line,) = re.findall(r"Skills \(\d+\)  (.*)", claude.plugin("details", f"{name}@own"))
        found[name] = line.split(", ")
    return {"marketplace": whole, "skills_and_commands": found}


class _Claude:
    """The program with a home of its own, for which an address is a repository of a folder."""

    def __init__(self, program: str, home: Path, work: Path, far: Path) -> None:
        for one in (home, work):
            one.mkdir()
        quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), **quiet}
        self._program, self._work = program, work
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        for git in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "all")):
            subprocess.run(["git", *git], cwd=far, env=self._environment, check=True)
        (home / ".gitconfig").write_text(f'[url "{far}"]\n\tinsteadOf = {_ADDRESS}\n')

    def plugin(self, *words: str) -> str:
        done = subprocess.run(
            [self._program, "plugin", *words],
            cwd=self._work,
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


def _marketplace(root: Path, name: str, plugins: tuple[str, ...]) -> None:
    entries = [
        {"name": one, "source": f"./plugins/{one}", "description": one, "version": "1.0.0"}
        for one in plugins
    ]
    (root / ".claude-plugin").mkdir(parents=True)
    whole = {"name": name, "owner": {"name": "a"}, "plugins": entries}
    (root / ".claude-plugin/marketplace.json").write_text(json.dumps(whole))
    for one in plugins:
        commands = root / "plugins" / one / "commands"
        commands.mkdir(parents=True)
        (commands / "tt.md").write_text("Do it.\n")


if __name__ == "__main__":
    main()
