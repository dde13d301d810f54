"""The one entry: parse, load, hand over to the full screen, `-p` or a subcommand. Owns exit codes.

Nothing heavy is imported before it is needed: what runs decides what is loaded.
"""

from __future__ import annotations

import os
import sys

from tui import early

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui.arguments import Options
    from tui.early import EarlyPrompt
    from tui.errors import HoldfastError

EXIT_FAILED, EXIT_USAGE, EXIT_CREDENTIALS, EXIT_SESSION, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


def main(argv: list[str] | None = None) -> int:
    """Run `holdfast` with these words (default: the process's). Returns the exit code.

    No traceback reaches the terminal: it goes to the log file, and a line says where.
    """
    words = sys.argv[1:] if argv is None else argv
    first = early.open_prompt(words)
    from tui.errors import HoldfastError  # noqa: PLC0415

    try:
        return _run(words, first)
    except HoldfastError as error:
        print(f"holdfast: {error.message}", file=sys.stderr)  # noqa: T201
        if error.hint:
            print(error.hint, file=sys.stderr)  # noqa: T201
        return exit_code(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output went away; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:
        import logging  # noqa: PLC0415

        logging.getLogger(__name__).exception("holdfast stopped")
        print(f"holdfast: stopped by a mistake of its own: {error!r}", file=sys.stderr)  # noqa: T201
        print("Nothing recorded is lost; details are in the log file.", file=sys.stderr)  # noqa: T201
        return EXIT_FAILED


def exit_code(error: HoldfastError) -> int:
    """INTERFACE's exit code of an error."""
    from tui import errors  # noqa: PLC0415

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


def _run(words: Sequence[str], first: EarlyPrompt | None) -> int:
    """Carry out the words. The terminal is as it was when this returns or raises."""
    try:
        from tui.arguments import parse  # noqa: PLC0415

        return _dispatch(parse(words), first)
    finally:
        if first is not None:
            first.finish(leave=True)


def _dispatch(options: Options, first: EarlyPrompt | None) -> int:
    match options.command:
        case "completion":
            from tui.completion import script  # noqa: PLC0415

            print(script(options.shell))  # noqa: T201
            return 0
        case "sessions":
            from tui.sessions_command import run as run_sessions  # noqa: PLC0415

            return run_sessions(options)
        case "chat" if options.headless:
            from tui.launch import print_answer  # noqa: PLC0415

            return print_answer(options)
        case "chat":
            from tui.fullscreen import open_screen  # noqa: PLC0415

            return open_screen(options, first)
        case command:
            from tui.errors import UsageError  # noqa: PLC0415

            raise UsageError(
                f"`holdfast {command}` is not part of this version.",
                hint="What works: the full screen, -p, sessions, completion. See --help.",
            )
