"""A conversation in plain lines: for screen readers, simple terminals, serial lines, dictation.

A fourth reader of the agent's events, beside the full screen, `-p` and the batch runner. Lines
only: nothing moves the cursor, nothing is drawn again, nothing is told by colour alone. It never
loads the screen.

The terminal, read in the main thread:

    terminal     serves the conversation         crossing     between the two threads
    prompting    prompts, by the `editor`        answering    answers to questions
    typed_ahead  lines while nothing is asked    signals, tty  what they stand for

The conversation, in an event loop beside it; `face` is all that it knows of the terminal:

    listening    leads what is typed             talk         the open session and its turns
    commands     what is typed with a slash      asking       questions and approvals
    opening      the way to a session, with `obstacles` and `leftovers`
    ways         on from a failed request        teller       events, said by `lines`, `reading`
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tui.core import plain_detection
from tui.core.errors import HoldfastError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui.app.composition import Wiring
    from tui.app.options.arguments import Options
    from tui.plain.terminal import Terminal

TERMINAL_GONE = 129
"""The exit code, as if the signal of it had ended the program (128 + SIGHUP)."""

_WHY = {
    "dumb": "This terminal moves no cursor, so holdfast speaks in plain lines.",
    "configured": "Plain lines, as your settings say.",
}


def open_plain(options: Options) -> int:
    """Hold a conversation. Returns the exit code; raises UsageError without a terminal, and what
    keeps the first session from being opened."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "Plain lines are a conversation, and need a terminal.",
            hint='Without one, use: holdfast -p "…"',
        )
    from tui.app.launch_config import scratch_of  # noqa: PLC0415 - as those below: not before it is sure

    with scratch_of(options) as scratch:
        from tui.app.composition import Wiring  # noqa: PLC0415

        return _converse(Wiring(options, scratch), "" if options.plain else plain_detection.why(()))


def _converse(wiring: Wiring, why: str) -> int:
    from tui.app.prompt_history import PromptHistory  # noqa: PLC0415
    from tui.core.paths import workspace_slug  # noqa: PLC0415
    from tui.plain.editor import Editor  # noqa: PLC0415
    from tui.plain.terminal import Terminal  # noqa: PLC0415

    home, root = wiring.launch.folders, wiring.launch.workspace.root
    history = PromptHistory(home.data / "history" / f"{workspace_slug(root)}.jsonl")
    conversation = _Conversation(wiring, why)
    terminal = Terminal(Editor(history, conversation.complete))
    conversation.terminal = terminal
    try:
        code = terminal.run(conversation.hold)
    except HoldfastError:
        if terminal.gone:
            return TERMINAL_GONE
        raise
    if terminal.gone:
        return TERMINAL_GONE  # nobody is there to be told anything
    session = wiring.session
    if session and session.path and session.path.exists():
        print(f"To go on: holdfast --plain -r {session.id}")  # noqa: T201
    return 128 + terminal.ended_by if terminal.ended_by else code


class _Conversation:
    """From the first word to the last, in the loop's thread."""

    terminal: Terminal

    def __init__(self, wiring: Wiring, why: str) -> None:
        self._wiring = wiring
        self._why = why
        self._complete: Callable[[str], Sequence[str]] | None = None

    def complete(self, line: str) -> Sequence[str]:
        """What the last word of a line may become."""
        return self._complete(line) if self._complete else ()

    async def hold(self) -> int:
        """Until the person leaves. Returns the exit code."""
        import asyncio  # noqa: PLC0415 - the terminal has begun to read

        import tui  # noqa: PLC0415
        from tui.plain import open_session  # noqa: PLC0415
        from tui.plain.completion import complete  # noqa: PLC0415
        from tui.plain.conversation import Talk  # noqa: PLC0415
        from tui.plain.input_loop import listen  # noqa: PLC0415

        wiring, options = self._wiring, self._wiring.options
        choice = await asyncio.to_thread(wiring.choice)
        talk = Talk(wiring.services(), self.terminal)
        self._complete = partial(complete, talk)
        talk.face.say(
            f"holdfast {tui.__version__}, plain lines. /help lists the commands, Ctrl+D leaves.",
            *filter(None, (_WHY.get(self._why),)),
        )
        looking = asyncio.create_task(open_session.keep_looking(talk), name="keep looking")
        try:
            await open_session.first(talk, choice)
            if options.yolo:
                talk.face.say("ELEVATED: nothing is asked; blocked commands stay blocked.")
            if options.verbose:
                talk.submit("/verbose on")
            if options.prompt:
                talk.submit(options.prompt)
            await asyncio.to_thread(talk.own.load)
            await listen(talk)
        finally:
            looking.cancel()
            with suppress(HoldfastError):
                await talk.close()
        return 0
