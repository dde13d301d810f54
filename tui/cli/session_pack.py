"""`holdfast sessions pack` and `unpack`: a session as one file, to continue it elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Final

from tui.app.options.arguments import Options
from tui.app.packs.pack import Packed, default_name, pack
from tui.app.packs.unpack import Unpacked, unpack
from tui.app.session_path import workspace_of
from tui.cli.session_io import path_of, print_json
from tui.core.clock import SystemClock
from tui.core.errors import SessionError, UsageError
from tui.core.formatting import plural, size
from tui.core.paths import expanded, folders, shorten
from tui.core.standard_output import STDOUT, note, print_text
from tui.core.text_cleaning import one_line
from tui.session import importers

_SHOWN: Final = 20


def pack_(options: Options) -> int:
    """Pack a session. Exit 1 if it was refused because something in it looks secret."""
    chosen = options.sessions
    if chosen.with_secrets and chosen.redact:
        raise UsageError(
            "Use only one of --with-secrets and --redact.",
            hint="See holdfast sessions pack --help.",
        )
    path = path_of(options)
    if importers.recognise(path) not in {"ours", None}:
        raise SessionError(
            f"{path} belongs to another program, not Holdfast.",
            hint=f"Import it first: holdfast sessions import {path}",
        )
    with _place(options, path) as out:
        return _packed(options, path, out)


@contextmanager
def _place(options: Options, path: Path) -> Generator[Path]:
    """The file for the pack: for standard output one that is copied there and removed. Raises
    UsageError where a terminal would get it."""
    if options.out != STDOUT:
        yield (options.out or Path(default_name(path))).absolute()
        return
    if options.json or sys.stdout.isatty():
        raise UsageError("A pack is no text.", hint="Redirect standard output, or name a file.")
    with TemporaryDirectory() as folder:
        out = Path(folder, default_name(path))
        yield out
        if out.exists():
            with out.open("rb") as stream:
                copyfileobj(stream, sys.stdout.buffer)


def _packed(options: Options, path: Path, out: Path) -> int:
    chosen = options.sessions
    secrets = "keep" if chosen.with_secrets else "redact" if chosen.redact else "refuse"
    done = pack(path, out, folders=folders(), clock=SystemClock(), secrets=secrets)
    if options.json:
        print_json(
            {
                "id": done.manifest.session,
                "path": str(done.path) if done.path else None,
                "redacted": done.manifest.redacted,
                "outputs": done.outputs,
                "children": done.children,
                "checkpoints": done.checkpoints,
                "secrets": [one.to_json() for one in done.secrets],
                "gone": list(done.manifest.gone),
            }
        )
        return 0 if done.path else 1
    for text in _secrets(done):
        note(text)
    if done.path is None:
        note(
            "Not packed. --redact masks these places; the pack can't be verified then."
            " --with-secrets packs them as they are: whoever has the file has them."
        )
        return 1
    note(f"Packed {_contents(done)} ({size(done.path.stat().st_size)}).")
    if done.manifest.gone:
        note(f"{plural(len(done.manifest.gone), 'full output')} had been deleted before.")
    if options.out != STDOUT:
        print_text(str(done.path))
    return 0


def unpack_(options: Options) -> int:
    """Unpack a session into the current folder."""
    if not options.target:
        raise UsageError("Which pack?", hint="holdfast sessions unpack FILE")
    done = unpack(
        expanded(options.target),
        workspace_of(options),
        folders=folders(),
        clock=SystemClock(),
    )
    if options.json:
        return print_json(
            {
                "id": done.id,
                "path": str(done.path),
                "verified": done.verified,
                "state": done.state,
                "children": done.children,
                "outputs": done.outputs,
                "checkpoints": done.checkpoints,
                "differs": None if done.differs is None else list(done.differs),
                "problems": done.problems,
            }
        )
    for text in _report_lines(done):
        note(text)
    print_text(str(done.path))
    note(f"Resume with: holdfast -r {done.id}")
    return 0


def _contents(done: Packed) -> str:
    counted = [
        (done.children, "sub-agent"),
        (done.outputs, "full output"),
        (done.checkpoints, "checkpoint"),
    ]
    return ", ".join(["the session", *(plural(n, word) for n, word in counted if n)])


def _secrets(done: Packed) -> Iterator[str]:
    if not done.secrets:
        return
    places = plural(len(done.secrets), "place")
    yield f"Masked {places}:" if done.manifest.redacted else f"Looks secret, in {places}:"
    for one in done.secrets[:_SHOWN]:
        yield f"  {one_line(shorten(one.place))}: {one.why}"
    if (more := len(done.secrets) - _SHOWN) > 0:
        yield f"  and {more} more (--json lists all)"


def _report_lines(done: Unpacked) -> Iterator[str]:
    match done.state:
        case "new":
            yield "Unpacked."
        case "grown":
            yield "Unpacked: added what is new to the session that was here."
        case "same":
            yield "Nothing to unpack: the session here is the same."
        case "older":
            yield "Nothing to unpack: the session here has gone further."
    yield (
        "Verified: every line and output is as it was written."
        if done.verified
        else f"Not verified. For details: holdfast sessions verify {done.id}"
    )
    yield from done.problems
    if done.differs:
        yield f"Not as the session left them: {plural(len(done.differs), 'file')} here."
        yield from (f"  {one_line(path)}" for path in done.differs[:_SHOWN])
        if (more := len(done.differs) - _SHOWN) > 0:
            yield f"  and {more} more"
    elif done.differs is None:
        yield "Its last checkpoint isn't in the pack: the files here weren't compared with it."
    elif done.checkpoints:
        yield "The files here are as the session left them."
