"""A Dask cluster as an engine: each worker is the child of a task on one of its machines.

Dask places the task, and is believed nothing else: it may run it twice, lose it or forget it. The
scheduler keeps what it was given when the driver is gone, by the fixed name that each task has.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any, Final, TypeVar

import dask as partly_typed_dask
import distributed as partly_typed_distributed

from tui.batch.cluster.engines.dask_address import check_address
from tui.batch.cluster.engines.port import EngineError, Life

_T = TypeVar("_T")

dask: Final[Any] = partly_typed_dask
distributed: Final[Any] = partly_typed_distributed

_PREFIX: Final = "holdfast/"
_COMMAND_BYTES: Final = 4096
_SHOWN: Final = 4000
_WHY: Final = 200
_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 30.0
_WORDS_S: Final = 5.0
_AGAIN_S: Final = 15.0
"""Seconds before a scheduler that didn't answer is asked again."""
_KNOWN_S: Final = 10.0
"""Seconds that the scheduler has for taking what it was given."""
_LOOK_S: Final = 1.0
_END_S: Final = 25.0
"""Seconds that a worker has for ending its commands and giving its task back."""
_LIVES: Final[Mapping[str | None, Life]] = {
    "processing": "lives",
    "released": "waits",
    "waiting": "waits",
    "queued": "waits",
    "no-worker": "waits",
    "memory": "ended",
    "erred": "ended",
}
_GOING: Final = frozenset({"closing", "closed", "failed"})


class DaskEngine:
    """Starts workers by the scheduler at `address`. Raises EngineError if it can't be reached.

    The client lives on a thread of the engine's own, which `close` ends, and is made again when
    the connection was lost: the scheduler of then may be another one, which knows nothing.
    """

    outlives = True
    look_s = 2.0

    def __init__(self, address: str, slots: int = 0, *, insecure: bool = False) -> None:
        """`slots`: workers at a time, 0 for one on each thread that the cluster has now."""
        check_address(address, insecure=insecure)
        quieten()
        self.name = address
        self._client: Any = None
        self._down_until = 0.0
        self._futures: dict[str, Any] = {}
        """The tasks that this engine has put, for what it says at the end."""
        self._printed: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="dask", daemon=True)
        self._thread.start()
        try:
            self.slots = slots or max(1, self._do(_threads))
        except EngineError:
            self.close()
            raise

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles = {key: f"{_PREFIX}{words[1]}" for key, words in commands.items()}
        texts = {handles[key]: json.dumps(list(words)) for key, words in commands.items()}
        if any(len(text.encode()) > _COMMAND_BYTES for text in texts.values()):
            raise EngineError(
                "A worker's command is too long.", hint="Give the store a shorter address."
            )
        taken = self._do(lambda client: self._put(client, texts))
        return {key: handle for key, handle in handles.items() if handle in taken}

    async def _put(self, client: Any, commands: Mapping[str, str]) -> Collection[str]:
        """Submit what the scheduler doesn't have yet, and return what it has then."""
        for name in commands:
            self._futures.pop(name, None)
        before = await _states(client, commands)
        for name, text in commands.items():
            if before[name] is None:
                self._futures[name] = client.submit(
                    run_worker, text, key=name, pure=False, retries=0
                )
        deadline = time.monotonic() + _KNOWN_S
        while True:
            now = await _states(client, commands)
            known = [name for name in commands if now[name] is not None]
            failed = [name for name in self._put_in_vain(commands) if now[name] is None]
            if len(known) + len(failed) == len(commands) or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        # Only what the scheduler knows can be kept for when this client is gone.
        distributed.fire_and_forget(
            [self._futures[name] for name in known if name in self._futures]
        )
        if failed and not known:
            why = " ".join((await self._last_words(failed[0])).split())[:_WHY]
            raise EngineError(
                f"The scheduler refuses a task: {why}",
                hint="Its Python needs the same Holdfast as this one.",
            )
        return [name for name in known if _LIVES.get(now[name]) != "ended"]

    def _put_in_vain(self, names: Iterable[str]) -> list[str]:
        mine = {name: self._futures[name] for name in names if name in self._futures}
        return [name for name, future in mine.items() if future.status in {"error", "cancelled"}]

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        if not handles:
            return {}
        try:
            return self._do(lambda client: self._watch(client, handles))
        except EngineError:
            return dict.fromkeys(handles, "unknown")

    async def _watch(self, client: Any, handles: Collection[str]) -> Mapping[str, Life]:
        states = await _states(client, handles)
        lives: dict[str, Life] = {
            handle: _LIVES.get(states[handle], "unknown") for handle in handles
        }
        for handle, life in lives.items():
            if life == "ended":
                self._printed[handle] = await self._last_words(handle)
        return lives

    async def _last_words(self, name: str) -> str:
        """The result of a task that has ended, which the scheduler may forget then."""
        future = self._futures.pop(name, None)
        if future is None:
            return ""
        try:
            async with asyncio.timeout(_WORDS_S):
                return str(await future.result())
        except TimeoutError:
            return ""
        except Exception as error:  # noqa: BLE001 - the task's own, of any kind
            return f"{type(error).__name__}: {error}"[-_SHOWN:]

    def fetch(self, handle: str) -> str:
        return self._printed.get(handle, "")

    def cancel(self, handles: Collection[str]) -> None:
        if handles:
            self._do(lambda client: self._cancel(client, handles))

    async def _cancel(self, client: Any, handles: Collection[str]) -> None:
        known = await _states(client, handles)
        ending = [
            distributed.Future(name, client=client) for name in handles if known[name] is not None
        ]
        await client.cancel(ending, force=True)
        for name in handles:
            self._futures.pop(name, None)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # The connection

    def _do(self, work: Callable[[Any], Coroutine[Any, Any, _T]]) -> _T:
        return asyncio.run_coroutine_threadsafe(self._connected(work), self._loop).result()

    async def _connected(self, work: Callable[[Any], Coroutine[Any, Any, _T]]) -> _T:
        """Do some work with a client that is connected. Raises EngineError."""
        if time.monotonic() < self._down_until:
            raise self._down("it didn't answer just now")
        try:
            async with asyncio.timeout(_ANSWER_S):
                if self._client is None or self._client.status != "running":
                    await self._drop()
                    self._client = distributed.Client(
                        self.name,
                        asynchronous=True,
                        timeout=_CONNECT_S,
                        set_as_default=False,
                    )
                    await self._client
                return await work(self._client)
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            self._down_until = time.monotonic() + _AGAIN_S
            await self._drop()
            raise self._down(str(error) or "it doesn't answer") from error

    def _down(self, why: str) -> EngineError:
        secured = self.name.startswith("tls:")
        return EngineError(
            f"The Dask scheduler at {self.name} can't be reached: {why}",
            hint="Its certificates are in Dask's own settings: distributed.comm.tls."
            if secured and not dask.config.get("distributed.comm.tls.client.cert", None)
            else "Start it, or give its address as it printed it.",
        )

    async def _drop(self) -> None:
        """Let go of the client, and of all that was known by it."""
        client, self._client = self._client, None
        self._futures.clear()
        if client is not None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    await client.close()


def quieten() -> None:
    """Send Dask's lines to the program's log: it has made them go to the terminal."""
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True


async def _states(client: Any, names: Iterable[str]) -> dict[str, str | None]:
    """The scheduler's word for the state of each task; None for one that it doesn't know."""
    wanted = list(names)
    states: dict[str, str | None] = await client.scheduler.get_task_status(keys=wanted)
    return {name: states.get(name) for name in wanted}


async def _threads(client: Any) -> int:
    known: Mapping[str, Any] = await client.scheduler.identity(n_workers=0)
    return int(known["total_threads"])


# On the machines


def run_worker(words: str) -> str:
    """Run `holdfast` with these words as a child of this Dask worker, until it ends, or Dask wants
    its task no more. Returns the end of what it printed.

    Dask can't stop a task that runs: it has to look itself. If this process is killed, the child
    gets a signal, since the thread that started it is gone then; until that it waits here.
    """
    worker = distributed.get_worker()
    key = str(worker.get_current_task())
    with TemporaryFile() as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui", *json.loads(words)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while _is_wanted(worker, key):
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
                    break
        finally:
            _end(child)
        return _tail(log)


def _is_wanted(worker: Any, key: str) -> bool:
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled" and worker.status.name not in _GOING


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that still runs, and all of its session."""
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _SHOWN))
    return log.read().decode("utf-8", "replace")
