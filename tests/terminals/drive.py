"""Use the program in real terminals, with real keys: `python -m tests.terminals.drive OUT.jsonl`.

Not a part of the suite. `install.sh` installs what it needs; it takes some minutes for each
terminal, and a display of its own (`HOLDFAST_DISPLAY`, by default :111). Names after OUT choose
terminals. Each is started in an X server (foot in weston in it) with a shell, in which
`holdfast --practice` is run as a person would: typed by its keys. What is in the prompt is read by
the program's own key for the editor, whose place a script takes.

A line of OUT: terminal, version, date, step, what was meant, what came, and for text how many
characters were lost. Pictures of the screen are put beside OUT, to be looked at.
"""

from __future__ import annotations

import ctypes
import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final
from unicodedata import category

from tests.terminals.record import HERE, TERMINALS, WESTON, environment, started

DISPLAY: Final = os.environ.get("HOLDFAST_DISPLAY", ":111")
LAYOUTS: Final = ("fr", "de", "ru", "gr", "il", "ara", "in", "th", "ge", "am", "et", "us")
"""X's names of layouts: Latin with accents (two), Cyrillic, Greek, Hebrew, Arabic, Devanagari,
Thai, Georgian, Armenian, Amharic, ASCII. Their keys are pressed by their place."""
FOOT_LAYOUTS: Final = ("us", "fr", "ru", "gr", "th")
"""Weston takes its layout from the X server, at its start: there is a run for each of them."""
PLACES: Final = (*range(10, 22), *range(24, 36), *range(38, 50), *range(52, 62))
"""The keys with a character on them, by X's numbers."""
OTHERS: Final = {
    "Japanese": "日本語を入力するのは変換の後で確定した文字である。カタカナ、ひらがな",
    "Chinese": "汉字输入法把拼音变成字,然后一次提交。繁體字與標點符號。",
    "Korean": "한글은 자모를 모아 음절로 쓴다. 가나다라마바사아자차카타파하",
    "blanks": "a\u3000b\u00a0c\u2009d",
    "emoji": "👩‍💻 🏳️‍🌈 👍🏽 ❤️",
}
"""Text that has no keys here: X's test tool changes the layout for each character."""
LIGATURES: Final = str.maketrans(
    {"ﻻ": "لا", "ﻹ": "لإ", "ﻷ": "لأ", "ﻵ": "لآ"}  # one key; X's Compose makes two letters of it
)
LONG: Final = 10_000
"""Characters from which lines are compared."""
LENGTH: Final = 140
"""Characters of each layout."""
SHELL: Final = """\
PS1='$ '
export HOME={home} XDG_CONFIG_HOME={home}/.config XDG_DATA_HOME={home}/.local/share
export XDG_CACHE_HOME={home}/.cache XDG_STATE_HOME={home}/.local/state EDITOR={home}/editor
unset ANTHROPIC_API_KEY PROMPT_COMMAND
cd {home}/work
h() {{ stty -g >{home}/before; {program} --practice; echo $? >{home}/code; stty -g >{home}/after; }}
m() {{ PYTHONPATH={root} {python} -m tests.terminals.drive --modes {home}/modes; }}
b() {{ PYTHONPATH={root} {python} -m tests.terminals.drive --bytes {home}/bytes; }}
k() {{ PYTHONPATH={root} {python} -m tests.terminals.drive --bytes {home}/bytes 5; }}
touch {home}/shell
"""
EDITOR: Final = """\
#!/bin/sh
n=$(ls {home}/drafts | wc -l)
cp "$1" {home}/drafts/new && mv {home}/drafts/new {home}/drafts/$n
: >"$1"
"""
MODES: Final = (25, 1000, 1002, 1003, 1004, 1006, 1016, 1049, 2004, 2026, 2048)


class Keymap:
    """What the keys of an X layout type, by libxkbcommon."""

    class Names(ctypes.Structure):
        _fields_ = [(name, ctypes.c_char_p) for name in ("r", "m", "layout", "variant", "options")]

    def __init__(self, layout: str, variant: str = "") -> None:
        self._lib: Any = ctypes.CDLL("libxkbcommon.so.0")
        for name in ("xkb_context_new", "xkb_keymap_new_from_names"):
            getattr(self._lib, name).restype = ctypes.c_void_p
        context = ctypes.c_void_p(self._lib.xkb_context_new(0))
        names = self.Names(b"evdev", b"pc105", layout.encode(), variant.encode(), b"")
        keymap = self._lib.xkb_keymap_new_from_names(context, ctypes.byref(names), 0)
        self._keymap = ctypes.c_void_p(keymap)

    def character(self, place: int, level: int) -> str:
        """Return what a key types; "" for a dead key, or none."""
        symbols = ctypes.POINTER(ctypes.c_uint32)()
        count = self._lib.xkb_keymap_key_get_syms_by_level(
            self._keymap, place, 0, level, ctypes.byref(symbols)
        )
        code: int = self._lib.xkb_keysym_to_utf32(symbols[0]) if count == 1 else 0
        return chr(code) if code >= 32 and code != 127 else ""

    def text(self, length: int) -> Iterator[tuple[str, str]]:
        """Yield keys for xdotool, and what they type: all of the layout, again and again."""
        both = [
            (f"{'shift+' * level}{place}", typed)
            for level in (0, 1)
            for place in PLACES
            if (typed := self.character(place, level)) and category(typed) != "Cn"
        ]
        for number in range(length):
            yield both[number % len(both)]


def modes(file: str) -> None:
    """Ask the terminal for its modes and the flags of its keys, and write down what it says."""
    import select  # noqa: PLC0415 - inside the terminal only
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    end = os.open("/dev/tty", os.O_RDWR)
    before = termios.tcgetattr(end)
    tty.setraw(end)
    answers = b""
    os.write(end, b"".join(b"\x1b[?%d$p" % mode for mode in MODES) + b"\x1b[?u\x1b[?4m\x1b[c")
    while select.select([end], [], [], 1)[0]:
        answers += os.read(end, 65_536)
    termios.tcsetattr(end, termios.TCSANOW, before)
    Path(file).write_bytes(answers)


def bytes_of_keys(file: str, flags: str = "") -> None:
    """Write down what the terminal sends, until two seconds without anything after the first.

    `flags` are those of the kitty protocol.
    """
    import select  # noqa: PLC0415 - inside the terminal only
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    end = os.open("/dev/tty", os.O_RDWR)
    before = termios.tcgetattr(end)
    tty.setraw(end)
    os.write(end, b"\x1b[?2004h" + (f"\x1b[>{flags}u".encode() if flags else b""))
    with Path(file).open("wb", buffering=0) as out:
        Path(f"{file}-ready").touch()
        while select.select([end], [], [], 600 if not out.tell() else 2)[0]:
            out.write(os.read(end, 65_536))
    os.write(end, b"\x1b[?2004l" + (b"\x1b[<u" if flags else b""))
    termios.tcsetattr(end, termios.TCSANOW, before)
    Path(f"{file}-ready").unlink()


def wait(done: Callable[[], Any], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


class Used:
    """One terminal with a shell, and the program in it."""

    def __init__(
        self, name: str, folder: Path, env: dict[str, str], out: Path, layout: str = "us"
    ) -> None:
        self.name, self.out, self.env, self.own_layout = name, out, env, layout
        self.home = folder / f"{name}-{layout}"
        for place in ("work", "drafts", ".config/holdfast"):
            (self.home / place).mkdir(parents=True)
        (self.home / ".config/holdfast/config.toml").write_text(
            '[keys]\nexternal_editor = "f9"\n'  # works on any layout
        )
        places = {"home": self.home, "python": sys.executable, "root": Path(__file__).parents[2]}
        program = shlex.quote(str(Path(sys.executable).with_name("holdfast")))
        begins = "" if layout == "us" else "h\n"  # no key there types the letter
        (self.home / "rc").write_text(SHELL.format(**places, program=program) + begins)
        (self.home / "editor").write_text(EDITOR.format(home=self.home))
        (self.home / "editor").chmod(0o755)
        here = self.home / "here"
        here.write_text(f"#!/bin/sh\nexec bash --noprofile --rcfile {self.home}/rc -i\n")
        here.chmod(0o755)
        self.kind, argv = TERMINALS[name]
        package = ["dpkg-query", "-W", "-f", "${Version}", name]
        self.version = subprocess.run(package, check=False, capture_output=True, text=True).stdout
        own = {"WAYLAND_DISPLAY": "record"} if name == "foot" else {}
        self.process = subprocess.Popen(
            [str(here) if word == HERE else word for word in argv],
            env=env | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if not wait((self.home / "shell").exists):
            raise TimeoutError(name)
        wait(lambda: self.x("search", "--onlyvisible", "--class", self.kind))
        time.sleep(1)
        self.window = self.x("search", "--onlyvisible", "--class", self.kind).split()[-1]
        self.x("windowfocus", self.window)
        self.layout("us")

    def x(self, *words: str) -> str:
        return subprocess.run(
            ["xdotool", *words], check=False, env=self.env, capture_output=True, text=True
        ).stdout

    def layout(self, *words: str) -> None:
        """Take a layout. Foot has those of weston, which begin with it."""
        if self.name == "foot":
            return
        subprocess.run(["setxkbmap", *words], check=False, env=self.env, capture_output=True)
        time.sleep(0.7)

    def press(self, *keys: str, delay: int = 15) -> None:
        for at in range(0, len(keys), 50):
            self.x("key", "--delay", str(delay), *keys[at : at + 50])
        time.sleep(0.3)

    def run(self, letter: str) -> None:
        self.press(letter, "Return")

    def draft(self) -> str | None:
        """Return what is in the prompt, and empty it; None if the key brings nothing."""
        drafts = self.home / "drafts"
        there = len(list(drafts.iterdir()))
        self.press("F9")
        if not wait((drafts / str(there)).exists, 12):
            return None
        time.sleep(0.6)
        return (drafts / str(there)).read_text().removesuffix("\n")

    def note(self, step: str, **facts: Any) -> None:
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        told = {"terminal": self.name, "version": self.version, "date": today, "step": step}
        with self.out.open("a") as file:
            file.write(json.dumps({**told, **facts}, ensure_ascii=False) + "\n")
        print(self.name, step, {k: v for k, v in facts.items() if len(str(v)) < 100}, flush=True)

    def compare(self, step: str, meant: str, came: str | None) -> None:
        """Note how many of the characters that were meant are missing or others, or too many."""
        wanted, got = meant.translate(LIGATURES), (came or "").translate(LIGATURES)
        a, b = (wanted, got) if len(wanted) < LONG else (wanted.split("\n"), got.split("\n"))
        moves = SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if a != b else ()
        lost = sum(max(j - i, m - k) for kind, i, j, k, m in moves if kind != "equal")
        shown = (
            {"meant": meant[:2000], "came": came and came[:2000]} if lost or came is None else {}
        )
        self.note(step, characters=len(meant), wrong=lost, **shown)

    def picture(self, name: str) -> None:
        place = self.out.with_name(f"{self.name}-{name}.png")
        subprocess.run(["import", "-window", "root", place], check=False, env=self.env)

    def select(self, text: str) -> None:
        """Put a text where a paste comes from."""
        for selection in ("primary", "clipboard"):
            argv = ["xclip", "-selection", selection, "-i"]
            quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(argv, input=text.encode(), env=self.env, check=False, **quiet)

    def start(self) -> bool:
        """Run the program, until its prompt answers."""
        if self.own_layout == "us":
            self.run("h")
        time.sleep(3)
        return any(self.draft() is not None for _ in range(3))

    def quit(self) -> None:
        self.press("ctrl+q")
        wait((self.home / "after").exists, 10)
        time.sleep(0.7)

    def state(self, step: str) -> None:
        """Note the settings and the modes of the terminal."""
        self.run("m")
        wait((self.home / "modes").exists, 8)
        time.sleep(1.5)
        answers = (self.home / "modes").read_bytes() if (self.home / "modes").exists() else b""
        (self.home / "modes").unlink(missing_ok=True)
        self.note(step, modes=answers.hex())

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)


def typed(one: Used, layouts: Sequence[str]) -> None:
    """Every layout by its keys, with what each of them should type."""
    for layout in layouts:
        keys, meant = zip(*Keymap(layout).text(LENGTH), strict=True)
        one.press("space")  # begins no command
        one.layout(layout)
        one.press(*keys)
        time.sleep(1)
        if layout in {"ara", "th", "et"}:
            one.picture(f"typed-{layout}")
        one.layout("us")
        came = one.draft()
        one.compare(f"keys {layout}", "".join(meant), came[1:] if came else came)


def composed(one: Used) -> None:
    """AltGr, a dead key, and text that has no keys."""
    one.layout("de")
    one.press("space", "ISO_Level3_Shift+24", "ISO_Level3_Shift+26", "ISO_Level3_Shift+16")
    one.layout("us")
    one.compare("AltGr de", " @€{", one.draft())
    one.layout("us", "-variant", "intl")
    one.press("space", "48", "26", "shift+48", "30")  # ´ e, ¨ u
    time.sleep(0.5)
    one.layout("us")
    one.compare("dead keys us intl", " éü", one.draft())
    for name, text in OTHERS.items():
        one.x("type", "--delay", "120", f" {text}")
        time.sleep(1)
        if name in {"Japanese", "emoji"}:
            one.picture(f"typed-{name}")
        one.layout("us")
        one.compare(f"xdotool type {name}", f" {text}", one.draft())


def all_texts() -> str:
    return "".join(
        "".join(typed for _, typed in Keymap(layout).text(LENGTH)) for layout in LAYOUTS
    ) + "".join(OTHERS.values())


PASTE: Final = {"konsole": "ctrl+shift+v", "foot": "ctrl+shift+v", "alacritty": "shift+Insert"}


def pasted(one: Used) -> None:
    """The same texts, and 5,000 lines."""
    for name, text in {
        "all texts": all_texts(),
        "5,000 lines": "\n".join(f"line {number} é 日本" for number in range(5_000)),
    }.items():
        one.select(text)
        one.press(PASTE.get(one.name, "shift+Insert"))
        time.sleep(3)
        if one.name == "konsole" and len(text) > 5_000:
            one.press("Return")  # it asks
            time.sleep(2)
        one.picture(f"pasted-{len(text)}")
        one.compare(f"paste {name}", text, one.draft())


def streaming(one: Used) -> None:
    """Ask, and resize 30 times within a second while it answers; then select with the mouse."""
    one.x("type", "--delay", "20", "Explain this folder in a few paragraphs.")
    one.press("Return")
    sizes = [("windowsize", one.window, str(500 + 20 * n % 300), str(300 + 17 * n % 250))
             for n in range(30)]  # fmt: skip
    begun = time.monotonic()
    for size in sizes:
        one.x(*size)
    one.note("resize storm", seconds=round(time.monotonic() - begun, 2))
    one.x("windowsize", one.window, "900", "600")
    time.sleep(4)
    one.picture("resized")
    for modifier in ("", "shift"):
        if modifier:
            one.x("keydown", modifier)
        one.x("mousemove", "120", "90", "mousedown", "1", "mousemove", "300", "90")
        time.sleep(0.2)
        one.x("mousemove", "420", "110", "mouseup", "1")
        if modifier:
            one.x("keyup", modifier)
        time.sleep(0.5)
        one.picture(f"selected-{modifier or 'own'}")
        got = subprocess.run(["xclip", "-o", "-selection", "primary"], check=False, env=one.env,
                             capture_output=True, text=True, timeout=10).stdout  # fmt: skip
        one.note(f"select with the mouse {modifier}".strip(), primary=got[:200])
    one.press("Escape")
    if one.name == "foot":
        return  # weston gives the keys back to nobody
    root = one.x("search", "--maxdepth", "0", "--name", ".*").split()[:1]
    one.x("windowfocus", *root)
    time.sleep(0.5)
    one.x("windowfocus", one.window)
    time.sleep(0.5)
    one.press("space", "x")
    one.compare("focus out and in, then a key", " x", one.draft())


def watched(one: Used) -> None:
    """/keys, with some keys."""
    one.x("type", "--delay", "40", "/keys")
    time.sleep(0.5)
    one.press("Return")
    time.sleep(1.5)
    one.press("ctrl+shift+minus", "ctrl+slash", "shift+Return", "alt+b", "F6", delay=250)
    time.sleep(1)
    one.picture("keys")
    one.press("Escape", delay=300)
    time.sleep(0.7)
    one.press("Escape")
    time.sleep(1)
    one.compare("/keys leaves the prompt alone", "", one.draft())


def stopped(one: Used) -> None:
    """Ctrl+Z and fg, then the end: what the terminal has then is what it had before."""
    one.press("ctrl+z")
    time.sleep(1)
    one.state("modes while suspended")
    one.picture("suspended")
    one.press("f", "g", "Return")
    time.sleep(1.5)
    one.press("space", "y")
    one.compare("after fg", " y", one.draft())
    one.quit()
    settings = [(one.home / name).read_text().strip() if (one.home / name).exists() else ""
                for name in ("before", "after")]  # fmt: skip
    one.note("stty after the end", same=settings[0] == settings[1] != "")
    one.picture("ended")
    one.state("modes after the end")


def recorded_bytes(one: Used, layouts: Sequence[str]) -> None:
    """What the terminal sends for some of the layouts, without the program, for the suite."""
    for letter in ("b", "k") if one.name in {"kitty", "foot"} else ("b",):
        for layout in layouts:
            one.run(letter)
            if not wait((one.home / "bytes-ready").exists, 25):
                return
            keys, meant = zip(*Keymap(layout).text(LENGTH), strict=True)
            one.layout(layout)
            one.press(*keys)
            one.layout("us")
            wait(lambda: not (one.home / "bytes-ready").exists(), 25)
            time.sleep(1)
            data = (one.home / "bytes").read_bytes().hex()
            name = f"bytes {layout}" + (", kitty protocol 5" if letter == "k" else "")
            one.note(name, meant="".join(meant), data=data)


def recorded_others(one: Used) -> None:
    """The same for text that has no keys: what X's test tool loses is not lost by the program."""
    for name, text in OTHERS.items():
        one.run("b")
        if not wait((one.home / "bytes-ready").exists, 10):
            return
        one.x("type", "--delay", "120", text)
        time.sleep(1)
        one.layout("us")
        wait(lambda: not (one.home / "bytes-ready").exists(), 10)
        one.note(f"bytes {name}", meant=text, data=(one.home / "bytes").read_bytes().hex())


def use(one: Used) -> None:
    """Everything, in turn; a step that fails is noted, and the next one begins."""
    foot = one.name == "foot"
    if one.own_layout == "us":
        one.state("modes before")
    if not foot:
        recorded_bytes(one, ("fr", "ru", "th", "ara", "ge"))
        recorded_others(one)
    if not one.start():
        one.picture("not-started")
        one.note("start", ok=False)
        return
    one.picture("started")
    steps: list[Callable[[], None]] = [
        lambda: typed(one, (one.own_layout,) if foot else LAYOUTS),
        *(() if foot else (lambda: composed(one), lambda: pasted(one))),
    ]
    if one.own_layout == "us":
        steps += [lambda: watched(one), lambda: streaming(one), lambda: stopped(one)]
    for step in steps:
        try:
            step()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            one.note("failed", error=repr(error))


@contextmanager
def display(folder: Path) -> Generator[dict[str, str]]:
    """An X server."""
    env = environment(folder, DISPLAY) | {"XDG_CONFIG_HOME": str(folder / ".config")}
    for name in ("TMUX", "STY", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"):
        env.pop(name, None)
    unasked = folder / ".config/xfce4/terminal"
    unasked.mkdir(parents=True)
    (unasked / "terminalrc").write_text("[Configuration]\nMiscShowUnsafePasteDialog=FALSE\n")
    with started("Xvfb", DISPLAY, "-screen", "0", "1000x700x24", "-noreset", env=env):
        yield env


@contextmanager
def compositor(name: str, layout: str, env: dict[str, str]) -> Generator[None]:
    """Weston for foot, with the layout that foot is to have."""
    if name != "foot":
        yield
        return
    subprocess.run(["setxkbmap", layout], check=False, env=env)
    with started(*WESTON, env=env):
        yield


def main(out: str, names: list[str]) -> None:
    place = Path(out).absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    runs = [
        (name, layout)
        for name in names or TERMINALS
        for layout in (FOOT_LAYOUTS if name == "foot" else ("us",))
    ]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        display(Path(folder)) as env,
    ):
        for name, layout in runs:
            if not shutil.which(name):
                print(f"{name}: not installed")
                continue
            with compositor(name, layout, env):
                try:
                    one = Used(name, Path(folder), env, place, layout)
                except (TimeoutError, IndexError) as error:
                    print(f"{name}: {error!r}")
                    continue
                use(one)
                one.end()


if __name__ == "__main__":
    if sys.argv[1] == "--modes":
        modes(sys.argv[2])
    elif sys.argv[1] == "--bytes":
        bytes_of_keys(*sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2:])
