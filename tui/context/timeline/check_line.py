"""Finds the check that a command line runs: tests, a linter, a build. Pure."""

from __future__ import annotations

import re
from typing import Final

from tui.core.late_pattern import late_pattern

_CHARS: Final = 4000

CHECK: Final = late_pattern(
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
_TEXT: Final = late_pattern(
    r"""(?P<here><<-?[ ]*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[^\n]*\n)
      (?P<body>.*?)(?=\n\s*(?P=end)\b|\Z)
    |(?<=[-l]c\s)(?:'(?P<run>[^']*)'|"(?P<too>(?:\\.|[^"\\])*)")
    |'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)
    |\\[^\n]|(?:^|(?<=[\s;]))\#[^\n]*""",
    re.VERBOSE | re.DOTALL,
)
"""What is no command of its line: texts in quotes, unless a shell runs them, here-documents
and comments."""


def check_in(command: str) -> str:
    """Name the check that a command runs, such as `pytest` or `cargo test`; "" for none."""
    line = without_texts(command)
    found = CHECK.search(line)
    if found is None or _SHOWN.search(arguments_of(line, found)):
        return ""
    return " ".join(found["check"].split())


def without_texts(command: str) -> str:
    """A command line with what is no command in it blotted out; all places stay."""
    return _TEXT.sub(_blotted, command[:_CHARS])


def _blotted(found: re.Match[str]) -> str:
    inner = found["run"] or found["too"]
    if inner:
        return f"{found[0][0]}{_TEXT.sub(_blotted, inner)}{found[0][-1]}"
    kept = found["here"]
    return (kept or "") + "_" * len(found["body"] if kept else found[0])


def arguments_of(line: str, found: re.Match[str]) -> str:
    """The arguments of a check."""
    given = _ARGUMENTS.match(line, found.end())
    return given[0] if given else ""
