"""Instructions in Claude Code's files are those that it was seen to send, case by case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.settings.claude_code.seen import lay_out, lines_of, seen
from tui.context.project_files import find, nested
from tui.context.system_prompt import Source
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.policy import Policy
from tui.settings import rule_files

_HEAD = re.compile(
    r"(?:system: tool\.call hook additional context: )?Contents of (\S.*?)(?: \(|:$)"
)


def theirs(row: dict[str, Any]) -> dict[str, str]:
    """The files whose contents were sent, with their last lines."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines_of(row):
        if head := _HEAD.match(line):
            name = head[1].replace("<WORK>/", "").replace("<HOME>", "~")
            found[name] = []
        elif line.startswith(("user: ", "assistant: ", "As you answer")):
            name = ""
        elif name and line:
            found[name].append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def ours(sources: Sequence[Source]) -> dict[str, str]:
    there = {one.name: one.text for one in sources if one.origin in {"project", "user"}}
    # lines of fences are in every prompt, so the rows leave them out
    texts = {name: text.replace("```", "").split("\n") for name, text in there.items() if text}
    return {name: "\n".join(filter(None, lines)) for name, lines in texts.items()}


def laid_out(name: str, tmp_path: Path, folder: str = "") -> Workspace:
    root = tmp_path / "w"
    (root / folder).mkdir(parents=True)
    lay_out(seen()[name], root, Path.home())
    return Workspace.at(root / folder, ceiling=tmp_path)


def found(place: Workspace) -> dict[str, str]:
    return ours(find(place, folders()).sources)


@pytest.mark.parametrize(
    "name",
    [
        "agents-only",
        "agents-imports",
        "import-folder-of-file",
        "import-depth",
        "import-circle",
        "import-twice",
        "import-outside",
        "import-of-user",
        "import-kinds",
        "imports",
        "comments",
        "front-matter-of-memory",
        "rules",
        "user-agents",
    ],
)
def test_the_same_files_are_sent(name: str, tmp_path: Path) -> None:
    place, row = laid_out(name, tmp_path), seen()[name]
    given = theirs({"sent": row["sent"][:1]})
    if name == "imports":  # a name at the end of a sentence is meant, too
        given["sub/b.md"] = "B"
    assert found(place) == given


def test_all_kinds_of_files(tmp_path: Path) -> None:
    given = theirs(seen()["memory-files"])
    del given["CLAUDE.md"]  # there is an AGENTS.md: of the two we take that one
    assert found(laid_out("memory-files", tmp_path)) == given | {"AGENTS.md": "Agents."}


def test_what_is_passed_over_is_said(tmp_path: Path) -> None:
    place = laid_out("memory-files", tmp_path)
    assert find(place, folders()).problems == ("CLAUDE.md was left out: AGENTS.md is beside it.",)
    (place.root / "CLAUDE.md").write_text("@AGENTS.md")
    assert find(place, folders()).problems == ()


def test_from_a_folder_below(tmp_path: Path) -> None:
    place = laid_out("upwards", tmp_path, "pkg")
    (tmp_path / "w/.git").mkdir()
    given = theirs(seen()["upwards"])
    assert {name.replace("../", ""): text for name, text in found(place).items()} == {
        name.replace("pkg/", "") if name != "CLAUDE.md" else name: text
        for name, text in given.items()
        if name != "CLAUDE.md"
    } | {"CLAUDE.md": "Package."}
    assert found(place)["../CLAUDE.md"] == given["CLAUDE.md"]


def test_folders_below_bring_theirs_with_the_first_file(tmp_path: Path) -> None:
    place, row = laid_out("nested", tmp_path), seen()["nested"]
    given = theirs({"sent": row["sent"][1:]})
    del given["src/.claude/rules/r.md"]  # rules lie at the root here
    assert ours(nested(place, [place.root / "src/a.py"])) == given


@pytest.mark.parametrize("name", ["import-words", "import-marked-up"])
def test_imports_among_other_signs(name: str, tmp_path: Path) -> None:
    there, given = found(laid_out(name, tmp_path)), theirs(seen()[name])
    assert given.keys() <= there.keys()
    unmeant = {"t.md", "d.md", "f.md"} if name == "import-marked-up" else {"f.md"}
    assert not unmeant & there.keys()


@pytest.mark.parametrize("name", ["rules-spelled", "rules-globs"])
def test_rules_hold_for_the_same_files(name: str, tmp_path: Path) -> None:
    place, row = laid_out(name, tmp_path), seen()[name]
    (file,) = (place.root / one for one in row["files"] if one.endswith(".py"))
    rules, _ = rule_files.load(place.root, folders(), lambda _name, _data: True)
    at_once = {rule.name for rule in rules if not rule.paths}
    assert at_once == theirs({"sent": row["sent"][:1]}).keys()
    later = {rule.name for rule in rules if rule.holds_for([file], place.root)}
    given = set(theirs({"sent": row["sent"][1:]}))
    if name == "rules-spelled":  # `./src/**` holds nowhere there
        given.add(".claude/rules/h.md")
    assert later == given


@pytest.mark.parametrize("rules", [{"deny": ["read_file(.env)"]}, {"ask": ["read_file(.env)"]}])
def test_no_import_and_no_link_reads_what_rules_keep_from_readers(
    rules: dict[str, list[str]], tmp_path: Path
) -> None:
    root = tmp_path / "w"
    (root / "sub").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".env").write_text("KEY=secret")
    (root / "CLAUDE.md").write_text("See @.env and @notes.md")
    (root / "notes.md").write_text("notes")
    (root / "sub/CLAUDE.md").write_text("See @../.env")
    place = Workspace.at(root, ceiling=tmp_path)
    policy = Policy.of(deny=rules.get("deny", ()), ask=rules.get("ask", ()))
    reads = policy.reads_freely(place)
    files = find(place, folders(), reads=reads)
    below = nested(place, [root / "sub/x"], reads)
    assert not any("secret" in one.text for one in (*files.sources, *below))
    assert "notes" in {one.text for one in files.sources}
    assert [one for one in files.problems if "your rules" in one] == [
        ".env was left out: your rules don't let it be read without a question."
    ]
    assert any("secret" in one.text for one in find(place, folders()).sources)
    (root / "CLAUDE.local.md").symlink_to(".env")
    files = find(place, folders(), reads=reads)
    assert not any("secret" in one.text for one in files.sources)
    assert "CLAUDE.local.md was left out: your rules" in "".join(files.problems)
