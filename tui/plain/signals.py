"""Signals that are answered although the line editor waits.

The editor waits for a key in C, where no handler of Python runs. A signal that lands just before
it begins to wait, or in another thread, would be answered at the next key only.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NUDGES_S: Final = (0.02, 0.1, 0.5, 2.0)
"""The pauses between the nudges that follow a signal."""

_NUDGE: Final = signal.SIGUSR1

Handler = Callable[..., object]


@contextmanager
def answered(handlers: Mapping[signal.Signals, Handler]) -> Generator[None]:
    """Within, signals go to `handlers`, in the main thread, and each ends its waits a few times
    more, so that none stays unheard."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    came, comes = os.pipe()
    os.set_blocking(comes, False)
    woken_before = signal.set_wakeup_fd(comes, warn_on_full_buffer=False)
    over = threading.Event()
    nudger = threading.Thread(target=_nudge, args=(came, set(handlers), over), name="signals")
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


def _nudge(came: int, numbers: set[signal.Signals], over: threading.Event) -> None:
    main = threading.main_thread().ident
    assert main is not None
    while data := os.read(came, 1):
        for pause in NUDGES_S if data[0] in numbers else ():
            if over.wait(pause):
                return
            signal.pthread_kill(main, _NUDGE)
