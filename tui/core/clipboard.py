"""Reads and writes the system's clipboard with the platform's own programs. Blocks for a few
seconds at most.

A terminal program has no clipboard of its own: over ssh, or on a bare console, there is none to
reach. The result then says so, and that a file's path works as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from tui.core.dataclass import dataclass

TIMEOUT_S: Final = 3.0
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes that a program may hand over: enough to report an image as too large."""

TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
INSTEAD: Final = "Paste or drop the file's path, or write @path."

Run: TypeAlias = Callable[[Sequence[str]], bytes | None]
"""Runs a program and returns its output; None if it failed or took too long."""

Feed: TypeAlias = Callable[[Sequence[str], bytes], bool]
"""Runs a program with an input; False if it failed or took too long."""

_FAR = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_PNG = b"\x89PNG\r\n\x1a\n"
_POWERSHELL = (
    "$ErrorActionPreference='Stop';Add-Type -AssemblyName System.Windows.Forms,System.Drawing;"
    "$i=[Windows.Forms.Clipboard]::GetImage();if($i){$m=New-Object IO.MemoryStream;"
    "$i.Save($m,[Drawing.Imaging.ImageFormat]::Png);"
    "[Console]::Out.Write('image:'+[Convert]::ToBase64String($m.ToArray()))}"
    "else{$t=[Windows.Forms.Clipboard]::GetText();[Console]::Out.Write('text:'+"
    "[Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($t)))}"
)


@dataclass(frozen=True, slots=True)
class Clip:
    """The content of the clipboard: an image's bytes, otherwise a text, otherwise the reason why
    nothing could be read."""

    image: bytes = b""
    text: str = ""
    problem: str = ""
    hint: str = ""


def read(
    env: Mapping[str, str] | None = None,
    *,
    platform: str = sys.platform,
    which: Callable[[str], str | None] | None = None,
    run: Run | None = None,
) -> Clip:
    """Return the content of the clipboard. Takes at most a few seconds; never raises."""
    env = os.environ if env is None else env
    which, run = which or _which, run or _run
    if platform == "darwin":
        return _mac(env, which, run)
    if env.get("WAYLAND_DISPLAY") and which("wl-paste"):
        return _wayland(run)
    if env.get("DISPLAY") and which("xclip"):
        return _x11(run)
    if env.get("WSL_DISTRO_NAME"):
        program = which("powershell.exe")
        return _windows(run, program) if program else _missing("powershell.exe")
    if env.get("WAYLAND_DISPLAY"):
        return _missing("wl-paste (package wl-clipboard)")
    if env.get("DISPLAY"):
        return _missing("xclip")
    return _out_of_reach(env)


def write(
    text: str,
    env: Mapping[str, str] | None = None,
    *,
    platform: str = sys.platform,
    which: Callable[[str], str | None] | None = None,
    feed: Feed | None = None,
) -> None:
    """Hand a text to tmux and to the desktop, for where OSC 52 does not arrive: tmux ignores it
    unless its `set-clipboard` is on. Takes at most a few seconds; never raises."""
    env = os.environ if env is None else env
    which, feed = which or _which, feed or _feed
    data = text.encode("utf-8", "replace")
    if env.get("TMUX") and (tmux := which("tmux")):
        # -w is for the terminal outside, too; tmux knows it from 3.2 on.
        _ = feed([tmux, "load-buffer", "-w", "-"], data) or feed([tmux, "load-buffer", "-"], data)
    program = None if any(map(env.get, _FAR)) else _writer(env, platform, which)
    if program:
        feed(program, data)


def _writer(
    env: Mapping[str, str], platform: str, which: Callable[[str], str | None]
) -> list[str] | None:
    """Return the desktop's program that takes a text, None without one."""
    programs = [["pbcopy"]] if platform == "darwin" else []
    if env.get("WAYLAND_DISPLAY"):
        programs.append(["wl-copy"])
    if env.get("DISPLAY"):
        programs += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    found = ((which(name), options) for name, *options in programs)
    return next(([path, *options] for path, options in found if path), None)


def _missing(program: str) -> Clip:
    return Clip(problem=f"Holdfast needs {program} to read the clipboard.", hint=INSTEAD)


def _out_of_reach(env: Mapping[str, str]) -> Clip:
    far = any(map(env.get, _FAR))
    where = "over ssh" if far else "in tmux" if env.get("TMUX") else "without a desktop"
    return Clip(problem=f"Can't reach the clipboard {where}.", hint=INSTEAD)


def _wayland(run: Run) -> Clip:
    offered = _lines(run(["wl-paste", "--list-types"]))
    if offered is None:
        return Clip()  # it holds nothing
    for kind in TYPES:
        if kind in offered and (data := run(["wl-paste", "--no-newline", "--type", kind])):
            return Clip(image=data)
    return Clip(text=_text(run(["wl-paste", "--no-newline", "--type", "text"])))


def _x11(run: Run) -> Clip:
    ask = ["xclip", "-selection", "clipboard", "-out"]
    offered = _lines(run([*ask, "-target", "TARGETS"])) or []
    for kind in TYPES:
        if kind in offered and (data := run([*ask, "-target", kind])):
            return Clip(image=data)
    target = ["-target", "UTF8_STRING"] if "UTF8_STRING" in offered else []
    return Clip(text=_text(run([*ask, *target])))


def _mac(env: Mapping[str, str], which: Callable[[str], str | None], run: Run) -> Clip:
    if env.get("SSH_CONNECTION"):
        return _out_of_reach(env)
    image = (run(["pngpaste", "-"]) or b"") if which("pngpaste") else _by_osascript(run)
    return Clip(image=image) if image.startswith(_PNG) else Clip(text=_text(run(["pbpaste"])))


def _by_osascript(run: Run) -> bytes:
    """Let AppleScript write the image into a file of ours, as it cannot print bytes."""
    import tempfile  # noqa: PLC0415 - as all that only this needs

    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        file = Path(folder) / "clipboard.png"
        script = (
            "set image to the clipboard as «class PNGf»",
            f'set out to open for access POSIX file "{file}" with write permission',
            "write image to out",
            "close access out",
        )
        run(["osascript", *(word for line in script for word in ("-e", line))])
        with suppress(OSError):
            return file.read_bytes()
    return b""


def _windows(run: Run, program: str) -> Clip:
    import binascii  # noqa: PLC0415 - under WSL only

    printed = run([program, "-NoProfile", "-NonInteractive", "-STA", "-Command", _POWERSHELL])
    kind, _, packed = (printed or b"").strip().partition(b":")
    try:
        data = binascii.a2b_base64(packed)
    except ValueError:
        data = b""
    if kind == b"image":
        return Clip(image=data)
    return Clip(text=data.decode("utf-8", "replace").replace("\r\n", "\n"))


def _lines(printed: bytes | None) -> list[str] | None:
    return None if printed is None else printed.decode("utf-8", "replace").split()


def _text(printed: bytes | None) -> str:
    return (printed or b"").decode("utf-8", "replace")


def _which(name: str) -> str | None:
    import shutil  # noqa: PLC0415 - as above

    from tui.core.workspace import safe_search_path  # noqa: PLC0415 - as above

    return shutil.which(name, path=safe_search_path(os.environ.get("PATH", "")))


def _run(command: Sequence[str]) -> bytes | None:
    import subprocess  # noqa: PLC0415 - as above

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= MAX_BYTES else None


def _feed(command: Sequence[str], data: bytes) -> bool:
    import subprocess  # noqa: PLC0415 - as above

    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.DEVNULL,  # some stay, and serve the text until another is copied
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
