"""The keys: what is bound, as the help explains them, and as they stand at the foot of a screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from textual.binding import Binding
from textual.content import Content


@dataclass(frozen=True, slots=True)
class Key:
    """`keys` are Textual's names, comma-separated; `shown` is how the person reads them.

    An empty `action` is a key that a widget handles itself; it is only explained. `priority`
    keys work everywhere, in modals too.
    """

    keys: str
    action: str
    shown: str
    help: str
    priority: bool = False


def bindings(table: Iterable[Key]) -> list[Binding]:
    """The bindings of a table, for a widget's or screen's BINDINGS."""
    return [
        Binding(key.keys, key.action, key.help, show=False, priority=key.priority)
        for key in table
        if key.action
    ]


PROMPT_KEYS = (
    Key("enter", "", "Enter", "send"),
    Key(
        "shift+enter,ctrl+j,alt+enter,ctrl+enter",
        "newline",
        "Shift+Enter, Ctrl+J",
        "new line; so do Alt+Enter, and \\ before Enter",
    ),
    Key("up,down", "", "Up, Down", "earlier and later prompts; Up takes back what is queued"),
    Key("ctrl+r", "screen.search_history", "Ctrl+R", "search in the earlier prompts"),
    Key("ctrl+g", "app.edit_prompt", "Ctrl+G", "write the prompt in your editor"),
    Key("", "", "/, @", "commands and files; Tab or Enter takes a suggestion, Esc closes them"),
    Key("", "", "!, !!", "a shell command; what !! prints is kept from the model"),
    Key("ctrl+v", "paste", "Ctrl+V", "paste; an image is attached, as by its path or @path"),
    Key("ctrl+d", "delete_or_quit", "Ctrl+D", "quit, when the prompt is empty"),
    Key("ctrl+z", "app.suspend_process", "Ctrl+Z", "suspend; fg comes back"),
    Key("ctrl+underscore", "undo", "Ctrl+_", "undo typing"),
    Key("ctrl+y", "yank", "Ctrl+Y", "put back what Ctrl+W, U, K or Alt+D cut"),
    Key("pageup", "screen.page(-1)", "PgUp, PgDn", "scroll the conversation"),
    Key("pagedown", "screen.page(1)", "", ""),
    Key("ctrl+home", "screen.edge(-1)", "Ctrl+Home, Ctrl+End", "its beginning and its end"),
    Key("ctrl+end", "screen.edge(1)", "", ""),
    Key("ctrl+f", "screen.find", "Ctrl+F", "find in the conversation"),
)

PANE_KEYS = (
    Key("up,down", "", "Up, Down, k, j", "the item before and after; in the output a row"),
    Key("enter", "", "Enter, Space, o", "fold or unfold, and show a tool's output"),
    Key("shift+up", "select(-1, 0)", "Shift+arrows", "select text; Esc lets it go"),
    Key("shift+down", "select(1, 0)", "", ""),
    Key("shift+left", "select(0, -1)", "", ""),
    Key("shift+right", "select(0, 1)", "", ""),
    Key("y", "", "y", "copy what is selected, else the item or the output"),
    Key("m", "", "m, p", "mask or pin a tool's result: what the model sees of it, see F2"),
    Key("home,end", "", "Home, End, g, G", "the beginning and the end"),
    Key("left,right", "", "Left, Right, h, l", "to the side, in the output"),
    Key("w", "", "w", "long lines of the output: wrapped, or to the side"),
    Key("n", "", "n, N", "what is looked for (Ctrl+F): the older and the newer place"),
    Key("o", "", "o", "in the output: all of it, over the whole screen; again: as before"),
    Key(
        "slash", "", "/, then n, N", "in the output: search all of it, the next and the last place"
    ),
    Key("v", "", "v, e", "in the output: open it in your pager or your editor"),
    Key("less_than_sign", "screen.widen(-4)", "<, >", "move the line between the panes"),
    Key("greater_than_sign", "screen.widen(4)", "", ""),
)

CHAT_KEYS = (
    Key("escape", "stop_or_close", "Esc", "stop the agent, or close what is open"),
    Key("", "", "Esc Esc", "rewind to an earlier prompt, while nothing runs"),
    Key("shift+tab", "app.next_mode", "Shift+Tab", "mode: ask, accept edits, plan"),
    Key("f2", "app.command('context')", "F2", "the context: what the model sees, mask, pin"),
    Key("f3", "app.command('sessions')", "F3", "sessions"),
    Key("f4", "app.command('output')", "F4", "the output pane"),
    Key("f5", "app.next_effort", "F5", "effort: the next level that the model offers"),
    Key("ctrl+o", "fold_tools", "Ctrl+O", "unfold every tool call, or fold them again"),
    Key("ctrl+t", "app.command('tasks')", "Ctrl+T", "the tasks of this folder"),
    Key("tab", "next_pane", "Tab", "to a wait, the conversation, the output and back"),
    Key("ctrl+f", "find", "", ""),  # explained with the prompt
)

APP_KEYS = (
    Key("f1", "help", "F1, ?", "this help; ? in an empty prompt", priority=True),
    Key("ctrl+c", "interrupt", "Ctrl+C", "stop the agent, else clear the prompt, again quit"),
    Key("ctrl+q", "quit", "Ctrl+Q", "quit", priority=True),
    Key("ctrl+p", "", "Ctrl+P", "all commands"),
    Key("ctrl+l", "redraw", "Ctrl+L", "draw the screen anew"),
    Key("f12", "debug_view", "F12", "every event, with its time; again closes it", priority=True),
)

APPROVAL_KEYS = (
    Key("1", "answer('once')", "1", "yes, this once"),
    Key("2", "answer('session')", "2", "yes, and not again this session"),
    Key("3", "answer('always')", "3", "yes, always"),
    Key("4", "explain", "4", "no, and say why"),
    Key("escape", "refuse", "Esc", "no"),
    Key("v", "whole", "v", "all of it, over the whole height; again: as before"),
    Key("right", "app.focus_next", "Tab, Left, Right", "to an answer; Enter gives it"),
    Key("ctrl+c", "app.interrupt", "Ctrl+C", "stop the agent"),
)

BANNER_KEYS = (
    Key("r", "ask('now')", "r", "send it again now, while the line has the focus: Tab or a click"),
    Key("f", "ask('other')", "f", "go on with the other model"),
    Key("escape", "", "Esc", "stop; /retry and /model always work"),
)

CONTEXT_KEYS = (
    Key("enter", "", "Enter", "open the item: as the model sees it, and in full"),
    Key("m", "mask", "m", "mask the item, or unmask it"),
    Key("w", "mask_later", "w", "mask it with the next break, such as a compaction"),
    Key("p", "pin", "p", "pin the item, or let it go"),
    Key("u", "undo", "u", "undo the last change"),
    Key("b", "many", "b", "mask many results at once"),
    Key("slash", "filter", "/", "filter"),
    Key("t", "sort('tokens')", "t, a, k", "sort by tokens, age, kind; again: as in the request"),
    Key("a", "sort('age')", "", ""),
    Key("k", "sort('kind')", "", ""),
    Key("y", "copy", "y", "copy the item, or the request"),
    Key("tab", "other_tab", "Tab", "the items, or the exact next request"),
)

SESSION_KEYS = (
    Key("enter", "", "Enter", "go on with it; another agent's as a copy of ours"),
    Key("tab", "next_tab(1)", "Tab", "this folder, all folders, other agents", priority=True),
    Key("shift+tab", "next_tab(-1)", "", "", priority=True),
    Key("ctrl+f", "search_texts", "Ctrl+F", "search in all that was said", priority=True),
    Key("ctrl+s", "sort", "Ctrl+S", "sort by age, title, length, size, trouble", priority=True),
    Key("ctrl+r", "rename", "Ctrl+R", "rename", priority=True),
    Key("ctrl+b", "fork", "Ctrl+B", "fork: a copy to go on with", priority=True),
    Key("ctrl+e", "export", "Ctrl+E", "export as Markdown, HTML or JSON lines", priority=True),
    Key("ctrl+d", "delete", "Ctrl+D", "delete: to the trash", priority=True),
)

VERBOSE_KEYS = (
    Key("slash", "filter", "/", "filter the events"),
    Key("space", "pause", "Space", "pause, or follow again"),
    Key("enter", "", "Enter", "the whole event"),
    Key("y", "copy", "y", "copy the event; all of them while a filter is on"),
)

MCP_KEYS = (
    Key("enter", "", "Enter", "the tools of a server"),
    Key("space", "switch", "Space", "keep a tool from the model, or offer it again"),
    Key("n", "anew('now')", "n, w", "the same, in what every request begins with: now, or later"),
    Key("w", "anew('wait')", "", ""),
    Key("r", "restart", "r", "restart a server"),
    Key("o", "log", "o", "what a server wrote to its log"),
)

SETTINGS_KEYS = (
    Key("enter,space", "change", "Enter, Space", "change it: the next word, a field, or lines"),
    Key("d,delete", "reset", "d, Delete", "back to the default: out of your file"),
    Key("u", "undo", "u", "undo the last change"),
    Key("slash", "filter", "/", "filter, as any other letter does"),
    Key("e", "edit_file", "e", "open the file in your editor; it is checked afterwards"),
)

TASK_KEYS = (
    Key("p", "pause", "p", "pause after the running task, or go on"),
    Key("s", "skip", "s", "leave a task out of this run"),
    Key("r", "redo", "r", "take a failed or skipped task up again"),
    Key("e", "edit", "e", "edit the tasks that have not begun"),
    Key("enter,o", "open", "Enter, o", "show a task's session"),
    Key("f4", "output", "F4", "the output pane"),
    Key("n", "choose", "n", "choose a task file and run it (from the chat)"),
    Key("ctrl+c", "interrupt", "Ctrl+C", "stop the running task and save"),
    Key("q", "leave", "q, Esc", "leave; a run is asked to pause first"),
    Key("escape", "leave", "", ""),
    Key("tab", "app.focus_next", "", ""),
)

_TABLES = (
    ("Prompt", PROMPT_KEYS, "Prompt"),
    ("In the conversation and the output", PANE_KEYS, "ConversationView OutputSide"),
    ("In the chat", CHAT_KEYS, "ChatScreen"),
    ("Everywhere", APP_KEYS, ""),
    ("When the agent asks", APPROVAL_KEYS, "ApprovalModal"),
    ("When a request waits to be sent again", BANNER_KEYS, "RetryBanner"),
    ("In the context (F2)", CONTEXT_KEYS, "ContextScreen ContextItemScreen"),
    ("In the tasks (Ctrl+T)", TASK_KEYS, "TasksScreen"),
    ("In the sessions (F3)", SESSION_KEYS, "SessionsScreen"),
    ("In the debug view (F12)", VERBOSE_KEYS, "DebugLogScreen"),
    ("Among the MCP servers (/mcp)", MCP_KEYS, "McpScreen"),
    ("In the settings (/config)", SETTINGS_KEYS, "SettingsScreen"),
)
"""A title, the keys, and the classes of the widgets and screens that they work in."""

HELP: tuple[tuple[str, tuple[Key, ...]], ...] = tuple((title, keys) for title, keys, _ in _TABLES)
"""The tables in the order of the help screen. Rows without `shown` belong to the row before."""

HERE: dict[str, tuple[Key, ...]] = {
    name: keys for _, keys, names in _TABLES for name in names.split()
}
"""By the class of a widget or a screen: the table of the keys that work while it has the focus."""

Keys: TypeAlias = Iterable[tuple[str, str]]
"""A key and what it does, the most useful first."""


def code_styled(text: str, style: str) -> Content:
    """A text with what stands between backticks in a style; as it is where one is left over."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return Content(text)
    return Content.assemble(*((part, style if at % 2 else "") for at, part in enumerate(parts)))


def hint(key: str, text: str) -> Content:
    """One key and what it does."""
    return Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted"))


def in_a_row(keys: Keys) -> Content:
    """All of them in one row."""
    return Content("   ").join([hint(key, text) for key, text in keys])


def fitting(keys: Keys, room: int) -> Content:
    """The first of them, as many as there is room for in one row."""
    shown: list[tuple[str, str]] = []
    for key in keys:
        if in_a_row([*shown, key]).cell_length > room:
            break
        shown.append(key)
    return in_a_row(shown)


def in_rows(keys: Keys, width: int, *, rows: int = 2) -> Content:
    """As many as there is room for in so many rows of `width` cells, about as long as each other.

    The last is the way out and stays; those before it give way.
    """
    shown = list(keys)
    while len(found := _rows(shown, width)) > rows and len(shown) > 1:
        del shown[-2]
    while width > 1 and len(closer := _rows(shown, width - 1)) == len(found) > 1:
        width, found = width - 1, closer
    return Content("\n").join(found)


def _rows(keys: Keys, width: int) -> list[Content]:
    rows: list[Content] = []
    for key, text in keys:
        longer = Content("   ").join([*rows[-1:], hint(key, text)])
        if rows and longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(hint(key, text))
    return rows
