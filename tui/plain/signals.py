"""Signals that are answered although the line editor waits.

The editor waits for a key in C, where no handler of Python runs. A signal that lands just before
it begins to wait, or in another thread, would be answered at the next key only. And what a handler
raises while the editor calls Python back, to complete a word, is swallowed there.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

NUDGES_S: Final = (0.02, 0.1, 0.5, 2.0)
"""The pauses between the nudges that follow a signal."""

_NUDGE: Final = signal.SIGUSR1


@contextmanager
def answered(
    handlers: Mapping[signal.Signals, Callable[[], object]], swallowed: Callable[[], bool]
) -> Generator[None]:
    """Within, signals go to `handlers`, in the main thread, and each ends its waits a few times
    more, so that none stays unheard.

    `swallowed` tells, in any thread, whether a handler raised something that nobody has caught:
    then the handler is called again. For a second signal at once `input` calls a handler with an
    exception set, and it fails with its first call into C: it must note before that what it came
    for.
    """
    called = {int(number): handler for number, handler in handlers.items()}
    repeated: set[int] = set()

    def heard(number: int, _: FrameType | None) -> None:
        if number in repeated:
            repeated.discard(number)
            if not swallowed():
                return  # it was caught meanwhile
        called[number]()

    before = {number: signal.signal(number, heard) for number in handlers}
    main, over = threading.get_ident(), threading.Event()
    came, comes = os.pipe()
    os.set_blocking(comes, False)
    woken_before = signal.set_wakeup_fd(comes, warn_on_full_buffer=False)

    def nudge() -> None:
        while data := os.read(came, 1):
            for pause in NUDGES_S if data[0] in called else ():
                if over.wait(pause):
                    return
                if swallowed():
                    repeated.add(data[0])
                    signal.pthread_kill(main, data[0])
                else:
                    signal.pthread_kill(main, _NUDGE)

    nudger = threading.Thread(target=nudge, name="signals")
    with Path(os.devnull).open("wb") as nowhere:
        # A nudge needs a handler that is none of Python's: `input` runs a second one with the
        # exception of the first set, which fails both.
        faulthandler.register(_NUDGE, nowhere, all_threads=False)
        nudger.start()
        try:
            yield
        finally:
            over.set()
            signal.set_wakeup_fd(woken_before)
            os.close(comes)
            nudger.join()
            os.close(came)
            faulthandler.unregister(_NUDGE)
            for number, handler in before.items():
                signal.signal(number, handler)
