"""The file of a sub-agent gives no tool that it may have meant to keep from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.settings.agent_definitions import AgentDefinition, load, parsed


def definition(front: str) -> AgentDefinition | str:
    text = f"---\nname: a\ndescription: d\n{front}\n---\nDo it.\n"
    return parsed(Path("a.md"), text.encode())


@pytest.mark.parametrize(
    "front",
    [
        "\ttools: read_file",
        "  tools: read_file",
        "- tools: read_file",
        "tools:read_file",
        "tools = read_file",
        "more: a: b\n'tools': read_file",
        "tools: read_file\ntools: '*'",
        "# c\n\n\tdisallowedTools: run_command",
        "\tpermissionMode: plan",
        "\tisolation: worktree",
    ],
)
def test_a_limit_that_cannot_be_read_makes_no_sub_agent(front: str, tmp_path: Path) -> None:
    assert "can't be read: write each field once" in str(definition(front))
    (tmp_path / "a.md").write_text(f"---\nname: a\ndescription: d\n{front}\n---\n")
    found = load([tmp_path])
    assert found.find("a") is None
    assert found.problems[0].startswith("a.md is no sub-agent: what it says about")


@pytest.mark.parametrize(
    "front",
    [
        "tools: read_file",
        "Tools : read_file",
        '"tools": read_file',
        "? tools\n: read_file",
        "\u00a0tools: read_file",
        "allowed-tools: [read_file]",
        "more: a: b\ntools: read_file",
        "more: |\n  tools: '*'\ntools: read_file",
        "#tools: '*'\nmore: a: b\ntools: read_file",
    ],
)
def test_one_that_can_be_read_counts(front: str) -> None:
    one = definition(front)
    assert isinstance(one, AgentDefinition)
    assert one.tools == ("read_file",)


def test_names_with_dashes_limit_too() -> None:
    one = definition("disallowed-tools: run_command\npermission-mode: plan")
    assert isinstance(one, AgentDefinition)
    assert "run_command" in one.without
    assert one.read_only


@pytest.mark.parametrize("other", ["allowed-tools", "allowedTools"])
@pytest.mark.parametrize("wider", ["Read, Bash", "'*'"])
def test_two_lists_of_tools_make_no_sub_agent(other: str, wider: str) -> None:
    for first, second in (("tools", other), (other, "tools")):
        front = f"description: d\n{first}: {wider}\n{second}: Read"
        why = parsed(Path("a.md"), f"---\n{front}\n---\nGo.".encode())
        assert why == f"it limits its tools by tools and by {other.lower()}: keep one of them"


@pytest.mark.parametrize("front", ["more: a: b\n# tools: read_file", "more: |\n  tools: x", "a: b"])
def test_without_a_limit_it_has_all_tools(front: str) -> None:
    one = definition(front)
    assert isinstance(one, AgentDefinition)
    assert one.tools is None


def test_what_claude_code_knows_and_we_do_not_is_named(tmp_path: Path):
    head = "name: a\ndescription: d\nskills: [x, y]\nmemory: project\npermissionMode: acceptEdits\n"
    (tmp_path / "a.md").write_text(f"---\n{head}hooks:\n  Stop: []\n---\nYou are a.\n")
    (tmp_path / "b.md").write_text("---\nname: b\ndescription: d\npermissionMode: plan\n---\nB\n")
    found = load([tmp_path])
    assert found.all["a"].left == ("hooks", "memory", "permissionmode")
    assert found.all["a"].prompt.endswith("Before you start, load these skills with `skill`: x, y.")
    assert found.all["b"].left == ()
    assert found.problems == ("The hooks of the sub-agent a don't run here.",)
