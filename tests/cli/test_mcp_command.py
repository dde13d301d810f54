"""`holdfast mcp add`, `list` and `remove`: the file afterwards, and real servers."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.clock import PATIENCE_S
from tui.cli import main, mcp
from tui.core.paths import folders
from tui.settings import trust
from tui.settings.layers import project_file
from tui.tools.mcp import connection

Run: TypeAlias = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[2]
OURS = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from tests.tools.mcp.server import server; server.run('stdio')"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `mcp` with words; returns the exit code, stdout and stderr."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    for name in ("PROBE_S", "START_S"):  # a busy machine starts a Python slowly
        monkeypatch.setattr(connection, name, PATIENCE_S)
    monkeypatch.setattr(mcp, "SETTLED_S", 2 * PATIENCE_S)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def run_(*words: str) -> tuple[int, str, str]:
        code = main.main(["mcp", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_


def saved() -> dict[str, object]:
    return tomllib.loads(folders().config_file.read_text())["mcp"]


def test_a_command_is_added_listed_and_removed(run: Run) -> None:
    words = ("add", "odd", "--env", "A=b=c", "--env", "E=", "--", sys.executable, "-c", OURS)
    code, _, err = run(*words)
    assert (code, saved()) == (
        0,
        {"odd": {"command": sys.executable, "args": ["-c", OURS], "env": {"A": "b=c", "E": ""}}},
    )
    assert "Added odd to" in err
    code, out, _ = run("list")
    assert code == 0
    assert out == "odd  ready  7 tools  odd things 1.2\n"
    code, out, _ = run("list", "--json")
    (one,) = json.loads(out)
    assert (one["name"], one["state"], one["tools"]) == ("odd", "ready", 7)
    assert run("remove", "odd")[0] == 0
    assert folders().config_file.read_text().strip() == "#:schema ./config.schema.json"
    code, out, err = run("list")
    assert (code, out) == (0, "")
    assert "No MCP servers" in err


def test_an_address_is_added_with_headers(run: Run) -> None:
    given = ("--header", "Authorization: Bearer ${T}", "--header", "X-A=1:2", "--type", "sse")
    assert run("add", "--scope", "user", "docs", *given, "https://docs.test/sse")[0] == 0
    headers = {"Authorization": "Bearer ${T}", "X-A": "1:2"}
    assert saved() == {"docs": {"url": "https://docs.test/sse", "type": "sse", "headers": headers}}


def test_a_client_to_sign_in_with_is_added(run: Run) -> None:
    words = ("door", "https://door.test/mcp", "--client-id", "my-id")
    assert run("add", *words, "--callback-port", "8123")[0] == 0
    door = {"url": "https://door.test/mcp", "client_id": "my-id", "callback_port": 8123}
    assert saved() == {"door": door}


def test_comments_and_other_servers_stay(run: Run) -> None:
    file = folders().config_file
    file.parent.mkdir(parents=True)
    text = (
        '# mine\nmodel = "m" # why\n\n[mcp.a]\n# about a\ncommand = ["x", "y"]\n\n'
        '[retry]\nmax_attempts = 2\n\n[mcp.b]\ncommand = "z"\nenv = { K = "v" } # inline\n'
    )
    file.write_text(text)
    assert run("add", "new", "--env", "K=v", "--", "cmd")[0] == 0
    assert file.read_text() == text + '\n[mcp.new]\ncommand = "cmd"\n\n[mcp.new.env]\nK = "v"\n'
    assert run("remove", "new")[0] == 0
    assert file.read_text().strip() == text.strip()
    assert run("remove", "b")[0] == 0
    assert set(saved()) == {"a"}
    assert "# about a" in file.read_text()
    assert "max_attempts = 2" in file.read_text()
    assert run("remove", "a")[0] == 0
    assert '# mine\nmodel = "m" # why\n' in file.read_text()


def test_a_server_for_the_project_is_trusted_here(run: Run) -> None:
    assert run("add", "odd", "--scope", "project", "--", sys.executable, "-c", OURS)[0] == 0
    work = Path.cwd()
    assert "odd" in project_file(work).read_text()
    assert trust.undecided(folders(), work) == ()
    assert run("list")[1].startswith("odd  ready")
    assert run("remove", "odd", "--scope", "user")[0] == 2
    assert run("remove", "odd")[0] == 0


def test_servers_of_mcp_json_need_trust_and_are_not_removed(run: Run) -> None:
    touched = Path.cwd() / "touched"
    servers = {"evil": {"command": sys.executable, "args": ["-c", f"open({str(touched)!r}, 'w')"]}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers | {"bad": {}}}))
    code, out, err = run("list")
    assert (code, out.split()[:2]) == (0, ["evil", "untrusted"])
    assert "No MCP servers" not in err
    assert "mcp.evil: not applied, because you have not trusted it." in err
    assert "mcp.bad: not applied, because" in err
    assert "give exactly one of command and url)" in err
    assert not touched.exists()
    (told,) = json.loads(run("list", "--json")[1])
    assert (told["name"], told["state"], told["tools"]) == ("evil", "untrusted", 0)
    assert run("list", "--trust")[1].startswith("evil  failed")
    assert touched.exists()
    code, _, err = run("remove", "evil")
    assert code == 2
    assert ".mcp.json: remove it there" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add",), "NAME"),
        (("add", "x"), "Give either an address, or a command behind --."),
        (("add", "x", "http://h", "--", "cmd"), "Give either an address, or a command behind --."),
        (("add", "x", "npx"), "npx isn't an address"),
        (("add", "x", "npx", "more"), "Put -- in front of a command"),
        (("add", "x", "--env", "K", "--", "c"), "--env number 1 isn't K=V"),
        (("add", "x", "--env", "K=v", "http://h"), "--env is for a command"),
        (("add", "x", "--header", "K=v", "--", "c"), "--type and --client-id are for an address"),
        (("add", "x", "http://"), "an http:// or https:// address"),
        (("add", "x", "--type", "stdio", "http://h"), "invalid choice"),
        (("remove", "nothing"), "No config.toml has an MCP server nothing."),
        (("nothing",), "isn't one of: add, list, remove, login, logout"),
    ],
)
def test_what_is_wrong_is_said(run: Run, words: tuple[str, ...], says: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert says in err
    assert not os.path.exists(folders().config_file)


def test_a_name_that_is_there_is_not_overwritten(run: Run) -> None:
    assert run("add", "x", "--", "one")[0] == 0
    code, _, err = run("add", "x", "--", "two")
    assert code == 2
    assert "holdfast mcp remove x" in err
    assert saved() == {"x": {"command": "one"}}


def test_a_broken_file_is_not_changed(run: Run) -> None:
    file = folders().config_file
    file.parent.mkdir(parents=True)
    file.write_text("[mcp")
    for words in (("add", "x", "--", "c"), ("remove", "x")):
        code, _, err = run(*words)
        assert code == 2
        assert "is not valid TOML" in err
    assert file.read_text() == "[mcp"


def test_signing_in_and_out_of_a_server_that_is_not_there(run: Run) -> None:
    for action in ("login", "logout"):
        code, _, err = run(action, "docs")
        assert code == 2
        assert "No MCP server docs here." in err
