"""The system's clipboard, asked of programs that are not run here."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.context.pictures import png
from tui.core import clipboard
from tui.core.clipboard import Clip

IMAGE = png(640, 480)
X11 = {"DISPLAY": ":0"}
WAYLAND = {"WAYLAND_DISPLAY": "wayland-0"}


class Programs:
    """Programs by name, and what each prints when a word stands among its arguments."""

    def __init__(self, **answers: dict[str, bytes | None]) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def which(self, name: str) -> str | None:
        return name if name.replace("-", "_").removesuffix(".exe") in self.answers else None

    def run(self, command: Sequence[str]) -> bytes | None:
        self.asked.append(list(command))
        name = command[0].replace("-", "_").removesuffix(".exe")
        for word, printed in self.answers.get(name, {}).items():
            if word in command:
                return printed
        return None

    def read(self, env: dict[str, str], platform: str = "linux") -> Clip:
        return clipboard.read(env, platform=platform, which=self.which, run=self.run)


def test_an_image_on_wayland() -> None:
    here = Programs(wl_paste={"--list-types": b"text/plain\nimage/png\n", "image/png": IMAGE})
    assert here.read(WAYLAND) == Clip(image=IMAGE)


def test_a_text_on_wayland() -> None:
    here = Programs(wl_paste={"--list-types": b"text/plain\n", "text": "grüße\n".encode()})
    assert here.read(WAYLAND) == Clip(text="grüße\n")


def test_an_empty_clipboard_on_wayland() -> None:
    assert Programs(wl_paste={}).read(WAYLAND) == Clip()


def test_an_image_on_x11() -> None:
    here = Programs(xclip={"TARGETS": b"TARGETS\nimage/jpeg\n", "image/jpeg": IMAGE})
    assert here.read(X11) == Clip(image=IMAGE)


def test_a_text_on_x11() -> None:
    here = Programs(xclip={"TARGETS": b"TARGETS\nUTF8_STRING\n", "UTF8_STRING": b"hello"})
    assert here.read(X11) == Clip(text="hello")


def test_an_image_on_macos_with_and_without_pngpaste() -> None:
    assert Programs(pngpaste={"-": IMAGE}).read({}, "darwin") == Clip(image=IMAGE)

    class Script(Programs):
        def run(self, command: Sequence[str]) -> bytes | None:
            if command[0] == "osascript":
                line = next(word for word in command if "POSIX file" in word)
                Path(line.split('"')[1]).write_bytes(IMAGE)
            return super().run(command)

    assert Script().read({}, "darwin") == Clip(image=IMAGE)
    copied = Programs(pbpaste={"pbpaste": b"text"})
    assert copied.read({}, "darwin") == Clip(text="text")


@pytest.mark.parametrize(
    ("printed", "clip"),
    [
        (b"image:" + base64.b64encode(IMAGE), Clip(image=IMAGE)),
        (b"text:" + base64.b64encode(b"a\r\nb"), Clip(text="a\nb")),
        (b"nonsense", Clip()),
    ],
)
def test_under_wsl(printed: bytes, clip: Clip) -> None:
    assert Programs(powershell={"-STA": printed}).read({"WSL_DISTRO_NAME": "Debian"}) == clip


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (X11, "Holdfast needs xclip"),
        (WAYLAND, "Holdfast needs wl-paste (package wl-clipboard)"),
        ({"WSL_DISTRO_NAME": "Debian"}, "Holdfast needs powershell.exe"),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22", "TMUX": "x"}, "reach the clipboard over ssh"),
        ({"TMUX": "/tmp/x"}, "reach the clipboard in tmux"),
        ({}, "reach the clipboard without a desktop"),
    ],
)
def test_what_is_missing_is_said_with_another_way(env: dict[str, str], words: str) -> None:
    clip = Programs().read(env)
    assert words in clip.problem
    assert "path" in clip.hint
    assert not clip.image


def test_a_program_that_hangs_or_is_missing_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clipboard, "TIMEOUT_S", 0.05)
    slow = tmp_path / "xclip"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    which: Callable[[str], str | None] = lambda name: str(slow)  # noqa: E731
    assert clipboard.read(X11, platform="linux", which=which) == Clip()


FAR = {"SSH_TTY": "/dev/pts/1"}
TMUX = {"TMUX": "/tmp/tmux-1000/default,1,0"}


@pytest.mark.parametrize(
    ("env", "programs", "fed"),
    [
        ({}, "xclip wl-copy tmux", []),
        (X11, "xclip xsel", ["xclip -selection clipboard"]),
        (X11, "xsel", ["xsel --clipboard --input"]),
        (X11 | WAYLAND, "xclip wl-copy", ["wl-copy"]),
        (X11 | FAR, "xclip", []),
        (TMUX | FAR, "tmux", ["tmux load-buffer -w -"]),
        (TMUX | X11, "tmux xclip", ["tmux load-buffer -w -", "xclip -selection clipboard"]),
        (TMUX, "old-tmux", []),
    ],
)
def test_a_text_is_handed_to_the_programs_that_reach_a_clipboard(
    env: dict[str, str], programs: str, fed: list[str]
) -> None:
    calls: list[str] = []

    def feed(command: Sequence[str], data: bytes) -> bool:
        assert data == "grüße".encode()
        calls.append(" ".join(command))
        return True

    there = programs.split()
    clipboard.write(
        "grüße",
        env,
        platform="linux",
        which=lambda name: name if name in there else None,
        feed=feed,
    )
    assert calls == fed


def test_a_tmux_that_does_not_know_the_terminals_clipboard_keeps_the_text_itself() -> None:
    calls: list[list[str]] = []

    def feed(command: Sequence[str], _: bytes) -> bool:
        calls.append(list(command))
        return "-w" not in command

    clipboard.write("x", TMUX, platform="linux", which=lambda name: name, feed=feed)
    assert calls == [["tmux", "load-buffer", "-w", "-"], ["tmux", "load-buffer", "-"]]
