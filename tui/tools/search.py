"""Runs ripgrep as a child process, for grep_search and find_by_name."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat as stats
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tui.core.cancellation import to_the_end
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.files import open_real
from tui.core.formatting import plural
from tui.core.redaction import child_environment
from tui.core.workspace import PRIVATE_DIR, safe_search_path
from tui.tools.base import Answer, CallHost, RunningProgram, StartReader, ToolContext
from tui.tools.file_access import missing, not_regular, opened_folder, os_failure, resolve_now
from tui.tools.text_decoding import printable

EXCLUDED = (
    "node_modules", ".git", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache",
    "dist", "build", ".next", ".nuxt", PRIVATE_DIR,
)  # fmt: skip
"""Names that are left out anywhere below the root of a search."""

_OWN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
    "from tui.tools.plain_search import main; main()"
)
_CODE = str(Path(__file__).parents[2])
_STDERR_BYTES = 4096
_BUILDER = "bwrap: "
"""Start of an error from building the sandbox: the search itself has not begun then."""


@dataclass(frozen=True, slots=True)
class SearchRoot:
    """The place where a search starts. `folder` is a real path; `name` is set to search one file in
    it.

    `shown` is the folder for the model; `inside_excluded`: the search begins below a folder that is
    left out by default; `in_workspace`: it lies in a folder that commands see.
    """

    folder: Path
    name: str | None
    shown: str
    inside_excluded: bool
    in_workspace: bool = False

    def relative_path(self, printed: bytes) -> str:
        """Return the path, relative to `folder`, that ripgrep printed."""
        return self.name or os.fsdecode(printed.removeprefix(b"./"))

    def show(self, relative: str) -> str:
        """Return a path relative to `folder` as the model reads it."""
        return printable(os.path.join(self.shown, relative) if self.shown else relative)  # noqa: PTH118


@dataclass(slots=True)
class Shown:
    """Decides which files of a search are shown, by the person's rules about reading them.

    Denied files are left out. So are files that must be asked about, unless only names are shown.
    """

    root: SearchRoot
    host: CallHost
    names: bool = False
    _known: dict[str, Answer] = field(default_factory=dict[str, "Answer"])

    def __call__(self, relative: str) -> bool:
        answer = self._known.get(relative)
        if answer is None:
            answer = self._known[relative] = self.host.reading(self.root.folder / relative)
        return answer == "allow" or (self.names and answer == "ask")

    def notes(self) -> list[str]:
        """Return the lines about files that are left out."""
        denied, asks = (list(self._known.values()).count(one) for one in ("deny", "ask"))
        lines = hidden_paths(denied)
        if asks and not self.names:
            lines.append(f"[{plural(asks, 'file')} left out: the user is asked before it is read]")
        return lines


def hidden_paths(count: int) -> list[str]:
    """Return the line about paths that are not shown; none if there are none."""
    return [f"[{plural(count, 'path')} left out: a rule denies reading it]"] if count else []


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """The end of a search. `status` is the exit code, negative for a signal, None if there was
    enough; `walled`: its matches count as they are, otherwise only if `search_proof` confirms
    them."""

    status: int | None
    stderr: str
    walled: bool


def find_root(ctx: ToolContext, path: str) -> SearchRoot:
    """Return the root that the model named. Blocks; raises ToolError if nothing can be searched
    there."""
    workspace, real = ctx.workspace, resolve_now(ctx, path)
    shown = printable(workspace.show(real))
    try:
        mode = real.stat().st_mode
        if stats.S_ISDIR(mode):
            # Listing a folder shows whether it can be read.
            with opened_folder(real) as folder:
                os.scandir(folder).close()
    except FileNotFoundError as error:
        raise missing(workspace, real) from error
    except OSError as error:
        raise os_failure("search", shown, error) from error
    if not stats.S_ISDIR(mode) and not stats.S_ISREG(mode):
        raise not_regular(mode, shown)
    folder = real if stats.S_ISDIR(mode) else real.parent
    own = (workspace.temporary,) if workspace.temporary else ()
    allowed = (*workspace.roots, *workspace.readable, *own)
    base = next((f for f in allowed if real.is_relative_to(f)), None)
    return SearchRoot(
        folder=folder,
        name=None if folder == real else real.name,
        shown="" if folder == workspace.root else workspace.show(folder),
        inside_excluded=any(part in EXCLUDED for part in real.relative_to(base or "/").parts),
        in_workspace=base is not None,
    )


def ripgrep() -> Path | None:
    """Return the `rg` that was installed with the program, otherwise one on the PATH. Blocks."""
    own = Path(sys.executable).with_name("rg")
    if os.access(own, os.X_OK):
        return own
    path = shutil.which("rg", path=safe_search_path(os.environ.get("PATH", "")))
    return Path(path) if path else None


def command(
    root: SearchRoot,
    wanted: Sequence[str],
    *,
    most: int = 0,
    in_order: bool = True,
    files: Sequence[str] = (),
) -> list[str]:
    """Return the command line of ripgrep, or its stand-in, with the options `wanted`, for the whole
    root or for some `files` in it. Blocks.

    Matches come by path, found by one thread. With `most` ripgrep uses several: files come as they
    are done, each with at most so many matches; likewise if not `in_order`. Inside a folder that is
    left out by default, ignore files do not count either: the folder was named on purpose, and is
    as a rule ignored by the repository around it.
    """
    options = ["--no-config", "--no-messages", "--color", "never", "--hidden", "--null"]
    options += ["--max-count", str(most)] if most else ["--sort", "path"] if in_order else []
    options += ["--no-ignore"] if root.inside_excluded else []
    program = ripgrep()
    words = [str(program)] if program else [sys.executable, "-I", "-S", "-c", _OWN, _CODE]
    places = [f"./{name}" for name in files or [root.name or ""]]
    return [*words, *options, *wanted, "--", *places]


def exclusions() -> list[str]:
    """Return the options that come last, since a later glob wins over an earlier one."""
    return [part for name in EXCLUDED for part in ("--glob", f"!{name}/")]


def check_argument(name: str, value: str) -> None:
    """Raises ToolError for a value that cannot be on a command line."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name} contains half a surrogate pair, which isn't valid text."
        ) from error
    if not value or "\0" in value or "\n" in value:
        raise ToolError(
            f"{name} is empty, or contains a newline or NUL.", hint="Search for one line at a time."
        )


async def run(
    command: Sequence[str],
    root: SearchRoot,
    separator: bytes,
    take: Callable[[bytes], bool],
    start: StartReader | None,
) -> SearchEnd:
    """Run a search and hand each record of its output to `take`, until that returns False.

    It runs in a sandbox if `start` provides one. The child is gone when this returns, also when it
    is cancelled. Memory is bounded by the longest record. Raises ToolError if the command cannot be
    started.
    """
    output, to_output = os.pipe()
    errors, to_errors = os.pipe()
    records, problems = await _reader_of(output), await _reader_of(errors)
    error_text = asyncio.create_task(_read_errors(problems.stream))
    starting = asyncio.ensure_future(_started(command, root, to_output, to_errors, start))
    try:
        try:
            child, walled = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await to_the_end(_undo(starting))
            raise
        finally:
            os.close(to_output)
            os.close(to_errors)
        try:
            if await _read_records(records.stream, separator, take):
                return SearchEnd(None, "", walled)
            ended = SearchEnd(
                await child.wait(), (await error_text).decode("utf-8", "replace"), walled
            )
        finally:
            await to_the_end(_end(child))
    finally:
        error_text.cancel()
        records.transport.close()
        problems.transport.close()
    # Without its sandbox, the search runs once more; nothing was found yet.
    if walled and ended.stderr.startswith(_BUILDER):
        return await run(command, root, separator, take, None)
    return ended


async def _undo(starting: asyncio.Future[tuple[RunningProgram, bool]]) -> None:
    """End a search that was started while it was being cancelled."""
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        await _end(starting.result()[0])


async def _started(
    command: Sequence[str],
    root: SearchRoot,
    output: int,
    errors: int,
    start: StartReader | None,
) -> tuple[RunningProgram, bool]:
    """Start the search. The second value is True if it has walls. They are built around the folders
    of the workspace: a root elsewhere, which was allowed by itself, isn't in them."""
    if start is not None and root.in_workspace:
        child = await start(command, root.folder, child_environment(), output, errors)
        if child is not None:
            return child, True
    place = root.folder / (root.name or ".")
    try:
        opened = await asyncio.to_thread(open_real, place, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise os_failure("search", root.shown or ".", error) from error
    try:
        return await _start(command, root, opened, output, errors), False
    except OSError as error:
        raise os_failure("start", command[0], error) from error
    finally:
        os.close(opened)


async def _start(
    command: Sequence[str], root: SearchRoot, opened: int, output: int, errors: int
) -> Process:
    """Start the search in the opened folder or file, even if something else is at its path by
    now."""
    folder, names = root.folder, command
    if sys.platform == "linux":
        place = f"/proc/self/fd/{opened}"
        folder, names = (Path("/"), [*command[:-1], place]) if root.name else (Path(place), command)
    return await asyncio.create_subprocess_exec(
        *names, cwd=folder, env=child_environment(), pass_fds=(opened,), stdin=DEVNULL,
        stdout=output, stderr=errors, start_new_session=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reader:
    stream: asyncio.StreamReader
    transport: asyncio.ReadTransport


async def _reader_of(pipe: int) -> _Reader:
    """Return the reading end of a pipe as a stream."""
    stream = asyncio.StreamReader()
    file = os.fdopen(pipe, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), file
    )
    return _Reader(stream, transport)


async def _read_records(
    output: asyncio.StreamReader, separator: bytes, take: Callable[[bytes], bool]
) -> bool:
    """Hand on the records. True if `take` had enough before the output ended."""
    tail = b""
    while chunk := await output.read(1 << 16):
        *records, tail = (tail + chunk).split(separator)
        for record in records:
            if not take(record):
                return True
    return bool(tail) and not take(tail)


async def _read_errors(errors: asyncio.StreamReader) -> bytes:
    head = b""
    while chunk := await errors.read(1 << 14):
        head = (head + chunk)[:_STDERR_BYTES]
    return head


async def _end(child: RunningProgram) -> None:
    """Kill the child if it still runs."""
    with suppress(ProcessLookupError, PermissionError):
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
    await child.wait()
