"""The first frame in a real pseudo-terminal: what it takes, hands over and puts back."""

from __future__ import annotations

import json
import os
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.context.pictures import png
from tests.support.terminal import HOLDFAST, Terminal
from tui.app.commands import table
from tui.app.options import flags
from tui.core import theme_cache
from tui.core.paths import folders
from tui.ui.start import first_frame

ALONE = """
import json, signal, sys
from tui.ui.start import first_frame
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
first = first_frame.open_prompt([])
signal.sigwait({signal.SIGUSR1})
typed = first.finish()
first.finish(leave=True)
rest = [(part.kind, part.text) for part in first.rest]
found = [typed.sent, typed.draft, typed.pasted, typed.typed, rest]
print("TYPED" + json.dumps(found), flush=True)
"""
FAILING = """
from tui.ui.start import first_frame
first_frame.open_prompt([])
raise RuntimeError('on purpose')
"""
CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""In the foreground of its terminal, which makes signals of its keys."""
WRAPPED = """
import sys
from tui.cli import main
class Interrupted:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt
def make(words):
    class Holder:
        attribute = Interrupted()
main._run = make
sys.exit(main.main([]))
"""
DEAF = """
from tui.ui.start import first_frame
first_frame.open_prompt([])
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
LOOK = {
    "theme": "daylight",
    "dark": "yes",
    **dict.fromkeys(theme_cache.COLOURS, "#62d2c6"),
    "background": "#0b1019",
    "panel": "#182132",
    "foreground": "#dde5f0",
    "muted": "#8e9bb4",
    "rule": "#2c3950",
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANTHROPIC")}
    return clean | {"HOLDFAST_HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": "k"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "README.md").write_text("The demo project.\n")
    return folder


def alone(env: dict[str, str], work: Path, *pieces: bytes, late: bytes = b"") -> list[object]:
    """What the first frame takes when it gets these pieces; `late` comes after its end began."""
    with Terminal([sys.executable, "-c", ALONE], cwd=work, env=env) as screen:
        screen.wait_for("›")
        for piece in pieces:
            os.write(screen.master, piece)
            screen.read(0.02)
        if late:
            screen.process.send_signal(signal.SIGUSR1)
            os.write(screen.master, late)
        else:
            screen.type("§")  # once it is seen, all before it was taken
            screen.wait_for("§")
            screen.process.send_signal(signal.SIGUSR1)
        screen.wait_for("TYPED", "]")
        assert screen.exit_code() == 0
        assert termios.tcgetattr(screen.slave) == screen.before
        return json.loads(screen.text.rpartition("TYPED")[2])


@pytest.mark.parametrize(
    ("pieces", "sent", "draft"),
    [
        ([b"abc"], [], "abc"),
        ([b"ab\x7f\x7f\x7fc"], [], "c"),
        (["你好 ünd".encode()], [], "你好 ünd"),
        (["ae\u0301\x7f🇩🇪\x7f\u3000".encode()], [], "a\u3000"),
        (["你".encode()[:1], "你".encode()[1:2], "你".encode()[2:] + b"!"], [], "你!"),
        ([b"\xff\xfex"], [], "\ufffd\ufffdx"),
        ([b"one\rtwo\r", b"\r  \rthree"], ["one", "two"], "three"),
        ([b"a\nb"], [], "a\nb"),
        ([b"a\x1b\rb"], [], "a\nb"),
        ([b"a\\\rb\r"], ["a\nb"], ""),
        ([b"!a \\\rb\r"], ["!a \\\nb"], ""),
        ([b"wrong\x15right"], [], "right"),
        ([b"a\x1b]11;rgb:1e1e/1e", b"1e/2e2e\x1b\\b\x1b[?62;4c\x1bP>|foot\x1b\\"], [], "ab"),
        ([b"a\x1b[<35;", b"33;12M\x1b[MC\x81>b\x1b[<0;1"], [], "ab"),
        ([b"\x1b[200~one\rtwo\r\nthree\x1b[201~!"], [], "one\ntwo\nthree!"),
        ([b"\x1b[20", b"0~a\rb", b"\x1b[2", b"01~c\r"], ["a\nbc"], ""),
        ([b"\x1b[200~" + b"x" * 9000 + b"\x1b[201~"], [], "x" * 9000),
    ],
)
def test_what_is_typed_is_handed_over(
    env: dict[str, str], work: Path, pieces: list[bytes], sent: list[str], draft: str
) -> None:
    assert alone(env, work, *pieces)[:2] == [sent, f"{draft}§"]


@pytest.mark.parametrize(
    ("typed", "draft", "kinds"),
    [
        (b"\x1b[Ab\x1bOPc", "draft", ["csi", "text", "ss3", "text"]),
        (b"\x1b[15~\r", "draft", ["csi", "control"]),
        (b"\x1bxb", "draft", ["alt", "text"]),
        (b"\x06find", "draft", ["control", "text"]),
        (b"\t\x00", "draft", ["control", "control"]),
        (b"\x15/mod\tx", "/mod", ["control", "text"]),
        (b"\x15/model other\rgo\r", "/model other", ["control", "text", "control"]),
        (b"\x15# keep it\rgo", "# keep it", ["control", "text"]),
        (b"\x15quit\r", "quit", ["control"]),
    ],
)
def test_a_key_that_means_more_waits_for_the_real_screen(
    env: dict[str, str], work: Path, typed: bytes, draft: str, kinds: list[str]
) -> None:
    """And so does what comes after it."""
    with Terminal([sys.executable, "-c", ALONE], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("draft" + typed.decode())
        screen.wait_for(draft)
        screen.process.send_signal(signal.SIGUSR1)
        screen.wait_for("TYPED", "]]")
        found = json.loads(screen.text.rpartition("TYPED")[2])
    assert found[:2] == [[], draft]
    assert [kind for kind, _ in found[4]] == kinds


@pytest.mark.parametrize(
    ("pieces", "pasted"),
    [
        (
            [b"see \x1b[200~/a b.png\x1b[201~ and \x1b[200~one\rtwo\x1b[201~"],
            ["/a b.png", "one\ntwo"],
        ),
        ([b"\x1b[200~/a", b".png\x1b[20", b"1~"], ["/a.png"]),
        ([b"\x1b[200~sent.png\x1b[201~\r\x1b[200~/b.png\x1b[201~"], ["/b.png"]),
        ([b"\x1b[200~/cleared.png\x1b[201~\x15typed"], []),
    ],
)
def test_what_was_pasted_is_known_as_such(
    env: dict[str, str], work: Path, pieces: list[bytes], pasted: list[str]
) -> None:
    assert alone(env, work, *pieces)[2] == pasted


@pytest.mark.parametrize(
    ("pieces", "typed"),
    [
        ([b"elevated on\r"], 11),
        ([b"\x1b[200~elevated on\x1b[201~\r"], 0),
        ([b"verbose \x1b[200~/elevated\x1b[201~ go\r"], 8),
        ([b"\x1b[200~gone\x1b[201~\x15think\r"], 5),
        ([b"\x1b[200~a\x1b[201~\x7fthink\r"], 5),
    ],
)
def test_how_much_was_typed_is_known(
    env: dict[str, str], work: Path, pieces: list[bytes], typed: int
) -> None:
    counts = alone(env, work, *pieces)[3]
    assert isinstance(counts, list)
    assert counts[0] == typed


@pytest.mark.parametrize(
    ("begun", "rest", "draft"),
    [
        ("\x1b[200~rm -rf\r", "all\r\x1b[201~!", "rm -rf⏎all⏎!"),
        ("a\x1b]11;rgb:1e1e/1e", "1e/2e2e\x1b\\b!", "ab!"),
        ("a\x1b[<35;", "33;12Mb!", "ab!"),
    ],
    ids=["a paste", "a reply", "the mouse"],
)
def test_what_has_begun_is_continued_by_the_real_screen(
    env: dict[str, str], work: Path, begun: str, rest: str, draft: str
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type(begun)
        screen.wait_for("shift+tab")
        screen.type(rest)
        screen.wait_until(lambda: draft in prompt(screen))


def prompt(screen: Terminal) -> str:
    """What stands in the prompt, its lines joined."""
    rows = ["".join(char for char, _ in row) for _, row in sorted(screen.shown.by_row.items())]
    first = next((at for at, row in enumerate(rows) if "›" in row), len(rows))
    last = next((at for at, row in enumerate(rows) if at > first and "───" in row), first)
    return "⏎".join(row.partition("›")[2].strip() or row.strip() for row in rows[first:last])


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, -signal.SIGQUIT),
        (signal.SIGUSR1, -signal.SIGUSR1),
    ],
)
def test_a_signal_puts_the_terminal_back(
    env: dict[str, str], work: Path, number: signal.Signals, told: int
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        assert termios.tcgetattr(screen.slave) != screen.before
        screen.process.send_signal(number)
        assert screen.exit_code() == told
        assert termios.tcgetattr(screen.slave) == screen.before
        assert screen.raw.endswith(b"\x1b[?25h")
        assert b"\x1b[?1049l" in screen.raw


def test_an_exception_puts_the_terminal_back(env: dict[str, str], work: Path) -> None:
    with Terminal([sys.executable, "-c", FAILING], cwd=work, env=env) as screen:
        assert screen.exit_code() == 1
        assert b"on purpose" in screen.raw
        assert termios.tcgetattr(screen.slave) == screen.before
        assert b"\x1b[?1049l" in screen.raw


def test_ctrl_c_leaves_at_once(env: dict[str, str], work: Path) -> None:
    argv = [sys.executable, "-c", CONTROLLED, *HOLDFAST, "--practice"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("\x03")
        assert screen.exit_code() == 130
        assert termios.tcgetattr(screen.slave) == screen.before
        assert screen.raw.endswith(b"\x1b[?25h")


@pytest.mark.parametrize("key", ["k", ""], ids=["prompt", "welcome"])
def test_what_was_typed_until_then_is_printed(env: dict[str, str], work: Path, key: str) -> None:
    """Not at the welcome screen, where it may be a key."""
    with Terminal(
        [sys.executable, "-c", DEAF], cwd=work, env={**env, "ANTHROPIC_API_KEY": key}
    ) as screen:
        screen.wait_for("›" if key else "holdfast")
        screen.type("first look\rand \x1b]11;rgb:0000/0000/0000\x07then")
        if key:
            screen.wait_for("and then")
        else:
            screen.listen(0.2)  # the kernel hands it on in its own time
        screen.process.send_signal(signal.SIGTERM)
        assert screen.exit_code() == 128 + signal.SIGTERM
        after = screen.raw.rpartition(b"\x1b[?25h")[2]
        assert after == (b"Not sent: first look\r\n  and then\r\n" if key else b"")


def test_a_signal_that_comes_while_classes_are_made_is_not_taken_for_a_mistake(
    env: dict[str, str], work: Path
) -> None:
    with Terminal([sys.executable, "-c", WRAPPED], cwd=work, env=env) as screen:
        assert screen.exit_code() == 130
        assert screen.text.strip() == ""


def test_a_signal_is_heeded_wherever_an_exception_would_get_lost(
    env: dict[str, str], work: Path
) -> None:
    with Terminal([sys.executable, "-c", DEAF], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.process.send_signal(signal.SIGINT)
        assert screen.exit_code() == 130
        assert termios.tcgetattr(screen.slave) == screen.before
        assert screen.raw.endswith(b"\x1b[?25h")


def test_a_wrong_flag_is_told_on_the_main_screen(env: dict[str, str], work: Path) -> None:
    with Terminal([*HOLDFAST, "--bad-flag"], cwd=work, env=env) as screen:
        screen.wait_for("--bad-flag")
        assert screen.exit_code() == 2
        assert termios.tcgetattr(screen.slave) == screen.before
        assert screen.raw.index(b"\x1b[?1049l") < screen.raw.index(b"--bad-flag")


def test_a_wrong_configuration_is_told_on_the_main_screen(
    env: dict[str, str], work: Path, tmp_path: Path
) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text("model = 7\n")
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("config.toml", "model")
        assert screen.exit_code() == 2
        assert termios.tcgetattr(screen.slave) == screen.before
        assert screen.raw.rindex(b"\x1b[?1049l") < screen.raw.index(b"config.toml")


@pytest.mark.parametrize(
    "gap_s",
    [
        0.005,
        pytest.param(0.002, marks=pytest.mark.slow),
        pytest.param(0.011, marks=pytest.mark.slow),
    ],
)
def test_keys_typed_during_the_whole_start_are_kept_in_order(
    env: dict[str, str], work: Path, tmp_path: Path, gap_s: float
) -> None:
    """One key after the other from the first moment on, until the session stands.

    At most 2,000 keys: on a busy machine the rest of the start is waited for, else what the screen
    writes of a draft that grows without end is all that the machine does.
    """
    keys = ""
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.read(0.02)
        while len(keys) < 100 or ("practice" not in screen.text and len(keys) < 2000):
            key = chr(ord("a") + len(keys) % 26)
            keys += key
            screen.type(key)
            screen.listen(gap_s)
        screen.wait_for("practice")
        screen.type("\r")
        screen.wait_for("1 prompt")
        assert screen.raw.count(b"\x1b[?1049h") == 1
        assert screen.raw.count(b"\x1b[2J") == 1
    (path,) = (tmp_path / "home" / "data" / "sessions").rglob("*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    (said,) = [r for r in records if r["type"] == "user"]
    assert keys in json.dumps(said)


def test_a_path_pasted_at_once_becomes_an_image(env: dict[str, str], work: Path) -> None:
    (work / "shot.png").write_bytes(png(640, 400))
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type(f"what is \x1b[200~{work}/shot.png\x1b[201~")
        screen.wait_for("shot.png", "[image 1: shot.png 640×400 ")


def test_prompts_sent_early_are_answered_in_order(
    env: dict[str, str], work: Path, tmp_path: Path
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("read README.md\rsay first\rsay second\rand a draft")
        screen.wait_for("1 prompt", "and a draft")
    (path,) = (tmp_path / "home" / "data" / "sessions").rglob("*.jsonl")
    said = [line for line in path.read_text().splitlines() if json.loads(line)["type"] == "user"]
    wanted = ["read README.md", "say first", "say second"]
    assert [text for line in said for text in wanted if text in line] == wanted


def test_alt_enter_of_a_plain_terminal_begins_a_line(
    env: dict[str, str], work: Path, tmp_path: Path
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›", "shift+tab")
        screen.type("say one\x1b\rtwo\r")
        screen.wait_for("1 prompt")
    (path,) = (tmp_path / "home" / "data" / "sessions").rglob("*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    (said,) = [r for r in records if r["type"] == "user"]
    assert "say one\\ntwo" in json.dumps(said)


def test_a_command_typed_early_works(env: dict[str, str], work: Path) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("/help\r")
        screen.wait_for("● here", "send")


def test_an_unknown_command_typed_early_stays_in_the_prompt(
    env: dict[str, str], work: Path
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("/halp\r")
        screen.wait_for("Unknown command /halp.", "Did you mean /help?")


def test_what_is_pressed_in_the_first_frame_acts_in_its_order(
    env: dict[str, str], work: Path
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        screen.type("a draft\x1bOP")
        screen.wait_for("● here")
        screen.type("\x1bOP")
        screen.wait_until(lambda: "a draft" in prompt(screen))


def test_the_words_that_quit_are_those_of_the_commands() -> None:
    assert set(first_frame.QUIT_WORDS) == table.QUIT_WORDS


def test_the_subcommands_are_those_of_the_command_line() -> None:
    assert flags.first_words() == first_frame.SUBCOMMANDS


@pytest.mark.parametrize("name", ["HOLDFAST_HOME", "XDG_CACHE_HOME", "HOME"])
def test_the_look_is_kept_in_the_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for other in ("HOLDFAST_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path))
    assert Path(theme_cache.file()) == folders().cache / "look"


def test_a_first_start_without_a_key_shows_one_screen(env: dict[str, str], work: Path) -> None:
    del env["ANTHROPIC_API_KEY"]
    with Terminal([*HOLDFAST], cwd=work, env=env) as screen:
        screen.wait_for("never loses your work", "opening …")
        screen.type("see you")
        screen.wait_for("Connect a model", "paste an API key")
        assert "›" not in screen.text
        assert "Ask for anything" not in screen.text
        screen.type("\x1b[F\x1b[A")
        screen.wait_for("reads, searches, edits and runs commands")
        screen.press("\r", lambda: "Explain this project" in screen.text)  # there is a draft
        screen.wait_for("see you")


def test_what_is_remembered_or_a_key_brings_the_prompt_at_once(
    env: dict[str, str], work: Path
) -> None:
    with Terminal([*HOLDFAST], cwd=work, env=env) as screen:
        screen.wait_for("›")
        assert "never loses your work" not in screen.text


def test_a_look_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert theme_cache.load() == {}
    theme_cache.save(LOOK)
    assert theme_cache.load() == LOOK


@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff\xfe", b"theme", b"theme x\n", b"background red\n" * 500, b"\n\n\n", b"theme \n"],
)
def test_a_damaged_look_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: bytes
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    theme_cache.save(LOOK)
    whole = Path(theme_cache.file()).read_bytes()
    Path(theme_cache.file()).write_bytes(damage + whole[:40])
    assert theme_cache.load() == {}


def test_a_cache_that_cannot_be_written_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "file"))
    theme_cache.save(LOOK)
    assert theme_cache.load() == {}


def test_the_first_frame_has_the_colours_of_the_last_run(env: dict[str, str], work: Path) -> None:
    path = Path(env["HOLDFAST_HOME"]) / "cache" / "look"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{name} {value}\n" for name, value in LOOK.items()))
    with Terminal([*HOLDFAST, "--practice"], cwd=work, env=env) as screen:
        screen.wait_for("›")
        assert b"48;2;11;16;25m\x1b[2J" in screen.raw
        screen.wait_for("practice")
