"""Where the full outputs of the real program are, and how long."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, of_type

LONG = """
[[turn]]
tools = [{name = "run_command", input = {command = "seq 1 20000"}}]
[[turn]]
tools = [{name = "run_command", input = {command = "cat .holdfast/.gitignore; pwd"}}]
[[turn]]
text = "done"
"""
SEQ = "".join(f"{n}\n" for n in range(1, 20_001)).encode()


def run(holdfast: Program, path: str, *options: str) -> list[dict[str, Any]]:
    allow = ("--allow", "run_command(*)")
    return holdfast.lines("--practice", "--practice-script", path, *allow, *options, "-p", "go")


def test_L7_L26_a_session_has_its_full_outputs_beside_it(
    holdfast: Program, work: Path, script: Callable[[str], str]
) -> None:
    lines = run(holdfast, script(LONG))
    cut = of_type(lines, "tool_finished")[0]["receipt"]
    kept = Path(cut["path"])
    assert kept.parent == work.resolve() / ".holdfast" / "tool-results"
    assert kept.read_bytes() == SEQ
    assert cut["sha256"] == hashlib.sha256(SEQ).hexdigest()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "/tool-results/" in (work / ".holdfast" / ".gitignore").read_text().split()
    said = [line for line in (kept.parent / "index.jsonl").read_text().splitlines() if line]
    assert list(map(json.loads, said)) == [{"name": kept.name, "session": lines[0]["path"]}]


@pytest.mark.skipif(shutil.which("git") is None, reason="git decides what is ignored")
def test_the_first_session_leaves_the_status_of_a_repository_clean(
    holdfast: Program, work: Path, script: Callable[[str], str]
) -> None:
    def git(*args: str) -> str:
        return subprocess.run(
            ["git", *args], cwd=work, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    before = {path: path.read_bytes() for path in (work / ".git").rglob("*") if path.is_file()}
    run(holdfast, script(LONG))
    assert (work / ".holdfast" / "tool-results").is_dir()
    assert git("status", "--porcelain") == "?? README.md\n"
    after = {path: path.read_bytes() for path in (work / ".git").rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    assert not [path for path in after.keys() - before.keys() if "info" in path.parts]


def test_L26_without_a_session_full_outputs_go_with_the_program(
    holdfast: Program, work: Path, script: Callable[[str], str]
) -> None:
    lines = run(holdfast, script(LONG), "--no-session")
    cut = of_type(lines, "tool_finished")[0]["receipt"]
    assert cut["bytes_kept"] == len(SEQ)
    assert work.resolve() not in Path(cut["path"]).parents
    assert not Path(cut["path"]).parents[2].exists()
    assert not (work / ".holdfast").exists()


def test_41_where_the_workspace_takes_nothing_the_data_folder_has_the_full_outputs(
    holdfast: Program, work: Path, script: Callable[[str], str], tmp_path: Path
) -> None:
    (work / ".holdfast").symlink_to(tmp_path)  # nothing is written through it
    cut = of_type(run(holdfast, script(LONG)), "tool_finished")[0]["receipt"]
    kept = Path(cut["path"])
    assert work.resolve() not in kept.parents
    assert kept.read_bytes() == SEQ
    assert json.loads((kept.parent / "index.jsonl").read_text())["name"] == kept.name
    again = f"""
[[turn]]
tools = [{{name = "read_file", input = {{path = "{kept}", offset = 19000}}}},
    {{name = "write_file", input = {{path = "{kept}", content = ""}}}}]
[[turn]]
text = "done"
"""
    read, written = of_type(run(holdfast, script(again), "-c"), "tool_finished")
    assert "19001" in read["text"]
    assert written["is_error"]
    assert "Holdfast's own folders" in written["text"]
    assert kept.read_bytes() == SEQ
