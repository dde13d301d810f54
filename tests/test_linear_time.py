"""Text of a model, a server or a file costs time in proportion to its length: what took quadratic
or exponential time, with so much of it that it would not end before the test is stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tui.agent import hook_answers
from tui.agent.titles import cleaned
from tui.batch.taskfile import parse as task_file
from tui.context import spans
from tui.context.exam import facts_in
from tui.core import front_matter
from tui.core.otlp import SpanContext
from tui.plain.markdown_to_speech import read
from tui.provider.anthropic.error_bodies import page_title
from tui.session.passages import Query, SearchedText, passage_of
from tui.session.records import Record
from tui.settings.rule_files import paths_of
from tui.tools.find_by_name import glob_matcher
from tui.tools.patch_format import parse_patch
from tui.ui.widgets.markdown.parse import as_if_ended

MANY = 400_000


LONG_TEXT = SearchedText("", 1, "", (("prompt", "\n" * MANY),))
LONG_CALL = {"type": "tool_use", "input": {"patch": "*** Move to: x\n" * MANY}}
BREAKS = [("break", {"reason": f"r{n}"}) for n in range(MANY // 4)]
BILLS = [("break_billed", {"reason": f"r{n}"}) for n in reversed(range(MANY // 4))]
PROMPTS = [("user", {"text": "go on"})] * (MANY // 80)
RUNS = [spans.RunningCall(SpanContext("a" * 32, "b" * 16), 1, "general")] * MANY
PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"


def fold(*records: tuple[str, dict[str, str]], runs: Sequence[spans.RunningCall] = ()) -> None:
    """Make the spans of some records."""
    folded = spans.SpanFold("5e55", within=runs)
    for number, (type_, data) in enumerate(records):
        folded.add(Record(type_, f"r{number:06d}", None, "2026-01-02T03:04:05.000Z", data))


@pytest.mark.parametrize(
    "read_it",
    [
        lambda: page_title("<!---->" * 60 + "x", {}),
        lambda: page_title("<title" * MANY, {"content-type": "text/html"}),
        lambda: parse_patch(PATCH + " " * MANY + "x\n"),
        lambda: front_matter.parse(b"---\na: b: " + b"[" * 7_000 + b"\n---\n"),
        lambda: front_matter.parse(b"---\ntools: x" + b"," * MANY + b"\n---\n").names("tools"),
        lambda: front_matter.parse(
            b"---\n" + b"".join(b"a%d:\n" % n for n in range(MANY)) + b"---\n"
        ),
        lambda: task_file(b"- [ ] a\n" + b"  more words\n" * (2 * MANY)),
        lambda: paths_of(b"---\npaths: x" + b"," * MANY + b"\n---\n"),
        lambda: cleaned("#" * MANY),
        lambda: facts_in("\n" * MANY, ""),
        lambda: read("| a |\n" + " " * MANY + "x\n"),
        lambda: read("`" * MANY + "\n"),
        lambda: read("[a](" * (MANY // 4) + "\n"),
        lambda: as_if_ended(["[" * MANY], "```" + "\t" * MANY + "\n"),
        lambda: hook_answers.read(b"-" * MANY, "PreToolUse"),
        lambda: hook_answers.read(b'x\n{"a":' * MANY, "UserPromptSubmit"),
        lambda: Query.of("x" * 9).place(LONG_TEXT, "/"),
        lambda: Query.of(" ".join(map(str, range(400)))).place(LONG_TEXT, "/"),
        lambda: passage_of("assistant", "", 1, "", {"content": [LONG_CALL]}),
        lambda: fold(*BREAKS, *BILLS),
        lambda: fold(*PROMPTS, runs=RUNS),
        lambda: glob_matcher("*a" * 250)("a" * 255),
    ],
)
def test_it_ends(read_it: Callable[[], object]) -> None:
    read_it()
