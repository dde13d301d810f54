"""The real terminal: it is read in the main thread, and the conversation runs in another.

So the line editor is interrupted as line editors are: Ctrl+C drops the line, a signal that ends
the program puts the terminal back. While nothing is asked the terminal stays in its usual mode,
echoes by itself, and whole lines are taken as they come. Nothing here moves the cursor.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tui.plain.editor import Editor
from tui.plain.entry import Entry
from tui.plain.signals import answered
from tui.plain.tty import flags, rubbed_out
from tui.plainly import DUMB
from tui.widgets.plain import clean

PROMPT: Final = "> "
MORE: Final = "... "
LEAVE_WITHIN_S: Final = 2.0
GRACE_S: Final = 0.5
"""A question takes an answer after so long without a key: what was meant for the prompt must
never approve anything."""

_PASTE_S: Final = 0.03
"""Lines that follow each other faster were pasted, and are one prompt."""

_READ: Final = 65_536


class _Ended(BaseException):
    """The program was told to end while a line was being typed."""


@dataclass(slots=True)
class _Request:
    """Something that the conversation waits for."""

    text: str
    kind: str
    done: asyncio.Future[str | None]
    cancelled: bool = False


def _nobody(*_: object) -> None:
    pass


@dataclass(slots=True)
class Terminal:
    """Implements `Face`. `run` is called in the main thread, everything else in the loop's."""

    editor: Editor
    gone: bool = False
    ended: bool = False
    _typed: Callable[[str], object] = _nobody
    _interrupt: Callable[[], object] = _nobody
    _leave: Callable[[], object] = _nobody
    _loop: asyncio.AbstractEventLoop | None = None
    _requests: deque[_Request] = field(default_factory=deque[_Request])
    _asked: _Request | None = None
    _entry: Entry = field(default_factory=Entry)
    _ahead: Entry = field(default_factory=Entry)
    _kept: str = ""
    """Typed before a question, and no whole line: it goes into the next prompt."""
    _unsent: str = ""
    _editing: bool = False
    _breaks: type[BaseException] | None = None
    """What a signal raised to end the line that is being typed."""
    _over: bool = False
    _left: bool = False
    """Ctrl+D was typed while nothing was asked."""
    _interrupted_at: float = float("-inf")
    _wake: tuple[int, int] = field(default_factory=os.pipe)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _result: list[Any] = field(default_factory=list[Any])
    _failure: list[BaseException] = field(default_factory=list[BaseException])

    # In the main thread

    def run(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Do the work in a thread with a loop, and read for it until it is over."""
        before = termios.tcgetattr(0)
        thread = threading.Thread(target=self._work, args=(work,), name="conversation")
        try:
            with self._signals(before):
                thread.start()
                while not self._over:
                    self._next()
        finally:
            self.ended = True
            self._call(self._leave)
            thread.join()
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, before)
            for end in self._wake:
                os.close(end)
        if self._failure:
            raise self._failure[0]
        return self._result[0]

    def _work(self, work: Callable[[], Coroutine[Any, Any, int]]) -> None:
        try:
            self._result.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self._failure.append(error)
        finally:
            self._over = True
            self._loop = None
            self._poke()
            if self._editing and (main := threading.main_thread().ident):
                signal.pthread_kill(main, signal.SIGTERM)

    def _next(self) -> None:
        """Wait for something: a request of the conversation, or a line that is typed ahead."""
        if self._requests:
            self._serve(self._requests.popleft())
            return
        watched = [self._wake[0]] if self.gone else [0, self._wake[0]]
        ready = select.select(watched, [], [])[0]
        if self._wake[0] in ready:
            os.read(self._wake[0], _READ)
        elif 0 in ready:
            self._take_ahead()

    def _serve(self, request: _Request) -> None:
        if request.cancelled:
            return
        if request.kind == "prompt":
            while not (self.gone or self._left) and select.select([0], [], [], 0)[0]:
                self._take_ahead()  # the editor would not see a Ctrl+D among it
            self._let_the_loop_catch_up()
        if request.cancelled:
            return
        if self.gone or self.ended or self._left:
            self._give(request, None)
        elif request.kind == "prompt":
            text = self._prompt(request.text)
            if request.cancelled and text is not None:
                self._call(self._typed, text)  # something else came first
            self._give(request, text)
        else:
            self._ask(request)

    def _let_the_loop_catch_up(self) -> None:
        """What was typed ahead may be sent first; its way is two steps long."""
        for _ in range(3):
            reached = threading.Event()
            self._call(reached.set)
            reached.wait(_PASTE_S)

    def _prompt(self, text: str) -> str | None:
        """A whole prompt; None to leave."""
        prefill = "\n".join(filter(None, (text, self._kept)))
        self._kept = ""
        self._entry.drop()
        while True:
            try:
                line = self._line(MORE if self._entry.begun else PROMPT, prefill)
            except KeyboardInterrupt:
                self._write("\n")
                if self._drop_line():
                    continue
                return None
            except EOFError:
                self._unsent = self._entry.text
                self._write("\n")
                self._look_if_gone()
                return None
            except _Ended:
                self._write("\n")
                return None
            prefill = ""
            whole = self._entry.add(line)
            if whole is not None and whole.strip():
                self.editor.remember(whole)
                return whole

    def _line(self, prompt: str, prefill: str) -> str:
        """A line from the editor; the lines of a paste together."""
        self._editing = True
        try:
            if self.ended:
                raise _Ended
            line = self.editor.read(prompt, prefill)
            while self._comes_at_once():
                line += "\n" + self.editor.read("", "")
        except SystemError as error:
            if self._breaks is None:
                raise
            raise self._breaks from error  # two signals at once: `input` fails over the second
        finally:
            self._editing = False
            self._breaks = None
        return line

    def _drop_line(self) -> bool:
        """Ctrl+C at the prompt: forget the line. False where a second one leaves."""
        if self._unsent or self._entry.begun:
            self._entry.drop()
            self._unsent = ""
            return True
        now = time.monotonic()
        if now - self._interrupted_at <= LEAVE_WITHIN_S:
            return False
        self._interrupted_at = now
        self._write("Press Ctrl+C again, or Ctrl+D, to leave.\n")
        return True

    def _ask(self, request: _Request) -> None:
        """Read an answer that is typed after the question stands there."""
        self._settle(request)
        if request.cancelled or self.gone or self.ended:
            self._give(request, None)
            return
        self._asked = request
        self._write(request.text)
        try:
            with flags(~termios.ECHO if request.kind == "hidden" else ~0, self._lose):
                answer = self._answer(request)
        finally:
            self._asked = None
        if answer is None or request.kind == "hidden":
            self._write("\n")
        self._give(request, answer)

    def _answer(self, request: _Request) -> str | None:
        while not (request.cancelled or self.ended):
            ready = select.select([0, self._wake[0]], [], [])[0]
            if self._wake[0] in ready:
                os.read(self._wake[0], _READ)
            elif (data := self._read()) is None:
                return None
            else:
                return data.rstrip("\r\n")
        return None

    def _settle(self, request: _Request) -> None:
        """Wait until nobody is typing. What was typed for the prompt goes there."""
        taken = b""
        with flags(~termios.ICANON, self._lose):
            while not (request.cancelled or self.ended):
                ready = select.select([0, self._wake[0]], [], [], GRACE_S)[0]
                if self._wake[0] in ready:
                    os.read(self._wake[0], _READ)
                elif 0 not in ready:
                    break
                else:
                    try:
                        data = os.read(0, _READ)
                    except OSError:
                        data = b""
                    if not data:
                        self._lose()
                        break
                    taken += data
        if not taken:
            return
        *lines, rest = rubbed_out(taken.decode("utf-8", "replace")).split("\n")
        self._write("\n" if rest else "")
        if rest:
            self._kept += rest
            self._write(f"Kept for your next prompt: {clean(rest)}\n")
        for line in lines:
            self._hear(line)

    def _take_ahead(self) -> None:
        """A line that was typed while something runs."""
        data = self._read()
        if data is None:
            self._left = True
            self._call(self._leave)
            return
        while data.endswith("\n") and select.select([0], [], [], _PASTE_S)[0]:
            more = self._read()
            if more is None:
                break
            data += more
        if not data.endswith("\n"):
            self._kept += data
            return
        self._hear(data.rstrip("\r\n"))

    def _hear(self, line: str) -> None:
        text = self._ahead.add(line)
        if text is not None and text.strip():
            self.editor.remember(text)
            self._call(self._typed, text)

    def _read(self) -> str | None:
        """What was typed, by whole lines; None for Ctrl+D, or where the terminal has gone."""
        try:
            data = os.read(0, _READ)
        except OSError:
            data = b""
            self._lose()
        if not data:
            self._look_if_gone()
            return None
        return data.decode("utf-8", "replace")

    def _comes_at_once(self) -> bool:
        """Whether more follows faster than anybody types."""
        with flags(~termios.ICANON, self._lose):
            return bool(select.select([0], [], [], _PASTE_S)[0])

    def _signals(self, usual: list[Any]) -> AbstractContextManager[None]:
        def interrupt(*_: object) -> None:
            if self._editing:
                self._unsent = self.editor.begun()
                self._breaks = KeyboardInterrupt
                raise KeyboardInterrupt
            if self._asked is not None:
                self._asked.cancelled = True
            self._call(self._interrupt)
            self._poke()

        def end(*_: object) -> None:
            self.ended = True
            if self._editing:
                self._unsent = self._begun()
                self._breaks = _Ended
                raise _Ended
            self._call(self._leave)
            self._poke()

        def stop(*_: object) -> None:
            """Ctrl+Z: the shell gets its terminal as it was, and we ours when we are back."""
            with suppress(termios.error):
                ours = termios.tcgetattr(0)
                termios.tcsetattr(0, termios.TCSADRAIN, usual)
                signal.signal(signal.SIGTSTP, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTSTP)
                signal.signal(signal.SIGTSTP, stop)
                termios.tcsetattr(0, termios.TCSADRAIN, ours)
            if self._editing:
                self._write(self._line_so_far())

        handlers = {
            signal.SIGINT: interrupt,
            signal.SIGTERM: end,
            signal.SIGHUP: end,
            signal.SIGTSTP: stop,
        }
        return answered(handlers)

    def _give(self, request: _Request, value: str | None) -> None:
        def give() -> None:
            if not request.done.done():
                request.done.set_result(value)

        self._call(give)

    def _look_if_gone(self) -> None:
        try:
            termios.tcgetattr(0)
        except termios.error:
            self._lose()

    def _lose(self) -> None:
        if not self.gone:
            self.gone = True
            self._call(self._leave)

    # In the loop's thread

    def listen(
        self,
        typed: Callable[[str], object],
        interrupt: Callable[[], object],
        leave: Callable[[], object],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._typed, self._interrupt, self._leave = typed, interrupt, leave

    def say(self, *lines: str) -> None:
        """Print lines. What is being typed is shown again below them."""
        if not lines:
            return
        text = "".join(f"{clean(line)}\n" for line in lines)
        if self._editing:
            text = f"\n{text}{self._line_so_far()}"
        self._write(text)

    async def prompt(self, text: str = "") -> str | None:
        return await self._wanted(text, "prompt")

    async def answer(self, question: str, *, hidden: bool = False) -> str | None:
        return await self._wanted(question, "hidden" if hidden else "answer")

    def begun(self) -> str:
        return self._unsent or self._begun()

    def bell(self) -> None:
        if os.environ.get("TERM", "") not in DUMB:
            self._write("\a")

    async def _wanted(self, text: str, kind: str) -> str | None:
        loop = self._loop = asyncio.get_running_loop()
        request = _Request(text, kind, loop.create_future())
        self._requests.append(request)
        self._poke()
        try:
            return await request.done
        finally:
            request.cancelled = True
            self._poke()

    # In both

    def _begun(self) -> str:
        """What is typed by now of a prompt."""
        parts = (self._entry.text, self.editor.begun() if self._editing else "", self._kept)
        return "\n".join(filter(None, parts))

    def _line_so_far(self) -> str:
        return f"{MORE if self._entry.begun else PROMPT}{clean(self.editor.begun())}"

    def _call(self, function: Callable[..., object], *given: object) -> None:
        """Call something in the loop's thread."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(function, *given)

    def _poke(self) -> None:
        with suppress(OSError):
            os.write(self._wake[1], b"x")

    def _write(self, text: str) -> None:
        if not text or self.gone:
            return
        try:
            with self._writing:
                sys.stdout.write(text)
                sys.stdout.flush()
        except (OSError, ValueError):
            self._lose()
