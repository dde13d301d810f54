"""The schema of the configuration: every key, its type, its bounds and its default.

Every key is optional. The files are read and merged in `tui.settings.layers`; the meaning of each
key is explained to the person by `tui.settings.descriptions`.
"""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

import msgspec

Positive = Annotated[int, msgspec.Meta(gt=0)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Seconds = Annotated[int, msgspec.Meta(gt=0, le=86_400)]
Usd = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Url = Annotated[
    str,
    msgspec.Meta(
        pattern=(
            r"^(https?://([^\s/?#\[\]]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#\[\]:@]+)(:\d{1,5})?"
            r"([/?#]\S*)?)?\Z"
        ),
        description='an http:// or https:// address, or ""',
    ),
]
ServerUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(https?://[^\s/?#]\S*|\$\{\S+)?\Z",
        description="an http:// or https:// address",
    ),
]
CommandWords = Annotated[
    str | tuple[str, ...],
    msgspec.Meta(description="the words of a command, or its name with args beside it"),
]
Folder = Annotated[
    str, msgspec.Meta(pattern=r"^[~/]", description="an absolute folder, or one that begins with ~")
]
Rule = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_.*?-]+(\((?s:[^\0]+)\))?( (network|outside))?\Z",
        description="a rule: tool or tool(glob)",
    ),
]


KeyNames = Annotated[
    str | tuple[str, ...],
    msgspec.Meta(description='a key such as "ctrl+k", a list of keys, or "" for none'),
]
ExamMode = Literal["off", "small", "full"]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Retry(_Section, frozen=True, kw_only=True):
    """Retries of one request. `max_attempts` 0 sends it once, without a retry."""

    max_attempts: NotNegative = 3
    initial_delay_ms: Positive = 1000
    max_delay_ms: Annotated[int, msgspec.Meta(gt=0, le=300_000)] = 30_000
    first_byte_timeout_s: Seconds = 600
    stall_timeout_s: Seconds = 120

    def __post_init__(self) -> None:
        if self.max_delay_ms < self.initial_delay_ms:
            raise ValueError("max_delay_ms can't be smaller than initial_delay_ms")


class Thinking(_Section, frozen=True, kw_only=True):
    """The part of the model's thinking that is shown, if the server leaves the choice."""

    display: Literal["summarized", "updates", "hidden"] = "summarized"


class Cache(_Section, frozen=True, kw_only=True):
    """The time for which the server is asked to cache the prompt. "auto" is an hour if a person
    uses the API itself, otherwise five minutes."""

    ttl: Literal["auto", "5m", "1h"] = "auto"


class Prune(_Section, frozen=True, kw_only=True):
    """The rule by which old tool results leave the request; `unit` is what their age is counted
    in."""

    after_turns: NotNegative = 6
    min_chars: NotNegative = 1000
    when: Literal["auto", "turns", "pays"] = "auto"
    unit: Literal["turns", "requests"] = "turns"


class Bootstrap(_Section, frozen=True, kw_only=True):
    """Limits of the project files (AGENTS.md, MEMORY.md and so on) in the system prompt."""

    max_chars_per_file: Positive = 20_000
    max_total_chars: Positive = 150_000


class Compaction(_Section, frozen=True, kw_only=True):
    """The summary of the beginning of a conversation, made above `threshold` of the window. With
    `exam` the summary is questioned about what it replaces (see tui.context.exam)."""

    threshold: Share = 0.8
    memory_flush: bool = True
    keep_messages: Positive = 6
    keep_tokens: NotNegative = 0
    exam: ExamMode = "off"


class Guard(_Section, frozen=True, kw_only=True):
    """Limits of one tool result, and of the full copies on disk.

    A full copy that a session names is kept, however old it is. Others are removed after
    `keep_days`, and the oldest of them sooner if all together exceed `keep_bytes`. `bytes` holds
    limits of single tools by name, in place of `default_bytes`.
    """

    default_bytes: Positive = 50_000
    preview_bytes: Positive = 2048
    clamp_bytes: Positive = 51_200
    clamp_lines: Positive = 2000
    token_share: Share = 0.3
    memory_chars: Annotated[int, msgspec.Meta(ge=2000)] = 200_000
    spill_max_bytes: Positive = 4 * 1024**3
    spill_min_free_bytes: NotNegative = 1024**3
    keep_days: Positive = 30
    keep_bytes: NotNegative = 10 * 1024**3
    bytes: dict[str, Positive] = {}


class CheckpointSettings(_Section, frozen=True, kw_only=True):
    """Copies of the workspace's files, which tell /rewind and /diff the changes of commands. Those
    of one workspace are removed after `keep_days`, and the oldest sooner above `keep_bytes`."""

    mode: Literal["on", "off"] = "on"
    keep_days: Positive = 30
    keep_bytes: NotNegative = 2 * 1024**3


class Permissions(_Section, frozen=True, kw_only=True):
    """Rules: deny > ask > allow. `auto_grant` holds folder patterns."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    ceiling: Folder = "~"
    auto_grant: tuple[str, ...] = ()


class SandboxSettings(_Section, frozen=True, kw_only=True):
    """The confinement of commands. `keep_env` are names of variables, `sockets` paths of sockets
    that commands get all the same; with `share_caches` they use the person's own caches."""

    engine: Literal["auto", "bubblewrap", "launcher", "landlock", "seatbelt", "off"] = "auto"
    keep_env: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    share_caches: bool = False


class Status(_Section, frozen=True, kw_only=True):
    """A shell command of the person's own whose first line is shown at the foot of the screen."""

    command: str = ""
    interval_s: Seconds = 5


class Background(_Section, frozen=True, kw_only=True):
    """Sessions in the background. `notify` is a shell command that calls the person."""

    notify: str = ""


class TerminalSettings(_Section, frozen=True, kw_only=True):
    """Sequences sent to the terminal besides the screen. With "auto", only if it is known to
    support them."""

    title: Literal["auto", "on", "off"] = "auto"
    progress: Literal["auto", "on", "off"] = "auto"
    notifications: Literal["auto", "osc9", "osc777", "bell"] = "auto"


class Agents(_Section, frozen=True, kw_only=True):
    """Sub-agents. `parallel` is the number that work at the same time."""

    parallel: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4


class JobSettings(_Section, frozen=True, kw_only=True):
    """Background commands. With `wake` an idle agent gets a turn when one ends."""

    wake: bool = False


class Batch(_Section, frozen=True, kw_only=True):
    """A run of a task file. `max_cost`, `max_failures` and `max_time_s` are the options
    --max-cost, --max-failures and --max-time; 0 means no limit."""

    attempts: Positive = 5
    compaction_basis: Literal["cumulative", "context"] = "cumulative"
    max_cost: Usd = 0.0
    max_failures: NotNegative = 0
    max_time_s: NotNegative = 0


class Price(_Section, frozen=True, kw_only=True):
    """USD per million tokens of one model, in place of the shipped price.

    `cache_write` is for tokens that the cache keeps for five minutes, `cache_write_1h` for an hour;
    0 there means twice `input`.
    """

    input: Usd = 0.0
    output: Usd = 0.0
    cache_write: Usd = 0.0
    cache_read: Usd = 0.0
    cache_write_1h: Usd = 0.0


class McpServer(_Section, frozen=True, kw_only=True):
    """An MCP server: either a `command` to start, or the `url` of a running one.

    `env` are variables for the command, `headers` go with each request to the url, `type` is the
    transport of the url: "http" if it is empty. All of these texts may hold `${NAME}`. `sandbox`
    limits a command: "outside" confines nothing, the others are levels of the sandbox. `tools` are
    globs for the names of the tools that the model gets; all if empty. A repr shows nothing that
    may be secret.
    """

    command: CommandWords = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: ServerUrl = ""
    headers: dict[str, str] = {}
    type: Literal["", "stdio", "http", "sse"] = ""
    sandbox: Literal["outside", "read-only", "workspace", "network"] = "outside"
    tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("give exactly one of command and url")
        if self.url and (self.args or self.env or self.type == "stdio"):
            raise ValueError('args, env and type "stdio" go with a command, not with a url')
        if self.command and (self.headers or self.type in {"http", "sse"}):
            raise ValueError('headers and type "http" or "sse" go with a url, not with a command')

    def __repr__(self) -> str:
        return f"McpServer({self.url.partition('?')[0] or self.words[0]!r})"

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command; none for a url."""
        begin = (self.command,) if isinstance(self.command, str) else self.command
        return (*filter(None, begin), *self.args) if self.command else ()


class CheckerSettings(_Section, frozen=True, kw_only=True):
    """A program that finds problems in files: a language server, or, with `{file}` in its command,
    a linter. `files` are globs for their names.

    Omitted settings are those of the known checker of the same name (`tui.core.checkers`).
    `options` goes to a language server when it starts, `settings` are what it asks for by section.
    """

    command: Annotated[
        str | tuple[str, ...], msgspec.Meta(description="a command, or the list of its words")
    ] = ()
    files: tuple[Name, ...] = ()
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    off: bool = False

    def __post_init__(self) -> None:
        _ = self.words

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command. Raises ValueError if a quote is open."""
        given = self.command
        return tuple(shlex.split(given)) if isinstance(given, str) else given


class DiagnosticSettings(_Section, frozen=True, kw_only=True):
    """Problems in edited files that are reported to the model. `checkers` is by name; `unconfined`
    starts them even if no sandbox confines them."""

    mode: Literal["auto", "off"] = "auto"
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 2.0
    unconfined: bool = False
    checkers: dict[str, CheckerSettings] = {}


class Config(_Section, frozen=True, kw_only=True):
    """All settings, validated. `prices` is by model name, `mcp` by server name, `keys` by action
    (`tui.core.keymap`)."""

    model: Name = "claude-sonnet-5-5"
    small_model: Name = "claude-haiku-5-5"
    fallback_models: tuple[Name, ...] = ()
    base_url: Url = ""
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    api_features: Literal["auto", "all", "basic"] = "auto"
    titles: Literal["model", "prompt"] = "model"
    theme: Name = "midnight"
    context_window: NotNegative = 0
    tool_search_tokens: NotNegative = 10_000
    retry: Retry = Retry()
    thinking: Thinking = Thinking()
    cache: Cache = Cache()
    prune: Prune = Prune()
    bootstrap: Bootstrap = Bootstrap()
    compaction: Compaction = Compaction()
    guard: Guard = Guard()
    permissions: Permissions = Permissions()
    sandbox: SandboxSettings = SandboxSettings()
    status: Status = Status()
    terminal: TerminalSettings = TerminalSettings()
    background: Background = Background()
    agents: Agents = Agents()
    diagnostics: DiagnosticSettings = DiagnosticSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    jobs: JobSettings = JobSettings()
    batch: Batch = Batch()
    prices: dict[str, Price] = {}
    mcp: dict[str, McpServer] = {}
    redact: Literal["off", "record"] = "off"
    notify: Literal["auto", "off"] = "auto"
    motion: Literal["full", "reduced"] = "full"
    vim: bool = False
    keys: dict[str, KeyNames] = {}
    plain: bool = False
    """Has an effect only in the user's own file: it is read before any other file is opened."""
