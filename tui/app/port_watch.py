"""Says which ports commands have begun to listen on inside the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.clock import Clock

_LOOKS_S: Final = (0, 1, 2, 4, 8)


class Say(Protocol):
    """Says something to the person; `hint` is what can be done."""

    def __call__(self, text: str, *, hint: str) -> None: ...


async def say_new_ports(agent: Agent, clock: Clock, say: Say, said: set[int]) -> None:
    """After a turn: say which ports commands have begun to listen on; a server may take its time
    until it does. `said` holds the earlier messages."""
    for seconds in _LOOKS_S:
        await clock.sleep(seconds)
        if not agent.jobs.own_run:
            return
        ports = await agent.jobs.ports()
        new = sorted(ports.keys() - said)
        said.clear()
        said.update(ports)
        if new:
            listed = " and ".join(map(str, new))
            say(
                f"Commands inside the sandbox are listening on port {listed}.",
                hint=f"/forward {new[0]} opens it at 127.0.0.1.",
            )
