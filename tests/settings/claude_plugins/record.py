"""Install plugins with Claude Code and write down what it keeps:
`python -m tests.settings.claude_plugins.record`.

Not a part of the suite. Installs the pinned program in a temporary folder (`CLAUDE_CODE=PATH` takes
one that is there), gives it a home and two marketplaces there, one a folder and one a git
repository, and writes `seen.json`: its files after that, and what `plugin list --json` says of
each. `{home}`, `{shop}` and `{work}` stand for the folders.
"""

from __future__ import annotations

import json
import os
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
    for one in (home, work):
        one.mkdir()
    _marketplace(shop, "shop", ("on", "off", "here"))
    _marketplace(far, "far", ("fetched", "lost"))
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **quiet}
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for git in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *git], cwd=far, env=environment, check=True)

    def plugin(*words: str) -> str:
        run = [program, "plugin", *words]
        done = subprocess.run(
            run, cwd=work, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    plugin("marketplace", "add", str(shop))
    (home / ".gitconfig").write_text(f'[url "{far}"]\n\tinsteadOf = {_ADDRESS}\n')
    plugin("marketplace", "add", _ADDRESS)
    for name in ("on@shop", "off@shop", "fetched@far", "lost@far"):
        plugin("install", name)
    plugin("install", "here@shop", "--scope", "project")
    plugin("disable", "off@shop")
    listed = json.loads(plugin("list", "--json"))
    files = {name: (home / ".claude" / name).read_text() for name in _KEPT}
    rows = [{key: one[key] for key in _LISTED if key in one} for one in listed]
    rows = [one for one in rows if not one["id"].endswith("@builtin")]
    text = json.dumps({"version": VERSION, "files": files, "listed": rows})
    for name, path in {"home": home, "shop": shop, "far": far, "work": work}.items():
        text = text.replace(str(path), f"{{{name}}}")
    return json.loads(text)


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
