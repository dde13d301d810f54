"""`.mcp.json`: servers in everybody's form, under trust, below the person's own ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.settings.test_layers import fault, load_all, write
from tui.core.config import McpServer
from tui.core.paths import Folders, folders
from tui.settings import mcp_json, trust
from tui.settings.layers import UNTRUSTED, load, project_file


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def brings(folder: Path, servers: object) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


EVERYBODY: dict[str, object] = {
    "files": {"command": "npx", "args": ["-y", "server-filesystem", "."]},
    "db": {"type": "stdio", "command": "db", "env": {"URL": "${DB:-none}"}, "alwaysAllow": []},
    "docs": {"type": "http", "url": "https://docs.test/mcp", "headers": {"X-Key": "${KEY}"}},
    "old": {"type": "sse", "url": "https://old.test/sse"},
    "new": {"type": "streamable-http", "url": "https://new.test/mcp", "headers": {}},
    "off": {"command": "x", "disabled": True},
    "door": {  # as `claude mcp add --client-id … --callback-port …` of 2.1.332 writes it
        "type": "http",
        "url": "https://door.test/mcp",
        "oauth": {"clientId": "my-id", "callbackPort": 8123, "scopes": "a b"},
    },
}


def test_the_forms_of_other_programs_are_read(home: Folders, workspace: Path) -> None:
    brings(workspace, EVERYBODY)
    loaded = load_all(home, workspace)
    servers = loaded.config.mcp
    assert set(servers) == {"files", "db", "docs", "old", "new", "door"}
    assert servers["files"].words == ("npx", "-y", "server-filesystem", ".")
    assert servers["db"].env == {"URL": "${DB:-none}"}
    assert servers["docs"] == McpServer(
        url="https://docs.test/mcp", headers={"X-Key": "${KEY}"}, type="http"
    )
    assert servers["door"] == McpServer(
        url="https://door.test/mcp",
        type="http",
        client_id="my-id",
        callback_port=8123,
        scopes=("a", "b"),
    )
    assert (servers["old"].type, servers["new"].type) == ("sse", "http")
    assert loaded.ignored == ()
    assert loaded.sources["mcp.docs"].endswith(".mcp.json")


def test_bad_entries_are_named_and_cost_nothing_else(home: Folders, workspace: Path) -> None:
    bad: dict[str, object] = {
        "both": {"command": "x", "url": "http://h"},
        "none": {},
        "number": 3,
        "args": {"command": "x", "args": "y"},
        "kind": {"type": "carrier-pigeon", "url": "http://h"},
        "secret": {"url": "http://h", "headers": {"A": ["tok-hush"]}},
        "good": {"command": "x"},
        "a/b c": {"command": "x"},
    }
    brings(workspace, bad)
    loaded = load_all(home, workspace)
    assert set(loaded.config.mcp) == {"good", "a/b c"}
    reasons = {one.key: one.reason for one in loaded.ignored}
    assert set(reasons) == {f"mcp.{name}" for name in bad if name not in {"good", "a/b c"}}
    assert all(reason.startswith("it is not valid (") for reason in reasons.values())
    assert "exactly one of command and url" in reasons["mcp.both"]
    assert "hush" not in reasons["mcp.secret"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "no object mcpServers"),
        (b'{"mcpServers": [1]}', "no object mcpServers"),
        (b'{"servers": {}}', "no object mcpServers"),
        (b"x" * 2_000_000, "can't be read"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_broken_file_is_named_and_never_fatal(
    home: Folders,
    workspace: Path,
    text: bytes,
    why: str,
) -> None:
    (workspace / ".mcp.json").write_bytes(text)
    loaded = load_all(home, workspace)
    assert loaded.config.mcp == {}
    (one,) = loaded.ignored
    assert why in one.reason
    assert trust.items(workspace) == ()


def test_config_toml_goes_first(home: Folders, workspace: Path) -> None:
    brings(
        workspace,
        {"a": {"command": "theirs"}, "b": {"command": "theirs"}, "c": {"url": "http://h"}},
    )
    write(home.config_file, '[mcp.a]\ncommand = "mine"')
    write(project_file(workspace), '[mcp.b]\ncommand = "ours"')
    servers = load_all(home, workspace).config.mcp
    assert [servers[name].words for name in "abc"] == [("mine",), ("ours",), ()]


def test_each_server_is_trusted_by_itself_and_as_it_is(home: Folders, workspace: Path) -> None:
    def loaded() -> tuple[set[str], set[str]]:
        allows = trust.trust_of(home, workspace).allows
        found = load(folders=home, workspace=workspace, allows=allows, env={}, overrides={})
        return set(found.config.mcp), {one.key for one in found.ignored if one.reason == UNTRUSTED}

    brings(workspace, EVERYBODY)
    does = {item.name: item.does for item in trust.undecided(home, workspace)}
    assert does == {
        ".mcp.json: door": "Connects to https://door.test/mcp (MCP server door)",
        ".mcp.json: files": "Starts npx -y server-filesystem . (MCP server files)",
        ".mcp.json: db": "Starts db (MCP server db) with URL=${DB:-none}, your variables DB",
        ".mcp.json: docs": "Connects to https://docs.test/mcp (MCP server docs) with the header"
        " X-Key, your variables KEY",
        ".mcp.json: old": "Connects to https://old.test/sse (MCP server old)",
        ".mcp.json: new": "Connects to https://new.test/mcp (MCP server new)",
    }
    assert loaded() == (set(), {f"mcp.{name}" for name in EVERYBODY if name != "off"})
    trust.decide(home, workspace, trust.items(workspace), {mcp_json.trust_name("files")})
    assert loaded()[0] == {"files"}
    changed = {**EVERYBODY, "files": {"command": "npx", "args": ["-y", "other"]}}
    brings(workspace, changed)
    assert loaded()[0] == set()
    (item,) = trust.undecided(home, workspace)
    assert item.change == (
        "-Starts npx -y server-filesystem . (MCP server files)",
        "+Starts npx -y other (MCP server files)",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('command = "x"\nurl = "http://h"', "exactly one of command and url"),
        ('command = "x"\nheaders = {a = "b"}', "go with a url"),
        ('url = "http://h"\nargs = ["b"]', "go with a command"),
        ('url = "http://h"\ntype = "stdio"', "go with a command"),
        ('url = "http://h"\nheaders = {a = ["tok-hush"]}', "This value isn't allowed"),
        ("command = 3", "the words of a command"),
    ],
)
def test_what_is_wrong_in_config_toml_is_said_without_values(
    home: Folders,
    workspace: Path,
    text: str,
    says: str,
) -> None:
    error = fault(home, workspace, f"[mcp.x]\n{text}")
    assert says in str(error)
    assert "hush" not in str(error)
