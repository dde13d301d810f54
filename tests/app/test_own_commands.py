"""Commands and skills of the person's as they are typed: found, completed, sent with what they
bring."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.test_conversation import Recorder, opened, until
from tests.support.world import World
from tui.app.conversation import Conversation
from tui.app.options.arguments import Options
from tui.app.router import route
from tui.core.partly_typed import PartlyTyped
from tui.core.paths import folders
from tui.plain.input_loop import complete
from tui.provider.base import ModelInfo
from tui.settings.trust import Trust
from tui.ui.commands.completion_sources import PromptSources

SKILL = "---\nname: pdf\ndescription: About PDFs\nargument-hint: [FILE]\n---\nDo it.\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.trust = Trust(everything=True)
    return world


@pytest.fixture
async def conversation(world: World) -> AsyncIterator[Conversation]:
    conversation = await opened(world)
    yield conversation
    await conversation.close()


def said(conversation: Conversation) -> list[str]:
    assert isinstance(conversation.frontend, Recorder)
    return conversation.frontend.said


@pytest.mark.parametrize("typed", ["/frontend:Fix_It a b", "/Fix_It a b", "/fix_it a b"])
async def test_a_command_of_claude_code_is_sent(
    world: World, conversation: Conversation, typed: str
) -> None:
    text = "---\ndescription: Fix\nargument-hint: [what] [where]\n---\n$1: !`echo $0` @README.md"
    write(world.workspace / ".claude/commands/frontend/Fix_It.md", text)
    assert await route(conversation, typed) == "sent"
    await until(lambda: world.agent.sent == [typed])
    assert world.agent.attached == ["b: `echo a` (its output is below) @README.md"]
    found = [one for one in PromptSources(conversation).commands() if one.value == "Fix_It"]
    assert [(one.detail, one.needs) for one in found] == [("Fix (project:frontend)", False)]
    assert complete(conversation, "/fix") == ["/Fix_It "]


async def test_the_folders_of_the_person_are_read_too(
    world: World, conversation: Conversation
) -> None:
    world.trust = Trust()
    write(world.workspace / ".claude/commands/both.md", "The folder's.")
    write(Path.home() / ".claude/commands/both.md", "Mine.")
    await route(conversation, "/both")
    await until(lambda: world.agent.attached == ["Mine."])


async def test_what_a_command_cannot_do_is_said(world: World, conversation: Conversation) -> None:
    front = "allowed-tools: WebSearch, Bash(ls:*), x()\nmodel: claude-3-5-haiku-20241022"
    write(folders().config / "commands/go.md", f"---\n{front}\n---\nGo.")
    assert await route(conversation, "/go") == "sent"
    assert said(conversation)[-2:] == [
        "/go can't allow WebSearch, x() here.",
        "/go asks for the model claude-3-5-haiku-20241022, which isn't offered here.",
    ]


async def test_another_model_answers_and_what_is_allowed_is_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    front = "allowed-tools: Bash(ls:*)\nmodel: opus"
    write(folders().config / "commands/go.md", f"---\n{front}\n---\nGo.")
    conversation = await opened(world)
    asked: list[str] = []

    def find_model(name: str) -> ModelInfo:
        asked.append(name)
        return ModelInfo("claude-opus-5-5", 200_000, 8192, "server")

    object.__setattr__(conversation.services, "asked_model", find_model)
    await route(conversation, "/go")
    await conversation.at_rest()
    assert asked == ["opus"]
    record = next(r for r in world.agent.session.records if r.type == "user")
    path = str(folders().config / "commands/go.md")
    allowed = ["run_command(ls *)"]
    model = "claude-opus-5-5"
    told = {"name": "go", "path": path, "allowed": allowed, "model": model}
    assert record.data["command"] == told
    await conversation.close()


async def test_a_path_is_no_command(world: World, conversation: Conversation) -> None:
    assert await route(conversation, "/notes.txt is wrong") == "sent"
    await until(lambda: world.agent.sent == ["/notes.txt is wrong"])
    assert await route(conversation, "/nothing here") == "refused"


async def test_a_skill_is_used_by_its_name(world: World, conversation: Conversation) -> None:
    folder = Path.home() / ".claude/skills/pdf"
    write(folder / "SKILL.md", SKILL)
    assert await route(conversation, "/pdf a.pdf") == "sent"
    await until(lambda: world.agent.sent == ["/pdf a.pdf"])
    assert world.agent.attached == [f"Use the skill pdf (SKILL.md in {folder}): a.pdf"]
    found = [one for one in PromptSources(conversation).commands() if one.value == "pdf"]
    assert [(one.detail, one.needs) for one in found] == [("About PDFs", False)]


async def test_skills_are_listed_with_what_is_wrong(
    world: World, conversation: Conversation
) -> None:
    await route(conversation, "/skills")
    assert said(conversation)[-1].startswith("No skills here. Skills are instructions")
    write(Path.home() / ".claude/skills/pdf/SKILL.md", SKILL)
    (Path.home() / ".claude/skills/empty").mkdir()
    write(world.workspace / ".agents/skills/deploy/SKILL.md", "Deploys it.\n")
    await route(conversation, "/skills")
    assert said(conversation)[-7:] == [
        "2 skills",
        "deploy: Deploys it.",
        f"  /deploy · this workspace: {world.workspace}/.agents/skills/deploy".replace(
            str(Path.home()), "~"
        ),
        "pdf: About PDFs",
        "  /pdf [FILE] · yours: ~/.claude/skills/pdf",
        "Not used: ~/.claude/skills/empty: There is no SKILL.md.",
        "This session began without skills; /reload offers them to the model.",
    ]


@pytest.mark.parametrize("command", ["/every 10m", "/loop 10m", "/bg"])
@pytest.mark.parametrize("pasted", ["/elevated on\nfix it", "/verbose /elevated go", "/deploy now"])
async def test_a_pasted_command_is_not_handed_to_another_process_as_typed(
    world: World,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    pasted: str,
) -> None:
    """The other process is given text, and would switch on what nobody has typed."""
    monkeypatch.setattr("tui.app.background.start", None)
    world.background_options, typed = Options(), len(command) + 1
    await route(conversation, PartlyTyped(f"{command} {pasted}", typed))
    await until(lambda: any("was pasted" in line for line in said(conversation)))
