"""`.packaging/install.sh` with stand-ins for uv, pipx and Python: what it runs, and what it says
where something is missing. `.ci/readme` runs it with the real ones."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from tui.core.project import REPOSITORY

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".packaging" / "install.sh"
ARCHIVE = f"{REPOSITORY}/archive/main.zip"
TOOLS = ("mkdir", "mktemp", "rm", "tail", "sh", "cat", "chmod", "dirname")

INSTALLS = """#!/bin/sh
echo "$0 $*" >> "$LOG"
mkdir -p "$HOME/.local/bin"
printf '#!/bin/sh\\necho holdfast 1.0.0\\n' > "$HOME/.local/bin/holdfast"
chmod +x "$HOME/.local/bin/holdfast"
"""
FAILS = "#!/bin/sh\necho no network >&2\nexit 2\n"
NEW_ENOUGH, TOO_OLD = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"
FETCHES = """#!/bin/sh
case "$*" in
  *sys.version_info*) exit 0 ;;
  *"-m venv"*) mkdir -p "$3/bin"; cat "$0" > "$3/bin/python"; chmod +x "$3/bin/python" ;;
  *"pip install"*) mkdir -p "$7/bin"; cat "$UV" > "$7/bin/uv"; chmod +x "$7/bin/uv" ;;
esac
"""


class Machine:
    """A machine with a few programs of ours, and a person's home."""

    def __init__(self, place: Path) -> None:
        self.home, self.bin, self.log = place / "home", place / "bin", place / "log"
        self.home.mkdir()
        self.bin.mkdir()
        self.env = {"HOME": str(self.home), "PATH": str(self.bin), "LOG": str(self.log)}
        for name in TOOLS:
            found = next(Path(at, name) for at in ("/usr/bin", "/bin") if Path(at, name).exists())
            (self.bin / name).symlink_to(found)

    def has(self, name: str, text: str) -> Path:
        program = self.bin / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def install(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            ["/bin/sh", str(SCRIPT), *words], env=self.env, cwd=self.home, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        return done.stdout

    @property
    def ran(self) -> str:
        return self.log.read_text().strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_uv_is_used_where_it_is(machine: Machine) -> None:
    uv, python = machine.has("uv", INSTALLS), machine.has("python3", NEW_ENOUGH)
    machine.has("pipx", FAILS)
    said = machine.install()
    assert machine.ran == f"{uv} tool install --force --reinstall --python {python} {ARCHIVE}"
    assert "holdfast 1.0.0" in said


def test_uv_brings_its_own_python(machine: Machine) -> None:
    uv = machine.has("uv", INSTALLS)
    machine.has("python3", TOO_OLD)
    machine.install("v1.2.0")
    assert machine.ran == f"{uv} tool install --force --reinstall {REPOSITORY}/archive/v1.2.0.zip"


def test_pipx_is_used_where_it_is(machine: Machine) -> None:
    pipx = machine.has("pipx", INSTALLS)
    machine.has("python3", TOO_OLD)
    python = machine.has("python3.12", NEW_ENOUGH)
    machine.install()
    assert machine.ran == f"{pipx} install --force --python {python} {ARCHIVE}"


def test_python_alone_is_enough(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "uv").write_text(INSTALLS)
    machine.env["UV"] = str(tmp_path / "uv")
    machine.env["TMPDIR"] = str(tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    python = machine.has("python3", FETCHES)
    said = machine.install()
    assert "Fetching uv, just for the installation" in said
    assert machine.ran.endswith(f"uv tool install --force --reinstall --python {python} {ARCHIVE}")
    assert not list((tmp_path / "scratch").iterdir())


def test_a_checkout_is_installed_as_it_is(machine: Machine) -> None:
    machine.has("uv", INSTALLS)
    machine.install(str(ROOT))
    assert machine.ran.endswith(f" {ROOT}")
    assert "there is no ./nothing.whl" in machine.install("./nothing.whl", code=1)


def test_the_line_for_path_is_said(machine: Machine) -> None:
    machine.has("uv", INSTALLS)
    said = machine.install()
    assert f'export PATH="{machine.home}/.local/bin:$PATH"' in said
    assert f"Until then, run: {machine.home}/.local/bin/holdfast" in said
    machine.env["PATH"] = f"{machine.home}/.local/bin:{machine.bin}"
    assert machine.install().splitlines()[-1] == "Run: holdfast"


def test_another_installation_is_named(machine: Machine) -> None:
    machine.has("uv", INSTALLS)
    other = machine.has("holdfast", "#!/bin/sh\n")
    assert f"`holdfast` starts another installation: {other}." in machine.install()


@pytest.mark.parametrize(
    ("programs", "says"),
    [
        ({}, "no Python 3.11 or newer was found.\nInstall one, or uv"),
        ({"python3": TOO_OLD, "pipx": INSTALLS}, "no Python 3.11 or newer was found."),
        ({"uv": FAILS}, "no network\nInstallation failed: uv couldn't install Holdfast."),
        ({"pipx": FAILS, "python3": NEW_ENOUGH}, "pipx couldn't install Holdfast."),
        (
            {"python3": FETCHES.replace('*"-m venv"*) mkdir', '*"-m"*) exit 1; mkdir')},
            "has neither pip nor venv.\nOn Debian and Ubuntu: sudo apt install python3-venv",
        ),
        (
            {"python3": FETCHES.replace('install"*) mkdir', 'install"*) echo refused; exit 1;')},
            "uv couldn't be fetched.\nrefused\nBehind a proxy, set HTTPS_PROXY.",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_and_nothing_is_left(
    machine: Machine, programs: dict[str, str], says: str
) -> None:
    for name, text in programs.items():
        machine.has(name, text)
    said = machine.install(code=1)
    assert says in said
    assert not (machine.home / ".local" / "bin" / "holdfast").exists()


def test_a_home_that_is_missing_or_cannot_be_written_is_said(machine: Machine) -> None:
    machine.has("uv", INSTALLS)
    (machine.home / ".local").write_text("a file where a folder should be")
    assert f"{machine.home}/.local/bin isn't writable." in machine.install(code=1)
    del machine.env["HOME"]
    assert "HOME is not set." in machine.install(code=1)
    assert not machine.log.exists()


def test_one_address_is_named_everywhere() -> None:
    found = re.search(r'^repository="(.+)"$', SCRIPT.read_text(), re.MULTILINE)
    assert found
    assert found[1] == REPOSITORY
    pages = [ROOT / "README.md", ROOT / "pyproject.toml", *(ROOT / "tui/manual").glob("*.md")]
    for page in pages:
        for address in re.findall(r"https://github\.com/[\w-]+/holdfast\b", page.read_text()):
            assert address == REPOSITORY, page
    assert os.access(SCRIPT, os.X_OK)
    assert SCRIPT.stat().st_mode & stat.S_IXUSR
