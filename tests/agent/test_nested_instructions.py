"""Instructions of a folder below the workspace's root come with the first call that goes there."""

from __future__ import annotations

from pathlib import Path

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.messages import text_of
from tui.core.paths import Folders
from tui.provider.base import Request
from tui.settings import rule_files


def said(request: Request) -> str:
    return "\n".join(text_of(message["content"]) for message in request.messages)


async def test_they_come_once_and_again_when_they_change(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Use tabs here.")
    (folder / "a.py").write_text("a = 1\n")
    (tmp_path / "b.py").write_text("b = 1\n")
    provider = ScriptedProvider(
        [call("read_file", "r1", path="b.py")],
        [call("read_file", "r2", path="app/a.py")],
        [call("read_file", "r3", path="app/a.py")],
        say("one"),
        say("two"),
        say("three"),
    )
    agent = make_agent(tmp_path, provider, find_files=lambda: ())
    await events_of(agent, "read them")
    lead = "app/AGENTS.md holds for the files in its folder. It says:"
    assert [said(request).count(lead) for request in provider.requests] == [0, 0, 1, 1]
    assert "Use tabs here." in said(provider.requests[2])
    await events_of(agent, "again")
    assert "app/AGENTS.md is gone" not in said(provider.requests[4])
    (folder / "AGENTS.md").write_text("Use blanks here.")
    await events_of(agent, "once more")
    last = said(provider.requests[5])
    assert "app/AGENTS.md has changed. It now says:" in last
    assert "Use blanks here." in last
    await agent.close()


async def test_one_that_went_is_said_to_be_gone(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("Use tabs here.")
    provider = ScriptedProvider([call("list_dir", "l", path="app")], say("one"), say("two"))
    agent = make_agent(tmp_path, provider, find_files=lambda: ())
    await events_of(agent, "look")
    (folder / "CLAUDE.md").unlink()
    await events_of(agent, "again")
    assert "app/CLAUDE.md is gone." in said(provider.requests[2])
    await agent.close()


async def test_rules_for_some_files_come_with_the_first_call_that_touches_one(
    tmp_path: Path,
) -> None:
    root = tmp_path / "work"
    rules = root / ".claude/rules"
    rules.mkdir(parents=True)
    (rules / "py.md").write_text("---\npaths: '**/*.py'\n---\nUse tabs here.")
    (root / "a.txt").write_text("a\n")
    (root / "b.py").write_text("b = 1\n")
    home = Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))

    def find() -> list[rule_files.RuleFile]:
        found, _ = rule_files.load(root, home, lambda _name, _data: True)
        return [one for one in found if one.paths and not one.own]

    provider = ScriptedProvider(
        [call("read_file", "r1", path="a.txt")],
        [call("read_file", "r2", path="b.py")],
        say("one"),
        say("two"),
        say("three"),
    )
    agent = make_agent(root, provider, find_files=lambda: (), find_rules=find)
    await events_of(agent, "read them")
    lead = ".claude/rules/py.md holds for **/*.py. It says:"
    assert [said(request).count(lead) for request in provider.requests] == [0, 0, 1]
    assert "Use tabs here." in said(provider.requests[2])
    (rules / "py.md").write_text("---\npaths: '**/*.py'\n---\nUse blanks here.")
    await events_of(agent, "again")
    assert ".claude/rules/py.md has changed. It now says:" in said(provider.requests[3])
    (rules / "py.md").unlink()
    await events_of(agent, "once more")
    assert ".claude/rules/py.md is gone." in said(provider.requests[4])
    await agent.close()
