"""The manual: topics written in Markdown, opened by name and searched by words."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.late_pattern import late_pattern
from tui.core.project import REPOSITORY

TOPICS: Final = (
    "start", "prompt", "keys", "commands", "switching", "command-line", "permissions", "editing",
    "directives", "sessions", "desk", "background", "goals", "schedule", "context", "requests",
    "memory", "errors", "tasks", "machines", "replay", "print-mode", "python", "claude", "editors",
    "events", "mcp", "agents", "worktrees", "jobs", "interactive", "skills", "plugins", "hooks",
    "web", "images", "configuration", "profiles", "clouds", "otel", "themes", "terminals", "plain",
    "practice", "files", "containers", "doctor",
)  # fmt: skip
"""The names of the topics, in reading order: each is a file in `tui/manual`."""

_NOT_TEXT = late_pattern(r"^(<!--.*-->|!\[.*\]\(.*\))\n+", re.MULTILINE)
_FENCE = late_pattern(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_HEADING = late_pattern(r"^## (.*)\n", re.MULTILINE)
_RULE = late_pattern(r"\|[-|]+\|")
_MARKUP = late_pattern(r"^- |\*\*|`|\]\([^)]*\)|\[(?=[a-z-]+\]\()")


@dataclass(frozen=True, slots=True)
class Topic:
    """`text` is the whole of it as Markdown, without comments and pictures."""

    name: str
    title: str
    summary: str
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    """A section that mentions what was searched for. `heading` is "" above the first heading;
    `line` is the first line with one of the words, without markup."""

    topic: Topic
    heading: str
    line: str

    @property
    def place(self) -> str:
        """The topic's name and the section's heading, as they are listed."""
        return f"{self.topic.name} › {self.heading}" if self.heading else self.topic.name


@cache
def topics() -> tuple[Topic, ...]:
    """All topics, in reading order."""
    return tuple(map(_read, TOPICS))


def _read(name: str) -> Topic:
    from importlib.resources import files  # noqa: PLC0415 - the names are wanted without it

    source = files("tui").joinpath("manual", f"{name}.md").read_text(encoding="utf-8")
    title, summary = source.split("\n\n", 2)[:2]
    return Topic(name, title.removeprefix("# "), _plain(summary), _NOT_TEXT.sub("", source))


def named(word: str) -> tuple[Topic, ...]:
    """The topic of that name, else those whose names begin with it."""
    wanted = word.strip().casefold()
    exact = tuple(topic for topic in topics() if topic.name == wanted)
    return exact or tuple(t for t in topics() if wanted and t.name.startswith(wanted))


def search(words: str) -> list[Match]:
    """The sections that have all the words, those with all of them in the heading first.

    A word is found at the beginning of a word: `retry` is in "retrying".
    """
    patterns = [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in words.split()]
    folded_words = words.casefold().split()
    matches: list[tuple[bool, Match]] = []
    for topic, heading, text, folded in all_sections() if patterns else ():
        if not all(word in folded for word in folded_words):  # ten times as quick as the patterns
            continue
        if all(pattern.search(f"{heading}\n{text}") for pattern in patterns):
            titled = all(pattern.search(heading or topic.title) for pattern in patterns)
            matches.append((not titled, Match(topic, heading, _first_line(text, patterns))))
    return [match for _, match in sorted(matches, key=lambda pair: pair[0])]


@cache
def all_sections() -> tuple[tuple[Topic, str, str, str], ...]:
    """(topic, heading, text, both as they are compared) of each section. Takes 6 ms once."""
    return tuple(
        (topic, heading, text, f"{heading}\n{text}".casefold())
        for topic in topics()
        for heading, text in sections(topic)
    )


def address(topic: str = "") -> str:
    """Return the web address of a topic; without one, of the list of them."""
    owner, name = REPOSITORY.rsplit("/", 2)[1:]
    return f"https://{owner}.github.io/{name}/" + (f"{topic}.html" if topic else "")


def sections(topic: Topic) -> list[tuple[str, str]]:
    """(heading, text) of each section; the first has no heading."""
    fences = [match.span() for match in _FENCE.finditer(topic.text)]
    heads = [
        match
        for match in _HEADING.finditer(topic.text)
        if not any(start < match.start() < end for start, end in fences)
    ]
    edges = [*(head.start() for head in heads), len(topic.text)]
    sections = [("", topic.text[: edges[0]].partition("\n\n")[2])]
    for head, end in zip(heads, edges[1:], strict=True):
        sections.append((head[1], topic.text[head.end() : end]))
    return sections


def _first_line(text: str, patterns: list[re.Pattern[str]]) -> str:
    first = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("```") or _RULE.fullmatch(line):
            continue
        if any(pattern.search(line) for pattern in patterns):
            return _plain(line)
        first = first or line
    return _plain(first)


def _plain(line: str) -> str:
    """A line without its markup; the cells of a table's row are separated by dots."""
    if line.startswith("|"):
        cells = re.split(r"(?<!\\)\|", line.strip("|"))
        line = " · ".join(cell.replace("\\|", "|").strip() for cell in cells)
    return _MARKUP.sub("", line).strip()


def near(word: str) -> str:
    """The name of the topic that was probably meant, "" where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - for a typing mistake only

    return next(iter(get_close_matches(word.casefold(), TOPICS, n=1)), "")
