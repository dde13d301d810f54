"""Ask the real Claude Code again which calls the rules of `rules.jsonl` forbid: `python -m
tests.settings.claude_hooks.record_rules OUT.jsonl`; installs it as `record` does.

Each list of rules is tried with the same calls, one after another, where all else is allowed
(`--dangerously-skip-permissions`): what is refused, a rule refused.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.settings.claude_hooks import rules
from tests.settings.claude_hooks.record import installed, run

MCP_SERVER: Final = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    r = {}
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        version = m["params"]["protocolVersion"]
        info = {"name": "x", "version": "1"}
        r = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif m["method"] == "tools/list":
        schema = {"type": "object", "properties": {}}
        names = ("one", "two")
        r = {"tools": [{"name": n, "description": n, "inputSchema": schema} for n in names]}
    elif m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": "called " + m["params"]["name"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
FILES: Final = {
    "mcp.py": MCP_SERVER,
    "a.txt": "a\n",
    ".env": "SECRET=1\n",
    "src/a.txt": "a\n",
    "src/.env": "SECRET=2\n",
    "src/deep/b.txt": "b\n",
    ".claude/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: tidy up\n---\nTidy.\n",
}
COMMANDS: Final = (
    "git status",
    "git",
    "gitk --version",
    "echo a; git status",
    "cd src && git status",
    "A=1 git status",
    "timeout 5 git status",
    "sh -c 'git status'",
    "echo $(git status)",
    "echo hi",
    "cat .env",
)
READ: Final = ("a.txt", ".env", "src/a.txt", "src/.env", "src/deep/b.txt", "/etc/hostname", "~/x/y")
WRITTEN: Final = ("src/new.txt", "new.txt")
OTHERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "WebFetch": ("WebFetch", {"url": "http://127.0.0.1:9/x", "prompt": "p"}),
    "WebSearch": ("WebSearch", {"query": "q q"}),
    "mcp__x__one": ("mcp__x__one", {}),
    "mcp__x__two": ("mcp__x__two", {}),
    "Agent Explore": ("Agent", {"description": "d", "prompt": "p", "subagent_type": "Explore"}),
    "Skill tidy": ("Skill", {"skill": "tidy"}),
}
REFUSED: Final = ("denied", "No such tool", "permission")
"""Words of a refusal."""


def calls() -> dict[str, dict[str, Any]]:
    """The calls by their names."""
    made = {
        command.split(" --")[0]: ("Bash", {"command": command, "description": "x"})
        for command in COMMANDS
    }
    for path in READ:
        made[f"Read {path}"] = ("Read", {"file_path": path.replace("~/", "/home/")})
    for path in WRITTEN:
        made[f"Write {path}"] = ("Write", {"file_path": f"/project/{path}", "content": "n\n"})
    return {name: {"tool": tool, "input": given} for name, (tool, given) in (made | OTHERS).items()}


def refused(program: str, deny: list[str], root: Path) -> dict[str, Any]:
    """Return the calls that a list of rules forbids, and the first words about them."""
    tried = calls()
    server = {"command": "python3", "args": ["/project/mcp.py"]}
    case = {
        "case": "rules",
        "prompt": "go",
        "settings": {"permissions": {"deny": deny}},
        "turns": [*([call] for call in tried.values()), [{"text": "done"}]],
        "files": FILES,
        "home": {"x/y": "y\n", ".claude.json": {"mcpServers": {"x": server}}},
        "args": ["--dangerously-skip-permissions"],
        "env": {"IS_SANDBOX": "1"},
    }
    results = run(program, case, root)["results"]
    told = {name: results.get(f"toolu_{n:02}00", "") for n, name in enumerate(tried, 1)}
    denied = {name: text for name, text in told.items() if any(one in text for one in REFUSED)}
    return {"deny": deny, "refused": list(denied), "words": sorted(set(denied.values()))[:1]}


def main(out: str) -> None:
    with installed() as program, Path(out).open("w", encoding="utf-8") as file:
        for row in rules():
            with tempfile.TemporaryDirectory(prefix="cc-") as root:
                seen = refused(program, row["deny"], Path(root))
            file.write(json.dumps(seen, ensure_ascii=False) + "\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
