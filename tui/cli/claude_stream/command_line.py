"""Claude Code's command line, as its SDKs write it: what each flag means here.

They start `cli_path` with `--output-format stream-json … --input-format stream-json`, without `-p`
and with CLAUDE_CODE_ENTRYPOINT in the environment. A flag has a meaning here, or it is left out
with a word on standard error, or it ends the program, where going on without it would not be what
was asked for. The flags are those that the SDKs pass (Python 0.2.189, npm 0.3.332).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui.app.options.arguments import Options
from tui.app.options.flags import EFFORTS
from tui.cli.claude_stream import tool_names
from tui.core import claude_names
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import UsageError
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.settings.allowed_tools import allowed_tools, restricted_tools

ENTRYPOINT: Final = "CLAUDE_CODE_ENTRYPOINT"
"""Set in the environment by the SDKs."""
MODES: Final[Mapping[str, str]] = {
    "default": "ask",
    "dontAsk": "ask",
    "acceptEdits": "edits",
    "plan": "plan",
}
"""Modes by Claude Code's names. `bypassPermissions` is elevated, and `auto` is not here."""

_SWITCHES: Final = frozenset(
    {
        "--verbose", "--continue", "-c", "--include-partial-messages", "--include-hook-events",
        "--strict-mcp-config", "--fork-session", "--session-mirror",
        "--allow-dangerously-skip-permissions", "--dangerously-skip-permissions",
        "--await-initialize", "--no-session-persistence", "--managed-settings-in-initialize",
        "--replay-user-messages", "--bare", "--debug-to-stderr",
    }
)  # fmt: skip
"""Flags without a value. Every other known one takes the next word, if it has no `=`."""
_MAY_TAKE: Final = frozenset({"--debug", "-d", "--resume", "-r"})
"""Flags that take the next word unless that is a flag, too; so does each that is not known."""
_LEFT_OUT: Final[Mapping[str, str]] = {
    "--setting-sources": "Holdfast's own settings count as always",
    "--strict-mcp-config": "the MCP servers of Holdfast's own settings start too",
    "--task-budget": "Holdfast has no task budget; --max-turns and --max-budget-usd count",
    "--betas": "Holdfast chooses the API's features itself",
    "--thinking": "use --effort",
    "--max-thinking-tokens": "use --effort",
    "--thinking-display": "thinking comes as the server sends it",
    "--plugin-dir": "only plugins added with holdfast plugin add count",
    "--plugin-dir-no-mcp": "only plugins added with holdfast plugin add count",
    "--session-mirror": "the session is in Holdfast's own file only",
    "--agent": "the session runs as the main agent",
    "--channels": "there are no channels here",
    "--project-config-root": "the settings are those of the working folder",
    "--permission-prompts": "questions come as can_use_tool where they are wanted",
    "--managed-settings": "there are no managed settings here",
    "--managed-settings-in-initialize": "there are no managed settings here",
    "--replay-user-messages": "prompts aren't written back",
}
"""Flags that are left out, and why."""
_SILENT: Final = frozenset(
    {
        "--verbose", "--debug", "-d", "--debug-file", "--await-initialize", "--output-format",
        "--input-format", "--initialize-fields", "--debug-to-stderr",
    }
)  # fmt: skip
"""Flags that change nothing here: the stream is always whole, and `initialize` always waited for
where it comes first."""
_REFUSED: Final[Mapping[str, str]] = {
    "--session-id": "Holdfast gives a session its id: read session_id of the init message.",
    "--resume-session-at": "A session can be continued at its end, or forked: "
    "holdfast sessions fork ID --at MESSAGE.",
    "--resume-drops-turn": "A session can be continued at its end only.",
}
"""Flags without which the session would be another one."""


_TEXTS: Final[Mapping[str, str]] = {
    "--model": "model",
    "-m": "model",
    "--system-prompt": "system_prompt",
    "--append-system-prompt": "append_system_prompt",
}
"""Flags whose value is taken over as it is, with the name of the option."""
_SWITCHED: Final[Mapping[str, str]] = {
    "--bare": "bare",
    "--continue": "newest",
    "-c": "newest",
    "--no-session-persistence": "no_session",
}
"""Switches that are one of ours, with the name of the option."""
_TAKE: Final = frozenset(
    {
        *_TEXTS, *_LEFT_OUT, *_SILENT, *_REFUSED,
        "--fallback-model", "--effort", "--system-prompt-file", "--append-system-prompt-file",
        "--max-turns", "--max-budget-usd", "--allowedTools", "--allowed-tools",
        "--disallowedTools", "--disallowed-tools", "--tools", "--add-dir", "--permission-mode",
        "--settings", "--mcp-config", "--permission-prompt-tool", "--json-schema",
    }
)  # fmt: skip
"""Flags that take the next word whatever it is: a prompt may begin with a dash."""


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """The things a driver asks for beside the options of the session.

    `partial`: the pieces of answers, too. `asks`: it answers what the rules leave to the person.
    `may_elevate`: it may switch off the questions later. `servers` are MCP servers in its own
    process, by name. `schema` is for the result. `only` are the model's tools, None for all;
    `without` those that it has not. `prompt` is the only one, where there is no input. `left` says
    what was left out, a sentence each.
    """

    partial: bool = False
    asks: bool = False
    may_elevate: bool = False
    fork: bool = False
    servers: tuple[str, ...] = ()
    schema: object = None
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    prompt: str | None = None
    left: tuple[str, ...] = ()


def is_sdk_call(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """True if the command line is one of an SDK's."""
    given = dict(_pairs(words)) if ENTRYPOINT in environment else {}
    return (
        not {"-p", "--print"} & {*words}
        and given.get("--output-format") == "stream-json"
        and given.get("--input-format") == "stream-json"
    )


def read(words: Sequence[str]) -> tuple[Options, DriverOptions]:
    """The options for the words after the program's name. Raises UsageError."""
    reader = _Reader()
    for flag, value in _pairs(words):
        reader.take(flag, value)
    return reader.result()


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """Pair flags with their values. A word of its own is a prompt, under ""."""
    pairs, left = list[tuple[str, str]](), list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            pairs.append(("", word))
        elif equals or name in _SWITCHES:
            pairs.append((name, value))
        elif (name in _MAY_TAKE or name not in _TAKE) and left[:1] and left[0].startswith("-"):
            pairs.append((name, ""))
        else:
            pairs.append((name, left.pop(0) if left else ""))
    return pairs


@dataclass(slots=True)
class _Reader:
    """Reads the flags one after the other."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    driver: DriverOptions = DriverOptions()
    allow: list[str] = field(default_factory=list[str])
    deny: list[str] = field(default_factory=list[str])
    dirs: list[Path] = field(default_factory=list[Path])
    servers: dict[str, Any] = field(default_factory=dict[str, Any])
    left: list[str] = field(default_factory=list[str])

    def result(self) -> tuple[Options, DriverOptions]:
        options = Options().having(
            **self.values,
            allow=tuple(dict.fromkeys(self.allow)),
            deny=tuple(dict.fromkeys(self.deny)),
            add_dirs=tuple(self.dirs),
            servers=self.servers,
        )
        return options, replace(self.driver, left=tuple(self.left))

    def take(self, flag: str, value: str) -> None:
        """Read one flag. Raises UsageError."""
        if flag in _REFUSED:
            raise UsageError(f"{flag} doesn't work with Holdfast.", hint=_REFUSED[flag])
        if flag in _LEFT_OUT:
            self.left.append(f"{flag} is left out: {_LEFT_OUT[flag]}.")
        elif flag not in _SILENT and not self._session(flag, value):
            self._driver(flag, value)

    def _session(self, flag: str, value: str) -> bool:
        """Read a flag about the session. False for any other."""
        if flag in _SWITCHED:
            self.values[_SWITCHED[flag]] = True
            return True
        if flag in _TEXTS:
            self.values[_TEXTS[flag]] = value
            return True
        match flag:
            case "--fallback-model":
                self.values["fallback_models"] = tuple(filter(None, value.split(",")))
            case "--effort":
                if value in EFFORTS:
                    self.values["effort"] = value
                else:
                    self.left.append(
                        f"--effort {value} is left out: it isn't one of {', '.join(EFFORTS)}."
                    )
            case "--system-prompt-file" | "--append-system-prompt-file":
                name = flag.removeprefix("--").removesuffix("-file").replace("-", "_")
                self.values[name] = _text_of(Path(value))
            case "--max-turns":
                self.values["max_turns"] = int(_number_of(flag, value))
            case "--max-budget-usd":
                self.values["max_cost"] = _number_of(flag, value)
            case "--resume" | "-r":
                if not value:
                    raise UsageError("--resume needs a session's id here.")
                self.values["resume"] = value
            case _:
                return self._rules(flag, value)
        return True

    def _rules(self, flag: str, value: str) -> bool:
        """Read a flag about what may run. False for any other."""
        match flag:
            case "--allowedTools" | "--allowed-tools":
                self._allow(split_rules(value), flag)
            case "--disallowedTools" | "--disallowed-tools":
                self._deny(split_rules(value), flag)
            case "--tools":
                self._tools(value)
            case "--add-dir":
                self.dirs.append(Path(value).expanduser())
            case "--permission-mode":
                self._mode(value)
            case "--settings":
                self._settings(value)
            case "--mcp-config":
                self._mcp(value)
            case _:
                return False
        return True

    def _driver(self, flag: str, value: str) -> None:
        """Read a flag about the stream itself. Raises UsageError for one that is not known."""
        match flag:
            case "--include-partial-messages":
                self.driver = replace(self.driver, partial=True)
            case "--include-hook-events":
                pass  # of the driver's own hooks there are none, as in Claude Code
            case "--permission-prompt-tool" if value == "stdio":
                self.driver = replace(self.driver, asks=True)
            case "--permission-prompt-tool":
                raise UsageError(
                    f"--permission-prompt-tool {value} doesn't work with Holdfast.",
                    hint="Use the SDK's own callback (can_use_tool), which is `stdio`.",
                )
            case "--allow-dangerously-skip-permissions":
                self.driver = replace(self.driver, may_elevate=True)
            case "--dangerously-skip-permissions":
                self._mode("bypassPermissions")
            case "--fork-session":
                self.driver = replace(self.driver, fork=True)
            case "--json-schema":
                self.driver = replace(self.driver, schema=_json(flag, value))
            case "":
                self.driver = replace(self.driver, prompt=value)
            case _:
                raise UsageError(
                    f"Holdfast doesn't know Claude Code's option {flag}.",
                    hint="See `holdfast help claude` for what works.",
                )

    def _mode(self, value: str) -> None:
        if value == "bypassPermissions":
            self.values["yolo"] = True
            self.driver = replace(self.driver, may_elevate=True)
        elif value in MODES:
            self.values["permission_mode"] = MODES[value]
        else:
            known = ", ".join((*MODES, "bypassPermissions"))
            raise UsageError(
                f"There is no permission mode {value!r} here.", hint=f"Use one of {known}."
            )

    def _allow(self, names: Sequence[str], source: str) -> None:
        given = allowed_tools(names)
        self.allow += given.rules
        self.left += [f"{source}: {one} allows nothing here." for one in given.ignored]

    def _deny(self, names: Sequence[str], source: str) -> None:
        """Raises UsageError for what can't be forbidden here: a lost deny would be a hole."""
        given = restricted_tools(names)
        # Tools of Claude Code's that Holdfast has not are forbidden already.
        lost = [one for one in given.ignored if "(" in one]
        if lost:
            raise UsageError(f"{source}: {', '.join(lost)} can't be forbidden with a rule here.")
        self.deny += given.rules
        whole = {rule for rule in given.rules if "(" not in rule and not rule.startswith("mcp__")}
        self.driver = replace(self.driver, without=self.driver.without | whole)
        self.left += [f"{source}: there is no {one} here." for one in given.ignored]

    def _tools(self, value: str) -> None:
        names = [one for one in split_rules(value) if one]
        if names == ["default"]:
            return
        ours = {tool for name in names for tool in claude_names.known(name)}
        self.left += [f"--tools: there is no {n} here." for n in names if not claude_names.known(n)]
        self.driver = replace(self.driver, only=frozenset(ours - tool_names.NOT_OFFERED))

    def _settings(self, value: str) -> None:
        """Read settings of Claude Code's, given as JSON or as a file."""
        inline = value.strip().startswith("{")
        given = _json("--settings", value if inline else _text_of(Path(value)))
        if not is_object(given):
            raise UsageError("--settings isn't an object.")
        rules = object_of(given.get("permissions"))
        self._allow([str(one) for one in list_of(rules.get("allow"))], "--settings allow")
        self._deny([str(one) for one in list_of(rules.get("deny"))], "--settings deny")
        if asked := list_of(rules.get("ask")):
            self._deny([str(one) for one in asked], "--settings ask")
            self.left.append("--settings ask: such calls are refused here, not asked about.")
        self.dirs += [
            Path(str(one)).expanduser() for one in list_of(rules.get("additionalDirectories"))
        ]
        if mode := string_of(rules.get("defaultMode")):
            self._mode(mode)
        if model := string_of(given.get("model")):
            self.values.setdefault("model", model)
        known = {"allow", "deny", "ask", "additionalDirectories", "defaultMode"}
        odd = [key for key in given if key not in {"permissions", "model"}]
        odd += [f"permissions.{key}" for key in rules if key not in known]
        self.left += [f"--settings: {key} is left out." for key in odd]

    def _mcp(self, value: str) -> None:
        """Read MCP servers, given as JSON or as a file."""
        inline = value.strip().startswith("{")
        given = _json("--mcp-config", value if inline else _text_of(Path(value)))
        for name, one in object_of(object_of(given).get("mcpServers")).items():
            server = object_of(one)
            if server.get("type") == "sdk":
                self.driver = replace(self.driver, servers=(*self.driver.servers, name))
                continue
            known = ("command", "args", "env", "url", "headers")
            entry = {key: server[key] for key in known if server.get(key)}
            if server.get("type") in {"http", "sse"}:
                entry["type"] = server["type"]
            self.servers[name] = entry
            odd = [key for key in server if key not in {*known, "type"}]
            self.left += [f"--mcp-config: {key} of {name} is left out." for key in odd]


def split_rules(text: str) -> list[str]:
    """Split a list of rules at commas and blanks outside of parentheses."""
    rules, start, depth = list[str](), 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")" and depth > 0)
        if char in ", " and not depth:
            rules.append(text[start:at])
            start = at + 1
    return [one.strip() for one in (*rules, text[start:]) if one.strip()]


def _number_of(flag: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise UsageError(f"{flag} needs a number, not {value!r}.") from error


def _text_of(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"Can't read {path}: {getattr(error, 'strerror', '') or error}."
        ) from error


def _json(flag: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{flag} isn't JSON: {error}.") from error
