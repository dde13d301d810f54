"""The send queue: what the person has sent and no turn has taken yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.agent.prompts import ParsedPrompt

if TYPE_CHECKING:
    from tui.app.frontend import AgentHolder


class SendQueue:
    """Prompts and the person's own commands that wait, and what is to go along with a prompt.

    A prompt waits in one of two places. What is typed into a running turn is in the queue of the
    agent and joins that turn. What finds no turn to join (there is no session yet, the person has
    stopped the turn, a command runs) waits here for a turn of its own. `holder` has the agent whose
    queue counts.

    **Order.** Commands come before prompts, one at a time, so that the next prompt takes along
    what they printed. Among themselves commands, and prompts, go in the order in which they were
    sent; what a turn did not take comes before what was sent after it.

    **A turn that was stopped, or failed,** gives back to the prompt what was typed into it
    (`after_turn`). What was sent since then stays and is the next turn; so do commands.

    **A crash** loses neither prompts nor commands: the draft holds `prompts` and `commands`. It
    does lose what goes along: an `attached` text, which is made again when its prompt is sent
    again, and what commands printed that no prompt took along.
    """

    def __init__(self, holder: AgentHolder) -> None:
        self._holder = holder
        self._prompts: list[ParsedPrompt] = []
        self._commands: list[str] = []
        self._heard: list[str] = []

    @property
    def prompts(self) -> tuple[str, ...]:
        """The texts that wait for a turn, those that join the one that runs first."""
        agent = self._holder.agent
        joining = agent.queue if agent else ()
        return (*joining, *(prompt.typed for prompt in self._prompts))

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that wait, as they were typed (`!pytest`)."""
        return tuple(f"!{command}" for command in self._commands)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that waits, as it was typed, in its order."""
        return (*self.commands, *self.prompts)

    def add(self, prompt: ParsedPrompt) -> None:
        """Let a prompt wait for a turn of its own."""
        self._prompts.append(prompt)

    def add_command(self, command: str) -> None:
        """Let a command wait; without the `!` before it."""
        self._commands.append(command)

    def take_prompts(self) -> list[ParsedPrompt]:
        """Hand over the prompts that wait here."""
        taken, self._prompts = self._prompts, []
        return taken

    def take_command(self) -> str | None:
        """Hand over the command that is next; None where none waits."""
        return self._commands.pop(0) if self._commands else None

    def take_back(self) -> str:
        """Hand over what can be edited in the prompt as one text; "" where nothing waits.

        Prompts come together, then those with something attached, and the commands, one at a
        time and the last first: another text at either end would make something else of them.
        """
        agent = self._holder.agent
        texts = [prompt.typed for prompt in agent.unqueue()] if agent else []
        texts += [prompt.typed for prompt in self._prompts if not prompt.attached]
        self._prompts = [prompt for prompt in self._prompts if prompt.attached]
        if not texts and self._prompts:
            texts = [self._prompts.pop().typed]
        elif not texts and self._commands:
            texts = [f"!{self._commands.pop()}"]
        return "\n".join(texts)

    def after_turn(self, *, done: bool) -> tuple[str, ...]:
        """Empty the agent's queue, whose turn is over: for turns of their own where it is `done`,
        and else for the prompt. Returns what goes back to the prompt."""
        agent = self._holder.agent
        left = agent.unqueue() if agent and agent.queue else ()
        if not done:
            return tuple(prompt.typed for prompt in left)
        self._prompts[:0] = left
        return ()

    def hear(self, said: str) -> None:
        """Keep what a command printed for the model to see, until a prompt takes it along."""
        self._heard.append(said)

    def along(self, attached: str) -> str:
        """Return what goes along with the prompt that is sent now: what is attached to it, then the
        output of commands, which is handed over by this."""
        heard, self._heard = self._heard, []
        return "\n\n".join(filter(None, (attached, *heard)))
