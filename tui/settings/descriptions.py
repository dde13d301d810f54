"""For the settings screen: a label for each setting, what it does, and when a change takes effect.

The keys themselves are in `tui.core.config`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

When: TypeAlias = Literal["now", "session", "run", "start"]

WHEN: Final[Mapping[When, str]] = {
    "now": "applies right away",
    "session": "applies to new sessions",
    "run": "applies to the next task run",
    "start": "applies at the next start",
}

SECTIONS: Final[Mapping[str, str]] = {
    "": "Model and screen",
    "retry": "When a request fails",
    "thinking": "The model's thinking",
    "cache": "What the server keeps of a conversation",
    "prune": "Old tool results",
    "bootstrap": "Project files in the system prompt",
    "compaction": "When the window fills up",
    "guard": "Large tool results",
    "permissions": "What the agent may do without asking",
    "sandbox": "What commands can reach",
    "status": "Your own line at the foot of the screen",
    "terminal": "What the terminal's tab and desktop show",
    "background": "Sessions in the background",
    "agents": "Sub-agents",
    "diagnostics": "Problems in edited files",
    "checkpoints": "Checkpoints of files",
    "jobs": "Background commands",
    "batch": "Task file runs",
    "prices": "USD per million tokens, replacing the built-in prices",
    "mcp": "Servers with more tools",
}
"""Every section, "" for the keys in none, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Description:
    """A setting in a few words and in a sentence; when a change takes effect (a key of WHEN)."""

    label: str
    help: str
    when: When


_LABELS: Final[Mapping[str, str]] = {
    "model": "Model",
    "small_model": "Model for small jobs",
    "fallback_models": "Fallback models",
    "base_url": "Server address",
    "effort": "Effort",
    "api_features": "New API features",
    "theme": "Theme",
    "context_window": "Context window",
    "redact": "Mask keys in the record",
    "notify": "Notifications",
    "motion": "Animation",
    "plain": "Plain lines",
    "titles": "Session titles",
    "tool_search_tokens": "Tokens for MCP tools",
    "vim": "Vim keys",
    "keys": "Your own keys",
    "status.command": "Status line command",
    "status.interval_s": "Status line interval",
    "terminal.title": "Window title",
    "terminal.progress": "Progress in the tab",
    "terminal.notifications": "Kind of notification",
    "retry.max_attempts": "Retries",
    "retry.initial_delay_ms": "First wait",
    "retry.max_delay_ms": "Longest wait",
    "retry.first_byte_timeout_s": "Wait for an answer",
    "retry.stall_timeout_s": "Longest silence",
    "thinking.display": "Show thinking as",
    "cache.ttl": "Keep for",
    "prune.after_turns": "Old after",
    "prune.min_chars": "Smallest to prune",
    "prune.when": "Prune",
    "prune.unit": "Count age in",
    "bootstrap.max_chars_per_file": "Characters per file",
    "bootstrap.max_total_chars": "Characters in total",
    "compaction.threshold": "Compact at",
    "compaction.memory_flush": "Save notes first",
    "compaction.keep_messages": "Keep messages",
    "compaction.keep_tokens": "Keep tokens",
    "compaction.exam": "Check summaries",
    "guard.default_bytes": "Save to disk above",
    "guard.preview_bytes": "Preview",
    "guard.clamp_bytes": "Most bytes",
    "guard.clamp_lines": "Most lines",
    "guard.token_share": "Most of the window",
    "guard.memory_chars": "Output in memory",
    "guard.spill_max_bytes": "Largest full copy",
    "guard.spill_min_free_bytes": "Disk space to leave free",
    "guard.keep_days": "Keep unused copies for",
    "guard.keep_bytes": "Space for unused copies",
    "guard.bytes": "Limits per tool",
    "permissions.allow": "Allow",
    "permissions.ask": "Ask",
    "permissions.deny": "Deny",
    "permissions.ceiling": "Reach while elevated",
    "permissions.auto_grant": "Write freely in",
    "sandbox.engine": "Sandbox",
    "sandbox.keep_env": "Variables to pass on",
    "sandbox.sockets": "Sockets to allow",
    "sandbox.share_caches": "Share your caches",
    "background.notify": "Command that calls you",
    "agents.parallel": "At the same time",
    "diagnostics.mode": "Check edited files",
    "diagnostics.wait_s": "Wait for problems",
    "diagnostics.unconfined": "Without a sandbox",
    "diagnostics.checkers": "Servers and linters",
    "checkpoints.mode": "Take checkpoints",
    "checkpoints.keep_days": "Keep checkpoints for",
    "checkpoints.keep_bytes": "Space per workspace",
    "jobs.wake": "Wake when a job ends",
    "batch.attempts": "Attempts per task",
    "batch.compaction_basis": "Compact by",
    "batch.max_cost": "Most to spend",
    "batch.max_failures": "Failures in a row",
    "batch.max_time_s": "Longest run",
    "prices.input": "Input",
    "prices.output": "Output",
    "prices.cache_write": "Cache, five minutes",
    "prices.cache_read": "Cache, read",
    "prices.cache_write_1h": "Cache, one hour",
    "mcp": "Server",
}
_HELP: Final[Mapping[str, str]] = {
    "model": "The model, or opus, sonnet, haiku, fable for the newest. /model switches within a"
    " session.",
    "small_model": "The model for small jobs: titles, and explaining why a task failed.",
    "fallback_models": "Fallback models, tried in this order when the first fails.",
    "base_url": 'The server: any that speaks the Messages API. "" is Anthropic\'s.',
    "effort": 'How hard the model thinks, if it has levels; "" is its default. /effort changes it.',
    "api_features": "auto: send new API features to Anthropic only. all: to any server. basic: to"
    " none.",
    "titles": "model: small_model titles a session after a turn (about $0.0002). prompt: its first"
    " words.",
    "theme": "The theme; put your own into themes/ next to the file.",
    "context_window": "The model's window in tokens. 0 asks the server, then the catalog.",
    "redact": "record: mask known kinds of keys before anything is recorded.",
    "notify": "auto: call you when a long turn ends or needs you while you're elsewhere.",
    "motion": "reduced: no animation.",
    "vim": "Vim's normal and insert mode in the prompt. /vim switches it.",
    "keys": "Your own keys by action, such as palette = ctrl+k. `holdfast help keys` lists them.",
    "plain": "true: plain lines instead of the full screen, like --plain.",
    "tool_search_tokens": "Tokens for MCP tools in every request; the model finds the others by"
    " search.",
    "retry.max_attempts": "How often to retry a request; 0 sends it once.",
    "retry.initial_delay_ms": "Milliseconds before the first retry; each further wait is"
    " twice as long.",
    "retry.max_delay_ms": "The longest wait in milliseconds. If the server asks for more, the"
    " session is parked.",
    "retry.first_byte_timeout_s": "Seconds to wait for the first byte of an answer.",
    "retry.stall_timeout_s": "Seconds of silence that end an attempt; pings count.",
    "thinking.display": "What to show of the model's thinking: a summary, progress notes"
    " only, or nothing.",
    "cache.ttl": "How long the server keeps its cache. auto: an hour in conversations, otherwise"
    " five minutes.",
    "prune.after_turns": "Turns after which a tool result counts as old.",
    "prune.min_chars": "Shorter results stay, however old they are.",
    "prune.when": "auto: at the next break, or once it pays. turns: when old. pays: even if"
    " that loses reasoning.",
    "prune.unit": "The unit of age.",
    "bootstrap.max_chars_per_file": "Characters per file, such as AGENTS.md or MEMORY.md; the"
    " rest is left out.",
    "bootstrap.max_total_chars": "Characters of all such files together.",
    "compaction.threshold": "How full the window may get before older messages are summarized; 0.8"
    " is 80 %.",
    "compaction.memory_flush": "Save what is worth keeping to MEMORY.md first.",
    "compaction.keep_messages": "Most recent messages to keep unsummarized, unless they are"
    " very large.",
    "compaction.keep_tokens": "Most recent tokens to keep; 0 is a tenth of the window, at"
    " most 20,000.",
    "compaction.exam": "Question each summary about what it replaces. small: about $0.005. full:"
    " about $0.03.",
    "guard.default_bytes": "Tool results above this size are saved to disk and truncated.",
    "guard.preview_bytes": "Bytes of such a result that the model still gets.",
    "guard.clamp_bytes": "Most bytes of a single result that the model gets.",
    "guard.clamp_lines": "Most lines of a single result that the model gets.",
    "guard.token_share": "Largest share of the window for one result; 0.3 is 30 %.",
    "guard.memory_chars": "Characters of a running command's output kept in memory.",
    "guard.spill_max_bytes": "Largest full copy of a result on disk, in bytes.",
    "guard.spill_min_free_bytes": "Free disk space, in bytes, that full copies never use.",
    "guard.keep_days": "Days to keep a full copy that no session refers to.",
    "guard.keep_bytes": "Above this many bytes, the oldest unused copies go sooner.",
    "guard.bytes": "Limits for single tools, overriding default_bytes.",
    "permissions.allow": "Rules for what runs without asking.",
    "permissions.ask": "Rules for what always asks; they beat allow.",
    "permissions.deny": "Rules for what is refused; they beat ask and allow.",
    "permissions.ceiling": "How far the file tools may go while elevated.",
    "permissions.auto_grant": "Patterns of folders where files are written without asking.",
    "sandbox.engine": "What confines commands; auto picks the best that works on this machine.",
    "sandbox.keep_env": "Variables that commands get even though they look like secrets.",
    "sandbox.sockets": "Sockets that commands may use, by path; for example the SSH agent's.",
    "sandbox.share_caches": "Let commands use your own ~/.cache, ~/.npm and ~/.gradle.",
    "status.command": "A shell command that gets the session as JSON and prints one line.",
    "status.interval_s": "Minimum seconds between two runs.",
    "terminal.title": "The session in the window's title, with … at work and ? when it needs you.",
    "terminal.progress": "Progress in the tab or task bar. on: even if the terminal isn't known.",
    "terminal.notifications": "The code for notifications; bell: only ring. See notify.",
    "checkpoints.mode": "on: /rewind and /diff know what commands did to files. off: none.",
    "checkpoints.keep_days": "Days to keep a checkpoint.",
    "checkpoints.keep_bytes": "Above this many bytes, a workspace's oldest checkpoints go sooner.",
    "jobs.wake": "Whether an idle agent gets a turn when a background command ends.",
    "background.notify": "A shell command that calls you; HOLDFAST_TEXT says what there is.",
    "agents.parallel": "How many sub-agents work at the same time; more wait for their turn.",
    "diagnostics.mode": "auto: a language server that's installed checks edited files. off: none.",
    "diagnostics.wait_s": "Seconds an edit waits for new problems; later ones come with the next"
    " request.",
    "diagnostics.unconfined": "Start language servers even if no sandbox confines them.",
    "diagnostics.checkers": "Language servers and linters to use; see holdfast help editing.",
    "batch.attempts": "How often to try a task.",
    "batch.compaction_basis": "cumulative: count all tokens of the session. context: only "
    "those in the"
    " window (recommended).",
    "batch.max_cost": "The most a run may cost in USD, like --max-cost; 0 is no limit.",
    "batch.max_failures": "Failures in a row that end a run, like --max-failures; 0 is no limit.",
    "batch.max_time_s": "Seconds a run may take, like --max-time; 0 is no limit.",
    "prices.input": "What the provider charges for input tokens.",
    "prices.output": "What the provider charges for output tokens.",
    "prices.cache_write": "What the provider charges for tokens cached for five minutes.",
    "prices.cache_read": "What the provider charges for tokens read from the cache.",
    "prices.cache_write_1h": "What it charges for tokens cached for an hour. 0: twice"
    " the input price.",
    "mcp": "Servers with tools for the model. /mcp shows their state.",
}
_WHEN: Final[Mapping[str, When]] = {
    **dict.fromkeys(
        ("theme", "redact", "notify", "motion", "vim", "keys", "status", "terminal"), "now"
    ),
    **dict.fromkeys(("permissions.allow", "permissions.ask", "permissions.deny"), "now"),
    **dict.fromkeys(("small_model", "batch"), "run"),
    "plain": "start",
}
"""By key, or by section; every other setting counts from the next session."""

DESCRIPTIONS: Final[Mapping[str, Description]] = {
    key: Description(
        _LABELS[key],
        text,
        _WHEN.get(key) or _WHEN.get(key.partition(".")[0], "session"),
    )
    for key, text in _HELP.items()
}
"""By dotted key; the keys of a model's prices without the model's name."""
