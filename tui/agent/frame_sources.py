"""The sources of one agent's system prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tui.context.system_prompt import Injected, Source, SystemPrompt
from tui.core.dataclass import dataclass, field, replace
from tui.core.messages import Block
from tui.settings.rule_files import RuleFile


@dataclass(slots=True)
class FrameSources:
    """The system prompt, the files it was made of, and what the session begins with."""

    system: list[Block]
    prompt: SystemPrompt | None = None
    """The parts of `system`; None where it is one text."""
    injected: Sequence[Injected] = ()
    """The outcome for each of the files in the system prompt."""
    find_files: Callable[[], Sequence[Source]] | None = None
    """Reads the files that are in the prompt again; blocks."""
    find_rules: Callable[[], Sequence[RuleFile]] | None = None
    """Reads the rules that hold for some files only; blocks."""
    nested: bool = True
    """True if instructions in folders below the workspace count once a call goes there."""
    memory_file: Path | None = None
    """The file that the memory is written to, None to write none."""
    directives: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    """To begin with (-y, --verbose, --effort)."""
    notices: Sequence[str] = ()
    """Notes for the person before the first turn."""

    def for_sub_agent(
        self, prompt: SystemPrompt, find_files: Callable[[], Sequence[Source]], effort: str
    ) -> FrameSources:
        """The sources of a sub-agent with a prompt of its own, which begins at a level of `effort`;
        it tells the person nothing, and writes no memory."""
        return replace(
            self,
            system=prompt.blocks(),
            prompt=prompt,
            injected=(),
            find_files=find_files,
            memory_file=None,
            directives={"effort": effort} if effort else {},
            notices=(),
        )
