"""/forward: opens a port that a command listens on inside the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.app.conversation import Conversation

_NONE = "No command is listening on a port inside the sandbox."


async def forward(conversation: Conversation, wanted: str) -> None:
    """Open a port at 127.0.0.1: the named one, or the only one; else list what there is."""
    agent, say = conversation.open_agent(), conversation.frontend.say
    if agent is None:
        return
    ports, word = await agent.jobs.ports(), wanted.strip().lstrip(":")
    if not ports:
        say(_NONE, hint="Commands outside the sandbox listen on this machine directly.")
        return
    listed = ", ".join(map(str, ports))
    if word and (not word.isascii() or not word.isdigit() or int(word) not in ports):
        say(
            f"Nothing is listening on port {wanted.strip()} inside the sandbox.",
            "warning",
            hint=listed,
        )
        return
    if not word and len(ports) > 1:
        say(f"Commands are listening on {listed}.", hint="/forward PORT opens one.")
        return
    port = int(word or listed)
    say(f"Open http://127.0.0.1:{await agent.jobs.forward(port)} to reach port {port}.", "success")
