"""The verdict of a command that checks a project. Pure."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from tui.context.timeline.check_line import CHECK, without_texts
from tui.context.timeline.check_output import GREEN_WORDS, is_quoted, says_alone
from tui.core.late_pattern import late_pattern
from tui.core.messages import blocks_of, object_of, text_of

Verdict: TypeAlias = Literal["", "green", "red"]

_TAIL: Final = 2000
"""Characters at the end of an output in which its summary is looked for."""

_INSIDE: Final = late_pattern(r"(?:\$|[<>])\([^)]*$")
_ONE_OF_SEVERAL: Final = late_pattern(r"\||;|(?<![&<>])&(?![&>])|(?<!\\)\n\s*\S")
_SEPARATE: Final = late_pattern(r";|\n")
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
_TROUBLE: Final = late_pattern(
    r"err(?:or)?s?\b|fail|fatal|panic|exception|traceback|✗|✖|×", re.IGNORECASE
)
_RUNNER: Final = late_pattern(
    r"(?:npm|pnpm|yarn|bun|deno|make|mise|just|task|turbo|nx|moon|tox|nox)\b"
)
_TESTS: Final = late_pattern(r".*test|doctest|jest|mocha|ava\b|rspec|phpunit|pest|cargo nextest")


def _by_its_code(command: str) -> bool:
    """True if a line ends with the exit code of the check in it, unless something before failed."""
    line = without_texts(command)
    found = CHECK.search(line)
    if found is None or _INSIDE.search(line[: found.start("check")]):
        return False
    before = _SEPARATE.split(line[: found.start("check")])[-1]
    if "||" in before:  # it may not have run
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
    if not says_alone(command):
        return ""
    if any(not is_quoted(found[0], command) for found in GREEN_WORDS.finditer(text)):
        return "" if _RED_OUTPUT.search(printed) else "green"
    if filtered:  # of what was looked for there was nothing
        nothing = text.strip() in {"", "(no output)"} and not filtered["asked"].startswith("-v")
        return "green" if nothing and _TROUBLE.search(filtered["asked"]) else ""
    return "green" if shortened and not _TROUBLE.search(text) else ""


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
