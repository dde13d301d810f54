"""From the command line to what an agent is made of: folder, configuration, key, session."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tui import credentials, log, settings, trust
from tui.agent.assemble import Launch, make_agent
from tui.agent.limits import Limits
from tui.arguments import Options
from tui.clock import Clock, SystemClock
from tui.errors import CredentialsError, UsageError
from tui.paths import folders
from tui.session import catalog
from tui.session.session import Session
from tui.settings import Ignored
from tui.workspace import Workspace

MAX_STDIN = 10_000_000
"""Bytes of standard input that `-p` takes: more would not fit any model's window."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the program works, and with which settings. `ignored` is what did not count."""

    launch: Launch
    ignored: tuple[Ignored, ...]


def prepare(options: Options) -> Place:
    """Read everything that decides how to run. Blocks; raises ConfigError or UsageError.

    The key is not looked for here: a keyring may take seconds, and a screen must not wait.
    """
    home = folders()
    log.to_file(home.log, debug=options.verbose)
    root = _folder(options.cwd or Path.cwd(), "-C")
    trusted = options.trust or trust.is_trusted(home, root)
    loaded = settings.load(
        folders=home,
        workspace=root,
        trusted=trusted,
        env=os.environ,
        overrides=options.overrides,
    )
    extra = tuple(_folder(folder, "--add-dir") for folder in options.add_dirs)
    launch = Launch(
        workspace=Workspace.at(root, extra=extra, ceiling=loaded.config.permissions.ceiling),
        config=loaded.config,
        folders=home,
        practice=options.practice,
        script=options.practice_script,
        elevated=options.yolo,
        limits=Limits(options.max_turns, options.max_tokens, options.max_cost),
    )
    return Place(launch, loaded.ignored)


def find_key(launch: Launch) -> str | None:
    """The key for the configured server, None if there is none. Blocks up to 2 s."""
    if launch.practice:
        return None
    found = credentials.find_key(os.environ, launch.folders, launch.config.base_url)
    return found.key if found else None


def needs_key(launch: Launch, key: str | None) -> bool:
    """Whether nothing can be asked without a key: only the API itself insists on one."""
    other = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE")
    return not (key or launch.practice or launch.config.base_url or any(map(os.environ.get, other)))


def session_path(options: Options) -> Path | None:
    """The file of the session that the options name; None for a new one. Raises SessionError."""
    home = folders()
    if options.resume:
        return catalog.resolve(options.resume, home)
    if options.newest:
        return catalog.newest(home, _folder(options.cwd or Path.cwd(), "-C"))
    return None


def open_session(options: Options, launch: Launch, clock: Clock) -> Session:
    """The session that the options name, or a new one. Raises SessionError."""
    root = launch.workspace.root
    if options.no_session:
        return Session.in_memory(root, clock=clock)
    if path := session_path(options):
        return Session.open(path, clock=clock)
    return Session.create(root, folders=launch.folders, clock=clock)


def print_answer(options: Options) -> int:
    """`holdfast -p`: one prompt, the answer on stdout. Returns the exit code."""
    from tui import headless  # noqa: PLC0415
    from tui.permissions.gate import RulesOnly  # noqa: PLC0415

    place = prepare(options)
    launch, clock = place.launch, SystemClock()
    typed, attached = options.prompt or "", _standard_input()
    if not (typed.strip() or attached):
        raise UsageError("There is no prompt.", hint='Type one: holdfast -p "…", or pipe it in.')
    key = find_key(launch)
    if needs_key(launch, key):
        raise CredentialsError(
            "There is no API key.",
            hint="Set ANTHROPIC_API_KEY, run `holdfast` to store one, or try --practice.",
        )
    for ignored in place.ignored:
        print(f"ignored: {ignored.key} ({ignored.reason})", file=sys.stderr)  # noqa: T201
    launch = launch.with_key(key)
    session = open_session(options, launch, clock)

    async def run() -> int:
        agent = make_agent(launch, session, RulesOnly(), clock=clock)
        return await headless.run(
            agent, typed, attached=attached, format_=options.output_format, clock=clock
        )

    return asyncio.run(run())


def _folder(path: Path, flag: str) -> Path:
    real = Path(os.path.realpath(path.expanduser()))
    if not real.is_dir():
        raise UsageError(f"{path} is not a folder.", hint=f"Give {flag} an existing folder.")
    if not os.access(real, os.R_OK | os.X_OK):
        raise UsageError(f"{path} cannot be read.", hint="Check its permissions.")
    return real


def _standard_input() -> str:
    """What was piped in, "" from a terminal. It is data: directives in it do not count."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise UsageError(
            "There is too much on standard input (over 10 MB).",
            hint="Save it to a file and name the file in the prompt.",
        )
    return data.decode("utf-8", "replace").strip()
