"""/forward: a port that a command listens on inside the sandbox, opened to the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.frontend import Frontend

_NONE = "No command listens on a port inside the sandbox."


async def forward(conversation: Conversation, wanted: str) -> None:
    """Open a port at 127.0.0.1: the named one, or the only one; else list what there is."""
    agent, say = conversation.open_agent(), conversation.frontend.say
    if agent is None:
        return
    ports, word = await agent.ports(), wanted.strip().lstrip(":")
    if not ports:
        say(_NONE, hint="One without walls listens on this machine itself.")
        return
    listed = ", ".join(map(str, ports))
    if word and (not word.isascii() or not word.isdigit() or int(word) not in ports):
        say(f"Nothing listens on port {wanted.strip()} inside the sandbox.", "warning", hint=listed)
        return
    if not word and len(ports) > 1:
        say(f"Commands listen on {listed}.", hint="/forward PORT opens one of them.")
        return
    port = int(word or listed)
    say(f"Open: http://127.0.0.1:{await agent.forward(port)} leads to port {port}.", "success")


async def say_new_ports(agent: Agent, said: set[int], frontend: Frontend) -> None:
    """Say which ports commands have begun to listen on; `said` holds what was said before."""
    ports = await agent.ports()
    new = sorted(ports.keys() - said)
    said.clear()
    said.update(ports)
    if new:
        listed = " and ".join(map(str, new))
        frontend.say(
            f"Inside the sandbox, commands listen on port {listed}.",
            hint=f"/forward {new[0]} opens it to you at 127.0.0.1.",
        )
