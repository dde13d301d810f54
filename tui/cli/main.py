"""The entry point: parse, load, hand over to the full screen, `-p` or a subcommand.

It decides the exit codes. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module

from tui.core.bytecode_bundle import Bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn, TextIO

    from tui.app.options.arguments import Options
    from tui.core.errors import HoldfastError
    from tui.ui.start.first_frame import EarlyPrompt

EXIT_FAILED, EXIT_USAGE, EXIT_CREDENTIALS, EXIT_SESSION, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


def start() -> NoReturn:
    """Run `holdfast` as this process, and end it: the entry point of the script.

    What is to be done at the end is done, but nothing is taken apart: freeing hundreds of modules
    one by one takes 20 ms.
    """
    bundle = Bundle(f"{__spec__.cached}.bundle")
    sys.meta_path.insert(0, bundle)
    code = main()
    bundle.keep()
    if threads := sys.modules.get("threading"):
        for thread in threads.enumerate():
            if thread is not threads.main_thread() and not thread.daemon:
                sys.exit(code)  # it waits for such a thread
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    _give_up_stdout()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run `holdfast` with these words (default: the process's). Returns the exit code.

    No traceback reaches the terminal: it goes to the log file, and a line names that.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        _sound_streams()
        code = _run(words)
        sys.stdout.flush()
        if code > 128:
            _end_by_signal(code - 128)
        return code  # noqa: TRY300 - flushing belongs to what may fail
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _end_unread()
    except Exception as error:  # noqa: BLE001 - the last boundary there is
        return _report(error)
    finally:
        _give_up_stdout()


def _end_unread() -> int:
    """End as programs do whose reader went away: by that signal."""
    import signal  # noqa: PLC0415

    _end_by_signal(signal.SIGPIPE)
    return EXIT_FAILED


def _end_by_signal(number: int) -> None:
    """End by the signal that the screen was left for, as the system does: whoever waits for us sees
    it, and some leave a core dump. Does nothing for the usual ones, which have exit codes."""
    import signal  # noqa: PLC0415

    deadly = (signal.SIGQUIT, signal.SIGABRT, signal.SIGXCPU)
    if number in (*deadly, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _report(error: Exception) -> int:
    """Report on stderr what ended the program. Returns the exit code."""
    from tui.core.errors import HoldfastError  # noqa: PLC0415
    from tui.core.standard_output import note  # noqa: PLC0415

    if isinstance(error, HoldfastError):
        note(f"holdfast: {error.message}")
        if error.hint:
            note(error.hint)
        return exit_code(error)
    if isinstance(error.__cause__, KeyboardInterrupt):
        return EXIT_INTERRUPTED  # while a class was being made: Python 3.11 wraps what is raised
    where = _to_log(error)
    what = error if isinstance(error, OSError) else f"a bug: {error!r}"
    note(f"holdfast: stopped by {what}")
    note(f"Nothing recorded is lost; details are in {where}.")
    return EXIT_FAILED


def _sound_streams() -> None:
    """Make the standard streams fit for use, however the process was started.

    A closed one becomes the null device: otherwise the next file that is opened, a session
    perhaps, would get its number. What the locale cannot show is replaced.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")
    sys.stdout, sys.stderr = _for_person(sys.stdout), _for_person(sys.stderr)


class TerminalStream:
    """A standard stream that is a terminal: nothing written to it can control the terminal.

    All text for the terminal passes here, so none has to be cleaned where it is made. The program's
    own control sequences go to the stream below, or to its file.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without its control sequences."""
        from tui.core.text_cleaning import clean  # noqa: PLC0415 - start-up stays light

        return self._stream.write(clean(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _for_person(stream: TextIO) -> TextIO:
    """Return the stream, wrapped if it is a terminal."""
    return TerminalStream(stream) if stream.isatty() else stream  # type: ignore[return-value]  # all of it is there


def _give_up_stdout() -> None:
    """Detach a stdout that cannot be written, so that the interpreter does not complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_log(error: Exception) -> str:
    """Log an exception with its traceback. Returns the path of the log."""
    import logging  # noqa: PLC0415 - as below: only when something went wrong

    from tui.core import log  # noqa: PLC0415
    from tui.core.paths import folders, shorten  # noqa: PLC0415

    folder = folders().log
    if not logging.getLogger().handlers:
        log.to_file(folder)
    logging.getLogger(__name__).error("holdfast stopped", exc_info=error)
    return shorten(folder / log.NAME)


def exit_code(error: HoldfastError) -> int:
    """Return the exit code of an error."""
    from tui.core import errors  # noqa: PLC0415

    match error:
        case errors.UsageError():
            return EXIT_USAGE
        case errors.CredentialsError():
            return EXIT_CREDENTIALS
        case errors.ProviderError(error_class="auth"):
            return EXIT_CREDENTIALS
        case errors.SessionError():
            return EXIT_SESSION
        case _:
            return EXIT_FAILED


def _run(words: Sequence[str]) -> int:
    """Carry out the words. The terminal is restored when this returns or raises."""
    from tui.core import plain_detection  # noqa: PLC0415 - so that Ctrl+C is heeded meanwhile

    first = None
    if os.isatty(0) and os.isatty(1):
        from tui.ui.start.first_frame import open_prompt  # noqa: PLC0415 - as above

        first = open_prompt(words)
    try:
        if not words and not plain_detection.why(words):
            # Plain `holdfast`: the parser would only delay the first real frame.
            from tui.ui.start.fullscreen_main import open_screen  # noqa: PLC0415

            return open_screen(None, first)
        if "CLAUDE_CODE_ENTRYPOINT" in os.environ:
            from tui.cli.claude_stream import is_sdk_call, run_as_claude  # noqa: PLC0415 - an SDK's

            if is_sdk_call(words, os.environ):
                return run_as_claude(words)
        from tui.app.options.parser import parse  # noqa: PLC0415

        return _dispatch(parse(words), first)
    finally:
        if first is not None:
            first.finish(leave=True)


def _wants_screen(options: Options) -> bool:
    """True if `run` opens the full screen."""
    from tui.core import plain_detection  # noqa: PLC0415

    plain = (
        options.printing.headless
        or options.json
        or options.dry_run
        or options.batch.status
        or options.batch.reset
    )
    plain = plain or options.batch.batch_api  # one line a minute needs no screen
    screen = sys.stdin.isatty() and sys.stdout.isatty() and not plain_detection.why(())
    return screen and not plain


_RUN_BY = {
    "completion": "tui.cli.completion",
    "replay": "tui.batch.replay.command",
    "review": "tui.cli.review",
    "work": "tui.batch.cluster.worker",
    "cluster": "tui.batch.cluster.deployment",
    "schema": "tui.cli.schema",
    "self-test": "tui.cli.self_test",
    "sessions": "tui.cli.sessions",
    "bisect": "tui.cli.bisect",
    "mcp": "tui.cli.mcp",
    "plugin": "tui.cli.plugin",
    "acp": "tui.cli.acp",
    **dict.fromkeys(("ps", "attach", "logs", "stop"), "tui.cli.background_commands"),
    **dict.fromkeys(("desk", "serve"), "tui.cli.desk"),
    "doctor": "tui.app.doctor",
    "import-settings": "tui.cli.import_settings",
    "rescue": "tui.cli.rescue",
    "blame": "tui.cli.blame",
    "usage": "tui.cli.usage",
    "report": "tui.cli.report",
    "tour": "tui.demo.tour",
    "drill": "tui.demo.drill",
    "help": "tui.cli.help",
}
"""The module whose `run` carries out a subcommand."""


def _dispatch(options: Options, first: EarlyPrompt | None) -> int:
    if options.opening.fork:
        from tui.app.session_path import forked  # noqa: PLC0415
        from tui.core import plain_detection  # noqa: PLC0415

        printing = options.printing
        if not (options.opening.background or printing.headless or printing.for_claude):
            plain_detection.need_terminal("Holdfast needs a terminal for a conversation.")
        options = forked(options)
    if options.command == "chat" and _means_worktree(options):
        from tui.app.worktree_session import in_worktree  # noqa: PLC0415

        with in_worktree(options) as inside:
            return _carry_out(inside, first)
    return _carry_out(options, first)


def _means_worktree(options: Options) -> bool:
    """True if the options name a worktree, or a session that worked in one."""
    if options.opening.worktree is not None or not options.opening.resume:
        return options.opening.worktree is not None
    from tui.app.session_path import session_worktree_folder  # noqa: PLC0415

    return session_worktree_folder(options) is not None


def _carry_out(options: Options, first: EarlyPrompt | None) -> int:
    from tui.core import plain_detection  # noqa: PLC0415

    match options.command:
        case "run" if not _wants_screen(options):
            from tui.batch.command import run  # noqa: PLC0415
        case "run":
            from tui.ui.tasks.run import open_tasks as run  # noqa: PLC0415
        case "chat" if options.opening.background:
            from tui.cli.background_launch import launch as run  # noqa: PLC0415
        case "chat" if options.printing.for_claude:
            from tui.cli.claude_stream import run  # noqa: PLC0415
        case "chat" if options.printing.headless:
            return _print_answer(options)
        case "chat" if options.screen.plain or plain_detection.why(()):
            from tui.plain import open_plain as run  # noqa: PLC0415
        case "chat":
            from tui.ui.start.fullscreen_main import open_screen  # noqa: PLC0415

            return open_screen(options, first)
        case name:
            return import_module(_RUN_BY[name]).run(options)
    return run(options)


def _print_answer(options: Options) -> int:
    """Run `-p`, whose start is most of its work, so all that its modules compile is kept."""
    from pathlib import Path  # noqa: PLC0415 - as above

    from tui.core import gc_pause  # noqa: PLC0415
    from tui.core.compiled_sources import compiled_once  # noqa: PLC0415

    gc_pause.begin()  # `print_answer` ends it: collections take a tenth of a start
    with compiled_once(Path(f"{__spec__.cached}.sources")):
        from tui.cli.print_mode import print_answer  # noqa: PLC0415

        return print_answer(options)
