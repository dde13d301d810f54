"""`holdfast rescue`: the copy, what is said about it, and the other program's own word."""

from __future__ import annotations

import json
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import foreign, opencode_database
from tui.cli.main import main

Rescue = Callable[..., tuple[int, list[str], list[str]]]

NODE = """#!{python}
import json, os, sys
*_, reader, file = sys.argv
assert reader.startswith("file://") and reader.endswith("/core/session-manager.js")
assert not [name for name in os.environ if "KEY" in name or "TOKEN" in name], os.environ
assert os.environ["HOME"] == os.path.dirname(file)
entries = [json.loads(line) for line in open(file, encoding="utf-8") if line.strip()]
if entries[0]["type"] != "session" or "refuse me" in str(entries):
    sys.exit("Error: Session file is not valid")
"""
CODEX = """#!{python}
import json, os, sys, time
from pathlib import Path
assert sys.argv[1:] == ["app-server"]
(file,) = Path(os.environ["CODEX_HOME"]).rglob("rollout-*.jsonl")
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({{"method": "told", "params": {{}}}}), flush=True)
    answer = {{"id": asked["id"], "result": {{}}}}
    if asked["method"] == "thread/resume":
        assert asked["params"]["threadId"] in file.name
        if "refuse me" in file.read_text():
            answer = {{"id": asked["id"], "error": {{"code": 1, "message": "it is not mine"}}}}
    print(json.dumps(answer), flush=True)
"""
OPENCODE = """#!{python}
import os, sqlite3, sys
from pathlib import Path
if sys.argv[1:] == ["--version"]:
    sys.exit(0 if os.environ["HOME"] == os.getcwd() else 1)
(path,) = Path(os.environ["HOME"]).rglob("opencode.db")
db = sqlite3.connect(path)
assert not db.execute("SELECT * FROM credential").fetchall(), "signed in"
refused = db.execute("SELECT 1 FROM part WHERE data LIKE '%refuse me%'").fetchall()
print("Error: Session not found" if refused or sys.argv[1] != "export" else "{{}}")
"""
UNSHARE = """#!/bin/sh
[ "$1 $2" = "--map-root-user --net" ] || exit 1
shift 2
exec "$@"
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
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of commands, without any of the other programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    (folder / "true").symlink_to("/bin/true")
    return folder


def install(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text.format(python=sys.executable) if "{python}" in text else text)
    path.chmod(0o755)


def install_pi(folder: Path) -> None:
    program = folder.parent / "package" / "dist" / "cli.js"
    (program.parent / "core").mkdir(parents=True)
    (program.parent / "core" / "session-manager.js").touch()
    install(program.parent, "cli.js", "#!/bin/sh\n")
    (folder / "pi").symlink_to(program)
    install(folder, "node", NODE)


def broken(path: Path, made: bytes) -> bytes:
    """A file whose first line is lost, and whose second is cut."""
    lines = made.splitlines(keepends=True)
    path.write_bytes(b"".join([lines[1][:20] + b"\n", *lines[2:]]))
    return path.read_bytes()


def test_a_copy_is_mended_and_the_original_stays(
    rescue: Rescue, programs: Path, tmp_path: Path
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
        "Not checked with Codex itself: the network can't be turned off for it here.",
        f"Holdfast opens it, too: `holdfast sessions import {path}`",
    ]
    assert path.read_bytes() == before
    first = json.loads(copy.read_bytes().splitlines()[0])
    assert first["payload"]["id"] == foreign.CODEX_ID, "from the file's name"
    assert first["payload"]["cwd"] == foreign.CWD
    for made in (copy, Path(f"{copy}.set-aside")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_a_copy_is_never_written_over(rescue: Rescue, programs: Path, tmp_path: Path) -> None:
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
    rescue: Rescue, programs: Path, tmp_path: Path, name: str
) -> None:
    install(programs, "unshare", UNSHARE)
    path = tmp_path / "s.jsonl"
    broken(path, (foreign.pi() if name == "pi" else foreign.codex()).bytes())
    _, out, _ = rescue(path, "--out", tmp_path / "first.jsonl")
    assert "itself: it isn't installed here." in out[-2]
    install_pi(programs)
    install(programs, "codex", CODEX)
    _, out, _ = rescue(path, "--out", tmp_path / "second.jsonl")
    assert out[-1].endswith("itself opens it, offline and in a scratch folder.")
    path.write_bytes(path.read_bytes().replace(b"prompt 1", b"refuse me"))
    _, out, _ = rescue(path, "--out", tmp_path / "third.jsonl")
    assert "still refuses it: " in out[-2]
    assert out[-1] == f"Holdfast opens it, too: `holdfast sessions import {path}`"


def test_a_database_of_opencode(rescue: Rescue, programs: Path, tmp_path: Path) -> None:
    install(programs, "unshare", UNSHARE)
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
    assert out[-1] == "Not checked with opencode itself: it isn't installed here."
    install(programs, "opencode", OPENCODE)
    checked = "Checked: opencode itself opens it, offline and in a scratch folder."
    assert rescue(copy)[1] == [
        "Nothing to mend in this database of opencode: no copy was made.", checked
    ]  # fmt: skip
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT value FROM credential").fetchall() == [("a secret",)]
        db.execute("UPDATE part SET data = replace(data, 'prompt 2', 'refuse me')")
        db.commit()
    assert rescue(path, "--out", tmp_path / "b.db")[1][-1] == (
        "opencode still refuses it: Error: Session not found"
    )
    code, _, err = rescue(path, "--out", copy)
    assert code != 0
    assert str(copy) in err[0]
    path.write_bytes(path.read_bytes()[:3000])
    code, _, err = rescue(path)
    assert code == 4
    assert f"Can't mend {path}: " in err[0]


def test_json_has_the_same_facts(rescue: Rescue, programs: Path, tmp_path: Path) -> None:
    install(programs, "unshare", UNSHARE)
    install_pi(programs)
    path = tmp_path / "s.jsonl"
    path.write_bytes(foreign.pi().bytes())
    _, out, _ = rescue("--json", path)
    assert json.loads("".join(out)) == {
        "format": "pi", "repairs": [], "copy": None, "set_aside": None, "opens": True,
        "refused": "", "unchecked": "",
    }  # fmt: skip
    (programs / "node").unlink()
    _, out, _ = rescue("--json", path)
    assert json.loads("".join(out))["opens"] is None


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b'{"a": 1}\n', bytes(range(256)) * 16])
def test_what_is_no_session_is_an_error_that_says_so(
    rescue: Rescue, programs: Path, tmp_path: Path, content: bytes | None
) -> None:
    del programs
    path = tmp_path / "s.jsonl"
    if content is not None:
        path.write_bytes(content)
    code, out, err = rescue(path)
    assert (code, out) == (4, [])
    assert str(path) in err[0]
