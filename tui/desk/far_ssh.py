"""The system's ssh as the line to another machine, and the reasons why it can't be reached."""

from __future__ import annotations

import asyncio
import re
import shlex
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from tui.core.errors import UsageError
from tui.core.redaction import child_environment
from tui.core.ssh_command import ssh_command
from tui.core.text_cleaning import one_line, visible
from tui.desk.far_link import READ_LIMIT

_ADDRESS: Final = re.compile(
    r"(?:ssh://)?((?:[A-Za-z0-9_][A-Za-z0-9._+-]*@)?)"
    r"([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])(?::(\d{1,5}))?/?\Z"
)
_OPTIONS: Final = (
    "-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none",
    "-o", "ControlMaster=no", "-o", "Compression=yes",
)  # fmt: skip
"""Nothing but this one command. A connection that the person has open is used (ControlPath), and
none made that others could come to depend on. What goes over the line is text, a tenth when
compressed."""
_SERVE: Final = (
    'PATH="$PATH:$HOME/.local/bin:$HOME/bin:/usr/local/bin"; export PATH; '
    "command -v holdfast >/dev/null 2>&1 && exec holdfast serve --stdio; "
    "exec \"${SHELL:-sh}\" -lc 'exec holdfast serve --stdio'"
)
"""For the host's sh: a shell that isn't a login shell often lacks the person's own folders."""
_SHOWN: Final = 8192
_END_S: Final = 1.0
_ITS_END_S: Final = 5.0
"""Seconds for ending once its input, or its output, has ended."""
_NO_CONNECTION: Final = 255
_NO_PROGRAM: Final = frozenset({126, 127})
_USAGE: Final = 2


class FarAddress(NamedTuple):
    """A machine as ssh takes it: `destination` is a host or an alias, `port` "" for the usual."""

    destination: str
    port: str

    @property
    def typed(self) -> str:
        """The command that a person types."""
        words = ["ssh", *(["-p", self.port] if self.port else []), self.destination]
        return shlex.join(words)


def address_of(name: str) -> FarAddress:
    """The address that `ssh://[user@]host[:port]`, or the same without `ssh://`, names. Raises
    UsageError for what ssh or a shell could take for something else."""
    match = _ADDRESS.match(name)
    if match is None or int(match[3] or 1) not in range(1, 65_536):
        raise UsageError(
            f"This is no name of a machine: {one_line(visible(name))}",
            hint="Name it as ssh does: HOST, USER@HOST, or ssh://USER@HOST:PORT.",
        )
    return FarAddress(match[1] + match[2].strip("[]"), match[3] or "")


class LineEnd(NamedTuple):
    """The end of a line: the exit code of its ssh, None if it was ended from here, and the end of
    what that printed as errors."""

    code: int | None
    errors: str


class FarConnection(Protocol):
    """A line to another machine, open or about to be."""

    @property
    def reader(self) -> asyncio.StreamReader: ...

    @property
    def writer(self) -> asyncio.StreamWriter: ...

    async def close(self) -> LineEnd:
        """End it, if it hasn't ended by itself."""
        ...


class Dial(Protocol):
    """Opens lines to a machine. Raises OSError."""

    async def __call__(self) -> FarConnection: ...


def ssh_words(address: FarAddress) -> list[str]:
    """Return the words of the ssh that starts Holdfast on another machine."""
    port = ["-p", address.port] if address.port else []
    command = ssh_command(alive_s=5, times=3)  # for what is still signing in
    line = f"exec sh -c {shlex.quote(_SERVE)}"
    return [*command, *_OPTIONS, *port, "--", address.destination, line]


async def dial_command(words: Sequence[str]) -> FarConnection:
    """Start a command as the line. It has no terminal to ask for anything. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=READ_LIMIT,
        env=child_environment(),
        start_new_session=True,
    )
    return _CommandLine(process)


class _CommandLine:
    """The line of a process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.reader = process.stdout
        self.writer = process.stdin
        self._process = process
        self._errors = b""
        self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        """Take what it prints as errors, so that it never waits; keep the end."""
        assert self._process.stderr is not None
        while block := await self._process.stderr.read(_SHOWN):
            self._errors = (self._errors + block)[-_SHOWN:]

    async def close(self) -> LineEnd:
        process = self._process
        by_itself = self.reader.at_eof()
        self.writer.close()
        await self._ended(_ITS_END_S if by_itself else _END_S)
        for end in (process.terminate, process.kill):
            if process.returncode is None:
                by_itself = False
                with suppress(ProcessLookupError):
                    end()
                await self._ended(_END_S)
        # Somebody else may hold its stderr open, such as a shared connection that it began.
        await asyncio.wait([self._draining], timeout=_END_S)
        self._draining.cancel()
        errors = self._errors.decode("utf-8", "replace")
        return LineEnd(process.returncode if by_itself else None, errors)

    async def _ended(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)


class Unreachable(NamedTuple):
    """The reason why a machine can't be reached. `lasting`: only a person can change that.
    `greeted`: it was, until now."""

    problem: str
    lasting: bool = False
    greeted: bool = False


def unreachable(name: str, address: FarAddress, end: LineEnd, printed: bytes) -> Unreachable:
    """Say why no Holdfast has answered on a machine, by how its ssh ended and what it printed."""
    typed, errors = address.typed, end.errors
    if end.code in _NO_PROGRAM:
        return Unreachable(
            f"{name} has no command holdfast. Install Holdfast there, or link it into"
            " ~/.local/bin.",
            lasting=True,
        )
    if end.code == _USAGE:
        return Unreachable(
            f"The Holdfast on {name} is too old to serve a desk. Update it there.", lasting=True
        )
    for pattern, words, lasting in _FAILURES:
        if end.code in {_NO_CONNECTION, None} and re.search(pattern, errors):
            return Unreachable(words.format(name=name, typed=typed), lasting)
    said = _last_line(errors) or _last_line(printed.decode("utf-8", "replace"))
    what = f" It said: {said}" if said else ""
    if end.code == _NO_CONNECTION:
        return Unreachable(f"{name} can't be reached.{what}")
    if end.code is None:
        return Unreachable(f"{name} doesn't answer.{what}")
    return Unreachable(f"On {name} Holdfast ended at once ({end.code}).{what}")


_FAILURES: Final = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        (
            "{name} shows another key than before: it was set up again, or somebody is in between."
            " Ask whoever runs it; `{typed}` says which line of known_hosts is the old key's."
        ),
        True,
    ),
    (
        "Host key verification failed",
        "The key of {name} isn't known here. Run `{typed}` once, and accept it if it is right.",
        True,
    ),
    (
        r"Permission denied \([^)]*(password|keyboard-interactive)",
        (
            "{name} needs a password. Run `{typed}` once with a shared connection (ControlMaster),"
            " or use a key (ssh-copy-id)."
        ),
        True,
    ),
    (
        "Permission denied",
        (
            "{name} takes none of your keys, or its key needs a passphrase: ssh-add loads it. Try"
            " `{typed}`."
        ),
        True,
    ),
    ("Too many authentication failures", "{name} was offered too many keys. Try `{typed}`.", True),
    (
        "Could not resolve hostname",
        "There is no host {name}, or its name can't be looked up now. Try `{typed}`.",
        False,
    ),
    ("Connection refused", "{name} refuses the connection: no ssh server runs there now.", False),
    ("timed out", "{name} doesn't answer: it is off, asleep, or the network is.", False),
    (
        "No route to host|Network is unreachable|Host is down",
        "{name} can't be reached from this network now.",
        False,
    ),
    ("Bad configuration option|Unsupported option", "This ssh is too old: {typed}", True),
)
"""Words of ssh, their meaning, and whether that lasts until somebody does something."""


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(visible(lines[-1]))[:200] if lines else ""
