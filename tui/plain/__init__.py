"""A conversation in plain lines: for screen readers, simple terminals, serial lines, dictation.

A fourth reader of the agent's events, beside the full screen, `-p` and the batch runner. Lines
only: nothing moves the cursor, nothing is drawn again, nothing is shown by color alone. It never
loads the screen.

The terminal, read in the main thread:

    terminal       serves the conversation      thread_bridge  between the two threads
    prompt_reader  prompts, by the `editor`     answers        answers, and what is typed ahead
    tty            the terminal and its signals

The conversation (`tui.app.conversation`), in an event loop beside it; of the terminal it knows only
`terminal.Terminal`:

    frontend       what the conversation asks   input_loop     hands on what is typed
    questions      questions and approvals      views          commands that show something
    fact_speaker   facts, said by `fact_lines` and `markdown_to_speech`
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui.core import plain_detection
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.app.options.arguments import Options
    from tui.app.program import Program
    from tui.plain.editor import Editor
    from tui.plain.terminal import Terminal

TERMINAL_GONE = 129
"""Exit code if the terminal goes away, as if SIGHUP had ended the program (128 + SIGHUP)."""

_WHY = {
    "dumb": "This terminal can't move the cursor, so Holdfast uses plain lines.",
    "configured": "Plain lines, as set in your settings.",
}


def open_plain(options: Options) -> int:
    """Hold a conversation and return the exit code.

    Raises:
        UsageError: If there is no terminal. Errors of opening the first session are raised as they
            are.
    """
    plain_detection.need_terminal("Plain lines need a terminal.")
    from tui.app.launch_config import scratch_of  # noqa: PLC0415 - as those below: not before it is sure

    with scratch_of(options) as scratch:
        from tui.app.program import Program  # noqa: PLC0415

        return _converse(
            Program(options, scratch),
            "" if options.screen.plain else plain_detection.why(()),
        )


def _converse(program: Program, why: str) -> int:
    from tui.app.prompt_history import PromptHistory  # noqa: PLC0415
    from tui.core.paths import workspace_slug  # noqa: PLC0415
    from tui.plain.editor import Editor  # noqa: PLC0415
    from tui.plain.terminal import Terminal  # noqa: PLC0415

    home, root = program.launch.folders, program.launch.workspace.root
    history = PromptHistory(home.data / "history" / f"{workspace_slug(root)}.jsonl")
    editor = Editor(history)
    terminal = Terminal(editor)
    try:
        code = terminal.run(partial(_hold, program, terminal, editor, _WHY.get(why, "")))
    except HoldfastError:
        if terminal.gone:
            return TERMINAL_GONE
        raise
    if terminal.gone:
        return TERMINAL_GONE  # nobody is there to read it
    session = program.session
    if session and session.path and session.path.exists():
        from tui.app.background import parting_words  # noqa: PLC0415 - at the end
        from tui.core.standard_output import print_text  # noqa: PLC0415 - as above

        resume = f"Resume with: holdfast --plain -r {session.id}"
        print_text(parting_words(home, session.id, resume))
    return 128 + terminal.ended_by if terminal.ended_by else code


async def _hold(program: Program, terminal: Terminal, editor: Editor, why: str) -> int:
    """Hold the conversation in the loop's thread until the person leaves, and return the exit
    code."""
    import asyncio  # noqa: PLC0415 - the terminal has begun to read

    import tui  # noqa: PLC0415
    from tui.app.open_session import open_first  # noqa: PLC0415
    from tui.plain import input_loop  # noqa: PLC0415
    from tui.plain.frontend import PlainFrontend  # noqa: PLC0415
    from tui.plain.views import view  # noqa: PLC0415

    options = program.options
    choice = await asyncio.to_thread(program.choice)
    frontend = PlainFrontend(program, terminal, view)
    conversation = frontend.conversation
    editor.complete = partial(input_loop.complete, conversation)
    terminal.say(
        f"holdfast {tui.__version__}, plain lines. /help lists the commands, Ctrl+D quits.",
        *filter(None, (why,)),
    )
    # Both run beside the conversation, and end with it.
    watches = [
        asyncio.create_task(watch(frontend), name=watch.__name__)
        for watch in (input_loop.watch_session, input_loop.keep_drafts)
    ]
    try:
        await open_first(conversation, choice, fallback=False)
        conversation.expect_prompt()
        frontend.ready = True
        if options.permissions.yolo:
            terminal.say("ELEVATED: no prompts; blocked commands stay blocked.")
        if options.screen.verbose:
            conversation.submit("/verbose on")
        if options.prompt:
            conversation.submit(options.prompt)
        await asyncio.to_thread(conversation.user_commands.load)
        await input_loop.converse(frontend)
    finally:
        for task in watches:
            task.cancel()
        await input_loop.leave(frontend)
    return 0
