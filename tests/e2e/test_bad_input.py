"""Bad input of every kind: a message that says what to do, the right exit code, nothing lost.

`Program` fails each test on a traceback anywhere in what the program writes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.support.preloaded import SCREEN
from tests.support.program import Program, of_type
from tests.support.serving import serving
from tests.support.terminal import HOLDFAST, Terminal

pytestmark = pytest.mark.slow

LIST = ("--practice", "-p", "list")
READ = ("--practice", "-p", "read README.md")
ANSWER = "The demo project."


def session_files(home: Path) -> list[Path]:
    return list((home / "data" / "sessions").rglob("*.jsonl"))


def shell(holdfast: Program, line: str) -> tuple[str, str]:
    """What bash writes for a line, `HOLDFAST` in it being the program."""
    done = subprocess.run(
        ["/bin/bash", "-c", line.replace("HOLDFAST", f"{sys.executable} -m tui")],
        cwd=holdfast.work,
        env=holdfast.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done.stdout.decode(), done.stderr.decode()


# Configuration and key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"model = \n", ["not valid TOML", "line 1"]),
        (b"modle = 'x'\n", ["modle", "Did you mean model?"]),
        (b"[retry]\nmax_attempts = 'three'\n", ["retry.max_attempts", "whole number"]),
        (b"theme = '\xe4'\n", ["UTF-8", "line 1"]),
    ],
    ids=["toml", "key", "type", "encoding"],
)
def test_a_broken_configuration_is_named_with_what_is_allowed(
    holdfast: Program, config: Callable[[bytes], Path], text: bytes, words: list[str]
) -> None:
    file = config(text)
    done = holdfast(*LIST, code=2)
    assert done.out == b""
    for word in ["~/home/config/config.toml", *words]:
        assert word in done.stderr
    assert file.read_bytes() == text


def test_what_stops_the_screen_is_told_after_it_is_left(
    work: Path, env: dict[str, str], config: Callable[[str], Path]
) -> None:
    with Terminal(
        [*HOLDFAST, "--practice", "-r", "./README.md"], cwd=work, env=env, preload=SCREEN
    ) as screen:
        assert screen.exit_code() == 4
        screen.wait_for("README.md isn't a session")
        assert "Traceback" not in screen.text
    with Terminal(
        [*HOLDFAST, "--practice-script", "none.toml"], cwd=work, env=env, preload=SCREEN
    ) as screen:
        assert screen.exit_code() == 2
        screen.wait_for("none.toml: cannot be read: No such file")
    config("modle = 'x'\n")
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env, preload=SCREEN) as screen:
        assert screen.exit_code() == 2
        screen.wait_for("config.toml: modle: isn't a known key. Did you mean model?")
        assert "Traceback" not in screen.text


@pytest.mark.parametrize("key", ["two words", "schlüssel"])
def test_what_is_no_key_is_never_sent(holdfast: Program, serve: Serve, key: str) -> None:
    server = serve({"text": "never"})
    more = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": server.url}
    done = holdfast("-p", "x", code=3, env=more)
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert key not in done.stderr
    assert not server.requests


@pytest.mark.parametrize(
    ("key", "words"),
    [("", "No API key found."), ("two words", "ANTHROPIC_API_KEY isn't an API key")],
    ids=["none", "odd"],
)
def test_without_a_usable_key_the_screen_offers_ways_on(
    work: Path, env: dict[str, str], key: str, words: str
) -> None:
    with Terminal(
        [*HOLDFAST], cwd=work, env={**env, "ANTHROPIC_API_KEY": key}, preload=SCREEN
    ) as screen:
        screen.wait_for(words, "paste an API key", "Another server", "Practice model")
        # One that comes so soon may not have been meant.
        screen.press("\x1b", lambda: screen.process.poll() is not None)
        assert screen.exit_code() == 0


def test_a_damaged_store_of_keys_says_how_to_mend_it(holdfast: Program, home: Path) -> None:
    store = home / "config" / "credentials.json"
    store.parent.mkdir(parents=True)
    store.write_text('{"keys": ')
    store.chmod(0o600)
    assert "is damaged. Remove it" in holdfast("-p", "x", code=3).stderr.replace("\n", " ")
    store.write_text("{}")
    store.chmod(0o644)
    assert "chmod 600" in holdfast("-p", "x", code=3).stderr


# Folders


def test_a_workspace_that_cannot_be_one(holdfast: Program) -> None:
    assert "README.md isn't a folder" in holdfast(*LIST, "-C", "README.md", code=2).stderr
    assert "nowhere isn't a folder" in holdfast(*LIST, "--add-dir", "nowhere", code=2).stderr
    line = "mkdir gone && cd gone && rmdir ../gone && HOLDFAST --practice -p list; echo $?"
    out, err = shell(holdfast, line)
    assert out == "2\n"
    assert "no longer exists" in err


def test_a_workspace_without_permission(holdfast: Program, work: Path) -> None:
    closed = work / "closed"
    closed.mkdir(mode=0o000)
    if os.access(closed, os.R_OK):
        pytest.skip("permissions do not bind this user")
    try:
        assert "closed" in holdfast(*LIST, "-C", "closed", code=2).stderr
    finally:
        closed.chmod(0o700)


def test_a_workspace_whose_name_is_not_utf8(holdfast: Program, work: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9"))
    odd.mkdir()
    (odd / "README.md").write_text(f"# Demo\n\n{ANSWER}\n")
    for argv in (READ, ("-c", *READ)):
        assert ANSWER in holdfast(*argv, "-C", str(odd)).stdout
    cut = holdfast.lines("--practice", "-y", "-c", "-p", "run `seq 1 20000`", "-C", str(odd))
    (finished,) = of_type(cut, "tool_finished")
    assert "Full output saved to: .holdfast/tool-results/" in finished["text"]
    assert "damaged" not in holdfast("-c", *READ, "-C", str(odd)).stderr


def test_a_file_in_the_place_of_the_projects_own_folder(
    holdfast: Program, work: Path, home: Path
) -> None:
    (work / ".holdfast").write_text("mine")
    lines = holdfast.lines("--practice", "-y", "-p", "run `seq 1 20000`")
    (finished,) = of_type(lines, "tool_finished")
    assert f"Full output saved to: {home.resolve()}/data/outputs/" in finished["text"]
    assert Path(finished["receipt"]["path"]).read_text().endswith("20000\n")
    assert "20000" in finished["text"]
    assert lines[-1]["outcome"] == "done"
    assert (work / ".holdfast").read_text() == "mine"


@pytest.mark.parametrize("place", ["data", "data/sessions"])
@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_session_that_cannot_be_saved_does_not_cost_the_answer(
    holdfast: Program, home: Path, place: str, format_: str
) -> None:
    (home / place).parent.mkdir(parents=True)
    (home / place).write_text("a file")
    done = holdfast(*READ, "--output-format", format_)
    assert ANSWER in (done.stdout if format_ == "text" else done.object["result"])
    assert "Not saved: " in done.stderr
    assert "--no-session" in done.stderr
    assert done.stderr.count("can't write") == 1
    assert (home / place).read_text() == "a file"


def test_on_the_screen_too_an_unsaved_session_says_so(
    work: Path, env: dict[str, str], home: Path
) -> None:
    home.mkdir()
    (home / "data").write_text("a file")
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env, preload=SCREEN) as screen:
        screen.wait_for("Ask for anything")
        screen.type("read README.md\r")
        screen.wait_for(ANSWER, "1 prompt", "not saved")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
        assert "Traceback" not in screen.text
        assert "holdfast -r" not in screen.text


def test_a_home_that_is_a_file_is_named(holdfast: Program, home: Path) -> None:
    home.write_text("a file")
    done = holdfast(*LIST, code=2)
    assert f"HOLDFAST_HOME ({home}) isn't a folder" in done.stderr
    assert home.read_text() == "a file"


def test_a_log_that_cannot_be_written_stops_nobody(holdfast: Program, home: Path) -> None:
    home.mkdir()
    (home / "log").write_text("a file")
    done = holdfast(*READ)
    assert ANSWER in done.stdout
    assert done.stderr == ""


# Sessions


def test_what_is_no_session_is_not_opened_and_not_touched(holdfast: Program, work: Path) -> None:
    others: dict[str, bytes] = {
        "notes.txt": b"shopping list\nmilk\n",
        "noise.jsonl": bytes(range(256)) * 20,
        "claude.jsonl": b'{"type":"user","uuid":"1","parentUuid":null,"message":{}}\n',
        "pi.jsonl": b'{"type":"session","version":3,"id":"1","timestamp":"","cwd":"/"}\n',
    }
    for name, data in others.items():
        (work / name).write_bytes(data)
        done = holdfast(*LIST, "-r", f"./{name}", code=4)
        words = "isn't a session" if name.startswith("no") else "belongs to another program"
        assert f"{name} {words}" in done.stderr
        assert (work / name).read_bytes() == data
    done = holdfast(*LIST, "-r", "./claude.jsonl", code=4)
    assert "Import it with: holdfast sessions import claude.jsonl" in done.stderr
    os.mkfifo(work / "pipe.jsonl")
    for name in ("pipe.jsonl", "."):
        assert "not a regular file" in holdfast(*LIST, "-r", f"./{name}", code=4).stderr
    assert (
        "File not found: ./nowhere.jsonl" in holdfast(*LIST, "-r", "./nowhere.jsonl", code=4).stderr
    )


def test_a_session_without_permission(holdfast: Program, home: Path) -> None:
    holdfast(*LIST)
    (file,) = session_files(home)
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("permissions do not bind this user")
    assert "Permission denied" in holdfast("-c", *LIST, code=4).stderr


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 4096, b'{"type":"session","ver'], ids=["empty", "nul", "torn"]
)
def test_a_file_of_ours_of_which_nothing_is_left_is_gone_on_with(
    holdfast: Program, home: Path, data: bytes
) -> None:
    holdfast(*LIST)
    (file,) = session_files(home)
    file.write_bytes(data)
    lines = holdfast.lines("-c", *READ)
    assert lines[-1]["outcome"] == "done"
    assert "repair_applied" in {line["type"] for line in lines}
    assert file.read_bytes().startswith(data)
    again = holdfast.lines("-c", *READ)
    assert of_type(again, "request_sent")[0]["messages"] == 5


def test_continuing_where_nothing_was_begun_says_so(holdfast: Program) -> None:
    assert "starting a new one" in holdfast("-c", *LIST).stderr


# What goes in


def test_a_prompt_of_a_megabyte_arrives_whole(holdfast: Program, serve: Serve) -> None:
    server = serve(
        {"text": "That was long."},
        models={"claude-sonnet-5-5": {"max_input_tokens": 2_000_000, "max_tokens": 64_000}},
    )
    text = "every word counts ✓\n" * 46_000
    more = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
    done = holdfast("-p", "Read this:", stdin=text, env=more)
    assert done.stdout == "That was long.\n"
    (block,) = server.posts[0].body["messages"][0]["content"]
    assert block["text"] == f"Read this:\n\n{text.strip()}"


def test_too_much_on_standard_input_is_refused_at_once(holdfast: Program, home: Path) -> None:
    done = holdfast("--practice", "-p", stdin=b"word " * 2_100_000, code=2)
    assert "10 MB" in done.stderr
    assert "file" in done.stderr
    assert not session_files(home)


def test_bytes_that_are_no_text(holdfast: Program, serve: Serve) -> None:
    server = serve({"text": "Noise."}, {"text": "Noise again."})
    more = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
    holdfast("-p", stdin=bytes(range(256)) * 40, env=more)
    done = holdfast("-c", "-p", os.fsdecode(b"caf\xe9"), env=more)
    assert done.stdout == "Noise again.\n"
    assert len(server.posts) == 2, "both were sent, and neither was rejected"


def test_no_prompt_at_all(holdfast: Program) -> None:
    for argv in (("-p",), ("-p", ""), ("-p", "  ")):
        assert "No prompt" in holdfast("--practice", *argv, stdin=b" \n", code=2).stderr


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"[[turn\n", "not a TOML file"),
        (b"\xff\xfe\0", "not a TOML file"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"", "there is no turn"),
        (b"[[turn]]\ntext = 'a'\n[[turn]]\ntxt = 'b'\n", "turn 2: Object contains unknown field"),
        (b"[[turn]]\ntext = 5\n", "turn 1, text: Expected `str`"),
    ],
    ids=["missing", "toml", "binary", "deep", "empty", "key", "type"],
)
def test_a_practice_script_that_cannot_be_played(
    holdfast: Program, tmp_path: Path, data: bytes | None, words: str
) -> None:
    path = tmp_path / "script.toml"
    if data is not None:
        path.write_bytes(data)
    done = holdfast("--practice-script", str(path), "-p", "x", code=2)
    assert f"{path}: " in done.stderr
    assert words in done.stderr


def test_a_practice_script_that_is_no_file(holdfast: Program, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = holdfast("--practice-script", str(tmp_path / "pipe"), "-p", "x", code=2)
    assert "not a regular file" in done.stderr
    done = holdfast("--practice-script", str(tmp_path), "-p", "x", code=2)
    assert "a folder" in done.stderr


def test_an_exhausted_practice_script_is_an_error(
    holdfast: Program, script: Callable[[str], str]
) -> None:
    path = script('[[turn]]\ntext = "Once."\ntools = [{name = "list_dir"}]\n')
    done = holdfast("--practice-script", path, "-p", "x", "--output-format", "json", code=1)
    assert done.object["result"] == "Once."
    assert "run out of turns: it has 1" in done.stderr
    assert "Add a [[turn]]" in done.stderr


# What comes out


def test_a_reader_who_leaves_costs_nothing_that_was_recorded(holdfast: Program, home: Path) -> None:
    ask = 'HOLDFAST --practice -p "read README.md" --output-format stream-json'
    out, err = shell(holdfast, f"{ask} | grep -m 1 user_message; echo ${{PIPESTATUS[0]}}")
    first, code = out.splitlines()
    assert json.loads(first)["text"] == "read README.md"
    seen = {"0", str(128 + signal.SIGPIPE)}
    assert code in seen, "it depends on when the reader was seen to have left"
    assert err == ""
    lines = holdfast.lines("-c", *READ)
    assert lines[0]["resumed"]
    assert lines[-1]["outcome"] == "done"
    assert len(session_files(home)) == 1
    out, err = shell(holdfast, f"{ask} | true; echo ${{PIPESTATUS[0]}}")
    assert (out, err) == ("141\n", "")
    out, err = shell(holdfast, "HOLDFAST --help | true; HOLDFAST completion bash | true")
    assert (out, err) == ("", "")


def test_closed_streams_are_no_files_of_ours(holdfast: Program, home: Path) -> None:
    line = 'HOLDFAST --practice -p "read README.md" <&- >&- 2>&-; echo $?'
    assert shell(holdfast, line)[0] == "0\n"
    (file,) = session_files(home)
    assert all(json.loads(line)["type"] for line in file.read_bytes().splitlines())
    line = 'HOLDFAST -p "x" 2>&-; echo $?'
    assert shell(holdfast, line) == ("3\n", ""), "an error message is no data"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_stdout_is_told_and_one_behind_stderr_stops_nothing(
    holdfast: Program, work: Path
) -> None:
    out, err = shell(holdfast, 'HOLDFAST --practice -p "read README.md" > /dev/full; echo $?')
    assert out == "1\n" or not out
    assert "Can't write to standard output: No space left" in err
    denied = 'HOLDFAST --practice -p "create notes.txt with hello" 2> /dev/full; echo $?'
    out, _ = shell(holdfast, denied)
    assert out.endswith("\n0\n")
    assert not (work / "notes.txt").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_every_character_gets_the_others(
    holdfast: Program, work: Path, encoding: str
) -> None:
    (work / "README.md").write_text("✓ done — ok\n")
    done = holdfast(*READ, env={"PYTHONIOENCODING": encoding})
    assert "? done ? ok" in done.out.decode(encoding)


# What the tools meet


@pytest.fixture
def odd_files(work: Path) -> dict[str, int]:
    """Files that are no plain small text, and their sizes."""
    line = b"a line of text, one of many\n"
    (work / "huge.txt").write_bytes(line * (100 * 2**20 // len(line)))
    (work / "latin.txt").write_bytes("Käse\nBrot\n".encode("latin-1"))
    with (work / "hole.bin").open("wb") as file:
        file.truncate(2**40)
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(work)  # the path of a socket must be short
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
    (work / "zero").symlink_to("/dev/zero")
    return {path.name: path.lstat().st_size for path in work.iterdir()}


def test_tools_on_files_of_every_kind(
    holdfast: Program,
    work: Path,
    home: Path,
    odd_files: dict[str, int],
    script: Callable[[str], str],
) -> None:
    wanted: list[tuple[str, dict[str, Any], bool, str]] = [
        ("read_file", {"path": "huge.txt"}, False, "of 100.0 MB]"),
        ("read_file", {"path": "huge.txt", "offset": 3_700_000}, False, "[lines 3700000-"),
        ("read_file", {"path": "latin.txt"}, False, "1\tK\ufffdse\n2\tBrot"),
        ("read_file", {"path": "hole.bin"}, False, "binary"),
        ("read_file", {"path": "pipe"}, True, "pipe is a FIFO"),
        ("read_file", {"path": "socket"}, True, "socket"),
        ("read_file", {"path": "zero"}, True, "outside the workspace"),
        ("read_file", {"path": "../home/config/config.toml"}, True, "outside the workspace"),
        ("read_file", {"path": "a\0b"}, True, "NUL"),
        (
            "edit_file",
            {"path": "huge.txt", "old_string": "many", "new_string": "few"},
            True,
            "large",
        ),
        (
            "edit_file",
            {"path": "latin.txt", "old_string": "Brot", "new_string": "Wurst"},
            False,
            "",
        ),
        ("edit_file", {"path": "pipe", "old_string": "a", "new_string": "b"}, True, "a FIFO"),
        ("write_file", {"path": "socket", "content": "x"}, True, "a socket"),
        ("write_file", {"path": ".", "content": "x"}, True, "a folder"),
        ("grep_search", {"pattern": "no such text", "path": "huge.txt"}, False, "No match"),
        ("grep_search", {"pattern": "Wurst"}, False, "latin.txt"),
        ("grep_search", {"pattern": "("}, True, "literal"),
        ("list_dir", {"path": "pipe"}, True, "pipe"),
        ("run_command", {"command": "head -c 3000000 /dev/urandom"}, False, "Output too large"),
    ]
    calls = [
        f"{{name = {json.dumps(name)}, input = {toml(given)}}}" for name, given, _, _ in wanted
    ]
    path = script(f'[[turn]]\ntools = [{", ".join(calls)}]\n[[turn]]\ntext = "All done."\n')
    tools = ("edit_file", "write_file", "run_command(head *)")
    rules = [word for tool in tools for word in ("--allow", tool)]
    events = holdfast.lines("--practice-script", path, "-p", "go", *rules)
    assert events[-1]["outcome"] == "done"
    (file,) = session_files(home)
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    results = {r["call_id"]: r for r in records if r["type"] == "tool_result"}
    called = next(r for r in records if r["type"] == "assistant")["content"]
    assert len(called) == len(results) == len(wanted)
    for block, (name, given, is_error, words) in zip(called, wanted, strict=True):
        assert (block["name"], block["input"]) == (name, given)
        result = results[block["id"]]
        text = "".join(part["text"] for part in result["content"])
        assert (result["is_error"], words in text) == (is_error, True), (name, given, text[-500:])
        assert result["seconds"] < 20
        assert len(text.encode()) <= 51_200
    assert (work / "latin.txt").read_bytes() == "Käse\nWurst\n".encode("latin-1")
    assert (work / "huge.txt").stat().st_size == odd_files["huge.txt"]


def toml(value: dict[str, Any]) -> str:
    """A flat table as inline TOML."""
    return "{" + ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items()) + "}"


@pytest.mark.parametrize("place", ["folder", "header"])
def test_2_a_name_that_is_not_utf_8_stops_nothing(
    holdfast: Program, home: Path, place: str, tmp_path: Path
) -> None:
    folder = Path(
        os.fsdecode(os.fsencode(tmp_path) + (b"/caf\xe9" if place == "folder" else b"/w"))
    )
    folder.mkdir()
    (folder / "tasks.md").write_text("- [ ] hello\n")
    with serving({"turns": [{"text": "one"}, {"text": "two"}], "catalogue": True}) as server:
        key = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "ANTHROPIC_BASE_URL": server.url}
        program = Program(folder, {**holdfast.env, **key})
        assert program("-p", "hi").stdout == "one\n"
        assert program("run", "tasks.md", "--headless").code == 0
    for path in home.rglob("sessions/*/*.jsonl"):
        lines = path.read_text().splitlines()
        if place == "header":
            odd = {"id": "\ud800", "cwd": "\ud800", "created": "\ud800"}
            lines[0] = json.dumps(json.loads(lines[0]) | odd)
        path.write_text("\n".join(lines) + "\n")
    assert program("sessions", "search", "hi").stdout
    assert "2 sessions" in program("doctor", code=1).stdout  # the server is gone
    assert program("sessions", "list", "--all").stdout.count("hi\n") == 1
    assert program("--practice", "-c", "-p", "hello").stdout
