"""137 sub-agents and 212 skills: each is listed or found, and both sides hear what is not."""

from __future__ import annotations

from tests.agent.test_skills import Open, names, opened, outputs, prompt_of, skill, turn
from tests.support.provider import ScriptedProvider, call, say
from tui.core.claude_names import claude_folder
from tui.core.config import Config

__all__ = ["opened"]


def many() -> None:
    (claude_folder() / "agents").mkdir(parents=True)
    for number in range(137):
        text = f"Agent {number} reviews code. " + "It has many more words to say. " * 12
        path = claude_folder() / f"agents/a{number:03}.md"
        path.write_text(f"---\nname: a{number:03}\ndescription: {text}\n---\nYou.\n")
    path = claude_folder() / "agents/z.md"
    path.write_text("---\nname: last\ndescription: Knows all about Kubernetes.\n---\nYou.\n")
    for number in range(212):
        about = f"Skill {number} does a thing. " + "And it says so at length. " * 9
        skill(claude_folder(), f"s{number:03}", about)


async def test_all_are_listed_or_found(opened: Open) -> None:
    many()
    search = call("search_installed", "1", query="kubernetes")
    provider = ScriptedProvider([search], say("ok"))
    agent = opened(provider)
    await turn(agent)
    first = provider.requests[0]
    assert "search_installed" in names(first)
    prompt = prompt_of(first)
    for what, count in (("a", 136), ("s", 212)):
        there = sum(f"\n- {what}{number:03}: " in prompt for number in range(count))
        assert there > count // 2
    assert "[... truncated" not in prompt
    assert prompt.count("search_installed finds all of them by words.") == 2
    assert (
        "1 of 352, the best first:\n- sub-agent last: Knows all about Kubernetes."
        in outputs(agent)[0]
    )


async def test_a_style_is_in_the_prompt_of_the_conversation(opened: Open) -> None:
    folder = claude_folder() / "output-styles"
    folder.mkdir(parents=True)
    (folder / "loud.md").write_text("---\nname: Loud\n---\nBe loud.\n")
    provider = ScriptedProvider(say("ok"))
    agent = opened(provider, config=Config(output_style="Loud"))
    await turn(agent)
    prompt = prompt_of(provider.requests[0])
    assert "# Output style Loud\n" in prompt
    assert "\n\nBe loud." in prompt
