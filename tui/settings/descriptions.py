"""For the settings screen: what each setting does, and when a change of it takes effect.

The keys themselves are in `tui.core.config`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

When: TypeAlias = Literal["now", "session", "run", "start"]

WHEN: Final[Mapping[When, str]] = {
    "now": "counts at once",
    "session": "counts from the next session (/new)",
    "run": "counts from the next run of a task file",
    "start": "counts from the next start",
}

SECTIONS: Final[Mapping[str, str]] = {
    "": "model and screen",
    "retry": "when a request fails",
    "thinking": "the model's thinking",
    "cache": "what the server keeps of a conversation",
    "prune": "old tool results",
    "bootstrap": "project files in the system prompt",
    "compaction": "when the window fills up",
    "guard": "large tool results",
    "permissions": "what the agent may do without asking",
    "sandbox": "what commands can reach",
    "batch": "runs of a task file",
    "prices": "USD per million tokens, in the place of the shipped prices",
    "mcp": "servers with more tools",
}
"""Every section, "" for the keys in none, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a setting does, and when a change of it takes effect (a key of WHEN)."""

    help: str
    when: When


_HELP: Final[Mapping[str, str]] = {
    "model": "The model, or opus, sonnet, haiku, fable for the newest. /model changes it in a"
    " session.",
    "small_model": "The model for small jobs: to say why a task failed, for instance.",
    "fallback_models": "Models to go on with, in this order, when the first fails.",
    "base_url": 'The server to ask; any that speaks the Messages API. "" is Anthropic\'s.',
    "effort": 'How deep the model thinks, where it has levels; "" is its own. /effort changes it.',
    "api_features": "auto: what is new is sent to Anthropic alone. all: to any server. basic: to"
    " none.",
    "theme": "The colours; your own go into themes/ beside the file.",
    "context_window": "The model's window in tokens. 0 asks the server, else goes by the"
    " catalogue.",
    "redact": "record: keys of known shapes are masked before anything is recorded.",
    "notify": "auto: a bell when a long turn ends or an answer is needed.",
    "motion": "reduced: nothing moves by itself.",
    "plain": "true: lines of text in the place of the screen, as with --plain.",
    "retry.max_attempts": "How often one request is retried; 0 sends it once.",
    "retry.initial_delay_ms": "Milliseconds before the first retry; each further wait is twice as"
    " long.",
    "retry.max_delay_ms": "The longest wait in milliseconds. Where the server asks for more, the"
    " session is parked.",
    "retry.first_byte_timeout_s": "Seconds to wait for an answer to begin.",
    "retry.stall_timeout_s": "Seconds of silence that end an attempt; pings count as life.",
    "thinking.display": "What is shown of the model's thinking: a summary, notes on progress"
    " alone, or nothing.",
    "cache.ttl": "How long the server keeps it. auto: an hour where a person types, else five"
    " minutes.",
    "prune.after_turns": "After how many turns a tool result counts as old.",
    "prune.min_chars": "Shorter results stay, however old they are.",
    "prune.when": "auto: with the next break, or once it pays. turns: when old. pays: even if"
    " reasoning goes.",
    "prune.unit": "What age is counted in.",
    "bootstrap.max_chars_per_file": "Characters of one file, such as AGENTS.md or MEMORY.md; the"
    " rest is left out.",
    "bootstrap.max_total_chars": "Characters of all such files together.",
    "compaction.threshold": "How full the window may get before the beginning is summarised; 0.8"
    " is 80 %.",
    "compaction.memory_flush": "Save what is worth keeping to MEMORY.md first.",
    "compaction.keep_messages": "So many messages at the end are not summarised, unless they are"
    " very large.",
    "compaction.keep_tokens": "What stays at the end, in tokens; 0 is a tenth of the window, at"
    " most 20,000.",
    "guard.default_bytes": "Above so many bytes a tool result goes to disk, and the model gets its"
    " beginning.",
    "guard.preview_bytes": "How many bytes of such a result the model still gets.",
    "guard.clamp_bytes": "The most bytes of any one result that the model gets.",
    "guard.clamp_lines": "The most lines of any one result that the model gets.",
    "guard.token_share": "The most of the window that one result may take; 0.3 is 30 %.",
    "guard.memory_chars": "Characters of a running command's output held in memory.",
    "guard.spill_max_bytes": "The largest full copy of a result on disk, in bytes.",
    "guard.spill_min_free_bytes": "Free bytes on the disk that full copies leave alone.",
    "guard.keep_days": "Days that a full copy is kept when no session names it.",
    "guard.keep_bytes": "Above so many bytes the oldest of such copies go sooner.",
    "guard.bytes": "Limits of single tools, in the place of default_bytes.",
    "permissions.allow": "Rules for what is done without asking.",
    "permissions.ask": "Rules for what is always asked; they beat allow.",
    "permissions.deny": "Rules for what is refused; they beat ask and allow.",
    "permissions.ceiling": "How far the file tools may go while elevated.",
    "permissions.auto_grant": "Patterns of folders where files are written without asking.",
    "sandbox.engine": "What confines commands; auto takes the best that this machine lets run.",
    "sandbox.keep_env": "Variables that commands get although they look like secrets.",
    "sandbox.sockets": "Sockets that commands may use, by path; the agent of ssh, for instance.",
    "sandbox.share_caches": "Commands use your own ~/.cache, ~/.npm and ~/.gradle.",
    "batch.attempts": "How often one task is tried.",
    "batch.compaction_basis": "cumulative: by all tokens of the session. context: by those of the"
    " window (recommended).",
    "batch.max_cost": "The most USD that a run may cost, as --max-cost; 0 is no limit.",
    "batch.max_failures": "Failures in a row that end a run, as --max-failures; 0 is no limit.",
    "batch.max_time_s": "Seconds that a run may take, as --max-time; 0 is no limit.",
    "prices.input": "What the provider charges for tokens that are sent.",
    "prices.output": "What the provider charges for tokens of an answer.",
    "prices.cache_write": "What the provider charges for tokens put into the cache for five"
    " minutes.",
    "prices.cache_read": "What the provider charges for tokens read from the cache.",
    "prices.cache_write_1h": "What it charges for tokens put into the cache for an hour. 0: twice"
    " the input price.",
    "mcp": "Servers whose tools the model may use. /mcp shows how they stand.",
}
_WHEN: Final[Mapping[str, When]] = {
    **dict.fromkeys(("theme", "redact", "notify", "motion"), "now"),
    **dict.fromkeys(("permissions.allow", "permissions.ask", "permissions.deny"), "now"),
    **dict.fromkeys(("small_model", "batch"), "run"),
    "plain": "start",
}
"""By key, or by section; every other setting counts from the next session."""

DESCRIPTIONS: Final[Mapping[str, Description]] = {
    key: Description(text, _WHEN.get(key) or _WHEN.get(key.partition(".")[0], "session"))
    for key, text in _HELP.items()
}
"""By dotted key; the keys of a model's prices without the model's name."""
