"""Let the real Codex, opencode and pi read settings, and write down what they do with them:
`python -m tests.settings.other_agents.record OUT.jsonl`. Not a part of the suite; needs npm and
strace.

Each is installed with npm in a temporary folder and gets a home of its own there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = {
    "codex": "@openai/codex@0.171.0",
    "opencode": "opencode-ai@1.18.33",
    "pi": "@mariozechner/pi-coding-agent@0.73.1",
}
CODEX: Final = """
nonsense = 1
[mcp_servers.r]
url = "http://127.0.0.1:9/mcp"
bearer_token_env_var = "TOK"
"""
RULES: Final = 'prefix_rule(pattern=["git","push"], decision="forbidden")\n'
OPENCODE: Final = """{ // a comment
  "nonsense": 1,
  "permission": {"edit": "ask", "bash": {"git push*": "deny", "*": "ask"}, "webfetch": "deny"},
  "mcp": {"l": {"type": "local", "command": ["x", "y"], "environment": {"A": "1"}},},
}"""
NOISE: Final = re.compile(r"sqlite|/sessions|\.tmp|/\.system|\.git|/tmp/|lock|node_modules|/state/")


def rows(install: Path, home: Path) -> Iterator[dict[str, Any]]:
    """Yield what each program did."""
    bin_ = install / "node_modules/.bin"
    folders = (home / ".codex/rules", home / ".config/opencode", home / "work")
    for folder in folders:
        folder.mkdir(parents=True)
    (home / ".codex/config.toml").write_text(CODEX)
    (home / ".codex/rules/default.rules").write_text(RULES)
    (home / ".config/opencode/opencode.jsonc").write_text(OPENCODE)
    codex = [str(bin_ / "codex"), "exec", "--skip-git-repo-check", "hi"]
    said = ran(codex, home)
    warned = re.findall(r"^ +user .*`(\w+)` is ignored", said, re.MULTILINE)
    yield {"program": "codex", "asked": "exec", "ignored": sorted(set(warned))}
    yield {"program": "codex", "asked": "files it looks for", "seen": opened(codex, home)}
    opencode = str(bin_ / "opencode")
    yield {"program": "opencode", "asked": "debug config", "seen": parsed(opencode, home, "config")}
    agent = parsed(opencode, home, "agent", "build")
    yield {
        "program": "opencode",
        "asked": "debug agent build: permissions in their order",
        "seen": [one for one in agent["permission"] if one["permission"] in {"bash", "webfetch"}],
    }
    skill = [opencode, "debug", "skill"]
    yield {"program": "opencode", "asked": "files it looks for", "seen": opened(skill, home)}
    kit = install / "node_modules/@mariozechner/pi-coding-agent/dist/core/settings-manager.d.ts"
    body = kit.read_text().split("export interface Settings {")[1].split("\n}")[0]
    keys = re.findall(r"^ {4}(\w+)\?:", body, re.MULTILINE)
    yield {"program": "pi", "asked": "keys of settings.json in its types", "seen": keys}


def environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }


def ran(command: list[str], home: Path) -> str:
    done = subprocess.run(
        ["timeout", "45", *command],  # one goes on asking for a server that is not there
        cwd=home / "work",
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout + done.stderr


def opened(command: list[str], home: Path) -> list[str]:
    """The names below its home that a program looks for."""
    trace = home / "trace"
    calls = "trace=openat,stat,newfstatat,statx"
    ran(["strace", "-f", "-qq", "-e", calls, "-o", str(trace), *command], home)
    names = re.findall(rf'"{re.escape(str(home))}/([^"]+)"', trace.read_text(errors="replace"))
    return sorted({name for name in names if name.startswith(".") and not NOISE.search(f"/{name}")})


def parsed(program: str, home: Path, *words: str) -> dict[str, Any]:
    text = ran([program, "debug", *words], home)
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def main(out: str) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        given = os.environ.get("OTHER_AGENTS")
        if not given:
            npm = ["npm", "install", "--silent", "--no-save", *PACKAGES.values()]
            subprocess.run(npm, cwd=folder, check=True)
        with Path(out).open("w", encoding="utf-8") as file:
            for row in rows(Path(given or folder), Path(home)):
                versioned = {"version": PACKAGES[row["program"]].rpartition("@")[2], **row}
                text = json.dumps(versioned, ensure_ascii=False).replace(home, "/home")
                file.write(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
