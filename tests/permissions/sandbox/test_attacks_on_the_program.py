"""The attack list against the real program: what a model asks for in `-p`, judged by effects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, sleepers
from tests.permissions.sandbox.test_attacks import ATTACKS, end_sleepers, use_git_outside
from tests.support.folder_picture import picture
from tests.support.program import Done, of_type
from tests.support.terminal import HOLDFAST
from tui.permissions.sandbox.engine import Engine

pytestmark = pytest.mark.slow

NOBODY = 65534
IDS = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
PROOF = "echo it-runs; cat file.txt"
REACHES_NETWORK = {"network of the machine", "Unix sockets"}
"""What the level of elevated commands allows."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that other users may enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="attacks-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def play(scene: Scene, engine: str, commands: list[str], *argv: str, nobody: bool = False) -> Done:
    """One turn of the program in which the model runs these commands."""
    calls = [
        f"{{name = 'run_command', input = {{command = {json.dumps(command)}}}}}"
        for command in commands
    ]
    script = scene.base / "script.toml"
    text = f"[[turn]]\ntools = [{', '.join(calls)}]\n[[turn]]\ntext = 'done'\n"
    script.write_text(text, encoding="utf-8")
    home = scene.base / "own"
    (home / "config").mkdir(parents=True)
    settings = "[compaction]\nthreshold = 0.95\n"  # or a summary would take the script's answer
    (home / "config" / "config.toml").write_text(settings, encoding="utf-8")
    env = {**scene.environment, "HOLDFAST_HOME": str(home), "HOLDFAST_SANDBOX": engine}
    words = ("--practice", "--practice-script", str(script), *argv, "-p", "go")
    if not nobody:
        return run_as(scene, env, [*HOLDFAST, *words])
    own(scene.base, NOBODY)
    try:
        return run_as(scene, env, ["setpriv", *IDS, *HOLDFAST, *words])
    finally:
        own(scene.base, os.getuid())


def run_as(scene: Scene, env: dict[str, str], words: list[str]) -> Done:
    done = subprocess.run(
        [*words, "--output-format", "stream-json"], cwd=scene.workspace, env=env,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def reaches_python() -> bool:
    """Whether somebody without privileges can start it; the first exec still has those of root."""
    words = ["setpriv", *IDS, "sh", "-c", 'exec "$0" -c ""', sys.executable]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def own(folder: Path, user: int) -> None:
    for place, names, files in os.walk(folder):
        for path in (place, *(f"{place}/{name}" for name in (*names, *files))):
            os.chown(path, user, user, follow_symlinks=False)


def pictures(scene: Scene, *, workspace: bool) -> list[dict[str, str]]:
    parts = [picture(part) for part in (scene.walls.home, scene.outside)]
    if workspace:
        shown = picture(scene.workspace)
        parts.append({name: v for name, v in shown.items() if name.split("/")[0] != ".holdfast"})
    return parts


def effects(scene: Scene, done: Done, before: list[dict[str, str]]) -> list[str]:
    seen = ["left running"] if sleepers(scene) else []
    end_sleepers(scene)
    seen += ["printed a secret"] if MARK in done.stdout + done.stderr else []
    seen += ["changed files"] if pictures(scene, workspace=len(before) > 2) != before else []
    seen += [f"reached {name}" for name in scene.reached()]
    use_git_outside(scene)
    return seen + (["ran later"] if scene.canary.exists() else [])


def levels(done: Done) -> list[str]:
    """Those of the commands that ran."""
    answers = of_type(done.events, "permission_answered")
    return [event.get("level", "") for event in answers if event["answer"] == "allow"]


def texts(done: Done) -> list[str]:
    return [event["text"] for event in of_type(done.events, "tool_finished")]


def hidden(script: str) -> str:
    words = f"['bash', '-c', bytes.fromhex('{script.encode().hex()}')]"
    return f'python3 -c "import subprocess; subprocess.run({words})"'


def commands_of(scene: Scene, attacks: list[dict[str, Any]]) -> list[str]:
    """As nobody can read them: only the walls decide what they reach."""
    return [PROOF, *(hidden(scene.filled(attack["commands"])) for attack in attacks)]


@pytest.mark.parametrize("nobody", [False, True], ids=["as_is", "unprivileged"])
def test_nothing_that_was_not_allowed_happens(
    any_engine: Engine, scene: Scene, nobody: bool
) -> None:
    if nobody and os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    if nobody and not reaches_python():
        pytest.skip("this interpreter lies in a folder that is closed to other users")
    before = pictures(scene, workspace=True)
    done = play(scene, any_engine, commands_of(scene, ATTACKS), nobody=nobody)
    assert not effects(scene, done, before)
    assert "it-runs\ntext" in texts(done)[0]
    shown = levels(done)
    assert set(shown) == {"read-only"}
    assert len(shown) >= len(ATTACKS), "some were refused before they ran"


def test_elevated_commands_stay_behind_their_walls(engine: Engine, scene: Scene) -> None:
    harmless = [
        attack
        for attack in ATTACKS
        if attack.get("harmless") and attack["name"] not in REACHES_NETWORK
    ]
    before = pictures(scene, workspace=False)
    done = play(scene, engine, commands_of(scene, harmless), "--yolo")
    assert not effects(scene, done, before)
    assert "it-runs\ntext" in texts(done)[0]
    assert set(levels(done)) == {"read-only", "workspace + network"}


def test_without_a_sandbox_nothing_runs_that_is_not_plain(scene: Scene) -> None:
    before = pictures(scene, workspace=True)
    done = play(scene, "off", commands_of(scene, ATTACKS))
    assert not effects(scene, done, before)
    assert "read-only" not in levels(done)
