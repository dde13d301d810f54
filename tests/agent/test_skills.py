"""Skills in a session: in its frame, loaded by the model, read and run where they lie."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agent.test_guards import results
from tests.support.agents import events_of
from tests.support.provider import Answer, ScriptedProvider, call, say
from tui.agent import composition
from tui.agent.agent import Agent
from tui.agent.launch import Launch
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Config, Permissions, SandboxSettings
from tui.core.messages import text_of
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.gate import RulesOnly
from tui.provider import catalogue
from tui.provider.base import ModelInfo, Request
from tui.session.session import Session
from tui.settings.trust import Trust

Open = Callable[..., Agent]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the program's own agent in a folder, on a new session or an old one."""
    agents: list[Agent] = []
    root = tmp_path / "work"
    root.mkdir()

    def open_(
        provider: ScriptedProvider, session: Path | None = None, *, trust: bool = False, **more: Any
    ) -> Agent:
        config = more.pop("config", Config())
        place = Workspace.at(root, ceiling="/")
        trusted = Trust(everything=trust)
        launch = Launch(place, config, folders(), trust=trusted, **more)
        clock = SystemClock()
        found = (
            Session.open(session, clock=clock)
            if session
            else Session.create(root, folders=folders(), clock=clock)
        )
        agents.append(composition.make_agent(launch, found, RulesOnly(), provider=provider))
        return agents[-1]

    yield open_
    for agent in agents:
        await agent.close()


def skill(place: Path, name: str, description: str = "About PDFs.", body: str = "Do it.") -> Path:
    folder = place / "skills" / name
    folder.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
    (folder / "SKILL.md").write_text(text)
    return folder


def claude() -> Path:
    return Path.home() / ".claude"


def names(request: Request) -> list[str]:
    return [str(tool["name"]) for tool in request.tools]


def prompt_of(request: Request) -> str:
    return text_of(request.system)


def outputs(agent: Agent) -> list[str]:
    """The results, in the order of the calls."""
    found = sorted(results(agent), key=lambda record: str(record.data["call_id"]))
    return [text_of(record.data["content"]) for record in found]


def types(agent: Agent, kind: str) -> list[dict[str, Any]]:
    return [record.data for record in agent.session.records if record.type == kind]


async def turn(agent: Agent, text: str = "go") -> list[str]:
    """One turn; the notices in it."""
    found = await events_of(agent, text)
    (last,) = [event for event in found if isinstance(event, facts.TurnFinished)]
    assert last.outcome == "done"
    return [event.text for event in found if isinstance(event, facts.Notice)]


async def test_without_skills_nothing_of_them_is_sent(opened: Open) -> None:
    provider = ScriptedProvider(say("ok"))
    agent = opened(provider)
    await turn(agent)
    assert "skill" not in names(provider.requests[0])
    assert "kill list" not in prompt_of(provider.requests[0])
    assert not agent.offers_skills


async def test_the_frame_lists_names_and_descriptions_and_the_tool_loads(opened: Open) -> None:
    folder = skill(claude(), "pdf", body="Never forget the margins.")
    (folder / "forms.md").write_text("All about forms.\n")
    load = call("skill", "1", name="pdf", arguments="a.pdf")
    reads = [
        call("read_file", "2", path=str(folder / "forms.md")),
        call("list_dir", "3", path=str(folder)),
        call("grep_search", "4", pattern="about", path=str(folder)),
        call("write_file", "5", path=str(folder / "forms.md"), content="x"),
    ]
    provider = ScriptedProvider([load], reads, say("ok"))
    agent = opened(provider)
    await turn(agent)
    first = provider.requests[0]
    assert {"skill", "recall"} <= set(names(first))
    assert "- pdf: About PDFs." in prompt_of(first)
    assert "margins" not in prompt_of(first)
    loaded, read, listed, found, written = outputs(agent)
    assert f"Its folder: {folder} (read-only)." in loaded
    assert "Arguments: a.pdf\n" in loaded
    assert "- forms.md, 17 B\n" in loaded
    assert loaded.endswith("\n\nNever forget the margins.")
    assert "All about forms." in read
    assert "forms.md" in listed
    assert "All about forms." in found
    assert "is only read" in written
    assert (folder / "forms.md").read_text() == "All about forms.\n"


async def test_a_skill_in_our_private_folder_opens_itself_and_nothing_else(opened: Open) -> None:
    folder = skill(folders().config, "pdf")
    (folders().config / "config.toml").write_text("# secret\n")
    (folder / "link").symlink_to(folders().config / "config.toml")
    paths = (folder / "SKILL.md", folders().config / "config.toml", folder / "link")
    reads = [call("read_file", str(n), path=str(path)) for n, path in enumerate(paths)]
    agent = opened(ScriptedProvider(reads, say("ok")))
    await turn(agent)
    own, settings, link = outputs(agent)
    assert "Do it." in own
    assert "outside the workspace" in settings
    assert "outside the workspace" in link


async def test_two_megabytes_are_cut_with_a_receipt_and_kept(opened: Open) -> None:
    body = "".join(f"line {number} of the skill\n" for number in range(100_000))
    skill(claude(), "large", body=body)
    agent = opened(ScriptedProvider([call("skill", "1", name="large")], say("ok")))
    await turn(agent)
    (result,) = results(agent)
    receipt = result.data["receipt"]
    text = text_of(result.data["content"])
    assert "line 0 of the skill" in text
    assert len(text) < 100_000
    assert body.rstrip() in Path(receipt["path"]).read_text()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"deny": ("skill(pdf)",)}, "Denied by the rule skill(pdf)"),
        ({"ask": ("skill(p*)",)}, "Allow with --allow 'skill(pdf)'"),
        ({"ask": ("skill",), "deny": ("skill(other)",)}, "Allow with --allow 'skill(pdf)'"),
        ({"allow": ("skill(pdf)",)}, "Do it."),
    ],
)
async def test_rules_name_skills(
    opened: Open, rules: dict[str, tuple[str, ...]], said: str
) -> None:
    skill(claude(), "pdf")
    config = Config(permissions=msgspec.convert(rules, Permissions))
    agent = opened(ScriptedProvider([call("skill", "1", name="pdf")], say("ok")), config=config)
    await turn(agent)
    assert said in outputs(agent)[0]


async def test_what_changes_is_said_at_the_end_and_breaks_nothing(opened: Open) -> None:
    pdf = skill(claude(), "pdf")
    provider = ScriptedProvider(say("1"), say("2"), say("3"), say("4"))
    agent = opened(provider)
    await turn(agent)
    skill(claude(), "excel", "About tables.")
    await turn(agent)
    (pdf / "SKILL.md").write_text("---\ndescription: About papers.\n---\nNew.\n")
    path = agent.session.path
    await agent.close()
    again = opened(provider, path)
    await turn(again)
    await turn(again)
    assert len(types(again, "frame")) == 1
    assert types(again, "break") == []
    said = [data["text"] for data in types(again, "notice") if data["kind"] == "file"]
    assert ["About tables." in text for text in said] == [True, True]
    assert ["About PDFs." in text for text in said] == [True, False]
    assert all(text.startswith("Skill list has changed. It now says:\n\n") for text in said)


async def test_a_session_without_skills_takes_them_in_with_reload(opened: Open) -> None:
    load = call("skill", "1", name="pdf")
    provider = ScriptedProvider(say("1"), say("2"), [load], say("4"), say("5"))
    agent = opened(provider)
    await turn(agent)
    pdf = skill(claude(), "pdf")
    await turn(agent)
    assert not agent.offers_skills
    agent.context.reload()
    await turn(agent)
    offered = ["skill" in names(request) for request in provider.requests]
    assert offered == [False, False, True, True]
    assert "- pdf: About PDFs." in prompt_of(provider.requests[-1])
    assert "Do it." in outputs(agent)[0]
    (pdf / "SKILL.md").unlink()
    agent.context.reload()
    await turn(agent)
    assert "skill" not in names(provider.requests[-1])
    assert "pdf" not in prompt_of(provider.requests[-1])


@pytest.mark.parametrize("features", ["all", "basic"])
async def test_a_session_from_before_the_first_skill_is_continued_as_it_is(
    opened: Open, features: Any
) -> None:
    config = Config(api_features=features)
    provider = ScriptedProvider(say("1"), say("2"))
    agent = opened(provider, config=config)
    await turn(agent)
    path = agent.session.path
    await agent.close()
    skill(claude(), "pdf")
    again = opened(provider, path, config=config)
    told = await turn(again)
    assert len(types(again, "frame")) == 1
    assert types(again, "break") == []
    kinds = [data["kind"] for data in types(again, "notice") if data["kind"] != "state"]
    if features == "all":  # tools join where the model has that
        assert (told, kinds) == ([], ["file", "tools"])
    else:
        assert (told, kinds) == (["1 new tool waits (skill). /reload takes it now."], [])


class CataloguedProvider(ScriptedProvider):
    """Its models are as the catalogue has them."""

    async def model_info(self, model: str) -> ModelInfo:
        return catalogue.model_info(model)


@pytest.mark.parametrize("features", ["all", "basic"])
async def test_a_list_that_outgrows_its_room_gets_its_search(opened: Open, features: Any) -> None:
    skill(claude(), "pdf")
    search = call("search_installed", "1", query="tables")
    provider = CataloguedProvider(say("1"), [search], say("2"))
    agent = opened(provider, config=Config(api_features=features))
    await turn(agent)
    for number in range(40):
        skill(claude(), f"s{number:02}", f"About {'tables' if number == 7 else 'x' * 900}.")
    told = await turn(agent)
    assert types(agent, "break") == []
    kinds = [data["kind"] for data in types(agent, "notice") if data["kind"] != "state"]
    if features == "all":
        assert (told, kinds) == ([], ["file", "tools"])
        assert "skill s07: About tables." in outputs(agent)[0]
    else:
        assert told == ["1 new tool waits (search_installed). /reload takes it now."]


async def test_what_is_left_out_is_said(opened: Open, tmp_path: Path) -> None:
    skill(tmp_path / "work" / ".claude", "deploy")
    for number in range(20):
        skill(claude(), f"s{number:02}", "x" * 900)

    def said(found: Sequence[facts.Fact]) -> list[str]:
        return [event.text for event in found if isinstance(event, facts.Notice)]

    assert said(await opened(ScriptedProvider(), one_turn=True).start()) == [
        "1 skill of this folder left out, because you don't trust it as it is now: deploy.",
        (
            "The model's list of skills is too long: 20 descriptions are shortened. "
            "The model can search for them."
        ),
    ]
    assert len(said(await opened(ScriptedProvider(), trust=True).start())) == 1


@pytest.mark.parametrize("engine", ["bubblewrap", "launcher", "landlock"])
@pytest.mark.parametrize("place", ["claude", "config"])
async def test_scripts_run_behind_the_walls(opened: Open, engine: Any, place: str) -> None:
    folder = skill(claude() if place == "claude" else folders().config, "pdf")
    (folder / "fill.sh").write_text("echo filled; echo x > $1\n")
    (folder.parents[1] / "secret").write_text("the-mark-of-a-secret\n")
    commands = (
        f"sh {folder}/fill.sh /dev/null",
        f"cat {folder.parents[1]}/secret",
        f"sh {folder}/fill.sh {folder}/new",
    )
    calls: list[Answer] = [[call("run_command", str(n), command=c)] for n, c in enumerate(commands)]
    config = Config(
        sandbox=SandboxSettings(engine=engine), permissions=Permissions(allow=("run_command",))
    )
    agent = opened(ScriptedProvider(*calls, say("ok")), config=config, confined=True)
    await turn(agent)
    if agent.permissions.unconfined:
        pytest.skip("no such sandbox here")
    filled, secret, written = outputs(agent)
    assert filled.startswith("filled\n")
    assert "the-mark" not in secret
    assert "filled" in written
    assert not (folder / "new").exists()
