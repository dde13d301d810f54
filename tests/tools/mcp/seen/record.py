"""Spend a day with published MCP servers, and write down what they said:
`python -m tests.tools.mcp.seen.record [NAME…]`.

Not a part of the suite: installs the pinned packages with pip and npm in a temporary folder (or
uses HOLDFAST_SEEN_AT, where they are kept), starts each through our own client inside the walls of
the sandbox, and writes `NAME.jsonl` beside this file: what was asked, what was answered, and what
the client made of it, trimmed. `replay.py` is the server that says the same again.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from tests.support.call_host import FakeHost
from tests.tools.mcp.seen.day import compared, outcome
from tui.agent.confined_programs import McpSandbox
from tui.core.config import McpServer, SandboxSettings
from tui.core.messages import object_of
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.tools.mcp import Servers

HERE: Final = Path(__file__).parent
SILENT_S: Final = 3.0
"""Seconds after which a server that ends was silent, and did not end of what it was asked."""
TEXT_MAX: Final = 100
"""Characters of a text that are kept."""
TOOLS_MAX: Final = 5
"""Parts of a list that are kept."""
SCHEMA_MAX: Final = 1500
DROPPED: Final = frozenset({"icons", "instructions"})
PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)

Step = tuple[Any, ...]


@dataclass(frozen=True)
class Seen:
    """A server: its packages, pinned, the words that start it, and the steps of its day. In words
    and steps `{at}` is where the packages are, `{work}` the folder that it works in."""

    name: str
    by: str
    packages: Sequence[str]
    words: Sequence[str]
    steps: Sequence[Step]
    env: Sequence[tuple[str, str]] = ()


def _npm(path: str) -> tuple[str, ...]:
    return ("node", f"{{at}}/node_modules/{path}")


BAD: Final[Step] = ("call", "no such tool", {})
DAYS: Final = (
    Seen(
        "filesystem-0.6.2",
        "npm",
        ["@modelcontextprotocol/server-filesystem@0.6.2"],
        [*_npm("@modelcontextprotocol/server-filesystem/dist/index.js"), "{work}"],
        [
            ("call", "list_directory", {"path": "{work}"}),
            ("call", "write_file", {"path": "{work}/a.txt", "content": "grüß\n" * 2000}),
            ("call", "read_file", {"path": "{work}/a.txt"}),
            ("call", "read_file", {"path": "/etc/hostname"}),
            ("call", "read_file", {"paths": 1}),
            BAD,
            ("restart",),
            ("call", "list_allowed_directories", {}),
        ],
    ),
    Seen(
        "filesystem-2026.8.31",
        "npm",
        ["@modelcontextprotocol/server-filesystem@2026.8.31"],
        [*_npm("@modelcontextprotocol/server-filesystem/dist/index.js"), "{work}"],
        [
            ("call", "write_file", {"path": "{work}/a.txt", "content": "grüß\n" * 2000}),
            ("call", "read_text_file", {"path": "{work}/a.txt", "head": 2}),
            ("call", "read_text_file", {"path": "{work}/a.txt"}),
            ("call", "read_media_file", {"path": "{work}/pixel.png"}),
            ("call", "read_text_file", {"path": "/etc/hostname"}),
            ("call", "read_text_file", {"paths": 1}),
            BAD,
        ],
    ),
    Seen(
        "everything-0.6.2",
        "npm",
        ["@modelcontextprotocol/server-everything@0.6.2"],
        _npm("@modelcontextprotocol/server-everything/dist/index.js"),
        [
            ("call", "echo", {"message": "hello"}),
            ("call", "add", {"a": "x"}),
            ("call", "getTinyImage", {}),
            ("call", "sampleLLM", {"prompt": "hello"}),
            BAD,
            ("read", "test://static/resource/1"),
            ("read", "test://static/resource/2"),
            ("read", "test://nothing"),
            ("prompt", "complex_prompt", "0.5 formal"),
            ("prompt", "simple_prompt", ""),
            ("cancel", "longRunningOperation", {"duration": 60, "steps": 60}),
            ("call", "echo", {"message": "still here"}),
        ],
    ),
    Seen(
        "everything-2026.8.31",
        "npm",
        ["@modelcontextprotocol/server-everything@2026.8.31"],
        _npm("@modelcontextprotocol/server-everything/dist/index.js"),
        [
            ("call", "echo", {"message": "hello"}),
            ("call", "echo", {"text": 1}),
            ("call", "get-structured-content", {"location": "New York"}),
            ("call", "get-structured-content", {"location": "Nowhere"}),
            ("call", "get-tiny-image", {}),
            ("call", "get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("call", "get-resource-links", {"count": 2}),
            ("call", "get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
            BAD,
            ("read", "demo://resource/dynamic/text/1"),
            ("read", "demo://resource/nothing"),
            ("prompt", "args-prompt", "Berlin"),
            ("prompt", "resource-prompt", "Text 1"),
            ("cancel", "trigger-long-running-operation", {"duration": 60, "steps": 60}),
            ("restart",),
            ("call", "echo", {"message": "again"}),
        ],
    ),
    Seen(
        "memory-2025.4.25",
        "npm",
        ["@modelcontextprotocol/server-memory@2025.4.25"],
        _npm("@modelcontextprotocol/server-memory/dist/index.js"),
        [
            ("call", "read_graph", {}),
            ("call", "create_entities", {"entities": 1}),
            (
                "call",
                "create_entities",
                {"entities": [{"name": "a", "entityType": "t", "observations": ["x"]}]},
            ),
            ("call", "search_nodes", {"query": "a"}),
            BAD,
        ],
        (("MEMORY_FILE_PATH", "{work}/memory.json"),),
    ),
    Seen(
        "sequential-thinking-2025.7.1",
        "npm",
        ["@modelcontextprotocol/server-sequential-thinking@2025.7.1"],
        _npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
        [
            (
                "call",
                "sequentialthinking",
                {
                    "thought": "a",
                    "nextThoughtNeeded": False,
                    "thoughtNumber": 1,
                    "totalThoughts": 1,
                },
            ),
            ("call", "sequentialthinking", {"thought": 3}),
            BAD,
        ],
    ),
    Seen(
        "kubernetes-0.0.67",
        "npm",
        ["kubernetes-mcp-server@0.0.67"],
        [*_npm("kubernetes-mcp-server/bin/index.js"), "--kubeconfig", "{work}/kubeconfig"],
        [
            ("call", "configuration_view", {}),
            ("call", "pods_list", {}),
            ("call", "pods_get", {"nome": 1}),
            BAD,
        ],
    ),
    Seen(
        "playwright-0.0.83",
        "npm",
        ["@playwright/mcp@0.0.83"],
        [*_npm("@playwright/mcp/cli.js"), "--headless"],
        [
            ("call", "browser_tabs", {"action": "list"}),
            ("call", "browser_navigate", {"url": 1}),
            ("call", "browser_navigate", {"url": "http://127.0.0.1:9/"}),
            BAD,
        ],
    ),
    Seen(
        "chrome-devtools-1.11.0",
        "npm",
        ["chrome-devtools-mcp@1.11.0"],
        [*_npm("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"), "--headless"],
        [("call", "list_pages", {}), ("call", "navigate_page", {"url": 1}), BAD],
    ),
    Seen(
        "notion-2.5.2",
        "npm",
        ["@notionhq/notion-mcp-server@2.5.2"],
        _npm("@notionhq/notion-mcp-server/bin/cli.mjs"),
        [("call", "API-get-self", {}), ("call", "API-get-user", {"user": 1}), BAD],
        (("NOTION_TOKEN", "x"),),
    ),
    Seen(
        "sqlite-0.6.2",
        "pip",
        ["mcp-server-sqlite==0.6.2", "mcp==1.1.2"],
        ["{at}/bin/mcp-server-sqlite", "--db-path", "{work}/t.db"],
        [
            ("call", "create-table", {"query": "create table t (a text)"}),
            ("call", "write-query", {"query": "insert into t values ('grüß')"}),
            ("call", "read-query", {"query": "select * from t"}),
            ("call", "read-query", {"query": "select nope"}),
            ("call", "read-query", {}),
            BAD,
            ("read", "memo://insights"),
            ("prompt", "mcp-demo", "bees"),
            ("restart",),
            ("call", "read-query", {"query": "select count(*) from t"}),
        ],
    ),
    Seen(
        "git-0.6.2",
        "pip",
        ["mcp-server-git==0.6.2", "mcp==1.1.2"],
        ["{at}/bin/mcp-server-git"],
        [
            ("call", "git_status", {"repo_path": "{work}"}),
            ("call", "git_log", {"repo_path": "{work}"}),
            ("call", "git_status", {"repo_path": "/nowhere"}),
            ("call", "git_status", {}),
            BAD,
        ],
    ),
    Seen(
        "fetch-2025.4.7",
        "pip",
        ["mcp-server-fetch==2025.4.7", "mcp==1.12.4", "pydantic==2.11.10"],
        ["{at}/bin/mcp-server-fetch"],
        [
            ("call", "fetch", {"url": "http://127.0.0.1:9/"}),
            ("call", "fetch", {"url": 1}),
            BAD,
            ("prompt", "fetch", "http://127.0.0.1:9/"),
        ],
    ),
    Seen(
        "excel-2.2.2",
        "pip",
        ["excel-mcp-server==2.2.2"],
        ["{at}/bin/excel-mcp-server", "stdio"],
        [
            ("call", "create_workbook", {"path": "{work}/a.xlsx"}),
            ("call", "describe_workbook", {"path": "{work}/a.xlsx"}),
            ("call", "describe_workbook", {"path": 3}),
            ("call", "describe_workbook", {"path": "{work}/none.xlsx"}),
            BAD,
        ],
    ),
    Seen(
        "motherduck-1.1.0",
        "pip",
        ["mcp-server-motherduck==1.1.0"],
        ["{at}/bin/mcp-server-motherduck", "--db-path", ":memory:", "--read-write"],
        [
            ("call", "execute_query", {"sql": "select 1 as a"}),
            ("call", "execute_query", {"sql": "select nope"}),
            ("call", "execute_query", {}),
            BAD,
        ],
    ),
    Seen(
        "docling-rs-2.52.7",
        "pip",
        ["docling-rs-mcp==2.52.7"],
        ["{at}/bin/docling-rs-mcp"],
        [
            ("call", "convert", {"uri": "{work}/page.html", "to": "markdown"}),
            ("call", "convert", {"to": 3}),
            BAD,
        ],
    ),
    Seen(
        "cnb-rs-mcp-1.3.0",
        "pip",
        ["cnb-rs-mcp==1.3.0"],
        ["{at}/bin/cnb-rs-mcp"],
        [("call", "get_user", {}), BAD],
    ),
)


def install(seen: Seen, at: Path) -> Path:
    """Install the packages of a server, unless they are there."""
    place = at / seen.name
    if place.exists():
        return place
    place.mkdir(parents=True)
    if seen.by == "npm":
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *seen.packages]
        subprocess.run(command, cwd=place, check=True)
    else:
        venv.create(place, with_pip=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", *seen.packages], check=True)
    return place


def prepare(work: Path) -> None:
    """Make the files that the days need."""
    import base64  # noqa: PLC0415 - here only

    (work / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    (work / "page.html").write_text("<h1>A page</h1><p>With words.</p>")
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "x"}}
    kinds: dict[str, Any] = {"clusters": [cluster], "contexts": [context], "users": [user]}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", **kinds}
    (work / "kubeconfig").write_text(json.dumps(config))
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)


async def record(seen: Seen, at: Path, place: Path) -> list[dict[str, Any]]:
    """Spend its day with a server. Returns what was said, and what became of it."""
    work, home = place / "work", place / "home"
    work.mkdir(parents=True)
    home.mkdir()
    prepare(work)

    def filled(value: Any) -> Any:
        text = json.dumps(value).replace("{at}", str(at)).replace("{work}", str(work))
        return json.loads(text)

    wire = work / "wire.jsonl"
    tee = [sys.executable, str(HERE / "tee.py"), str(wire), *filled(list(seen.words))]
    config = McpServer(command=tuple(tee), env=dict(filled(list(seen.env))), sandbox="workspace")
    settings = msgspec.convert({}, SandboxSettings)
    confinement = Confinement(
        settings, Workspace.at(work, ceiling="/"), place / "session", place / "cache"
    )
    servers = Servers(
        {"seen": config},
        cwd=work,
        log_folder=place,
        environment={"PATH": os.environ["PATH"], "HOME": str(home)},
        sandbox=McpSandbox(confinement),
    )
    servers.start()
    await servers.settled()
    (server,) = servers.all
    lines: list[dict[str, Any]] = [
        {"state": server.state, "detail": server.detail, "left_out": server.left_out}
    ]
    lines += [
        {"did": step, "got": await outcome(server, step, FakeHost())}
        for step in filled(list(seen.steps))
    ]
    await servers.close()
    said = [json.loads(line) for line in wire.read_text().splitlines()]
    everything = json.dumps([*pairs(said), *lines], ensure_ascii=False)
    for path, word in ((at, "/at"), (work, "/project"), (home, "/home"), (place, "/place")):
        everything = everything.replace(str(path), word)
    return [
        {"did": trimmed(line["did"]), "got": compared(line["got"])}
        if "got" in line
        else trimmed(line)
        for line in json.loads(everything)
    ]


def pairs(said: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each request of ours with its answer; `said` are the other lines that came before that.

    One without an answer has `ended`: what the server ended with, "silent" where it answered
    nothing more, or "ignored" where it went on with others.
    """
    asked: dict[Any, dict[str, Any]] = {}
    others: list[Any] = []
    since: dict[Any, float] = {}
    went_on: set[Any] = set()
    end: dict[str, Any] = {"started": False, "at": said[-1]["at"] + SILENT_S}
    for entry in [*said, end]:
        if "sent" in entry:
            message = json.loads(entry["sent"])
            if "id" in message and "method" in message:
                params = dict(message.get("params") or {})
                params.pop("_meta", None)
                asked[message["id"]] = {"ask": message["method"], "params": params}
                since[message["id"]] = entry["at"]
                if message["method"] == "subscriptions/listen":
                    went_on.add(message["id"])
        elif "said" in entry:
            try:
                message = json.loads(entry["said"])
            except ValueError:
                others.append(entry["said"])
                continue
            if "method" in message or message.get("id") not in asked:
                others += [message] if message.get("method") != "notifications/progress" else []
                continue
            answered = asked.pop(message["id"])
            went_on |= asked.keys()
            kind = "error" if "error" in message else "result"
            yield {**answered, kind: message[kind], **({"said": others} if others else {})}
            others = []
        else:
            waited = entry["at"] - min((since[one] for one in asked), default=0.0)
            quick = "ended" in entry and waited < SILENT_S
            ignored = [one for id_, one in asked.items() if id_ in went_on]
            yield from ({**one, "ended": "ignored"} for one in ignored)
            for one in [one for id_, one in asked.items() if id_ not in went_on][:1]:
                yield {**one, "ended": entry["ended"] if quick else "silent"}  # the others follow
            asked, went_on = {}, set()


def once(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Lines without those that say the same again."""
    seen: set[str] = set()
    for line in lines:
        text = json.dumps(line)
        if "ask" not in line or text not in seen:
            yield line
        seen.add(text)


def trimmed(value: Any, key: str = "") -> Any:
    """What was said, without most of its words."""
    match value:
        case str():
            if key in {"data", "blob"} and len(value) > len(PIXEL):
                return PIXEL
            return value if len(value) <= TEXT_MAX else value[:TEXT_MAX] + "…"
        case list():
            most = TOOLS_MAX if key in {"tools", "resources"} else 40
            return [trimmed(one) for one in cast("list[Any]", value)[:most]]
        case dict():
            fields = cast("dict[str, Any]", value)
            kept: dict[str, Any] = {n: one for n, one in fields.items() if n not in DROPPED}
            if key == "inputSchema" and len(json.dumps(kept)) > SCHEMA_MAX:
                few = [*object_of(kept.get("properties")).items()][:2]
                kept = {**kept, "properties": dict(few), "required": [], "$defs": {}}
            return {name: trimmed(one, name) for name, one in kept.items()}
        case _:
            return value


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(os.environ.get("HOLDFAST_SEEN_AT") or Path(folder) / "at")
        for seen in DAYS:
            if names and seen.name not in names:
                continue
            place = Path(folder) / seen.name
            lines = [*once(asyncio.run(record(seen, install(seen, at), place)))]
            head = {
                "server": seen.name,
                "packages": seen.packages,
                "seen": datetime.now(UTC).date().isoformat(),
            }
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [head, *lines])
            (HERE / f"{seen.name}.jsonl").write_text(text)
            print(seen.name, len(text), *(f"\n  {line}" for line in lines if "ask" not in line))


if __name__ == "__main__":
    main(sys.argv[1:])
