"""The real terminal: it is read in the main thread, and the conversation runs in another.

So the line editor is interrupted as line editors are: Ctrl+C drops the line, and a signal that ends
the program restores the terminal. While nothing is asked the terminal stays in its usual mode,
echoes by itself, and whole lines are taken as they come. Nothing here moves the cursor.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol

from tui.core.plain_detection import DUMB
from tui.core.text_cleaning import clean
from tui.plain.answers import AnswerReader, TypedAhead
from tui.plain.editor import Editor
from tui.plain.prompt_reader import PromptReader
from tui.plain.thread_bridge import LineRequest, ThreadBridge
from tui.plain.tty import Tty, answered

_STEPS: Final = 8
"""Number of loop steps between a line that was typed ahead and the turn that it begins."""
_STEP_S: Final = 0.03


class Listener(Protocol):
    """The receiver of what the terminal tells, in the loop's thread."""

    def typed(self, text: str) -> None:
        """Take what is typed while nothing is asked."""

    def interrupt(self) -> bool:
        """Handle Ctrl+C. False if there was nothing to stop: then it was meant for the prompt."""
        ...

    def leave(self) -> None:
        """End: the person leaves, or the terminal has gone."""


class Terminal:
    """Says and reads lines.

    `run` is called in the main thread; what the conversation calls (from `gone` to `bell`) in the
    loop's. `ended` is true once the program was told to end.
    """

    def __init__(self, editor: Editor) -> None:
        self.ended = False
        self.ended_by = 0
        """The signal that told the program to end."""
        self._listener: Listener | None = None
        self._editor = editor
        self._bridge = ThreadBridge()
        self._tty = Tty(self)
        self._prompts = PromptReader(editor, self._tty, self)
        self._ahead = TypedAhead(self._tty, self)
        self._answers = AnswerReader(self._tty, self._bridge, self._ahead, self)
        self._prompted: LineRequest | None = None
        self._main = threading.get_ident()
        self._over = self._left = False
        self._early: list[str] = []
        """Lines typed before there was a listener."""
        self._listening = threading.Lock()

    @property
    def gone(self) -> bool:
        """True if the terminal went away."""
        return self._tty.gone

    # In the main thread

    def run(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the work in a thread with a loop, and read for it until it is over."""
        ended: list[int | BaseException] = []
        self._main = threading.get_ident()
        thread = threading.Thread(target=self._work, args=(work, ended), name="conversation")
        with self._tty.preserved():
            try:
                with self._signals():
                    thread.start()
                    while not self._over:
                        self._serve()
            finally:
                self.ended = True
                self.lost()
                thread.join()
                self._bridge.close()
        (result,) = ended
        if isinstance(result, BaseException):
            raise result
        return result

    def _work(
        self, work: Callable[[], Coroutine[Any, Any, int]], ended: list[int | BaseException]
    ) -> None:
        try:
            ended.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            ended.append(error)
        finally:
            self._over = True
            self._bridge.part()
            if self._prompts.editing:
                signal.pthread_kill(self._main, signal.SIGTERM)

    def _serve(self) -> None:
        """Serve a request of the conversation, or wait for one, or for a typed line."""
        request = self._bridge.next()
        if request is None:
            if self._bridge.wait(keys=not self.gone) and not self._ahead.take():
                self._left = True
                self.lost()
        elif request.kind == "prompt":
            self._prompt(request)
        else:
            line = None if self._left or self.ending else self._answers.ask(request)
            self._bridge.give(request, line)

    def _prompt(self, request: LineRequest) -> None:
        self._prompted = request
        self._catch_up()
        if request.cancelled:
            self._prompted = None
            if self._prompts.interrupted():
                self._bridge.call(self._interrupted)
            return
        text = self._read(request)
        if request.cancelled and text is not None and self._listener is not None:
            self._bridge.call(self._listener.typed, text)  # something else came first
        self._bridge.give(request, text)

    def _read(self, request: LineRequest) -> str | None:
        text: str | None = request.text
        while not (self._left or self.ending):
            self._prompted = request
            text = self._prompts.read(text or "")
            self._prompted = None
            if text is None:
                return None
            if not self._prompts.interrupted():
                self._editor.remember(text)
                return text
            self._tty.write("\n")  # ask again
        self._prompts.kept = "\n".join(filter(None, (text, self._prompts.kept)))
        return None

    def _catch_up(self) -> None:
        """Send first what was typed ahead. A Ctrl+D among it counts: the editor would not see
        it."""
        while not (self._left or self.gone) and self._tty.ready():
            self._left = not self._ahead.take()
        for _ in range(_STEPS):
            reached = threading.Event()
            self._bridge.call(reached.set)
            reached.wait(_STEP_S)

    def hear(self, text: str) -> None:
        """Hand on a prompt that was typed ahead."""
        self._editor.remember(text)
        with self._listening:
            if self._listener is None:
                self._early.append(text)
                return
        self._bridge.call(self._listener.typed, text)

    def keep(self, text: str) -> None:
        """Put a text into the next prompt."""
        self._prompts.kept += text

    @property
    def ending(self) -> bool:
        """True once the program ends, or the terminal has gone."""
        return self._over or self.ended or self.gone

    def lost(self) -> None:
        """Let the listener leave."""
        if self._listener is not None:
            self._bridge.call(self._listener.leave)
        self._bridge.poke()

    # Signals, in the main thread

    def _signals(self) -> AbstractContextManager[None]:
        handlers = {
            signal.SIGINT: self._ctrl_c,
            signal.SIGTERM: partial(self._end, signal.SIGTERM),
            signal.SIGHUP: partial(self._end, signal.SIGHUP),
            signal.SIGTSTP: self._stop,
        }
        return answered(handlers, lambda: self._prompts.swallowed)

    def _ctrl_c(self) -> None:
        if self._prompted is not None and not self._prompted.cancelled:
            self._prompts.interrupt()
        else:
            self._answers.refuse()
            self._bridge.call(self._interrupted)

    def _end(self, number: int) -> None:
        self.ended = True  # first, see `answered`
        if not self._over:  # otherwise it only ends the reading of a line
            self.ended_by = self.ended_by or number
        self._prompts.hold()
        if self._answers.asked is None and not (self._prompts.editing and self._editor.edits):
            self._ahead.end()
        self.lost()
        self._prompts.end()

    def _stop(self) -> None:
        """Ctrl+Z: give the shell its terminal as it was, and restore our modes on return."""
        with self._tty.lent():
            ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, ours)
        self._tty.write(self._pending_input())

    def _pending_input(self) -> str:
        """Return what is at the person's cursor: the prompt's line, or a question."""
        if self._prompts.editing:
            return self._prompts.so_far()
        return self._answers.again()

    # In the loop's thread

    def _interrupted(self, steps: int = _STEPS) -> None:
        """Stop what runs.

        If nothing does, Ctrl+C was meant for the prompt, or something is about to begin.
        """
        if self._listener is None or self._listener.interrupt():
            return
        if self._prompted or self._bridge.asked:
            signal.pthread_kill(self._main, signal.SIGINT)
        elif steps:
            asyncio.get_running_loop().call_soon(self._interrupted, steps - 1)

    def listen(self, listener: Listener) -> None:
        """Tell the listener from now on, first of what was typed before."""
        self._bridge.meet()
        with self._listening:
            self._listener = listener
            early, self._early = self._early, []
        for text in early:
            listener.typed(text)
        if self._left:  # Ctrl+D came before
            listener.leave()

    def say(self, *lines: str) -> None:
        """Print lines, without control characters. The line being typed is shown again below
        them."""
        if not lines:
            return
        text = "".join(f"{clean(line)}\n" for line in lines)
        pending = self._pending_input()
        self._tty.write(f"\n{text}{pending}" if pending else text)

    async def prompt(self, text: str = "") -> str | None:
        """Return the next prompt that is typed; None if the person leaves. `text` is its initial
        text."""
        return await self._bridge.want(text, "prompt")

    async def answer(self, question: str, *, hidden: bool = False) -> str | None:
        """Return a line typed after `question` was shown; None if it was refused by Ctrl+C or
        Ctrl+D.

        What was typed before goes to the prompt. A `hidden` line is not shown.
        """
        return await self._bridge.want(question, "hidden" if hidden else "answer")

    def begun(self) -> str:
        """Return what is in the prompt and was not sent."""
        return self._prompts.begun()

    def copy(self, text: str) -> None:
        """Hand a text to the terminal's clipboard; tmux and the desktop have their own."""
        if os.environ.get("TERM", "") not in DUMB:
            self._tty.clip(text)

    def bell(self) -> None:
        """Call a listener who is elsewhere."""
        if os.environ.get("TERM", "") not in DUMB:
            self._tty.ring()
