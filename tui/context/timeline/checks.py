"""Commands that check a project, and how they ended. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final, Literal, TypeAlias

from tui.core.late_pattern import late_pattern
from tui.core.messages import blocks_of, object_of, text_of

Verdict: TypeAlias = Literal["", "green", "red"]

_CHARS: Final = 4000
_TAIL: Final = 2000
"""Characters at the end of an output in which its summary is looked for."""

_CHECK: Final = late_pattern(
    r"""(?:^|[;&|(\n])\s*
    (?:[A-Za-z_]\w*=\S*\s+)*                                     # environment
    (?:(?:time|env|sudo|npx|bunx|exec|nice|timeout\s+\S+|(?:uv|poetry|pdm|hatch|pipenv|rye)\s+run
       |python[\d.]*\s+-m|bundle\s+exec|pnpm\s+exec|yarn\s+exec)\s+(?:-\S+\s+)*)*
    (?:[\w./~-]*/)?
    (?P<check>
      pytest|py\.test|tox|nox|unittest|doctest|jest|vitest|mocha|ava|ctest|rspec|phpunit|pest
      |mypy|pyright|basedpyright|tsc|tsgo|vue-tsc|gotestsum|eslint|flake8|pylint|shellcheck|golangci-lint
      |ruff\s+check|biome\s+(?:check|ci|lint)
      |cargo\s+(?:test|nextest|check|clippy|build)|go\s+(?:test|vet|build)
      |(?:npm|pnpm|yarn|bun|deno)\s+(?:run\s+)?(?:test|lint|check|typecheck|type-check|build)[\w:-]*
      |make\s+(?:-\S+\s+)*(?:test|tests|check|lint)[\w-]*
      |(?:mise|just|task|turbo|nx|moon|composer)\s+(?:run\s+)?
       (?:[\w-]+:)*(?:tests?|lint|check|typecheck|type-check|build|ci)(?:[:-][\w:-]*)?
      |(?:gradlew?|mvnw?)\s+(?:\S+\s+)*(?:test|check|verify|build)
      |(?:dotnet|swift|mix|zig\s+build|bazel|rake|rails|php\s+artisan|flutter|dart|sbt|stack|cabal)
       \s+test
      |(?:run_?tests?|test)\.(?:sh|py)|manage\.py\s+test|pre-commit\s+run
    )(?![\w.-])""",
    re.VERBOSE,
)
_SHOWN: Final = late_pattern(
    r"\s(?:--version|--help|-h|--collect-only|--co|--no-run|--dry-run|--list|--listTests)(?![\w-])"
)
"""Options by which a check runs nothing."""
_ARGUMENTS: Final = late_pattern(r"(?:\\\n|[<>]&|&>|[^;&|\n])*")
_NARROWED: Final = frozenset(
    {"--lf", "--last-failed", "--onlyChanged", "--onlyFailures", "--changed"}
)
_NARROWING: Final = late_pattern(
    r"-[kmtge]|--?run|--(?:grep|filter|testNamePattern|deselect|ignore|package|test|bin)"
)
"""Options that take a part of what there is to check, by the word after them."""
_VALUED: Final = late_pattern(r"--.*|-[ncopPWjr]")
"""Options after which a word may be their own."""
_WHOLE: Final = frozenset({"", ".", "...", "--"})
_TEXT: Final = late_pattern(
    r"""(?P<here><<-?[ ]*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[^\n]*\n)
      (?P<body>.*?)(?=\n\s*(?P=end)\b|\Z)
    |(?<!-c\s)(?<!-lc\s)(?:'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z))
    |\\[^\n]|(?:^|(?<=[\s;]))\#[^\n]*""",
    re.VERBOSE | re.DOTALL,
)
"""What is no command of its line: texts in quotes, unless a shell runs them, here-documents
and comments."""
_INSIDE: Final = late_pattern(r"(?:\$|[<>])\([^)]*$")
_ONE_OF_SEVERAL: Final = late_pattern(r"\||;|(?<![&<>])&(?![&>])|(?<!\\)\n\s*\S")
_PIPE: Final = late_pattern(r"(?<!\|)\|(?!\|)&?")
_WHOLE_PIPE: Final = late_pattern(r"(?:^|[;&\n])\s*set\s+-\w*o\s+pipefail\b")
_FILTERED: Final = late_pattern(r"(?<!\|)\|\s*(?:grep|egrep|rg|ag)\s+(?P<asked>[^|;&]*)")
_SHORTENED: Final = late_pattern(
    r"(?<![|;&])\|\s*(?P<by>head|tail)\s+(?:-n\s*|--lines[= ]|-)?(?P<lines>\d+)\s*$"
)
_NOT_RUN: Final = late_pattern(
    r"\s*(?:<tool_use_error>|Command (?:aborted|timed out)\s*$"
    r"|.{0,40}(?:aborted|interrupted) by user|The user doesn't want to)"
)
_RED_OUTPUT: Final = late_pattern(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^FAIL\b|^\s*--- FAIL|test result: FAILED"
    r"|^error(?:\[E\d+\])?: |\berror TS\d|\bFound [1-9]\d* errors?\b|^npm (?:error|ERR!)"
    r"|ELIFECYCLE|\bERROR task failed|^make: \*\*\*",
    re.MULTILINE,
)
_NOTHING_RAN: Final = late_pattern(r"^Ran 0 tests in |\bno tests ran\b", re.MULTILINE)
_NO_TESTS: Final = 5
"""The exit code by which pytest and unittest say so."""
_GREEN_OUTPUT: Final = late_pattern(
    r"\b[1-9]\d* pass(?:ed|ing)\b|test result: ok|^ok\b|\b0 (?:errors?|issues)\b"
    r"|\bno (?:issues|errors)\b|All checks passed|^OK\b",
    re.MULTILINE,
)
_TROUBLE: Final = late_pattern(
    r"err(?:or)?s?\b|fail|fatal|panic|exception|traceback|✗|✖|×", re.IGNORECASE
)
_RUNNER: Final = late_pattern(
    r"(?:npm|pnpm|yarn|bun|deno|make|mise|just|task|turbo|nx|moon|tox|nox)\b"
)
_TESTS: Final = late_pattern(r".*test|doctest|jest|mocha|ava\b|rspec|phpunit|pest|cargo nextest")


def check_in(command: str) -> str:
    """Name the check that a command runs, such as `pytest` or `cargo test`; "" for none."""
    line = without_texts(command)
    found = _CHECK.search(line)
    if found is None or _SHOWN.search(_arguments(line, found)):
        return ""
    return " ".join(found["check"].split())


def targets_of(command: str) -> tuple[str, ...]:
    """Name the parts of a project that a check is narrowed to: paths, and options with what they
    choose. Nothing for the whole."""
    line = without_texts(command)
    found = _CHECK.search(line)
    if found is None:
        return ()
    end = found.end() + len(_arguments(line, found))
    targets: dict[str, None] = {}
    before = ""
    for word in command[found.end() : end].split():
        name, given, value = word.partition("=")
        if _NARROWING.fullmatch(before):
            targets[f"{before} {word}"] = None
        elif given and _NARROWING.fullmatch(name):
            targets[f"{name} {value}"] = None
        elif word in _NARROWED:
            targets[word] = None
        elif not word.startswith("-") and _is_target(word, before):
            targets[_plain(word)] = None
        before = word
    return tuple(one for one in targets if one not in _WHOLE)


def _is_target(word: str, before: str) -> bool:
    if word.isdigit() or word[0] in "\\<>" or word[1:2] == ">" or before.endswith((">", "<")):
        return False
    return not _VALUED.fullmatch(before) or any(sign in word for sign in ("/", "::", "."))


def _plain(path: str) -> str:
    return path.removeprefix("./").removesuffix("...").rstrip("/")


def includes(targets: Collection[str], others: Iterable[str]) -> bool:
    """True if a check that is narrowed to targets checks all that another one does."""
    if not targets:
        return True
    wanted = [*others]
    return bool(wanted) and all(
        any(one == target or one.startswith((f"{target}/", f"{target}::")) for target in targets)
        for one in wanted
    )


def without_texts(command: str) -> str:
    """A command line with what is no command in it blotted out; all places stay."""
    return _TEXT.sub(_blotted, command[:_CHARS])


def _blotted(found: re.Match[str]) -> str:
    kept = found["here"]
    return (kept or "") + "_" * len(found["body"] if kept else found[0])


def _arguments(line: str, found: re.Match[str]) -> str:
    """What a check is given."""
    given = _ARGUMENTS.match(line, found.end())
    return given[0] if given else ""


def _by_its_code(command: str) -> bool:
    """True if a line ends with the exit code of the check in it, unless something before failed."""
    line = without_texts(command)
    found = _CHECK.search(line)
    if found is None or _INSIDE.search(line[: found.start("check")]):
        return False
    after = line[found.end() :].rstrip()
    if _WHOLE_PIPE.search(line[: found.start("check")]):
        after = _PIPE.sub(" ", after)
    return _ONE_OF_SEVERAL.search(after) is None


def verdict_of(command: str, result: dict[str, Any]) -> Verdict:
    """Judge a check by its exit code, and where that is of another command in the same line, by the
    last lines that it printed. "" where neither says so, where it was stopped, and where no test
    ran."""
    verdict = _verdict(command, result)
    nothing = verdict and _NOTHING_RAN.search(_printed(result)[-_TAIL:])
    return "" if nothing and (verdict == "green" or _code(result) == _NO_TESTS) else verdict


def _verdict(command: str, result: dict[str, Any]) -> Verdict:
    details, code = object_of(result.get("details")), _code(result)
    failed = code != 0 if isinstance(code, int) else result.get("is_error") is True
    if code is None and details.get("job"):
        return ""
    judged = _by_its_code(command)
    filtered = _FILTERED.search(command)
    if judged or (failed and not filtered):
        if failed and code is None and _NOT_RUN.match(_printed(result)):
            return ""
        return "red" if failed else "green"
    printed = _printed(result)
    text, shortened = printed[-_TAIL:], _SHORTENED.search(command)
    if _RED_OUTPUT.search(text):
        return "red"
    if shortened and shortened["by"] == "head" and _is_cut(printed, shortened["lines"]):
        return ""  # its last lines, which say how it ended, are missing
    if _says_green(text, command):
        return "" if _RED_OUTPUT.search(printed) else "green"
    if filtered:  # of what was looked for there was nothing
        nothing = text.strip() in {"", "(no output)"} and not filtered["asked"].startswith("-v")
        return "green" if nothing and _TROUBLE.search(filtered["asked"]) else ""
    return "green" if shortened and not _TROUBLE.search(text) else ""


def _says_green(text: str, command: str) -> bool:
    """True if an output tells of success in words that the command itself doesn't have: what
    `echo` prints is no verdict."""
    said = {found[0] for found in _GREEN_OUTPUT.finditer(text)}
    return any(not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", command) for one in said)


def covers(check: str, other: str) -> bool:
    """Tell whether a project's own check, such as `npm run check`, runs another one, such as
    `tsc`: with the one, the other is green, too."""
    runs = _RUNNER.match(check) is not None and _RUNNER.match(other) is None
    return runs and ("test" in check) == (_TESTS.match(other) is not None)


def _code(result: dict[str, Any]) -> object:
    return object_of(result.get("details")).get("exit_code")


def _printed(result: dict[str, Any]) -> str:
    return text_of(blocks_of(result.get("content")))


def _is_cut(printed: str, lines: str) -> bool:
    return printed.rstrip("\n").count("\n") + 1 >= int(lines[:6])
