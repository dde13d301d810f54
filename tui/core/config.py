"""The schema of the configuration: every key with its type, its bounds, its default, its words for
a person, and when a change takes effect.

Every key is optional. The words of a setting are "Label: What it does.", and those after them
"choice: what it means"; those of a section are its heading. A change counts from the next session,
where no `When` says otherwise. The files are read and merged in `tui.settings.layers`.
"""

import shlex
from collections.abc import Mapping
from enum import Enum
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
        description="an http:// or https:// address, or empty",
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


class When(Enum):
    """The moment when a change of a setting takes effect, in words."""

    NOW = "applies right away"
    SESSION = "applies to new sessions"
    RUN = "applies to the next task run"
    START = "applies at the next start"


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Retry(_Section, frozen=True, kw_only=True):
    """Retries of one request. `max_attempts` 0 sends it once, without a retry."""

    max_attempts: Annotated[
        NotNegative, "Retries: How often to retry a request; 0 sends it once."
    ] = 3
    initial_delay_ms: Annotated[
        Positive,
        "First wait: Milliseconds before the first retry; each further wait is twice as long.",
    ] = 1000
    max_delay_ms: Annotated[
        int,
        msgspec.Meta(gt=0, le=300_000),
        "Longest wait: The longest wait in milliseconds. If the server asks for more, the "
        "session is parked.",
    ] = 30_000
    first_byte_timeout_s: Annotated[
        Seconds, "Wait for an answer: Seconds to wait for the first byte of an answer."
    ] = 600
    stall_timeout_s: Annotated[
        Seconds, "Longest silence: Seconds of silence that end an attempt; pings count."
    ] = 120

    def __post_init__(self) -> None:
        if self.max_delay_ms < self.initial_delay_ms:
            raise ValueError("max_delay_ms can't be smaller than initial_delay_ms")


class AnswerSettings(_Section, frozen=True, kw_only=True):
    """Settings of one model, by its name."""

    max_output: Annotated[
        NotNegative, "Longest answer of a model: The same for one model; 0 means as for all."
    ] = 0
    id: Annotated[
        str,
        "A model's own id: What a cloud calls the model, such as a deployment or an ARN.",
        ": its usual id there",
    ] = ""


class ProviderSettings(_Section, frozen=True, kw_only=True):
    """The way to ask the server. `models` is by name. All but that and `max_output` is about clouds
    (`tui.core.clouds`)."""

    kind: Annotated[
        Literal["anthropic", "bedrock", "vertex", "foundry"],
        "Who serves the models: Anthropic, or a cloud account of yours.",
        "anthropic: Anthropic's API, or the server address",
        "bedrock: Amazon Bedrock",
        "vertex: Google Cloud",
        "foundry: Microsoft Foundry",
    ] = "anthropic"
    region: Annotated[
        str,
        "Cloud region: The region that serves the models, such as us-east-1 or europe-west1.",
        ": as the cloud's own tools are set up; on Google Cloud, global",
    ] = ""
    project: Annotated[
        str,
        "Google project: The project that pays.",
        ": that of your Google credentials",
    ] = ""
    resource: Annotated[
        str,
        "Foundry resource: The name of the resource that has your deployments.",
        ": ANTHROPIC_FOUNDRY_RESOURCE",
    ] = ""
    profile: Annotated[
        str,
        "AWS profile: The profile in AWS' own configuration that signs the requests.",
        ": AWS_PROFILE, or the usual credentials",
    ] = ""
    max_output: Annotated[
        NotNegative,
        "Longest answer: Most tokens of an answer, thinking included.",
        "0: 32,000, or what the model allows",
    ] = 0
    models: Annotated[
        dict[str, AnswerSettings], "Models: Settings for single models, by name."
    ] = {}

    def longest_answer(self, model: str) -> int:
        """The most tokens that are set for an answer of a model; 0 where nothing is."""
        own = self.models.get(model)
        return (own.max_output if own else 0) or self.max_output


class Thinking(_Section, frozen=True, kw_only=True):
    """Settings for showing the model's thinking, where the server leaves the choice."""

    display: Annotated[
        Literal["summarized", "updates", "hidden"],
        "Show thinking as: What to show of the model's thinking.",
        "summarized: a summary of it",
        "updates: progress notes only",
        "hidden: nothing",
    ] = "summarized"


class Cache(_Section, frozen=True, kw_only=True):
    """Settings for how long the server is asked to keep what was sent. "auto" is an hour where a
    person sits in front of the API itself, else five minutes."""

    ttl: Annotated[
        Literal["auto", "5m", "1h"],
        "Keep for: How long the server keeps its cache.",
        "auto: an hour in conversations, otherwise five minutes",
        "5m: five minutes; writing costs 1.25 × the input price",
        "1h: an hour; writing costs 2 × the input price",
    ] = "auto"
    keep_warm: Annotated[
        NotNegative,
        "Keep through pauses: Minutes for which a pause keeps the cache, while that is cheaper.",
        "0: never",
    ] = 0


class Prune(_Section, frozen=True, kw_only=True):
    """Rules by which old tool results leave the request; `unit` is what their age is counted in."""

    after_turns: Annotated[
        NotNegative, "Old after: Turns after which a tool result counts as old."
    ] = 6
    min_chars: Annotated[
        NotNegative, "Smallest to leave out: Results with fewer characters stay, however old."
    ] = 1000
    when: Annotated[
        Literal["auto", "turns", "pays"],
        "Leave out: When to leave old tool results out of requests.",
        "auto: when the cache restarts anyway, or once it pays",
        "turns: as soon as they are old",
        "pays: once it pays, even if that loses reasoning",
    ] = "auto"
    unit: Annotated[
        Literal["turns", "requests"],
        "Count age in: The unit of age.",
        "turns: your prompts",
        "requests: calls to the model; a turn has many",
    ] = "turns"


class Bootstrap(_Section, frozen=True, kw_only=True):
    """Limits of the project files (AGENTS.md, MEMORY.md and so on) in the system prompt."""

    max_chars_per_file: Annotated[
        Positive,
        "Characters per file: Characters per file, such as AGENTS.md or MEMORY.md; the rest is "
        "left out.",
    ] = 20_000
    max_total_chars: Annotated[
        Positive, "Characters in total: Characters of all such files together."
    ] = 150_000


class Compaction(_Section, frozen=True, kw_only=True):
    """Settings for summarizing the beginning of a conversation: above `threshold` of the window.
    With `exam` the summary is questioned about what it replaces (see tui.context.exam)."""

    threshold: Annotated[
        Share,
        "Compact at: How full the window may get before older messages are summarized; 0.8 is "
        "80 %.",
    ] = 0.8
    memory_flush: Annotated[
        bool, "Save notes first: Save what is worth keeping to MEMORY.md first."
    ] = True
    keep_messages: Annotated[
        Positive,
        "Keep messages: Most recent messages to keep unsummarized, unless they are very large.",
    ] = 6
    keep_tokens: Annotated[
        NotNegative,
        "Keep tokens: Most recent tokens to keep.",
        "0: a tenth of the window, at most 20,000",
    ] = 0
    exam: Annotated[
        ExamMode,
        "Check summaries: Question each summary about what it replaces.",
        "off: summaries aren't checked",
        "small: about what you said and the newest rest, about $0.005",
        "full: about all of it, about $0.03",
    ] = "off"


class Guard(_Section, frozen=True, kw_only=True):
    """Limits of one tool result, and of the full copies on disk.

    A full copy that a session names is kept, however old it is. Others are removed after
    `keep_days`, and the oldest of them sooner if all together exceed `keep_bytes`. `bytes` holds
    limits of single tools by name, in the place of `default_bytes`.
    """

    default_bytes: Annotated[
        Positive,
        "Save to disk above: Tool results above this size are saved to disk and truncated.",
    ] = 50_000
    preview_bytes: Annotated[
        Positive, "Preview: Bytes of such a result that the model still gets."
    ] = 2048
    clamp_bytes: Annotated[
        Positive, "Most bytes: Most bytes of a single result that the model gets."
    ] = 51_200
    clamp_lines: Annotated[
        Positive, "Most lines: Most lines of a single result that the model gets."
    ] = 2000
    token_share: Annotated[
        Share, "Most of the window: Largest share of the window for one result; 0.3 is 30 %."
    ] = 0.3
    memory_chars: Annotated[
        int,
        msgspec.Meta(ge=2000),
        "Output in memory: Characters of a running command's output kept in memory.",
    ] = 200_000
    spill_max_bytes: Annotated[
        Positive, "Largest full copy: Largest full copy of a result on disk, in bytes."
    ] = 4 * 1024**3
    spill_min_free_bytes: Annotated[
        NotNegative,
        "Disk space to leave free: Free disk space, in bytes, that full copies never use.",
    ] = 1024**3
    keep_days: Annotated[
        Positive, "Keep unused copies for: Days to keep a full copy that no session refers to."
    ] = 30
    keep_bytes: Annotated[
        NotNegative,
        "Space for unused copies: Above this many bytes, the oldest unused copies go sooner.",
    ] = 10 * 1024**3
    bytes: Annotated[
        dict[str, Positive], "Limits per tool: Limits for single tools, overriding default_bytes."
    ] = {}


class CheckpointSettings(_Section, frozen=True, kw_only=True):
    """Copies of the workspace's files, with which /rewind and /diff know what commands changed.
    Those of one workspace go after `keep_days`, and the oldest sooner above `keep_bytes`."""

    mode: Annotated[
        Literal["on", "off"],
        "Take checkpoints: Keep copies of files from before each prompt.",
        "on: /rewind and /diff know what commands did to files",
        "off: none; they only know what the file tools did",
    ] = "on"
    keep_days: Annotated[Positive, "Keep checkpoints for: Days to keep a checkpoint."] = 30
    keep_bytes: Annotated[
        NotNegative,
        "Space per workspace: Above this many bytes, a workspace's oldest checkpoints go sooner.",
    ] = 2 * 1024**3


class Permissions(_Section, frozen=True, kw_only=True):
    """Rules: deny > ask > allow. `auto_grant` holds folder patterns."""

    allow: Annotated[tuple[Rule, ...], "Allow: Rules for what runs without asking.", When.NOW] = ()
    ask: Annotated[
        tuple[Rule, ...], "Ask: Rules for what always asks; they beat allow.", When.NOW
    ] = ()
    deny: Annotated[
        tuple[Rule, ...], "Deny: Rules for what is refused; they beat ask and allow.", When.NOW
    ] = ()
    ceiling: Annotated[
        Folder, "Reach while elevated: How far the file tools may go while elevated."
    ] = "~"
    auto_grant: Annotated[
        tuple[str, ...],
        "Write freely in: Patterns of folders where files are written without asking.",
    ] = ()


class SandboxSettings(_Section, frozen=True, kw_only=True):
    """Settings for confining commands. `keep_env` are names of variables, `sockets` paths of
    sockets that commands get all the same; with `share_caches` they use the person's own caches."""

    engine: Annotated[
        Literal["auto", "bubblewrap", "launcher", "landlock", "seatbelt", "off"],
        "Sandbox: What confines commands.",
        "auto: the best that works on this machine",
        "bubblewrap: bwrap; Linux",
        "launcher: Holdfast's own, with namespaces; Linux",
        "landlock: the kernel's file rules; Linux",
        "seatbelt: sandbox-exec; macOS",
        "off: nothing; commands can do anything you can",
    ] = "auto"
    keep_env: Annotated[
        tuple[str, ...],
        "Variables to pass on: Variables that commands get even though they look like secrets.",
    ] = ()
    sockets: Annotated[
        tuple[str, ...],
        "Sockets to allow: Sockets that commands may use, by path; for example the SSH agent's.",
    ] = ()
    share_caches: Annotated[
        bool, "Share your caches: Let commands use your own ~/.cache, ~/.npm and ~/.gradle."
    ] = False


class Status(_Section, frozen=True, kw_only=True):
    """A shell command of the person's own whose first line is shown at the foot of the screen."""

    command: Annotated[
        str,
        "Status line command: A shell command that gets the session as JSON and prints one line.",
        When.NOW,
    ] = ""
    interval_s: Annotated[
        Seconds, "Status line interval: Minimum seconds between two runs.", When.NOW
    ] = 5


class Background(_Section, frozen=True, kw_only=True):
    """Sessions in the background. `notify` is a shell command that calls the person."""

    notify: Annotated[
        str,
        "Notification command: A shell command that notifies you; HOLDFAST_TEXT holds the message.",
    ] = ""


class GoalSettings(_Section, frozen=True, kw_only=True):
    """The limits of a goal (/goal) that names no others. `usd` 0 is no limit."""

    rounds: Annotated[
        Positive, "Rounds of a goal: How often a goal is worked on and checked.", When.NOW
    ] = 20
    usd: Annotated[Usd, "Money for a goal: US dollars that a goal may cost; 0: any.", When.NOW] = (
        5.0
    )
    minutes: Annotated[
        Positive, "Time for a goal: Minutes of work that a goal may take.", When.NOW
    ] = 120
    check_s: Annotated[
        int,
        msgspec.Meta(gt=0, le=3600),
        "Time for a check: Seconds until the command that checks a goal is stopped.",
        When.NOW,
    ] = 600


class EverySettings(_Section, frozen=True, kw_only=True):
    """The limits of a repeated prompt (/every) that names no others. `usd` 0 is no limit."""

    usd: Annotated[
        Usd, "Money for repeats: US dollars that its runs may cost; 0: any.", When.NOW
    ] = 5.0
    hours: Annotated[Positive, "Time for repeats: Hours for which it is repeated.", When.NOW] = 24


class DeskSettings(_Section, frozen=True, kw_only=True):
    """The desk of many sessions."""

    hosts: Annotated[
        tuple[Name, ...],
        "Other machines: Machines whose sessions are on the desk, by their names for ssh.",
    ] = ()


class OtelSettings(_Section, frozen=True, kw_only=True):
    """Spans for the person's own collector, by OpenTelemetry. A folder's file sets none of this."""

    enabled: Annotated[
        bool, "Send spans: Send spans of turns, requests and tools to your own collector."
    ] = False
    endpoint: Annotated[
        Url,
        "Collector: Its address, without /v1/traces.",
        ": OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318",
    ] = ""
    protocol: Annotated[
        Literal["", "http/protobuf", "http/json"],
        "Protocol: How spans are written.",
        ": OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf",
        "http/protobuf: every collector takes it",
        "http/json: readable on the wire",
    ] = ""
    headers_command: Annotated[
        str,
        "Headers command: A shell command that prints headers, one a line, such as a token.",
    ] = ""
    service_name: Annotated[
        str,
        "Service name: What the collector calls this program.",
        ": OTEL_SERVICE_NAME, or holdfast",
    ] = ""
    attributes: Annotated[
        dict[Name, str], "Attributes: Attributes to add to every span, such as team = infra."
    ] = {}
    content: Annotated[
        bool, "Send content: Send prompts, answers, arguments and output, too; keys are masked."
    ] = False


class TerminalSettings(_Section, frozen=True, kw_only=True):
    """Settings for what the terminal is sent beside the screen. "auto" is where it is known to
    understand."""

    title: Annotated[
        Literal["auto", "on", "off"],
        "Window title: The session in the window's title, with … at work and ? when it needs you.",
        "auto: where the terminal is known to show it",
        "on: always",
        "off: never",
        When.NOW,
    ] = "auto"
    progress: Annotated[
        Literal["auto", "on", "off"],
        "Progress in the tab: Progress in the tab or task bar.",
        "auto: where the terminal is known to show it",
        "on: even if the terminal isn't known",
        "off: never",
        When.NOW,
    ] = "auto"
    program_status: Annotated[
        Literal["auto", "on", "off"],
        "Program status: Working, done or what it asks, for terminals that list programs"
        " (OSC 7501).",
        "auto: where the terminal says that it knows it",
        "on: without asking the terminal",
        "off: never",
        When.NOW,
    ] = "auto"
    notifications: Annotated[
        Literal["auto", "osc9", "osc777", "bell"],
        "Kind of notification: How to have the terminal notify you. See notify.",
        "auto: a kind that the terminal is known to understand",
        "osc9: for iTerm2, Ghostty, WezTerm and kitty",
        "osc777: for foot and rxvt",
        "bell: ring only",
        When.NOW,
    ] = "auto"


class Agents(_Section, frozen=True, kw_only=True):
    """Sub-agents. `parallel` is how many work at the same time."""

    parallel: Annotated[
        int,
        msgspec.Meta(ge=1, le=16),
        "At the same time: How many sub-agents work at the same time; more wait for their turn.",
    ] = 4


class JobSettings(_Section, frozen=True, kw_only=True):
    """Background commands. With `wake` an idle agent gets a turn when one ends; with `terminals`
    the model has a tool for them."""

    wake: Annotated[
        bool,
        "Wake when a job ends: Give an idle agent a turn when a background command ends.",
    ] = False
    terminals: Annotated[
        int,
        msgspec.Meta(ge=0, le=16),
        "Terminals: How many terminals for programs the model may have open at once.",
        "0: it has no such tool",
    ] = 0


class Batch(_Section, frozen=True, kw_only=True):
    """A run of a task file. `max_cost`, `max_failures` and `max_time_s` are the options
    --max-cost, --max-failures and --max-time; 0 means no limit."""

    attempts: Annotated[Positive, "Attempts per task: How often to try a task.", When.RUN] = 5
    compaction_basis: Annotated[
        Literal["cumulative", "context"],
        "Compact by: What counts when the window fills up.",
        "cumulative: all tokens of the session",
        "context: only those in the window (recommended)",
        When.RUN,
    ] = "cumulative"
    max_cost: Annotated[
        Usd,
        "Most to spend: The most a run may cost in USD, like --max-cost.",
        "0: no limit",
        When.RUN,
    ] = 0.0
    max_failures: Annotated[
        NotNegative,
        "Failures in a row: Failures in a row that end a run, like --max-failures.",
        "0: no limit",
        When.RUN,
    ] = 0
    max_time_s: Annotated[
        NotNegative,
        "Longest run: Seconds a run may take, like --max-time.",
        "0: no limit",
        When.RUN,
    ] = 0
    hooks: Annotated[
        bool,
        "Git hooks: Run the project's git hooks, in the sandbox, for task commits.",
        When.RUN,
    ] = False
    sign: Annotated[bool, "Signatures: Sign task commits as git would.", When.RUN] = False
    lease_s: Annotated[
        Seconds,
        "Lost worker: Seconds without a sign of life after which a task on another machine is "
        "given to another worker.",
        When.RUN,
    ] = 90


EVERY_MODEL = "*"
"""The key of `prices` that counts for all models without one of their own."""


def profile_of(model: str) -> str:
    """The profile through which a model is asked: `@PROFILE/MODEL`; "" for that in use."""
    return model[1:].partition("/")[0] if model.startswith("@") else ""


def model_of(model: str) -> str:
    """A model's name without its profile; "" where `@PROFILE` names no model of its own."""
    return model.partition("/")[2] if model.startswith("@") else model


def through(profile: str, model: str) -> str:
    """The whole name of a model that is asked through a profile, by which requests, records and
    prices name it; "" is the profile in use."""
    return f"@{profile}/{model}".rstrip("/") if profile else model


class Price(_Section, frozen=True, kw_only=True):
    """USD per million tokens of one model, in the place of the shipped price.

    `cache_write` is for what the cache keeps for five minutes, `cache_write_1h` for an hour;
    0 there means twice `input`. With `times`, it is that multiple of the shipped price instead; the
    model's name may then be `*`, for all that have no price of their own.
    """

    input: Annotated[Usd, "Input: What the provider charges for input tokens."] = 0.0
    output: Annotated[Usd, "Output: What the provider charges for output tokens."] = 0.0
    cache_write: Annotated[
        Usd, "Cache, five minutes: What the provider charges for tokens cached for five minutes."
    ] = 0.0
    cache_read: Annotated[
        Usd, "Cache, read: What the provider charges for tokens read from the cache."
    ] = 0.0
    cache_write_1h: Annotated[
        Usd,
        "Cache, one hour: What it charges for tokens cached for an hour. 0: twice the input price.",
    ] = 0.0
    times: Annotated[
        Usd,
        "Multiple: The built-in price times this, instead of prices of your own.",
        "0: not used",
    ] = 0.0


class ProfilePrices(dict[str, Price]):
    """The prices of the profile in use, by model, and behind them those of the person's others: a
    session may have had several. `usual` are those without a profile, or of one that is gone."""

    __slots__ = ("_others", "_profile", "_usual")

    def __init__(
        self,
        now: Mapping[str, Price],
        profile: str,
        usual: Mapping[str, Price],
        others: Mapping[str, Mapping[str, Price]],
    ) -> None:
        super().__init__(now)
        self._profile, self._usual, self._others = profile, usual, others

    def of(self, profile: str) -> Mapping[str, Price]:
        """The prices that a profile pays."""
        return self if profile == self._profile else self._others.get(profile, self._usual)


class McpServer(_Section, frozen=True, kw_only=True):
    """An MCP server: either a `command` to start, or the `url` of a running one.

    `env` are variables for the command, `headers` go with each request to the url, `type` is how
    the url is talked to: "http" if it is empty. `client_id` is that of a client which the person
    registered with the server's operator for the sign-in, `client_secret` and `callback_port` what
    they got or gave there, `scopes` what is asked for in the place of what the server names. All of
    these texts may hold `${NAME}`.
    `sandbox` is what a command may do: "outside" confines nothing, the others are levels of the
    sandbox. `tools` are globs for the names of those that the model gets; all, where there are
    none. Nothing that may be secret shows in a repr.
    """

    command: CommandWords = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: ServerUrl = ""
    headers: dict[str, str] = {}
    type: Literal["", "stdio", "http", "sse"] = ""
    client_id: str = ""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    callback_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0
    sandbox: Literal["outside", "read-only", "workspace", "network"] = "outside"
    tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("give exactly one of command and url")
        if self.url and (self.args or self.env or self.type == "stdio"):
            raise ValueError('args, env and type "stdio" go with a command, not with a url')
        sign_in = (self.client_id, self.client_secret, self.scopes, self.callback_port)
        if self.command and (self.headers or any(sign_in) or self.type in {"http", "sse"}):
            raise ValueError(
                'headers, client_id and type "http" or "sse" go with a url, not with a command'
            )
        if not self.client_id and (self.client_secret or self.callback_port):
            raise ValueError("client_secret and callback_port go with a client_id")

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

    What is left out is that of the known one of the same name (`tui.core.checkers`). `options` goes
    to a language server when it starts, `settings` are what it asks for by section.
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
        """The words of the command. Raises ValueError where a quote is open."""
        command = self.command
        return tuple(shlex.split(command)) if isinstance(command, str) else command


class DiagnosticSettings(_Section, frozen=True, kw_only=True):
    """Settings for the model's view of problems in files that it edited. `checkers` is by name;
    `unconfined` starts them even where no sandbox confines them."""

    mode: Annotated[
        Literal["auto", "off"],
        "Check edited files: Tell the model about new problems in files that it edited.",
        "auto: by language servers and linters that are installed",
        "off: nothing is checked",
    ] = "auto"
    wait_s: Annotated[
        float,
        msgspec.Meta(ge=0, le=60),
        "Wait for problems: Seconds an edit waits for new problems; later ones come with the "
        "next request.",
    ] = 0.5
    unconfined: Annotated[
        bool, "Without a sandbox: Start language servers even if no sandbox confines them."
    ] = False
    checkers: Annotated[
        dict[str, CheckerSettings],
        "Servers and linters: Language servers and linters to use; see holdfast help editing.",
    ] = {}


class ModelKeys(_Section, frozen=True, kw_only=True):
    """The keys in no table that are about models and sessions."""

    model: Annotated[
        Name,
        "Model: The model, or opus, sonnet, haiku, fable for the newest. /model switches within"
        " a session.",
    ] = "claude-sonnet-5-5"
    small_model: Annotated[
        Name,
        "Model for small jobs: Writes titles, judges goals, explains why a task failed.",
        When.RUN,
    ] = "claude-haiku-5-5"
    fallback_models: Annotated[
        tuple[Name, ...],
        "Fallback models: Tried in this order when the first fails; @PROFILE is that model through"
        " another profile.",
    ] = ()
    base_url: Annotated[
        Url,
        "Server address: Any server that speaks the Messages API.",
        ": Anthropic's own",
    ] = ""
    effort: Annotated[
        Literal["", "low", "medium", "high", "xhigh", "max"],
        "Effort: How hard the model thinks, if it has levels. /effort changes it.",
        ": the model's own default",
        "low: fastest and cheapest",
        "medium: for everyday work",
        "high: for hard problems",
        "xhigh: harder still",
        "max: as hard as it can",
    ] = ""
    output_style: Annotated[
        str, "Output style: How the model answers: the name of one of your output styles."
    ] = ""
    api_features: Annotated[
        Literal["auto", "all", "basic"],
        "New API features: Which servers get new API features.",
        "auto: only Anthropic's own",
        "all: any server",
        "basic: none",
    ] = "auto"
    titles: Annotated[
        Literal["model", "prompt"],
        "Session titles: What titles a session in the list.",
        "model: the small model, after the first turn (about $0.0002)",
        "prompt: the first words of the first prompt",
    ] = "model"
    context_window: Annotated[
        NotNegative,
        "Context window: The model's window in tokens.",
        "0: what the server says, or the catalog",
    ] = 0
    tool_search_tokens: Annotated[
        NotNegative,
        "Tokens for MCP tools: Tokens for MCP tools in every request; the model finds the "
        "others by search.",
    ] = 10_000
    default_profile: Annotated[
        str,
        "Usual profile: The profile to use where nothing names another.",
        ": none",
        When.START,
    ] = ""
    profile: Annotated[
        str,
        "Profile: The profile in use. --profile chooses one; see holdfast help profiles.",
        ": none",
        When.START,
    ] = ""
    redact: Annotated[
        Literal["off", "record"],
        "Mask keys in the record: How to record keys and passwords in output.",
        "off: as they are",
        "record: masked where their kind is known",
        When.NOW,
    ] = "off"


class ScreenKeys(ModelKeys, frozen=True, kw_only=True):
    """The keys in no table that are about what a person sees, after those above: a Struct has one
    base with fields. `keys` is by action (`tui.core.keymap`)."""

    theme: Annotated[
        Name, "Theme: The theme; put your own into themes/ next to the file.", When.NOW
    ] = "midnight"
    notify: Annotated[
        Literal["auto", "off"],
        "Notifications: Notify you while you're elsewhere.",
        "auto: when a long turn ends or needs you",
        "off: never",
        When.NOW,
    ] = "auto"
    motion: Annotated[
        Literal["full", "reduced"],
        "Animation: What moves by itself.",
        "full: everything that can",
        "reduced: nothing; seconds still count up",
        When.NOW,
    ] = "full"
    copy_on_select: Annotated[
        bool, "Copy on select: Copy text as soon as you select it.", When.NOW
    ] = True
    vim: Annotated[
        bool, "Vim keys: Vim's normal and insert mode in the prompt. /vim switches it.", When.NOW
    ] = False
    keys: Annotated[
        dict[str, KeyNames],
        "Your own keys: Your own keys by action, such as palette = ctrl+k. `holdfast help keys`"
        " lists them.",
        When.NOW,
    ] = {}
    plain: Annotated[
        bool, "Plain lines: Plain lines instead of the full screen, like --plain.", When.START
    ] = False
    """Has an effect only in the user's own file: it is read before any other file is opened."""


class ModelTables(ScreenKeys, frozen=True, kw_only=True):
    """The tables about the model, after the keys: a class has only so many fields."""

    retry: Annotated[Retry, "When a request fails"] = Retry()
    provider: Annotated[ProviderSettings, "How the server is asked"] = ProviderSettings()
    thinking: Annotated[Thinking, "The model's thinking"] = Thinking()
    cache: Annotated[Cache, "What the server keeps of a conversation"] = Cache()


class Config(ModelTables, frozen=True, kw_only=True):
    """All settings, validated: the keys above, then the tables. `prices` is by model name, `mcp`
    by server name."""

    prune: Annotated[Prune, "Old tool results"] = Prune()
    bootstrap: Annotated[Bootstrap, "Project files in the system prompt"] = Bootstrap()
    compaction: Annotated[Compaction, "When the window fills up"] = Compaction()
    guard: Annotated[Guard, "Large tool results"] = Guard()
    permissions: Annotated[Permissions, "What the agent may do without asking"] = Permissions()
    sandbox: Annotated[SandboxSettings, "What commands can reach"] = SandboxSettings()
    status: Annotated[Status, "Your own line at the foot of the screen"] = Status()
    terminal: Annotated[TerminalSettings, "What the terminal's tab and desktop show"] = (
        TerminalSettings()
    )
    background: Annotated[Background, "Sessions in the background"] = Background()
    goal: Annotated[GoalSettings, "Limits of a goal"] = GoalSettings()
    every: Annotated[EverySettings, "Limits of a repeated prompt"] = EverySettings()
    desk: Annotated[DeskSettings, "The desk of many sessions"] = DeskSettings()
    otel: Annotated[OtelSettings, "Spans for your own collector (OpenTelemetry)"] = OtelSettings()
    agents: Annotated[Agents, "Sub-agents"] = Agents()
    diagnostics: Annotated[DiagnosticSettings, "Problems in edited files"] = DiagnosticSettings()
    checkpoints: Annotated[CheckpointSettings, "Checkpoints of files"] = CheckpointSettings()
    jobs: Annotated[JobSettings, "Background commands"] = JobSettings()
    batch: Annotated[Batch, "Task file runs"] = Batch()
    prices: Annotated[
        dict[str, Price], "USD per million tokens, replacing the built-in prices"
    ] = {}
    mcp: Annotated[
        dict[str, McpServer],
        "Servers with more tools",
        "Server: Servers with tools for the model. /mcp shows their state.",
    ] = {}


class ProfileSettings(Config, frozen=True, kw_only=True):
    """A `[profile.NAME]` table: any settings, and what signs its requests."""

    key_from: Annotated[
        Literal["own", "default", "none"],
        "Key: The key that the profile's requests are signed with.",
        "own: the one that /login stored for the profile",
        "default: the one that is used without a profile",
        "none: its server needs none",
    ] = "own"
    sign_in: Annotated[
        str,
        "Sign-in: The sign-in of `ant auth login` to use in place of a key, by its name.",
        ": none",
    ] = ""
