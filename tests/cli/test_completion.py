"""Completion scripts: bash is asked for real; zsh and fish too where they are installed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tui.app.options.flags import (
    COMMANDS,
    FAULTS,
    MAIN,
    SHELLS,
    Command,
    first_words,
    second_words,
)
from tui.cli.completion import script


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "holdfast.bash"
    path.write_text(script("bash"))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / ".home"))  # a shell asks for sessions
    (tmp_path / "tasks one.md").touch()
    (tmp_path / "sub").mkdir()
    return tmp_path


def offered(source: Path, folder: Path, *words: str) -> set[str]:
    """What bash offers for the last of `words`, split as readline splits them."""
    line = " ".join(shlex.quote(word) for word in ("holdfast", *words))
    code = (
        f"source {shlex.quote(str(source))}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        '_shtab_holdfast holdfast; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return {line for line in done.stdout.splitlines() if line}


def test_bash_accepts_its_script(bash_script: Path) -> None:
    subprocess.run(["bash", "-n", str(bash_script)], check=True)


def test_bash_registers_the_function(bash_script: Path) -> None:
    code = f"source {shlex.quote(str(bash_script))}; complete -p holdfast"
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "complete -o bashdefault -F _shtab_holdfast holdfast"


def test_bash_offers_the_commands(bash_script: Path, folder: Path) -> None:
    assert offered(bash_script, folder, "") == set(first_words())
    assert offered(bash_script, folder, "ses") == {"sessions"}
    assert offered(bash_script, folder, "sessions", "") == set(second_words("sessions"))
    assert offered(bash_script, folder, "sessions", "ex") == {"export"}


@pytest.mark.parametrize("command", [MAIN, *COMMANDS], ids=lambda c: str(c.words))
def test_bash_offers_every_flag_of_a_command(
    bash_script: Path, folder: Path, command: Command
) -> None:
    flags = {name for flag in command.flags for name in flag.names}
    more = {"-h", "--help"} | ({"--version"} if command is MAIN else set[str]())
    assert offered(bash_script, folder, *command.words, "-") == flags | more


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--output-format", ""), {"text", "json", "stream-json", "claude-stream-json"}),
        (("sessions", "export", "--format", "h"), {"html"}),
        (("completion", ""), set(SHELLS)),
        (("drill", ""), set(FAULTS)),
        (("-C", ""), {"sub"}),
        (("run", "--dir", "s"), {"sub"}),
        (("run", "t"), {"tasks one.md"}),
        (("run", "--", "t"), {"tasks one.md"}),
        (("-r", "t"), {"tasks one.md"}),
        (("sessions", "check", ""), {"sub", "tasks one.md"}),
        (("-m", ""), set[str]()),
        (("fix it", "--the"), {"--theme"}),
        (("--", "--the"), set[str]()),
        (("sessions", "list", "--a"), {"--all"}),
        (("sessions", "export", "01", "--o"), {"--out"}),
    ],
)
def test_bash_offers_what_fits(
    bash_script: Path, folder: Path, words: tuple[str, ...], expected: set[str]
) -> None:
    assert offered(bash_script, folder, *words) == expected


def test_every_flag_choice_and_word_stands_in_the_zsh_script() -> None:
    text = script("zsh")
    for command in (MAIN, *COMMANDS):
        for flag in command.flags:
            assert all(name in text for name in flag.names)
            assert " ".join(flag.choices) in text
        if command.words:
            assert f"{command.words[-1]}:" in text


def test_every_flag_choice_and_word_stands_in_the_fish_script() -> None:
    text = script("fish").replace("'", "")
    for command in (MAIN, *COMMANDS):
        for flag in command.flags:
            for name in flag.names:
                assert (f" -l {name[2:]} " if name.startswith("--") else f" -s {name[1:]} ") in text
            assert " ".join(flag.choices) in text
        for word in command.words:
            assert f" -a {word} " in text


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_accepts_its_script(tmp_path: Path) -> None:
    (tmp_path / "_holdfast").write_text(script("zsh"))
    subprocess.run(["zsh", "-n", str(tmp_path / "_holdfast")], check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("holdfast sess", {"sessions"}),
        ("holdfast sessions e", {"export"}),
        ("holdfast sessions export --format ", {"html", "jsonl", "md", "otlp"}),
        ("holdfast --output-format ", {"text", "json", "stream-json", "claude-stream-json"}),
        ("holdfast completion ", set(SHELLS)),
        ("holdfast run --d", {"--deny", "--dir", "--dry-run"}),
        ("holdfast --model ", set[str]()),
    ],
)
def test_fish_offers_what_fits(tmp_path: Path, line: str, expected: set[str]) -> None:
    path = tmp_path / "holdfast.fish"
    path.write_text(script("fish"))
    code = f"source {path}; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert {row.split("\t")[0] for row in done.stdout.splitlines()} == expected
