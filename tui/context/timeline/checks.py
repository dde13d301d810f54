"""Commands that check a project, and how they ended. Pure."""

from __future__ import annotations

import re
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
_ONE_OF_SEVERAL: Final = late_pattern(r"(?<!\|)\|(?!\|)|;|\|\|")
_WHOLE_PIPE: Final = "pipefail"
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
    found = _CHECK.search(command[:_CHARS])
    return " ".join(found["check"].split()) if found else ""


def verdict_of(command: str, result: dict[str, Any]) -> Verdict:
    """Judge a check by its exit code, and where that is of another command in the same line, by the
    last lines that it printed. "" where neither says so, where it was stopped, and where no test
    ran."""
    verdict = _verdict(command, result)
    return "" if verdict == "green" and _NOTHING_RAN.search(_printed(result)[-_TAIL:]) else verdict


def _verdict(command: str, result: dict[str, Any]) -> Verdict:
    details = object_of(result.get("details"))
    code = details.get("exit_code")
    failed = code != 0 if isinstance(code, int) else result.get("is_error") is True
    if code is None and details.get("job"):
        return ""
    judged = _ONE_OF_SEVERAL.search(command) is None or _WHOLE_PIPE in command
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
    if _GREEN_OUTPUT.search(text):
        return "green"
    if filtered:  # of what was looked for there was nothing
        nothing = text.strip() in {"", "(no output)"} and not filtered["asked"].startswith("-v")
        return "green" if nothing and _TROUBLE.search(filtered["asked"]) else ""
    return "green" if shortened and not _TROUBLE.search(text) else ""


def covers(check: str, other: str) -> bool:
    """Tell whether a project's own check, such as `npm run check`, runs another one, such as
    `tsc`: with the one, the other is green, too."""
    runs = _RUNNER.match(check) is not None and _RUNNER.match(other) is None
    return runs and ("test" in check) == (_TESTS.match(other) is not None)


def _printed(result: dict[str, Any]) -> str:
    return text_of(blocks_of(result.get("content")))


def _is_cut(printed: str, lines: str) -> bool:
    return printed.rstrip("\n").count("\n") + 1 >= int(lines[:6])
