"""Output styles: Markdown files that say how the model answers, in Claude Code's format.

They lie in `output-styles/` of the configuration folder and of `~/.claude`, in `.claude/` and
`.holdfast/` of a workspace, and in plugins; `output_style` chooses one by its name. What a
workspace brings along counts once the person trusts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tui.core import front_matter
from tui.core.claude_names import claude_folder
from tui.core.dataclass import dataclass
from tui.core.files import read_small
from tui.core.paths import Folders, shorten
from tui.core.workspace import BOOT_READ_MAX
from tui.settings.agent_definitions import STYLE_FOLDERS, agent_files
from tui.settings.skills import plugins_of

NONE: Final = frozenset({"", "default"})
"""Names that choose none."""


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """One style; `shown` is the name of its file."""

    name: str
    shown: str
    text: str


def find(
    name: str, workspace: Path, folders: Folders, allows: Callable[[str, bytes], bool]
) -> tuple[OutputStyle | None, Sequence[str]]:
    """The style of a name, None for no name, and why there is none, a sentence each. Of several the
    person's own go first, then the workspace's. Blocks; never raises."""
    if name.casefold() in NONE:
        return None, ()
    problems: list[str] = []
    for path, shown, called, brought in _all(workspace, folders):
        try:
            data, _ = read_small(path, limit=BOOT_READ_MAX)
        except OSError as error:
            problems.append(f"Can't read {shown}: {error.strerror or error}.")
            continue
        file = front_matter.parse(data)
        own = file.text("name") or path.stem
        if name.casefold() not in {f"{called}{own}".casefold(), f"{called}{path.stem}".casefold()}:
            continue
        if brought and not allows(shown, data):
            problems.append(
                f"{shown} was left out: you haven't trusted its current version. See /trust."
            )
            continue
        return OutputStyle(own, shown, file.body), ()
    return None, (*problems, f"There is no output style {name!r}: answers are as usual.")


def is_own(name: str, workspace: Path, folders: Folders) -> bool:
    """True if a style of that name is the person's own, or a plugin's. Blocks; never raises."""
    return find(name, workspace, folders, lambda _name, _data: False)[0] is not None


def _all(workspace: Path, folders: Folders) -> Iterator[tuple[Path, str, str, bool]]:
    """Each file, its shown name, what its style's name begins with, and if the workspace brings
    it."""
    for folder in (folders.config, claude_folder()):
        for path in agent_files(folder / "output-styles"):
            yield path, shorten(path), "", False
    for folder in reversed(STYLE_FOLDERS):
        for path in agent_files(workspace / folder, workspace):
            yield path, path.relative_to(workspace).as_posix(), "", True
    for plugin in plugins_of(folders)[0]:
        for path in plugin.styles:
            yield path, shorten(path), f"{plugin.name}:", False
