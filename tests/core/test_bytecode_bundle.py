"""The bytecode of many modules in one file: as good as their own files, and never older."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import compile as compile_module
from unittest.mock import patch

import pytest

from tui.core.bytecode_bundle import Bundle

PACKAGE, MODULES = "bundled_for_a_test", 60


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of many modules, each with bytecode of its own, that was imported."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner").mkdir()
    (folder / "inner" / "__init__.py").write_text("NAME = __name__\n")
    for n in range(MODULES):
        (folder / f"m{n}.py").write_text(f"VALUE = {n}\n")
    for source in folder.rglob("*.py"):
        compile_module(str(source), doraise=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    names = [f"{PACKAGE}.inner", *(f"{PACKAGE}.m{n}" for n in range(MODULES))]
    for name in names:
        importlib.import_module(name)
    yield folder
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def keep(bundle: Bundle) -> None:
    """Let it keep the package: all that is loaded for the tests would be 30 MB."""
    loaded = {name: module for name, module in sys.modules.items() if name.startswith(PACKAGE)}
    with patch.object(sys, "modules", loaded):
        bundle.keep()


def kept(tmp_path: Path) -> Bundle:
    """The bundle of the package, read anew."""
    path = str(tmp_path / "bundle")
    keep(Bundle(path))
    return Bundle(path)


def value(bundle: Bundle, package: Path, name: str, of: str = "VALUE") -> object:
    """What a module says that is imported from a bundle; None where it is not in there."""
    spec = bundle.find_spec(f"{PACKAGE}.{name}", [str(package)])
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__file__ == spec.origin
    return getattr(module, of)


def test_what_was_imported_is_found_in_it(package: Path, tmp_path: Path) -> None:
    bundle = kept(tmp_path)
    for source in package.rglob("*.pyc"):
        source.unlink()
    assert value(bundle, package, "m7") == 7
    assert value(bundle, package, "inner", "NAME") == f"{PACKAGE}.inner"
    assert bundle.find_spec(f"{PACKAGE}.inner", [str(package)]).submodule_search_locations == [  # pyright: ignore[reportOptionalMemberAccess]
        str(package / "inner")
    ]
    assert value(bundle, package, "unknown") is None


def test_a_changed_source_is_imported_as_ever(package: Path, tmp_path: Path) -> None:
    bundle = kept(tmp_path)
    (package / "m7.py").write_text("VALUE = 'longer'\n")
    os.utime(package / "m8.py", (1, 1))
    (package / "m9.py").unlink()
    assert [value(bundle, package, f"m{n}") for n in (6, 7, 8, 9)] == [6, None, None, None]


def test_a_module_that_lies_elsewhere_is_another(package: Path, tmp_path: Path) -> None:
    bundle = kept(tmp_path)
    assert bundle.find_spec(f"{PACKAGE}.m7", [str(tmp_path / "other")]) is None
    assert bundle.find_spec(f"{PACKAGE}.m7") is None


def test_it_is_written_anew_where_it_lacks_many(package: Path, tmp_path: Path) -> None:
    bundle, path = kept(tmp_path), tmp_path / "bundle"
    before = path.stat().st_ino
    keep(bundle)
    assert path.stat().st_ino == before, "it has all"
    for n in range(1, MODULES):
        source = package / f"m{n}.py"
        source.write_text(f"VALUE = {-n}\n")
        compile_module(str(source), doraise=True)
    keep(bundle)
    assert path.stat().st_ino != before
    assert [value(Bundle(str(path)), package, f"m{n}") for n in (0, 1, 2)] == [0, -1, -2]
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("bundle.")] == []


@pytest.mark.parametrize("cut", [0, 5, 100, -3, -2000])
def test_a_damaged_one_costs_nothing_but_time(package: Path, tmp_path: Path, cut: int) -> None:
    kept(tmp_path)
    path = tmp_path / "bundle"
    path.write_bytes(path.read_bytes()[:cut])
    assert value(Bundle(str(path)), package, "m7") is None


def test_a_flipped_bit_anywhere_changes_nothing_that_is_imported(
    package: Path, tmp_path: Path
) -> None:
    kept(tmp_path)
    path = tmp_path / "bundle"
    whole = path.read_bytes()
    for place in (*range(0, len(whole), len(whole) // 40), *range(len(whole) - 12, len(whole))):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert value(Bundle(str(path)), package, "m7") in {7, None}, place


def test_bytecode_that_cannot_be_read_is_read_from_the_modules_own_file(
    package: Path, tmp_path: Path
) -> None:
    kept(tmp_path)
    path = tmp_path / "bundle"
    content = path.read_bytes()
    path.write_bytes(bytes(1000) + content[1000:])
    bundle = Bundle(str(path))
    assert [value(bundle, package, f"m{n}") for n in range(MODULES)] == list(range(MODULES))


def test_nothing_is_written_where_no_bytecode_is(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept(tmp_path)
    assert not (tmp_path / "bundle").exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    Bundle(str(tmp_path / "no" / "folder")).keep()  # no place for it: no error


def test_the_program_leaves_one_and_starts_from_it(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache"), "HOLDFAST_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "tui", "--practice", "--no-session", "-p", "hello"]

    def answer() -> str:
        done = subprocess.run(
            command, env=env, capture_output=True, check=False, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = answer()
    (bundle,) = (tmp_path / "cache").rglob("*.bundle")
    assert answer() == first
    assert Bundle(str(bundle)).find_spec(
        "tui.agent.turn", [str(Path(__file__).parents[2] / "tui" / "agent")]
    )
