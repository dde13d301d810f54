"""The options of the command line, as values: one frozen `Options`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tui.core.dataclass import dataclass, field, fields, is_dataclass, replace

CommandName: TypeAlias = Literal[
    "chat",
    "run",
    "replay",
    "review",
    "work",
    "cluster",
    "sessions",
    "mcp",
    "plugin",
    "acp",
    "ps",
    "attach",
    "logs",
    "stop",
    "desk",
    "serve",
    "doctor",
    "import-settings",
    "rescue",
    "blame",
    "usage",
    "report",
    "bisect",
    "tour",
    "drill",
    "help",
    "completion",
    "schema",
    "self-test",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningOptions:
    """The session to open, and its folder. `resume` is "" for the session browser, and `worktree`
    "" for a new name; `fork`: a copy of it; `attach`: a background process hands it over. `hosts`
    are the other machines on the desk; `stdio`: it is served there, on standard input and
    output."""

    newest: bool = False
    resume: str | None = None
    fork: bool = False
    no_session: bool = False
    worktree: str | None = None
    background: bool = False
    attach: bool = False
    hosts: tuple[str, ...] = ()
    stdio: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The model that answers, its effort, its instructions, and the profile whose settings and key
    count."""

    model: str | None = None
    profile: str | None = None
    fallback_models: tuple[str, ...] = ()
    effort: str | None = None
    practice: bool = False
    practice_script: Path | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOptions:
    """The permissions and folders of the agent. `bare`: nothing that a folder or the person has set
    up runs, or is read into the prompt."""

    add_dirs: tuple[Path, ...] = ()
    trust: bool = False
    bare: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    yolo: bool = False
    permission_mode: Literal["ask", "edits", "plan"] | None = None
    plan: bool = False
    no_sandbox: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The limits at which a session or a run ends by itself, and those of a command in `bisect`:
    how often, and for how many seconds, it runs in each state."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_wait: float | None = None
    max_failures: int | None = None
    max_time: float | None = None
    runs: int = 1
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenOptions:
    """The look of the screen, and plain lines in its place."""

    verbose: bool = False
    plain: bool = False
    theme: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintOptions:
    """Input and output without a screen. `headless` is -p or `run --headless`; `fail_on` the least
    severity of findings for which `review` fails."""

    headless: bool = False
    output_format: Literal["text", "json", "stream-json", "claude-stream-json"] = "text"
    input_format: Literal["text", "stream-json", "claude-stream-json"] = "text"
    json_schema: Path | None = None
    fail_on: Literal["high", "medium", "low", "never"] = "low"

    @property
    def for_claude(self) -> bool:
        """True if a program reads Claude Code's stream."""
        return self.output_format == "claude-stream-json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """A run of a task file, or a replay of a suite; `add` are sessions whose prompts are added to
    it. `on` is the engine that places the tasks on machines, `store` the address of what they
    share, `remote` the program there, and `scratch` the folder of a worker's tasks;
    `insecure_cluster`: a cluster may be reached without encryption."""

    tasks: Path | None = None
    status: bool = False
    reset: bool = False
    retry_failed: bool = False
    parallel: int = 1
    batch_api: bool = False
    cancel: bool = False
    summary: Path | None = None
    suite: Path | None = None
    add: tuple[str, ...] = ()
    agents_md: str | None = None
    junit: Path | None = None
    on: str | None = None
    store: str | None = None
    remote: str | None = None
    insecure_cluster: bool = False
    scratch: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsOptions:
    """Options of `sessions`, `blame`, `usage`, `report`, `bisect`, `ps` and `logs`. `since` is a
    moment, or seconds back from now; `kind` what is searched, or what `usage` groups by; `touched`
    a file that the sessions touched; `second` the title or the other session after the target;
    `build` what has to succeed in a state; `shape` what `distill`, `blame` and `report` make, ""
    for their usual one."""

    all: bool = False
    sub_agents: bool = False
    since: float | datetime | None = None
    touched: Path | None = None
    kind: str | None = None
    regex: bool = False
    format: Literal["md", "html", "jsonl", "otlp"] = "md"
    at: str | None = None
    request: int | None = None
    diff: tuple[int, int] | None = None
    second: str | None = None
    unmask: int | None = None
    branch: str | None = None
    git_note: bool = False
    with_secrets: bool = False
    redact: bool = False
    follow: bool = False
    build: str | None = None
    shape: Literal[
        "", "script", "tasks", "skill", "porcelain", "notes", "text", "md", "html", "json"
    ] = ""
    check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """The server that `mcp` adds or removes; `words` are those behind `--`, of `bisect`, too.
    `servers` are MCP servers by name, as entries of `[mcp]`, from a program that opens sessions: no
    flag gives them.
    """

    address: str | None = None
    words: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    type: Literal["http", "sse"] | None = None
    client_id: str | None = None
    callback_port: int | None = None
    scope: Literal["user", "project"] | None = None
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpOptions:
    """Options of `help`, `drill`, `completion`, `schema` and `report`. `until` is a moment, or
    seconds back from now; `here`: only the sessions of this folder."""

    faults: tuple[str, ...] = ()
    topic: str | None = None
    list_topics: bool = False
    man: bool = False
    shell: Literal["bash", "zsh", "fish", "profiles", "sessions", "background"] = "bash"
    schema: Literal["config", "hooks", "events", "state", "theme"] = "config"
    until: float | datetime | None = None
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line. None and () mean: not given.

    `command` is "chat" for plain `holdfast`; `action` belongs to `sessions`, `mcp` and `plugin`.
    `prompt` is what was typed, as PROMPT or as the TEXT of -p. `notices` are what the person should
    know first. Paths are as typed, `~` expanded. A name occurs in one group only.
    """

    command: CommandName = "chat"
    action: str = ""
    json: bool = False
    cwd: Path | None = None
    target: str | None = None
    out: Path | None = None
    dry_run: bool = False
    yes: bool = False
    prompt: str | None = None
    notices: tuple[str, ...] = ()
    opening: OpeningOptions = OpeningOptions()
    models: ModelOptions = ModelOptions()
    permissions: PermissionOptions = PermissionOptions()
    limits: LimitOptions = LimitOptions()
    screen: ScreenOptions = ScreenOptions()
    printing: PrintOptions = PrintOptions()
    batch: BatchOptions = BatchOptions()
    sessions: SessionsOptions = SessionsOptions()
    mcp: McpOptions = McpOptions()
    help: HelpOptions = HelpOptions()

    def having(self, **given: Any) -> Options:
        """The same with other values, each by its name, whatever group it is in. Raises TypeError
        for a name that there is none of."""
        changed: dict[str, Any] = {}
        for one in fields(self):
            group: Any = getattr(self, one.name)
            if is_dataclass(group) and not isinstance(group, type):
                inside = {name: given.pop(name) for name in _names(group) & given.keys()}
                changed |= {one.name: replace(group, **inside)} if inside else {}
        return replace(self, **changed, **given)

    def by_name(self) -> dict[str, Any]:
        """Each value by its name, those of the groups too."""
        values: dict[str, Any] = {}
        for one in fields(self):
            value: Any = getattr(self, one.name)
            inside = is_dataclass(value)
            values |= {n: getattr(value, n) for n in _names(value)} if inside else {one.name: value}
        return values

    @property
    def overrides(self) -> dict[str, Any]:
        """Return the options that belong to the configuration, in the shape of the file."""
        values: dict[str, Any] = {
            "model": self.models.model,
            "profile": self.models.profile,
            "fallback_models": list(self.models.fallback_models),
            "theme": self.screen.theme,
            "permissions": {
                name: list(rules)
                for name, rules in (
                    ("allow", self.permissions.allow),
                    ("deny", self.permissions.deny),
                )
                if rules
            },
            "sandbox": {"engine": "off"} if self.permissions.no_sandbox else {},
            "mcp": dict(self.mcp.servers),
        }
        return {key: value for key, value in values.items() if value not in (None, [], {})}


def _names(group: Any) -> set[str]:
    return {one.name for one in fields(group)}
