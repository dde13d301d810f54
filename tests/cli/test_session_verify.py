"""`holdfast sessions verify`: lines, full outputs, and notes in git."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.cli.main import main
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.session import Session

Verify = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def verify(capfd: pytest.CaptureFixture[str]) -> Verify:
    """Runs the command: its exit code, and the lines that it prints and notes."""

    def run(path: Path, *flags: str) -> tuple[int, list[str], list[str]]:
        code = main(["sessions", "verify", str(path), *flags])
        out, err = capfd.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


@pytest.fixture
def talked(own_folders: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The file of a session with a large output, and the full copy of that."""
    del own_folders
    root = tmp_path / "work"
    root.mkdir()

    async def talk() -> Path | None:
        session = Session.create(root, folders=folders(), clock=SystemClock())
        big = call("run_command", "a", command="seq 60000")
        agent = make_agent(
            root, ScriptedProvider([big], say("ok")), session=session, approver=Yes()
        )
        await events_of(agent, "count")
        await agent.close()
        return session.path

    path = asyncio.run(talk())
    assert path
    (copy,) = (root / ".holdfast/tool-results").glob("*.txt")
    return path, copy


def test_a_full_output_is_checked_too(verify: Verify, talked: tuple[Path, Path]) -> None:
    path, copy = talked
    code, out, err = verify(path)
    assert (code, out) == (0, [])
    assert "1 full output: as saved." in err
    copy.chmod(0o600)
    copy.write_bytes(copy.read_bytes().replace(b"31\n", b"32\n", 1))
    code, out, err = verify(path)
    assert (code, len(out)) == (1, 1)
    assert out[0].endswith(f": its full output isn't what was saved: {copy}")
    copy.unlink()
    code, out, err = verify(path)
    assert (code, out) == (0, [])
    assert "1 full output deleted since." in err


def test_a_note_on_a_commit_shows_that_the_end_is_gone(
    verify: Verify, talked: tuple[Path, Path]
) -> None:
    path, _ = talked
    work = Path(json.loads(path.read_bytes().splitlines()[0])["cwd"])
    assert verify(path, "--git-note")[0] == 1

    def git(*words: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        return subprocess.run(
            ["git", *who, *words], cwd=work, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    code, _, err = verify(path, "--git-note")
    assert code == 0
    assert any(line.startswith("Noted on commit ") for line in err)
    count = path.read_bytes().count(b"\n")
    assert f"line {count} chain " in git("notes", "--ref=holdfast", "show")
    assert verify(path)[0] == 0
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    code, out, _ = verify(path, "--json")
    assert code == 1
    (lost,) = json.loads("\n".join(out))["lost"]
    assert lost.endswith(f" notes line {count}, which isn't there")


def test_what_an_older_version_wrote_is_said_to_be_uncovered(
    verify: Verify, tmp_path: Path, own_folders: Path
) -> None:
    del own_folders
    path = tmp_path / "old.jsonl"
    head = '{"type":"session","version":1,"id":"0a0b0c0d0e0f","created":"2026-01-01T00:00:00Z"'
    path.write_text(head + f',"cwd":"{tmp_path}","app":"holdfast 0"}}\n')
    code, out, err = verify(path)
    assert (code, out) == (0, [])
    assert "Its lines aren't covered: an older version wrote them, or another program." in err


def test_B56_an_absurd_number_of_a_request_costs_nothing(
    verify: Verify, talked: tuple[Path, Path]
) -> None:
    path, _ = talked
    change(path, "request", n=2147483648)
    code, said, noted = verify(path)
    assert code == 1
    assert "request 2: its record is missing" in said
    assert "and 2,147,482,646 more: its record is missing" in said
    assert len(said) < 1100
    assert any("of 2,147,483,648 requests" in line for line in noted)
    _, shown, _ = verify(path, "--json")
    assert json.loads("\n".join(shown))["more_lost"] == 2_147_482_646


@pytest.mark.parametrize("mark", [[-9, -9], [0, -1], [99, 0], [0, 99]])
def test_B56_a_cache_mark_that_is_nowhere_is_no_bug(
    verify: Verify, talked: tuple[Path, Path], mark: list[int]
) -> None:
    path, _ = talked
    change(path, "request", marks=[mark])
    code, said, _ = verify(path)
    assert code == 1
    assert any("isn't what was written" in line for line in said)


def change(path: Path, kind: str, **fields: object) -> None:
    """Give the last record of a type other fields."""
    lines = path.read_text().splitlines()
    at = max(n for n, line in enumerate(lines) if json.loads(line)["type"] == kind)
    lines[at] = json.dumps(json.loads(lines[at]) | fields, separators=(",", ":"))
    path.write_text("".join(f"{line}\n" for line in lines))


def test_what_a_record_names_elsewhere_is_not_opened(
    verify: Verify, talked: tuple[Path, Path], tmp_path: Path
) -> None:
    path, copy = talked
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path.write_bytes(path.read_bytes().replace(str(copy).encode(), str(pipe).encode()))
    _, out, err = verify(path)
    assert any(f"its full output is outside the folder of results: {pipe}" in line for line in out)
    assert not [line for line in err if "as saved" in line]
