"""The tables of keys: for bindings, for the help, and for the foot of a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from textual.binding import Binding
from textual.content import Content

from tui.core.dataclass import dataclass
from tui.core.keymap import DEFAULT_KEYS, Keymap
from tui.core.keymap import shown as shown_key


@dataclass(frozen=True, slots=True)
class Key:
    """`keys` are Textual's names, comma-separated; `shown` is their form for the person.

    A key with an empty `action` is handled by a widget itself and only explained here. `priority`
    keys work everywhere, in modals too. `name` is its name in `[keys]`; keys without one can't be
    changed. `label` is its name in the command palette, if no command does the same.
    """

    keys: str
    action: str
    shown: str
    help: str
    priority: bool = False
    name: str = ""
    label: str = ""


def _own(
    name: str, action: str, text: str, help_: str, label: str = "", *, priority: bool = False
) -> Key:
    """Return a key that a person can change; its default is in `tui.core.keymap`."""
    return Key(",".join(DEFAULT_KEYS[name]), action, text, help_, priority, name, label)


def bindings(table: Iterable[Key]) -> list[Binding]:
    """Return the bindings of a table, for a widget's or screen's BINDINGS."""
    return [
        Binding(
            key.keys, key.action, key.help, show=False, priority=key.priority, id=key.name or None
        )
        for key in table
        if key.action
    ]


ASK_LINE = Key("B", "ask_line", "B", "which prompt wrote this line (/why)")
"""In every view of a diff or a file: about the line at the top, or under the cursor."""

PROMPT_KEYS = (
    _own("send", "", "Enter", "send"),
    _own(
        "newline",
        "newline",
        "Shift+Enter, Ctrl+J",
        "new line (also Alt+Enter, or \\ then Enter)",
    ),
    Key("up,down", "", "Up, Down", "previous/next prompt; Up takes back a queued one"),
    _own("history", "screen.search_history", "Ctrl+R", "search earlier prompts", "history"),
    _own("external_editor", "app.edit_prompt", "Ctrl+G", "edit the prompt in $EDITOR", "editor"),
    Key("", "", "/, @", "commands, files; Tab or Enter accepts, Esc closes"),
    Key("left", "", "Left", "in an empty prompt: sub-agents"),
    Key("", "", "!, !!", "shell command; !! hides its output from the model"),
    Key("", "", "# note", "save a note to MEMORY.md"),
    _own("stash", "stash", "Ctrl+S", "set the prompt aside until the next one is sent", "stash"),
    _own("paste", "paste", "Ctrl+V", "paste; attaches images (also by path or @path)"),
    _own(
        "delete_or_quit",
        "delete_or_quit",
        "Ctrl+D",
        "press twice to quit, when the prompt is empty",
    ),
    _own("suspend", "app.suspend_process", "Ctrl+Z", "suspend; resume with fg", "suspend"),
    _own("undo", "undo", "Ctrl+_, Alt+Z", "undo"),
    _own("yank", "yank", "Ctrl+Y", "paste back text cut with Ctrl+W, U, K or Alt+D"),
    _own(
        "to_background",
        "app.to_background",
        "Ctrl+B",
        "run the command in the background (tmux: twice)",
        "background",
    ),
    _own("page_up", "screen.page(-1)", "PgUp, PgDn", "scroll the conversation"),
    _own("page_down", "screen.page(1)", "", ""),
    _own(
        "first",
        "screen.edge(-1)",
        "Ctrl+Home, Ctrl+End",
        "start or end of the conversation (Alt+<, Alt+>)",
    ),
    _own("last", "screen.edge(1)", "", ""),
    _own("find", "screen.find", "Ctrl+F", "find in the conversation"),
)

FIELD_KEYS = (
    _own("newline", "newline", "", ""),  # explained with the prompt
    _own("undo", "undo", "", ""),
    _own("yank", "yank", "", ""),
)

PANE_KEYS = (
    Key("up,down", "", "Up, Down", "previous/next item or output row (k, j)"),
    Key("enter", "", "Enter", "fold, unfold; show an output; open a sub-agent"),
    Key(
        "shift+up,alt+k",
        "select(-1, 0)",
        "Shift+arrows",
        "select text (also Alt+H, J, K, L); Esc clears",
    ),
    Key("shift+down,alt+j", "select(1, 0)", "", ""),
    Key("shift+left,alt+h", "select(0, -1)", "", ""),
    Key("shift+right,alt+l", "select(0, 1)", "", ""),
    Key("ctrl+y,y", "", "Ctrl+Y, y", "copy the selection or the item; y all output"),
    Key("m", "", "m, p", "hide the result from the model; pin it (F2)"),
    Key("u", "", "u", "undo a rewind, until you send something"),
    Key("home,end", "", "Home, End", "first and last (g, G)"),
    Key("ctrl+u,ctrl+d", "", "Ctrl+U, Ctrl+D", "half a page up or down (Space: a page)"),
    Key("n,N", "", "n, N", "next/previous prompt, or match while searching"),
    Key("left,right", "", "Left, Right, h, l", "scroll the output sideways"),
    Key("w", "", "w", "wrap long output lines (toggle)"),
    ASK_LINE,
    Key("o", "", "o", "full-screen output (toggle)"),
    Key("slash", "", "/", "search the conversation, or the whole output"),
    Key("v", "", "v, e", "open the output in your pager or editor"),
    Key("less_than_sign", "screen.widen(-4)", "<, >", "resize panes"),
    Key("greater_than_sign", "screen.widen(4)", "", ""),
)

CHAT_KEYS = (
    _own("stop", "screen.stop_or_close", "Esc", "stop the agent, or close what is open"),
    Key("", "", "Esc Esc", "clear the prompt; rewind if it is empty"),
    _own(
        "next_mode",
        "app.switch('mode')",
        "Shift+Tab",
        "switch mode: ask / accept edits / plan",
        "mode",
    ),
    Key("", "", "1, 2, 3", "in a new session: take that row"),
    _own("model", "app.command('model')", "Alt+P, Ctrl+^", "switch model"),
    _own("think", "app.switch('think')", "Alt+T, Ctrl+\\", "think step by step (toggle)", "think"),
    _own("fold_tools", "screen.fold_tools", "Ctrl+O", "unfold or fold all tool calls", "fold"),
    _own("next_pane", "screen.next_pane", "Tab", "cycle focus"),
    _own("find", "screen.find", "", ""),  # explained with the prompt
    _own("to_background", "app.to_background", "", ""),  # explained there too
)

SCREEN_KEYS = (
    _own("context", "app.command('context')", "F2", "context: what the model sees; hide, pin"),
    _own("sessions", "app.command('sessions')", "F3", "sessions"),
    _own("output", "app.output", "F4", "show or hide the output"),
    _own("next_effort", "app.next_effort", "F5", "next effort level", "next effort"),
    _own("jobs", "app.command('jobs')", "F6", "background commands"),
    _own("desk", "app.command('desk')", "F7", "desk: all sessions, live"),
    _own("timeline", "app.command('timeline')", "F9", "the session in time"),
    _own(
        "side_question",
        "app.command('btw')",
        "Alt+Q, Ctrl+]",
        "ask on the side; the work continues",
    ),
    _own("tasks", "app.command('tasks')", "Ctrl+T", "tasks in this folder"),
    _own("suspend", "app.suspend_process", "", ""),  # explained with the prompt
)
"""Keys that lead from any screen to another one, or to the shell. Dialogs bind them too, since a
modal screen hides the app's bindings."""

APP_KEYS = (
    _own("help", "help", "F1, ?", "help; ? in an empty prompt", priority=True),
    *SCREEN_KEYS,
    Key("ctrl+c", "interrupt", "Ctrl+C", "stop · clear · press twice to quit"),
    _own("quit", "quit", "Ctrl+Q", "quit", priority=True),
    _own("palette", "palette", "Ctrl+P", "command palette (toggle)", priority=True),
    _own("redraw", "redraw", "Ctrl+L", "redraw", "redraw", priority=True),
    _own(
        "verbose",
        "debug_view",
        "F12",
        "debug view: every event with its time (toggle)",
        "debug view",
        priority=True,
    ),
)

APPROVAL_KEYS = (
    Key("1,y", "answer('once')", "1, y", "yes, once"),
    Key("2", "answer('session')", "2", "yes, for this session"),
    Key("3", "answer('always')", "3", "yes, always here (saved)"),
    Key("4", "explain", "4", "no, because…"),
    Key("escape,n", "refuse", "Esc, n", "no"),
    Key("v", "whole", "v", "show everything, full height (toggle)"),
    Key("question_mark,ctrl+e", "rules", "?, Ctrl+E", "what exactly each answer allows (toggle)"),
    Key("enter", "", "Enter", "the selected answer: yes once (no if high-risk)"),
    Key("right", "app.focus_next", "Tab, Left, Right", "select another answer"),
    Key("up", "scroll_preview(-1)", "Up, Down", "scroll, or select another answer"),
    Key("down", "scroll_preview(1)", "", ""),
    Key("home", "scroll_edge(-1)", "", ""),
    Key("end", "scroll_edge(1)", "", ""),
    ASK_LINE,
    Key("ctrl+c", "app.interrupt", "Ctrl+C", "stop the agent"),
)

QUESTION_KEYS = (
    Key(
        "",
        "",
        "1 … 7",
        "answer, or mark it (if several may be chosen)",
    ),
    Key("enter", "answer", "Enter", "the selected answer, or those that are marked"),
    Key("space", "mark", "Space", "mark it, if several may be chosen"),
    Key("up", "app.focus_previous", "Up, Down", "select another answer"),
    Key("down", "app.focus_next", "", ""),
    Key("left", "back", "Left", "return to the question before"),
    Key("escape", "leave", "Esc", "don't answer"),
    Key("ctrl+c", "app.interrupt", "Ctrl+C", "stop the agent"),
)

PLAN_KEYS = (
    Key("1", "answer('ask')", "1", "approve; ask before each change"),
    Key("2", "answer('accept_edits')", "2", "approve; accept edits without asking"),
    Key("3", "answer('change')", "3", "say what to change"),
    Key("e", "edit", "e", "edit the plan in $EDITOR"),
    Key("enter", "", "Enter", "the selected answer"),
    Key("right", "app.focus_next", "Tab, Left, Right", "select another answer"),
    Key("left", "app.focus_previous", "", ""),
    Key("up", "scroll_plan(-1)", "Up, Down", "scroll the plan"),
    Key("down", "scroll_plan(1)", "", ""),
    Key("escape", "leave", "Esc", "not now: stay in plan mode"),
    Key("ctrl+c", "app.interrupt", "Ctrl+C", "stop the agent"),
)

SIDE_KEYS = (
    Key("enter", "", "Enter", "ask; the next question knows the ones before"),
    Key("pageup,pagedown", "", "PgUp, PgDn", "scroll the answers"),
    Key("tab", "app.focus_next", "Tab", "to the answers and back"),
    Key("y", "copy_answer", "y", "in the answers: copy the last one"),
    Key("escape", "leave", "Esc", "stop the answer; close"),
)

BANNER_KEYS = (
    Key("r", "ask('now')", "r", "retry now (focus the line with Tab or a click)"),
    Key("f", "ask('other')", "f", "switch to the other model"),
    Key("escape", "", "Esc", "stop; /retry and /model always work"),
)

CONTEXT_KEYS = (
    Key("enter", "", "Enter", "open the item: what the model sees, and in full"),
    Key("m", "mask", "m", "hide the item from the model, or show it again"),
    Key("w", "mask_later", "w", "hide it when the cache restarts anyway (/compact)"),
    Key("p", "pin", "p", "pin it (never left out), or unpin it"),
    Key("d", "difference", "d", "send the model what changed in a file (outdated)"),
    Key("u", "undo", "u", "undo the last change"),
    Key("b", "many", "b", "hide several results"),
    Key("slash", "filter", "/", "filter"),
    Key("t", "sort('tokens')", "t, a, k", "sort by size, age, kind or request order"),
    Key("a", "sort('age')", "", ""),
    Key("k", "sort('kind')", "", ""),
    Key("left", "fold(True)", "Left, Right", "fold or unfold the system prompt and the tools"),
    Key("right", "fold(False)", "", ""),
    Key("y", "copy", "y", "copy the item, or the request"),
    Key("B", "", "B", "in an item: which prompt wrote this line (/why)"),
    Key("tab", "other_tab", "Tab", "switch between the items and the exact request"),
    Key("e", "past", "e", "what the model saw at each request"),
)

PAST_KEYS = (
    Key("left", "request(-1)", "Left, Right", "previous/next request"),
    Key("right", "request(1)", "", ""),
    Key("d", "difference", "d", "what changed since the one before (or marked)"),
    Key("m", "set_mark", "m", "mark the request: the others are compared with it"),
    Key("b", "mark('context', 1)", "b, B", "next/previous cache restart or summary"),
    Key("B", "mark('context', -1)", "", ""),
    Key("n", "mark('prompt', 1)", "n, N", "next/previous prompt"),
    Key("N", "mark('prompt', -1)", "", ""),
    Key("t", "sort('tokens')", "t, k", "sort by size, kind or request order"),
    Key("k", "sort('kind')", "", ""),
    Key("home", "first", "Home, End", "the first request; back to now", priority=True),
    Key("end", "dismiss", "", "", priority=True),
    Key("enter", "", "Enter", "open the item as it was; unfold a sum"),
    Key("tab", "sent", "Tab", "the request exactly as it was sent"),
)

TIMELINE_KEYS = (
    Key("left", "time(-1)", "Left, Right", "move the cursor in time"),
    Key("right", "time(1)", "", ""),
    Key("up", "step(-1)", "Up, Down", "previous/next step"),
    Key("down", "step(1)", "", ""),
    Key("pageup", "page(-1)", "PgUp, PgDn", "a screen earlier or later"),
    Key("pagedown", "page(1)", "", ""),
    Key("home", "edge(-1)", "Home, End", "first and last step; End follows a running turn"),
    Key("end", "edge(1)", "", ""),
    Key("n", "mark('prompt', 1)", "n, N", "next/previous prompt"),
    Key("N", "mark('prompt', -1)", "", ""),
    Key("b", "mark('context', 1)", "b, B", "next/previous cache restart or summary"),
    Key("B", "mark('context', -1)", "", ""),
    Key("t", "turn(1)", "t, T", "next/previous check that turned red or green"),
    Key("T", "turn(-1)", "", ""),
    Key("s", "sums", "s", "sum up the session, or tell the moment (toggle)"),
    Key("x", "mark('trouble', 1)", "x, X", "next/previous error, retry or stop"),
    Key("X", "mark('trouble', -1)", "", ""),
    Key("plus,equals_sign", "zoom(1)", "+, -, 0", "zoom in, out, show all"),
    Key("minus", "zoom(-1)", "", ""),
    Key("0", "zoom(0)", "", ""),
    Key("enter", "open", "Enter", "open the moment: request, call or diff"),
    Key("w", "workspace", "w", "files changed by then"),
    Key("e", "past", "e", "the context then, item by item"),
    Key("c", "compare", "c", "compare with another session (toggle)"),
    Key("y", "copy", "y", "copy the moment's text"),
)

SESSION_KEYS = (
    Key("enter", "", "Enter", "resume (imports other agents' sessions)"),
    Key("tab", "next_tab(1)", "Tab", "this folder, all folders, other agents", priority=True),
    Key("shift+tab", "next_tab(-1)", "", "", priority=True),
    Key("ctrl+f", "search_texts", "Ctrl+F", "search all messages", priority=True),
    Key("ctrl+s", "sort", "Ctrl+S", "sort by age, title, length, size, damage", priority=True),
    Key("ctrl+g", "sub_agents", "Ctrl+G", "sessions of sub-agents too, or not", priority=True),
    Key("ctrl+r", "rename", "Ctrl+R", "rename", priority=True),
    Key("ctrl+b", "fork", "Ctrl+B", "fork the session", priority=True),
    Key("ctrl+e", "export", "Ctrl+E", "export as Markdown, HTML or JSON lines", priority=True),
    Key("ctrl+d", "delete", "Ctrl+D", "move to the trash", priority=True),
)

BRANCH_KEYS = (
    Key("enter", "", "Enter", "continue on this branch, also with its files"),
    Key("u", "undo", "u", "undo the last rewind or switch of branches"),
)

WHY_KEYS = (
    Key("enter", "open", "Enter", "read the session, at that prompt"),
    Key("f", "fork", "f", "fork the session from before that prompt"),
    Key("right", "line(1)", "Left, Right", "the line before or after"),
    Key("left", "line(-1)", "", ""),
    Key("n", "candidate(1)", "n, N", "if it isn't certain: another candidate"),
    Key("N", "candidate(-1)", "", ""),
    Key("y", "copy", "y", "copy the answer, with its commands"),
)

READ_SESSION_KEYS = (
    Key("r", "resume", "r", "resume the session at this prompt"),
    Key("f", "fork", "f", "fork the session from before this prompt"),
    Key("enter", "", "Enter", "fold or unfold"),
    Key("ctrl+y,y", "", "Ctrl+Y, y", "copy the selection or the item"),
    ASK_LINE,
)

USAGE_KEYS = (
    Key("right,tab", "group(1)", "← →", "next/previous grouping"),
    Key("left,shift+tab", "group(-1)", "", ""),
    Key("up,down", "", "Up, Down", "previous/next row"),
    Key("home,end", "", "Home, End", "first and last row"),
    Key("s", "sort", "s", "sort by cost or by order"),
)

VERBOSE_KEYS = (
    Key("slash", "filter", "/", "filter the events"),
    Key("space", "pause", "Space", "pause or follow"),
    Key("enter", "", "Enter", "show the whole event"),
    Key("y", "copy", "y", "copy the event, or all that match"),
)

_FILTER = Key("slash", "filter", "/", "filter the list")

AGENTS_KEYS = (
    Key("enter", "", "Enter", "open a sub-agent, or the prompt of a kind"),
    Key("x", "stop", "x", "stop a sub-agent; its work so far counts"),
    Key("e", "edit", "e", "edit the file of a kind"),
    _FILTER,
)

SUB_AGENT_KEYS = (
    Key("x", "stop", "x", "stop it; its work so far counts"),
    Key("y", "copy", "y", "copy its last message"),
    Key("enter", "", "Enter", "fold or unfold"),
)

JOBS_KEYS = (
    Key("enter", "", "Enter", "follow a command's output"),
    Key("x", "stop", "x", "stop a command"),
    Key("y", "copy", "y", "copy the command"),
    Key("p", "forward", "p", "open a port that it listens on in the sandbox"),
    _FILTER,
)

HOOKS_KEYS = (
    Key("enter", "", "Enter", "read the hook's file"),
    Key("y", "copy", "y", "copy the command"),
    Key("e", "edit", "e", "edit the hook's file"),
    _FILTER,
)

SKILLS_KEYS = (
    Key("enter", "", "Enter", "read the skill"),
    Key("u", "use", "u", "use it: its name goes into the prompt"),
    Key("e", "edit", "e", "edit the skill"),
    _FILTER,
)

JOB_OUTPUT_KEYS = (
    Key("x", "stop", "x", "stop the command"),
    Key("slash", "", "/, then n, N", "search the whole output; next/previous match"),
    Key("end", "", "End", "follow the output again"),
    Key("w", "", "w", "wrap long lines (toggle)"),
    Key("y", "copy", "y", "copy the output, or the selection in it"),
    Key("v", "outside('pager')", "v, e", "open the output in your pager or editor"),
    Key("e", "outside('editor')", "", ""),
)

TERMINAL_KEYS = (
    Key("t,enter", "take", "t, Enter", "take the keyboard: all keys go to the program"),
    _own("give_back", "", "Ctrl+]", "give it back (twice); once sends it on"),
    Key("x", "stop", "x", "stop the program"),
    Key("pageup,pagedown", "", "PgUp, PgDn", "scroll back to what has left the screen"),
    Key("end", "", "End", "follow the terminal again"),
    Key("r", "replay", "r", "replay the recording"),
    Key("y", "copy", "y", "copy the screen's text"),
)

REPLAY_KEYS = (
    Key("space", "pause", "Space", "pause, or play"),
    Key("left", "seek(-5)", "Left, Right", "5 seconds back or forward"),
    Key("right", "seek(5)", "", ""),
    Key("n", "step(1)", "n, N", "next/previous change of the screen"),
    Key("N", "step(-1)", "", ""),
    Key("up", "speed(1)", "Up, Down", "faster, slower"),
    Key("down", "speed(-1)", "", ""),
    Key("home", "edge(-1)", "Home, End", "to the beginning or the end"),
    Key("end", "edge(1)", "", ""),
    Key("c", "command", "c", "copy the command that plays it (asciinema)"),
    Key("y", "copy", "y", "copy the screen's text"),
)

MCP_KEYS = (
    Key("enter", "", "Enter", "show a server's tools"),
    Key("space", "switch", "Space", "hide a tool from the model, or offer it"),
    Key("n", "reload('now')", "n, w", "the same in the cached part: now, later"),
    Key("w", "reload('wait')", "", ""),
    Key("r", "restart", "r", "restart a server"),
    Key("o", "log", "o", "show a server's log"),
    Key("l", "sign_in", "l, L", "sign in to a server, sign out of it"),
    Key("L", "sign_out", "", ""),
    Key("y", "copy", "y", "copy a server's command or address"),
    _FILTER,
)

SETTINGS_KEYS = (
    Key("enter,space", "change", "Enter, Space", "change: switch it, choose, or edit it"),
    Key("d,delete", "reset", "d, Delete", "back to the default"),
    Key("u", "undo", "u", "undo the last change"),
    Key("slash", "filter", "/", "filter (or start typing)"),
    Key("e", "edit_file", "e", "open the file in your editor, then check it"),
)

TASK_KEYS = (
    Key("p", "pause", "p", "pause after this task, or continue", label="pause"),
    Key("s", "skip", "s", "skip a task in this run", label="skip"),
    Key("r", "redo", "r", "run a failed or skipped task again", label="retry"),
    Key("e", "edit", "e", "edit tasks that haven't started", label="edit"),
    Key("enter,o", "open", "Enter, o", "show a task's session", label="open"),
    Key("f4", "output", "F4", "show or hide the output", label="output"),
    Key("n", "choose", "n", "choose a task file and run it (from the chat)"),
    Key("ctrl+c", "interrupt", "Ctrl+C", "stop the running task and save", label="stop"),
    Key("q", "leave", "q, Esc", "leave, unless a task is running", label="leave"),
    Key("escape", "leave", "", ""),
    Key("ctrl+t", "close", "", ""),
    Key("tab", "app.focus_next", "", ""),
)

WATCH_KEYS = (
    _own("send", "", "Enter", "send the prompt to the session's process"),
    _own("stop", "screen.stop_or_close", "Esc", "close what is open, or leave; it runs on"),
    Key("ctrl+c", "interrupt", "Ctrl+C", "stop its turn · clear · press twice to leave"),
    Key("ctrl+t", "take_over", "Ctrl+T", "continue the session in this terminal"),
    _own("desk", "leave", "F7", "leave, from a question too: that stays unanswered"),
    _own("output", "show_output", "F4", "show or hide the output"),
    _own("external_editor", "edit_prompt", "Ctrl+G", "edit the prompt in $EDITOR"),
)

ONLY_ITS_OWN_KEYS = tuple(
    _own(name, f"not_here('{name}')", "", "")
    for name in (
        *("next_mode", "model", "think", "context", "next_effort", "jobs", "side_question"),
        "timeline",
    )
)
"""Keys that only the screen of the process that has a session can serve."""

DESK_KEYS = (
    Key("enter", "", "Enter", "open the session live; type to join in"),
    Key("a", "answer", "a", "answer its question here", label="answer"),
    Key("w", "next_waiting", "w", "next session that waits for you", label="next waiting"),
    Key("n", "new", "n", "start a session in the background", label="new"),
    Key("s,ctrl+c", "stop", "s, Ctrl+C", "stop its turn, once you confirm", label="stop"),
    Key("d", "dismiss_ended", "d", "dismiss an ended session", label="dismiss"),
    Key("slash", "filter", "/", "filter: title, folder, branch, machine, state", label="filter"),
    Key("tab", "group(1)", "Tab, Shift+Tab", "next/previous group", priority=True),
    Key("shift+tab", "group(-1)", "", "", priority=True),
    Key("f", "fold", "f", "show or hide saved sessions", label="saved"),
    Key("y", "copy", "y", "copy the command that opens it elsewhere", label="copy"),
    Key("escape,q", "close", "Esc, q", "leave; sessions run on", label="leave"),
    _own("desk", "close", "F7", "the same; over a question, leave it unanswered"),
)

LIST_KEYS = (
    Key("", "", "j, k, h, l", "like the arrow keys; Down is also Ctrl+N"),
    Key("", "", "g, G", "first and last"),
    Key("", "", "Ctrl+D, Ctrl+U", "next/previous page; also Ctrl+F, Ctrl+B, J, K"),
    Key("", "", "Space", "choose in a list, next page in a text"),
    Key("", "", "q, ?", "close; help"),
)
"""Keys that other programs have in lists and texts; they count where nothing else has them:
`tui.ui.toolkit.familiar_keys`."""

_TABLES = (
    ("Prompt", PROMPT_KEYS, "Prompt"),
    ("Conversation and output", PANE_KEYS, "ConversationView OutputSide"),
    ("Chat", CHAT_KEYS, "ChatScreen"),
    ("Everywhere", APP_KEYS, ""),
    ("Lists and texts", LIST_KEYS, ""),
    ("Approvals", APPROVAL_KEYS, "ApprovalModal"),
    ("The model's questions", QUESTION_KEYS, "QuestionnaireModal"),
    ("A plan", PLAN_KEYS, "PlanModal"),
    ("A side question (/btw)", SIDE_KEYS, "SideQuestionScreen"),
    ("While a retry waits", BANNER_KEYS, "RetryBanner"),
    ("Context (F2)", CONTEXT_KEYS, "ContextScreen ContextItemScreen"),
    ("Context at a request (e)", PAST_KEYS, "ContextPastScreen"),
    ("Timeline (F9)", TIMELINE_KEYS, "TimelineScreen"),
    ("Tasks (Ctrl+T)", TASK_KEYS, "TasksScreen"),
    ("A session, watched", WATCH_KEYS, "SessionScreen"),
    ("Desk (F7)", DESK_KEYS, "DeskScreen"),
    ("Sessions (F3)", SESSION_KEYS, "SessionsScreen"),
    ("Branches (/tree)", BRANCH_KEYS, "BranchesScreen"),
    ("Where a line comes from (B)", WHY_KEYS, "WhyScreen"),
    ("A session, to read", READ_SESSION_KEYS, "ReadSessionScreen"),
    ("Usage (/usage)", USAGE_KEYS, "UsageScreen"),
    ("Debug view (F12)", VERBOSE_KEYS, "DebugLogScreen"),
    ("Sub-agents (/agents)", AGENTS_KEYS, "AgentsScreen"),
    ("Hooks (/hooks)", HOOKS_KEYS, "HooksScreen"),
    ("Skills (/skills)", SKILLS_KEYS, "SkillsScreen"),
    ("A sub-agent", SUB_AGENT_KEYS, "SubAgentScreen"),
    ("Background commands (F6)", JOBS_KEYS, "JobsScreen"),
    ("Output of a background command", JOB_OUTPUT_KEYS, "JobOutputScreen"),
    ("A terminal", TERMINAL_KEYS, "TerminalWatchScreen"),
    ("Replay of a terminal", REPLAY_KEYS, "ReplayScreen"),
    ("MCP servers (/mcp)", MCP_KEYS, "McpScreen"),
    ("Settings (/config)", SETTINGS_KEYS, "SettingsScreen"),
)
"""A title, the keys, and the classes of the widgets and screens that they work in."""

HELP: tuple[tuple[str, tuple[Key, ...]], ...] = tuple((title, keys) for title, keys, _ in _TABLES)
"""The tables in the order of the help screen. Rows without `shown` belong to the row before."""

HERE: dict[str, tuple[Key, ...]] = {
    name: keys for _, keys, names in _TABLES for name in names.split()
}
"""The table of the keys that work while a widget or screen has the focus, by its class."""


def keys_for(row: Key, keymap: Keymap) -> tuple[str, ...]:
    """Return the keys of a row as a person has set them."""
    return keymap.get(row.name, ()) if row.name else tuple(filter(None, row.keys.split(",")))


def explained(table: Iterable[Key], keymap: Keymap) -> list[tuple[str, str]]:
    """Return the rows of a table for the help: the current keys, and what they do.

    Rows without `shown` belong to the row before. Rows with the default keys keep its text.
    """
    groups: list[list[Key]] = []
    for row in table:
        if row.shown or not groups:
            groups.append([row])
        else:
            groups[-1].append(row)
    return [(_shown(rows, keymap), rows[0].help) for rows in groups if rows[0].shown]


def _shown(rows: Sequence[Key], keymap: Keymap) -> str:
    changed = [row for row in rows if row.name and keymap.get(row.name) != DEFAULT_KEYS[row.name]]
    if not changed:
        return rows[0].shown
    return ", ".join(shown_key(key) for row in rows for key in keys_for(row, keymap)) or "no key"


def section_title(title: str, keymap: Keymap) -> str:
    """Return the title of a table, with the key in it as a person has set it."""
    for name, keys in keymap.items():
        default = DEFAULT_KEYS[name]
        if keys != default and title.endswith(before := f" ({shown_key(default[0])})"):
            now = f" ({shown_key(keys[0])})" if keys else ""
            return title.removesuffix(before) + now
    return title


Keys: TypeAlias = Iterable[tuple[str, str]]
"""Pairs of a key and what it does, the most useful first."""


def code_styled(text: str, style: str) -> Content:
    """Return a text with what is between backticks in a style; unstyled if a backtick has no
    partner."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return Content(text)
    return Content.assemble(*((part, style if at % 2 else "") for at, part in enumerate(parts)))


def hint(key: str, text: str) -> Content:
    """Return one key and what it does."""
    return Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted"))


def in_a_row(keys: Keys) -> Content:
    """Return all keys in one row."""
    return Content("   ").join([hint(key, text) for key, text in keys])


def fitting(keys: Keys, room: int) -> Content:
    """Return the first keys, as many as fit in one row."""
    shown: list[tuple[str, str]] = []
    for key in keys:
        if in_a_row([*shown, key]).cell_length > room:
            break
        shown.append(key)
    return in_a_row(shown)


def in_rows(keys: Keys, width: int, *, rows: int = 2) -> Content:
    """Return as many keys as fit in that many rows of `width` cells, of similar length.

    The last key is the way out and stays; those before it give way.
    """
    shown = list(keys)
    while len(lines := _rows(shown, width)) > rows and len(shown) > 1:
        del shown[-2]
    while width > 1 and len(closer := _rows(shown, width - 1)) == len(lines) > 1:
        width, lines = width - 1, closer
    return Content("\n").join(lines)


def _rows(keys: Keys, width: int) -> list[Content]:
    rows: list[Content] = []
    for key, text in keys:
        longer = Content("   ").join([*rows[-1:], hint(key, text)])
        if rows and longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(hint(key, text))
    return rows
