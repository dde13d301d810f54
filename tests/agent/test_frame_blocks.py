"""What a session begins with is paid for once a cache life: in other folders, in worktrees, and
where several start at the same time. Prices are those of the priced server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import done, said
from tests.agent.test_cache_marks import marks
from tests.agent.test_request_replay import assert_same
from tests.agent.test_requests_grow import bare, program, types
from tests.support.server import LoopbackServer
from tests.support.server_cache import ServerCache, price
from tests.support.server_models import MODELS
from tests.support.server_script import Json
from tests.support.server_view import shown
from tui.context import system_prompt
from tui.context.system_prompt import SystemPrompt
from tui.core.config import Cache
from tui.core.paths import folders

SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
ALL: dict[str, Any] = {"api_features": "all", "cache": Cache(ttl="5m")}
WRAPPED = 12
"""The tokens that the server counts for the JSON of two more blocks of text."""
OLD_ORDER = (
    *("identity", "own", "role", "project", "security", "tools", "tiers", "environment"),
    *("user", "added", "agents", "boot", "skills", "memory", "recalled"),
)


def script(answers: int, **more: Any) -> Json:
    turns = [said(f"s{n}", **more) for n in range(answers)]
    return {"turns": turns, "catalogue": True, "priced": True}


async def first_of(folder: Path, task: str, model: str) -> Json:
    """The first request of a session in a folder."""
    folder.mkdir()
    (folder / "AGENTS.md").write_text(f"This is {folder.name}. Be brief.\n")
    async with LoopbackServer(script(1)) as server:
        async with program(folder, server, model=model, **ALL) as agent:
            await done(agent, task)
        return server.posts[0].body


def as_before(body: Json) -> Json:
    """The same with the system prompt in one block, and one mark."""
    text = "\n\n".join(block["text"] for block in body["system"])
    mark = {"cache_control": {"type": "ephemeral"}}
    return body | {"system": [{"type": "text", "text": text, **mark}]}


def costs(*requests: Json) -> list[float]:
    """What each costs as input, one after the other in a cache that is empty first."""
    cache = ServerCache()
    found: list[float] = []
    for now, body in enumerate(requests):
        usage = cache.read(shown(body), now)
        found.append(price(MODELS[body["model"]], usage | {"output_tokens": 0}))
    return found


@pytest.mark.parametrize(
    ("model", "tokens", "most"),
    [(SONNET, 300, 0.15), (SONNET, 1000, 0.25), (HAIKU, 300, 0.20), (HAIKU, 1000, 0.30)],
)
async def test_the_first_request_of_another_folder_reads_what_all_share(
    own_folders: Path, tmp_path: Path, model: str, tokens: int, most: float
) -> None:
    task = "word" * tokens
    sent = [await first_of(tmp_path / name, task, model) for name in ("one", "another")]
    cold, warm = costs(*sent)
    cold_before, warm_before = costs(*map(as_before, sent))
    assert warm <= most * warm_before
    # The server counts the characters of the JSON around a text as well.
    assert cold <= cold_before + WRAPPED * MODELS[model].price.write_5m / 1_000_000


async def test_only_the_first_request_marks_each_block(own_folders: Path, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    async with LoopbackServer(script(3)) as server:
        async with program(tmp_path, server, **ALL) as agent:
            await done(agent, "one")
            await done(agent, "two")
            path = agent.session.path
        async with program(tmp_path, server, path, **ALL) as agent:
            await done(agent, "three")
            assert types(agent, "frame")[0]["blocks"] == [4, 6, 7]
            assert types(agent, "break") == []
        sent = [post.body for post in server.posts]
        system = [["cache_control" in block for block in body["system"]] for body in sent]
        assert system == [[True] * 3, [False, False, True], [False, False, True]]
        assert [len(marks(body)) for body in sent] == [1, 3, 3]
        for before, after in pairwise(sent):
            assert bare(after)[: len(bare(before))] == bare(before)
        assert_same(path, server)


def make_worktree(repo: Path, tree: Path) -> None:
    """Commit what is there, and check it out at another place."""
    git = ["git", "-C", str(repo), "-c", "user.name=Eve", "-c", "user.email=eve@example.org"]
    for words in (
        ["init", "-qb", "main"],
        ["add", "-Af"],
        ["commit", "-qm", "first"],
        ["worktree", "add", "-qb", "late-work", str(tree)],
    ):
        subprocess.run([*git, *words], check=True)


async def test_two_worktrees_differ_in_the_last_block_alone(
    own_folders: Path, tmp_path: Path
) -> None:
    repo, tree = tmp_path / "repo", tmp_path / "elsewhere" / "tree"
    (repo / "app/.holdfast").mkdir(parents=True)
    skill = folders().config / "skills/count/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: count\ndescription: Counts.\n---\nCount.\n")
    for name in ("AGENTS.md", "app/AGENTS.md", "app/.holdfast/boot.md", "app/MEMORY.md"):
        (repo / name).write_text(f"What {name} says.\n")
    make_worktree(repo, tree)
    sent: list[Json] = []
    async with LoopbackServer(script(2)) as server:
        for folder in (repo / "app", tree / "app"):
            async with program(folder, server, **ALL) as agent:
                await done(agent, "go")
        sent = [post.body for post in server.posts]
    one, two = ([block["text"] for block in body["system"]] for body in sent)
    assert one[:2] == two[:2]
    assert one[2] != two[2]
    assert "What AGENTS.md says." in one[1]
    assert "Counts." in one[1]
    assert sent[0]["tools"] == sent[1]["tools"]
    for place in (str(tmp_path), "elsewhere", "late-work"):
        assert place not in "".join(two[:2])


def old_compose(compose: Callable[..., SystemPrompt]) -> Callable[..., SystemPrompt]:
    """Makes system prompts as the program did before they had blocks."""

    def composed(*args: Any, **options: Any) -> SystemPrompt:
        made = compose(*args, **options)
        layers = sorted(made.layers, key=lambda one: OLD_ORDER.index(one.name.split()[0]))
        return replace(made, layers=tuple(layers), ends=())

    return composed


async def test_an_old_session_of_one_block_goes_on_without_a_break(
    own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    async with LoopbackServer(script(62)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(system_prompt, "compose", old_compose(system_prompt.compose))
            async with program(tmp_path, server, **ALL) as agent:
                for turn in range(60):
                    await done(agent, f"turn {turn}")
                path = agent.session.path
        async with program(tmp_path, server, path, **ALL) as agent:
            await done(agent, "and on")
            agent.context.reload()  # nothing else is in a frame made now: the form is no reason
            await done(agent, "and further")
            assert types(agent, "break") == []
            (frame,) = types(agent, "frame")
            assert "blocks" not in frame
        sent = [post.body for post in server.posts]
        assert [len(body["system"]) for body in sent] == [1] * len(sent)
        for before, after in pairwise(sent):
            assert bare(after)[: len(bare(before))] == bare(before)
        assert_same(path, server)


async def test_a_file_that_only_has_another_name_is_not_said_again(
    own_folders: Path, tmp_path: Path
) -> None:
    """Old frames name instructions above the folder by their paths, which differ in worktrees."""
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    async with LoopbackServer(script(3)) as server, program(tmp_path, server, **ALL) as agent:
        await done(agent, "one")
        (tmp_path / "AGENTS.md").rename(tmp_path / "CLAUDE.md")
        await done(agent, "two")
        assert types(agent, "notice") == []
        (tmp_path / "CLAUDE.md").write_text("Be very brief.\n")
        await done(agent, "three")
        changed, gone = types(agent, "notice")
    assert changed["files"].keys() == {"CLAUDE.md"}
    assert gone["text"] == "AGENTS.md is gone. What it said no longer applies."


async def test_sub_agents_that_start_together_write_what_they_share_once(
    own_folders: Path, tmp_path: Path
) -> None:
    calls = [
        {"name": "task", "input": {"description": f"d{n}", "prompt": "look", "agent": "general"}}
        for n in range(3)
    ]
    turns: list[Json] = [{"tools": calls}, *(said(f"s{n}", delay_s=0.02) for n in range(3))]
    async with LoopbackServer(script(0) | {"turns": [*turns, said("end")]}) as server:
        async with program(tmp_path, server, **ALL) as agent:
            await done(agent, "ask three")
        parent, *children = server.api.priced[:4]
    shared = parent.body["system"][0]
    assert [one.body["system"][0] for one in children] == [shared] * 3
    assert all("cache_control" in block for one in children for block in one.body["system"])
    read = [one.message["usage"]["cache_read_input_tokens"] for one in children]
    written = [one.message["usage"]["cache_creation_input_tokens"] for one in children]
    assert read[0] == 0
    assert min(read[1:]) > 10 * max(written[1:])
