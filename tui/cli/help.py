"""`holdfast help`: the manual, in the terminal's pager, or on stdout where that is no terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

from tui.app import manual
from tui.app.manual import Match, Topic
from tui.app.options.arguments import Options
from tui.core import plain_detection
from tui.core.errors import UsageError
from tui.core.standard_output import print_text

WIDTH_MAX = 100


def run(options: Options) -> int:
    """Show the manual, one topic, or what mentions a word. Returns the exit code.

    Raises UsageError where no topic and no section is about the word.
    """
    if options.help.list_topics:
        print_text(_listed(manual.topics()), end="")
        return 0
    if options.help.man:
        from tui.app.man_page import text  # noqa: PLC0415 - for this only

        print(text(), end="")  # noqa: T201
        return 0
    if options.help.topic is None:
        _show("\n".join([_contents(), *(topic.text for topic in manual.topics())]))
        return 0
    topics = manual.named(options.help.topic)
    if len(topics) == 1:
        _show(f"{topics[0].text}\nOnline: {manual.address(topics[0].name)}\n")
    elif topics:
        print_text(_listed(topics), end="")
    elif matches := manual.search(options.help.topic):
        print_text(_mentions(options.help.topic, matches), end="")
    else:
        near = manual.near(options.help.topic)
        raise UsageError(
            f"help: the manual has nothing about {options.help.topic!r}.",
            hint=f"Did you mean {near}?" if near else "holdfast help --list shows all topics.",
        )
    return 0


def _contents() -> str:
    rows = "\n".join(f"| `{topic.name}` | {topic.summary} |" for topic in manual.topics())
    return f"# The Holdfast manual\n\n| topic | what it covers |\n|---|---|\n{rows}\n"


def _listed(topics: tuple[Topic, ...]) -> str:
    width = max(map(len, manual.TOPICS)) + 2
    return "".join(f"{topic.name:<{width}}{topic.summary}\n" for topic in topics)


def _mentions(word: str, matches: list[Match]) -> str:
    width = _width()
    lines = [f"No topic is called {word}. These sections mention it:", ""]
    for match in matches:
        lines.append(match.place)
        lines.append(f"    {match.line}"[:width].rstrip())
    return "\n".join([*lines, "", "Open one with: holdfast help TOPIC"]) + "\n"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDTH_MAX)


def _show(markdown: str) -> None:
    """Page a text. A simple terminal, or none, gets it printed."""
    from tui.ui.widgets.markdown.terminal import terminal_text  # noqa: PLC0415 - only to show it

    simple = not sys.stdout.isatty() or bool(plain_detection.why(()))
    text = terminal_text(markdown, _width(), styled=not simple)
    if simple or not _paged(text):
        sys.stdout.write(text)


def _paged(text: str) -> bool:
    """True if a pager took the text. The defaults of LESS and LV let bold type through."""
    command = shlex.split(os.environ.get("PAGER") or "less -R")
    if not command or shutil.which(command[0]) is None:
        return False
    environment = {"LESS": "FRX", "LV": "-c"} | os.environ
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the pager
    try:
        subprocess.run(command, input=text.encode(), env=environment, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    return True
