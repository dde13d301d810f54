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
      |mypy|pyright|basedpyright|tsc|eslint|flake8|pylint|shellcheck|golangci-lint
      |ruff\s+check|biome\s+(?:check|ci|lint)
      |cargo\s+(?:test|nextest|check|clippy|build)|go\s+(?:test|vet|build)
      |(?:npm|pnpm|yarn|bun|deno)\s+(?:run\s+)?(?:test|lint|check|typecheck|type-check|build)[\w:-]*
      |make\s+(?:-\S+\s+)*(?:test|tests|check|lint)[\w-]*
      |(?:gradlew?|mvnw?)\s+(?:\S+\s+)*(?:test|check|verify|build)
      |(?:dotnet|swift|mix|zig\s+build|bazel|rake|rails|php\s+artisan|flutter|dart|sbt|stack|cabal)
       \s+test
      |(?:run_?tests?|test)\.(?:sh|py)|manage\.py\s+test|pre-commit\s+run
    )(?![\w.-])""",
    re.VERBOSE,
)
_PIPED: Final = late_pattern(r"(?<!\|)\|(?!\|)|;|\|\|")
_WHOLE_PIPE: Final = "pipefail"
_RED_OUTPUT: Final = late_pattern(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^FAILED\b|^FAIL\b|test result: FAILED"
    r"|^error(?:\[E\d+\])?: |\berror TS\d|\bFound [1-9]\d* errors?\b",
    re.MULTILINE,
)
_NOTHING_RAN: Final = late_pattern(r"^Ran 0 tests in |\bno tests ran\b", re.MULTILINE)
_GREEN_OUTPUT: Final = late_pattern(
    r"\b[1-9]\d* pass(?:ed|ing)\b|test result: ok|^ok\b|\b0 errors?\b|\bno (?:issues|errors)\b"
    r"|All checks passed|^OK\b",
    re.MULTILINE,
)


def check_in(command: str) -> str:
    """Name the check that a command runs, such as `pytest` or `cargo test`; "" for none."""
    found = _CHECK.search(command[:_CHARS])
    return " ".join(found["check"].split()) if found else ""


def verdict_of(command: str, result: dict[str, Any]) -> Verdict:
    """Judge a check by its exit code, and where that is of another command in the same line, by the
    last lines that it printed. "" where neither says so, and where no test ran."""
    code = object_of(result.get("details")).get("exit_code")
    failed = code != 0 if isinstance(code, int) else result.get("is_error") is True
    if failed:
        return "red"
    if code is None and object_of(result.get("details")).get("job"):
        return ""
    if _PIPED.search(command) and _WHOLE_PIPE not in command:
        text = text_of(blocks_of(result.get("content")))[-_TAIL:]
        if _RED_OUTPUT.search(text):
            return "red"
        return "green" if _GREEN_OUTPUT.search(text) and not _NOTHING_RAN.search(text) else ""
    text = text_of(blocks_of(result.get("content")))[-_TAIL:]
    return "" if _NOTHING_RAN.search(text) else "green"
