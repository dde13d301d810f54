"""What the settings screen says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from tui.core.errors import ConfigError
from tui.core.formatting import size
from tui.core.text_cleaning import one_line, visible
from tui.settings.schema import Setting, display
from tui.ui.screens.settings.port import Said

HINTS: Final = (
    ("enter", "change"),
    ("d", "default"),
    ("u", "undo"),
    ("/", "filter"),
    ("e", "the file"),
    ("esc", "back"),
)
NONE_HINTS: Final = (("esc", "all settings"),)
BROKEN_HINTS: Final = (("e", "the file"), ("esc", "back"))
FIELD_HINTS: Final = (("enter", "save it"), ("esc", "leave it"))
FILTER_HINTS: Final = (("enter", "change"), ("↑ ↓", "choose"), ("esc", "all settings"))

READING: Final = "Reading the settings …"


def title(file: str, settings: Sequence[Setting], width: int) -> Content:
    """The head: the file, and where there is room how many settings it changes."""
    own = sum(setting.own is not None for setting in settings)
    count = f"{own:,} of {len(settings):,} set there" if own else "nothing set there"
    head = Content.assemble(
        ("settings", "bold $text-primary"), (f"   {visible(file)}", "$text-muted")
    )
    whole = Content.assemble(head, (f"   {count}", "$text-muted"))
    return whole if settings and whole.cell_length <= width else head


def details(setting: Setting) -> Content:
    """What a setting does, what is allowed, from when a change counts, what stands in its way."""
    lines = [
        Content.assemble(
            (visible(setting.name), "bold $text-accent"),
            (f"  {setting.description.help}", "$foreground"),
        ),
        Content.styled(facts(setting), "$text-muted"),
    ]
    notes = list(setting.notes)
    if setting.hidden:
        notes.append("The key or login in it is not shown.")
    if notes:
        lines.append(Content.styled(visible(" ".join(notes)), "$text-warning"))
    return Content("\n").join(lines)


def facts(setting: Setting) -> str:
    """What is allowed, the default, from when a change counts."""
    if setting.kind == "fixed":
        return f"enter shows the servers · they are named in the file: e · {setting.when}"
    value = setting.value
    large = setting.key[-1].endswith("bytes") and isinstance(value, int) and value >= 10_000
    found = [
        setting.allowed,
        f"default {display(setting.default)}",
        f"now {size(value)}" if large else "",
        setting.when,
    ]
    return " · ".join(filter(None, found))


def saved(setting: Setting) -> Said:
    """What is said of a change, of the setting as it stands now."""
    if setting.notes and setting.places[-1:] != ("user",) and not setting.adds:
        return Said(f"{setting.name} is saved, but not in force.", "warning", setting.notes[0])
    return Said(f"{setting.name} is {setting.shown}: {setting.when}.", "success", "u undoes it.")


def nothing(words: str, problem: ConfigError | None) -> str:
    """What stands in the place of the rows."""
    if problem is not None:
        hint = f"{problem.hint}\n" if problem.hint else ""
        return (
            f"{visible(problem.message)}\n{visible(hint)}\n"
            "Nothing is changed here until that is set right. e opens your file in the editor."
        )
    if words:
        return f"No setting matches “{one_line(words)}”.\nEsc shows all of them."
    return READING
