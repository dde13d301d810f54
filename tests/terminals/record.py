"""Ask real terminals, and write down what they say: `python -m tests.terminals.record OUT.jsonl`.

Not a part of the suite: needs Xvfb, xdotool, xclip, setxkbmap, dbus-run-session, and the terminals
that are to be asked (`xterm`, `kitty`, `foot` with `weston`, `alacritty`, `konsole`,
`xfce4-terminal`, `tmux`, `screen`). Those that are not installed are passed over; names after OUT
choose some. Versions are those of Debian's packages.

Each is started in an X server of its own, with this file as its program, which sends what it is
told and notes each read. What is new in OUT belongs into `replies.jsonl`.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

ESC, ST, BEL = "\x1b", "\x1b\\", "\x07"
DISPLAY: Final = os.environ.get("RECORD_DISPLAY", ":93")
SOFTWARE: Final = {"LIBGL_ALWAYS_SOFTWARE": "1", "NO_AT_BRIDGE": "1", "LC_ALL": "C.UTF-8"}
SECRET: Final = b"secret words"

MODES: Final = (1, 7, 25, 1000, 1003, 1004, 1006, 1016, 1049, 2004, 2026, 2027, 2031, 2048)
QUERIES: Final = {
    "DA1": f"{ESC}[c",
    "DA2": f"{ESC}[>c",
    "DA3": f"{ESC}[=c",
    "XTVERSION": f"{ESC}[>0q",
    **{f"OSC{n}.BEL": f"{ESC}]{n};?{BEL}" for n in ("4;1", "10", "11", "12", "52;p")},
    **{
        f"OSC{n}.ST": f"{ESC}]{n};?{ST}"
        for n in ("4;1", "4;1;?;2", "10", "10;?", "11", "12", "52;c")
    },
    **{f"DECRQM?{mode}": f"{ESC}[?{mode}$p" for mode in MODES},
    "DECRQM4": f"{ESC}[4$p",
    **{
        f"XTGETTCAP.{n}": f"{ESC}P+q{n.encode().hex()}{ST}" for n in ("TN", "Co", "RGB", "Ms", "no")
    },
    **{f"DECRQSS.{n}": f"{ESC}P$q{n}{ST}" for n in ("m", " q", "r", "zz")},
    **{f"CSI{n}t": f"{ESC}[{n}t" for n in (11, 13, 14, 15, 16, 18, 19, 20, 21)},
    "CSI?u": f"{ESC}[?u",
    "KITTYGFX": f"{ESC}_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA{ST}",
    "CSI?996n": f"{ESC}[?996n",
    "DSR5": f"{ESC}[5n",
    "CPR6": f"{ESC}[6n",
    "DECXCPR?6": f"{ESC}[?6n",
    "DECREQTPARM": f"{ESC}[x",
    "OSC7501.ST DA1": f"{ESC}]7501;?{ST}{ESC}[c",
    "XTQMODKEYS4": f"{ESC}[?4m",
    "XTSMGRAPHICS": f"{ESC}[?2;1;0S",
    "DECRQCRA": f"{ESC}[1;1;1;1;1;1*y",
    "8-bit DA1": f"{ESC} G{ESC}[c{ESC} F",
    "8-bit OSC11": f"{ESC} G{ESC}]11;?{ST}{ESC} F",
}
BURST: Final = "".join(
    QUERIES[name]
    for name in ("DA2", "XTVERSION", "OSC11.ST", "DECRQM?2026", "XTGETTCAP.TN", "CSI14t", "CSI18t")
)
MOUSE: Final = ("1003;1006", "1000", "1002", "1003", "1003;1005", "1003;1015", "1003;1016", "9")
PASTED: Final = {
    "two lines": b"one\ntwo\n",
    "CRLF": b"one\r\ntwo",
    "escape inside": b"a\x1b[201~b\x1b[31mc",
    "controls": b"a\x03b\x08c\x00d\x7fe",
}
WESTON: Final = ("weston", "--backend=x11-backend.so", "--use-pixman", "--socket=record")
HERE: Final = "@"
TERMINALS: Final[dict[str, tuple[str, list[str]]]] = {
    "xterm": ("xterm", ["xterm", "-geometry", "100x30", "-e", HERE]),
    "kitty": ("kitty", ["kitty", "--config", "NONE", HERE]),
    "alacritty": ("Alacritty", ["alacritty", "-e", HERE]),
    "konsole": ("konsole", ["dbus-run-session", "--", "konsole", "--nofork", "-e", HERE]),
    "xfce4-terminal": (
        "xfce4-terminal",
        ["dbus-run-session", "--", "xfce4-terminal", "--disable-server", "-x", HERE],
    ),
    "foot": ("weston", ["foot", "--config=/dev/null", HERE]),
    "tmux": ("xterm", ["xterm", "-e", "tmux", "-L", "record", "-f", "/dev/null", "new", HERE]),
    "screen": ("xterm", ["xterm", "-e", "screen", "-c", "/dev/null", "-U", HERE]),
}
"""The class of its window, and how it is started."""
PACKAGES: Final = {"xfce4-terminal": "libvte-2.91-0"}
"""The package that matters, where it is not the terminal's own."""


def installed() -> list[str]:
    return list(filter(shutil.which, TERMINALS))


def version_of(name: str) -> str:
    """The version of a terminal's package, and of the one that matters."""
    query = ["dpkg-query", "-W", "-f", "${Version} "]
    told = [
        subprocess.run([*query, one], check=False, capture_output=True, text=True).stdout.strip()
        for one in (name, *filter(None, [PACKAGES.get(name)]))
    ]
    return told[0] if len(told) == 1 else f"{told[0]} ({PACKAGES[name]} {told[1]})"


def record(fifo: str, log: str) -> None:
    """Be the program in the terminal: send what the fifo says, note what comes."""
    end = os.open("/dev/tty", os.O_RDWR)
    before = termios.tcgetattr(end)
    tty.setraw(end)
    told = os.open(fifo, os.O_RDWR)
    with Path(log).open("a", buffering=1) as out:
        out.write(json.dumps({"event": "ready"}) + "\n")
        while True:
            ready = select.select([end, told], [], [], 120)[0]
            if not ready:
                break
            if end in ready:
                out.write(json.dumps({"event": "read", "hex": os.read(end, 65_536).hex()}) + "\n")
            if told in ready:
                line = os.read(told, 65_536)
                if line.startswith(b"quit"):
                    break
                os.write(end, bytes.fromhex(line.decode()))
    termios.tcsetattr(end, termios.TCSANOW, before)


class Asked:
    """One terminal, running."""

    def __init__(self, name: str, folder: Path, env: dict[str, str]) -> None:
        kind, argv = TERMINALS[name]
        self.name = name
        self.rows = list[dict[str, Any]]()
        self.env = env | ({"WAYLAND_DISPLAY": "record"} if name == "foot" else {})
        self.version = version_of(name)
        fifo, self.log = folder / "fifo", folder / "log"
        os.mkfifo(fifo)
        self.log.touch()
        here = folder / "here"
        here.write_text(f"#!/bin/sh\nexec {sys.executable} {__file__} --inside {fifo} {self.log}\n")
        here.chmod(0o755)
        self.process = subprocess.Popen(
            [str(here) if word == HERE else word for word in argv],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 30
        while "ready" not in self.log.read_text():
            if time.monotonic() > until:
                raise TimeoutError(name)
            time.sleep(0.1)
        self._fifo = os.open(fifo, os.O_WRONLY)
        found, until = list[str](), time.monotonic() + 30
        while not found and time.monotonic() < until:
            time.sleep(1)
            found = self.x("search", "--onlyvisible", "--class", kind).split()
        self.window = found[-1]
        self.x("windowfocus", self.window)

    def x(self, *words: str) -> str:
        return subprocess.run(
            ["xdotool", *words], check=False, env=self.env, capture_output=True, text=True
        ).stdout

    def send(self, text: str) -> None:
        os.write(self._fifo, text.encode().hex().encode() + b"\n")
        time.sleep(0.2)

    def note(self, kind: str, name: str, sent: str, *calls: tuple[str, ...]) -> None:
        """Send, do what is to be done on the display, and keep what came meanwhile."""
        seen = len(self.log.read_text().splitlines())
        if sent:
            self.send(sent)
        for call in calls:
            self.x(*call)
            time.sleep(0.1)
        time.sleep(0.5)
        lines = self.log.read_text().splitlines()[seen:]
        reads = [row["hex"] for row in map(json.loads, lines) if row["event"] == "read"]
        told = {"terminal": self.name, "version": self.version, "kind": kind, "name": name}
        came = {"reply": "".join(reads), "chunks": [len(one) // 2 for one in reads]}
        if reads:
            self.rows.append({**told, "sent": sent.encode().hex(), **came})

    def end(self) -> None:
        with suppress(OSError):
            os.write(self._fifo, b"quit\n")
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)


def ask(one: Asked) -> None:
    """Everything."""
    for name, query in QUERIES.items():
        one.note("query", name, query)
    one.note("query", "BURST", BURST + QUERIES["CPR6"] + QUERIES["DA1"])
    for mode in MOUSE:
        one.send(f"{ESC}[?{f'h{ESC}[?'.join(mode.split(';'))}h")
        one.note(
            "mouse", f"{mode} move", "", ("mousemove", "120", "100"), ("mousemove", "160", "130")
        )
        one.note("mouse", f"{mode} click", "", ("click", "1"))
        one.note("mouse", f"{mode} wheel", "", ("click", "4"))
        one.note("mouse", f"{mode} far", "", ("mousemove", "580", "380"))
        one.send(f"{ESC}[?9;1000;1002;1003;1005;1006;1015;1016l")
    for name, text in PASTED.items():
        subprocess.run(
            ["xclip", "-selection", "primary", "-i"], input=text, env=one.env, check=False
        )
        one.send(f"{ESC}[?2004h")
        one.note("paste", name, "", ("key", "shift+Insert"))
        one.send(f"{ESC}[?2004l")
    one.send(f"{ESC}[?1004h")
    root = one.x("search", "--maxdepth", "0", "--name", ".*").split()
    one.note("focus", "focus out", "", ("windowfocus", *root[:1]))
    one.note("focus", "focus in", "", ("windowfocus", one.window))
    one.send(f"{ESC}[?1004l")


def environment(folder: Path, display: str) -> dict[str, str]:
    """Return the environment of a terminal whose home is `folder`."""
    (folder / "screen").mkdir(mode=0o700)
    own = {"DISPLAY": display, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)}
    own |= {"QT_QPA_PLATFORM": "xcb", "SCREENDIR": str(folder / "screen")}
    return {**os.environ, **SOFTWARE, **own}


@contextmanager
def started(*argv: str, env: dict[str, str]) -> Generator[None]:
    """Run a server beside the terminals."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(argv, env=env, **quiet)
    time.sleep(2.5)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def displays(folder: Path, layout: str = "us") -> Generator[dict[str, str]]:
    """An X server, and a Wayland compositor in it where there is one."""
    env = environment(folder, DISPLAY)
    with ExitStack() as servers:
        servers.enter_context(
            started("Xvfb", DISPLAY, "-screen", "0", "1400x1000x24", "-noreset", env=env)
        )
        subprocess.run(["setxkbmap", layout], env=env, check=False)
        if shutil.which("weston"):
            servers.enter_context(started(*WESTON, env=env))
        yield env


def main(out: str, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place, displays(Path(place)) as env:
        for name in names or TERMINALS:
            if not shutil.which(name):
                print(f"{name}: not installed")
                continue
            folder = Path(tempfile.mkdtemp(dir=place))
            try:
                one = Asked(name, folder, env)
            except (TimeoutError, IndexError) as error:
                print(f"{name}: {error!r}")
                continue
            ask(one)
            one.end()
            with Path(out).open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in one.rows)
            print(f"{name} {one.version}: {len(one.rows)} replies")


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        record(sys.argv[2], sys.argv[3])
    else:
        main(sys.argv[1], sys.argv[2:])
