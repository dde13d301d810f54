"""`holdfast rescue`: the copy, what is said about it, and the other program's own word."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import foreign, opencode_database
from tests.support.terminal import HOLDFAST
from tui.cli.main import main

Rescue = Callable[..., tuple[int, list[str], list[str]]]
Install = Callable[..., Path]

WALLS = """#!/bin/bash
(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && {{ echo "Error: it has a network"; exit 1; }}
[ -e "{secret}" ] && {{ echo "Error: it sees files"; exit 1; }}
[ -n "$OPENAI_API_KEY" ] && {{ echo "Error: it has a key"; exit 1; }}
"""
"""Every program: it stops where it is not in the sandbox."""
NODE = """
file="${@: -1}"
[ -n "$(find "$HOME" -name session.jsonl)" ] || exit 1
head -1 "$file" | grep -q '"session"' && ! grep -q "refuse me" "$file" && exit 0
echo "Error: Session file is not valid" >&2
exit 1
"""
CODEX = """
while read -r line; do
  echo '{"method": "told", "params": {}}'
  case "$line" in
    *initialize*) echo '{"id": 1, "result": {}}' ;;
    *thread/list*) echo '{"id": 2, "result": {}}' ;;
    *thread/resume*)
      if grep -rq "refuse me" "$CODEX_HOME"; then
        echo '{"id": 3, "error": {"code": 1, "message": "it is not mine"}}'
      else
        echo '{"id": 3, "result": {}}'
      fi ;;
  esac
done
"""
OPENCODE = """
[ "$1" = --version ] && exit 0
database="$HOME/.local/share/opencode/opencode.db"
grep -q "a secret" "$database" && { echo "Error: signed in"; exit 1; }
grep -q "refuse me" "$database" && { echo "Error: Session not found"; exit 1; }
echo "{}"
"""


@pytest.fixture
def rescue(own_folders: Path, capfd: pytest.CaptureFixture[str]) -> Rescue:
    """Runs the command: its exit code, and the lines that it prints and says of errors."""
    del own_folders

    def run(*words: str | Path) -> tuple[int, list[str], list[str]]:
        code = main(["rescue", *map(str, words)])
        out, err = capfd.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a program in PATH, which has no other agent's otherwise."""
    folder, secret = tmp_path / "bin", tmp_path / "secret"
    folder.mkdir()
    secret.touch()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        walls = WALLS.format(port=server.getsockname()[1], secret=secret)

        def install(name: str, text: str, place: Path = folder) -> Path:
            path = place / name
            path.write_text(walls + text)
            path.chmod(0o755)
            return path

        yield install


def install_pi(install: Install) -> None:
    node = install("node", NODE)
    package = node.parents[1] / "node_modules" / "pi" / "dist"
    (package / "core").mkdir(parents=True)
    (package / "core" / "session-manager.js").touch()
    (node.parent / "pi").symlink_to(install("cli.js", "", package))


def checked(lines: list[str]) -> list[str]:
    """What was printed, where a sandbox can be built."""
    if any("no sandbox here" in line for line in lines):
        pytest.skip("no sandbox here")
    return lines


def broken(path: Path, made: bytes) -> bytes:
    """A file whose first line is lost, and whose second is cut."""
    lines = made.splitlines(keepends=True)
    path.write_bytes(b"".join([lines[1][:20] + b"\n", *lines[2:]]))
    return path.read_bytes()


def test_a_copy_is_mended_and_the_original_stays(
    rescue: Rescue, programs: Install, tmp_path: Path
) -> None:
    del programs
    path = tmp_path / f"rollout-2026-02-10T22-00-00-{foreign.CODEX_ID}.jsonl"
    before = broken(path, foreign.codex().bytes())
    code, out, err = rescue(path)
    copy = path.with_suffix(".rescued.jsonl")
    assert (code, err) == (0, [])
    assert out == [
        "A session of Codex. Mended in a copy:",
        "  line 1: not a JSON object: set aside",
        "  the first record was missing: one was made",
        f"Copy: {copy}",
        f"What was changed or taken out, as it was: {copy}.set-aside",
        (
            "To open it: put it in its old place below ~/.codex/sessions, under its old name, then"
            " `codex resume`."
        ),
        "Not checked with Codex itself: it isn't installed here.",
        f"Holdfast opens it, too: `holdfast sessions import {path}`",
    ]
    assert path.read_bytes() == before
    first = json.loads(copy.read_bytes().splitlines()[0])
    assert first["payload"]["id"] == foreign.CODEX_ID, "from the file's name"
    assert first["payload"]["cwd"] == foreign.CWD
    for made in (copy, Path(f"{copy}.set-aside")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_a_copy_is_never_written_over(rescue: Rescue, programs: Install, tmp_path: Path) -> None:
    del programs
    path, out = tmp_path / "s.jsonl", tmp_path / "mine.jsonl"
    broken(path, foreign.pi().bytes())
    out.write_text("mine")
    code, _, err = rescue(path, "--out", out)
    assert code != 0
    assert str(out) in err[0]
    assert out.read_text() == "mine"


@pytest.mark.parametrize("name", ["pi", "codex"])
def test_the_program_itself_is_asked_offline_and_signed_out(
    rescue: Rescue, programs: Install, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "s.jsonl"
    broken(path, (foreign.pi() if name == "pi" else foreign.codex()).bytes())
    _, out, _ = rescue(path, "--out", tmp_path / "first.jsonl")
    assert "itself: it isn't installed here." in out[-2]
    install_pi(programs)
    programs("codex", CODEX)
    _, out, _ = rescue(path, "--out", tmp_path / "second.jsonl")
    assert checked(out)[-1].endswith("itself opens it, offline and in a scratch folder.")
    path.write_bytes(path.read_bytes().replace(b"prompt 1", b"refuse me"))
    _, out, _ = rescue(path, "--out", tmp_path / "third.jsonl")
    assert "still refuses it: " in out[-2]
    assert out[-1] == f"Holdfast opens it, too: `holdfast sessions import {path}`"


def test_a_database_of_opencode(rescue: Rescue, programs: Install, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    opencode_database.make(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE part SET data = '{' WHERE id = 'prt_003a'")
        db.commit()
    code, out, err = rescue(path)
    copy = tmp_path / "opencode.rescued.db"
    assert (code, err) == (0, [])
    assert out[:4] == [
        "A database of opencode. Mended in a copy:",
        "  part prt_003a: not readable, set aside",
        f"Copy: {copy}",
        f"What was changed or taken out, as it was: {copy}.set-aside",
    ]
    assert out[-2:] == [
        "Not checked with opencode itself: it isn't installed here.",
        f"Holdfast opens its sessions, too: `holdfast sessions import {copy}`",
    ]
    programs("opencode", OPENCODE)
    verdict = "Checked: opencode itself opens it, offline and in a scratch folder."
    assert checked(rescue(copy)[1]) == [
        "Nothing to mend in this database of opencode: no copy was made.", verdict
    ]  # fmt: skip
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT value FROM credential").fetchall() == [("a secret",)]
        db.execute("UPDATE part SET data = replace(data, 'prompt 2', 'refuse me')")
        db.commit()
    assert rescue(path, "--out", tmp_path / "b.db")[1][-2] == (
        "opencode still refuses it: Error: Session not found"
    )
    code, _, err = rescue(path, "--out", copy)
    assert code != 0
    assert str(copy) in err[0]
    path.write_bytes(path.read_bytes()[:3000])
    code, _, err = rescue(path)
    assert code == 4
    assert f"Can't mend {path}: " in err[0]


def test_json_has_the_same_facts(rescue: Rescue, programs: Install, tmp_path: Path) -> None:
    install_pi(programs)
    path = tmp_path / "s.jsonl"
    path.write_bytes(foreign.pi().bytes())
    _, out, _ = rescue("--json", path)
    assert json.loads("".join(checked(out))) == {
        "format": "pi", "repairs": [], "copy": None, "set_aside": None, "opens": True,
        "refused": "", "unchecked": "",
    }  # fmt: skip
    (tmp_path / "bin" / "pi").unlink()
    _, out, _ = rescue("--json", path)
    assert json.loads("".join(out))["opens"] is None


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b'{"a": 1}\n', bytes(range(256)) * 16])
def test_what_is_no_session_is_an_error_that_says_so(
    rescue: Rescue, programs: Install, tmp_path: Path, content: bytes | None
) -> None:
    del programs
    path = tmp_path / "s.jsonl"
    if content is not None:
        path.write_bytes(content)
    code, out, err = rescue(path)
    assert (code, out) == (4, [])
    assert str(path) in err[0]


def test_a_full_disk_is_no_damage(own_folders: Path, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    opencode_database.make(path, 300)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE part SET data = '{' WHERE id = 'prt_003a'")
        db.commit()
    del own_folders
    line = f"ulimit -f 100; exec {shlex.join([*HOLDFAST, 'rescue', str(path)])}"
    # Python 3.11 keeps what the limit lets through of a compiled module, which ends later programs.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    shell = ["bash", "-c", line]
    done = subprocess.run(shell, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = done.stderr.splitlines()
    assert said[0].startswith(f"holdfast: Can't write {tmp_path / 'opencode.rescued.db'}: disk")
    assert said[1] == "Free some disk space, or name a place on another disk with --out."
    assert list(tmp_path.iterdir()) == [path], "no half of a copy"
