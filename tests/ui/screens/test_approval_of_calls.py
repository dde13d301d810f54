"""What a person sees of a call before answering: all of it, counted rightly, nothing disguised."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from textual.content import Content
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import running, turn, until
from tests.ui.screens.driving import say as type_and_send
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.plain.questions import approval_lines
from tui.ui.app import HoldfastApp
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.questions import Choice


class Refusing(RulesOnly):
    """Says no, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Call, Decision]] = []

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append((call, decision))
        return Answer("no")


async def asked_about(root: Path, tool: str, **arguments: Any) -> tuple[Call, Decision]:
    """The question that a call leads to, as the real policy and the real tool make it."""
    person = Refusing()
    reads = [call("read_file", path=arguments["path"])] if tool == "edit_file" else []
    provider = ScriptedProvider(*([reads] if reads else []), [call(tool, **arguments)], say("done"))
    await events_of(make_agent(root, provider, approver=person), "go")
    (asked,) = person.asked
    return asked


@asynccontextmanager
async def shown(
    asked: tuple[Call, Decision],
) -> AsyncGenerator[tuple[World, HoldfastApp, Pilot[None]]]:
    world = World()
    world.scripts.append(turn(Ask(*asked)))
    async with running(world) as (app, pilot):
        await type_and_send(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.pause()
        world.clock.elapsed += 0.6
        yield world, app, pilot


def drawn(app: HoldfastApp) -> str:
    """All that the preview holds, scrolled or not."""
    widget: Widget = app.screen.query_one("#preview").children[0]
    return "\n".join(strip.text for strip in widget.render_lines(widget.size.region))


def text_of(app: HoldfastApp, selector: str) -> str:
    return str(app.screen.query_one(selector, Static).render())


def question(app: HoldfastApp) -> str:
    return Content.from_markup(app.screen.query_one("#box").border_title or "").plain


async def test_a_large_new_file_is_counted_and_its_end_can_be_seen(tmp_path: Path) -> None:
    content = "".join(f"line {n}\n" for n in range(2098)) + "THE END\n"
    asked = await asked_about(tmp_path, "write_file", path="big.txt", content=content)
    assert any("2,099 lines added, 0 removed" in line for line in approval_lines(*asked))
    assert "  added: THE END" in approval_lines(*asked)
    async with shown(asked) as (_, app, pilot):
        assert "+2099 −0" in question(app)
        assert "THE END" in drawn(app)
        assert "2,0" in text_of(app, "#more")
        await pilot.press("end")
        await until(pilot, lambda: "below" not in text_of(app, "#more"))
        await pilot.press("1")


async def test_a_long_line_is_shown_whole(tmp_path: Path) -> None:
    asked = await asked_about(tmp_path, "write_file", path="a.txt", content="x " * 3000 + "TAIL\n")
    async with shown(asked) as (_, app, _pilot):
        assert "TAIL" in drawn(app)


async def test_changed_lines_that_look_like_heads_of_a_diff_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- old\n++ kept\nselect 1;\n")
    old, new = "-- old\n++ kept\n", "-- new\n++ kept\n++ more\n"
    asked = await asked_about(tmp_path, "edit_file", path="a.sql", old_string=old, new_string=new)
    lines = approval_lines(*asked)
    assert any("2 lines added, 1 removed" in line for line in lines)
    assert {"  removed: -- old", "  added: -- new", "  added: ++ more"} <= set(lines)
    async with shown(asked) as (_, app, _pilot):
        assert "+2 −1" in question(app)
        assert all(one in drawn(app) for one in ("− -- old", "+ -- new", "+ ++ more"))


async def test_a_long_command_says_how_much_is_hidden(tmp_path: Path) -> None:
    command = "\n".join(f"touch file{n}" for n in range(80))
    asked = await asked_about(tmp_path, "run_command", command=command)
    async with shown(asked) as (_, app, pilot):
        preview = app.screen.query_one("#preview")
        await until(
            pilot, lambda: f"{80 - preview.size.height} more lines below" in text_of(app, "#more")
        )
        before = preview.size.height
        await pilot.press("v")
        await until(pilot, lambda: preview.size.height > before)
        await until(
            pilot, lambda: f"{80 - preview.size.height} more lines" in text_of(app, "#more")
        )
        assert app.screen.query_one("#no").region in app.screen.region
        await pilot.press("v")
        await until(pilot, lambda: preview.size.height == before)


async def test_a_short_command_says_nothing_of_hidden_lines(tmp_path: Path) -> None:
    asked = await asked_about(tmp_path, "run_command", command="touch a")
    async with shown(asked) as (_, app, _pilot):
        assert not app.screen.query_one("#more").display


async def test_blanks_and_letters_that_disguise_a_command_are_spelt_out(tmp_path: Path) -> None:
    command = "echo \u3164 \u2800; g\u0456t push \uff0d\uff0dforce"
    asked = await asked_about(tmp_path, "run_command", command=command)
    spelt = r"echo \u3164 \u2800; g\u0456t push \uff0d\uff0dforce"
    assert any(spelt in line for line in approval_lines(*asked))
    async with shown(asked) as (_, app, _pilot):
        assert spelt in " ".join(drawn(app).split())


async def test_each_dangerous_part_of_a_compound_command_is_named_and_marked(
    tmp_path: Path,
) -> None:
    command = "rm -rf build && git  push --force >/dev/null && pip install x; echo done"
    asked = await asked_about(tmp_path, "run_command", command=command)
    reason = asked[1].reason
    for part, why in (
        ("rm -rf build", "it deletes folders"),
        ("git push --force", "git push can lose or publish work"),
        ("pip install x", "pip installs, removes or publishes"),
    ):
        assert f"{why} (`{part}`)" in reason
    async with shown(asked) as (_, app, _pilot):
        content = cast("Content", app.screen.query_one("#preview Static", Static).visual)
        marked = {
            content.plain[span.start : span.end]
            for span in content.spans
            if "underline" in str(span.style)
        }
        assert marked == {"rm -rf build", "git  push --force", "pip install x"}
        assert "pip install x" in text_of(app, "#why")


async def test_a_part_inside_another_command_is_named_too(tmp_path: Path) -> None:
    command = "bash -c 'git push'; sudo true"
    asked = await asked_about(tmp_path, "run_command", command=command)
    assert "(`git push`)" in asked[1].reason
    assert "(`sudo true`)" in asked[1].reason


async def test_a_web_address_is_shown_as_a_whole(tmp_path: Path) -> None:
    url = "https://docs.p\u0443thon.org/3/search.html?q=" + "a%20b" * 50
    asked = await asked_about(tmp_path, "web_fetch", url=url)
    address = asked[0].preview
    assert address.startswith("https://docs.xn--pthon-eze.org/3/search.html?q=a%20b")
    assert address.endswith("a%20b")
    async with shown(asked) as (_, app, _pilot):
        assert question(app) == "Fetch this page?"
        assert address in "".join(line.strip() for line in drawn(app).splitlines())
        assert text_of(app, "#why") == "Sends this address to docs.xn--pthon-eze.org."
        site = str(app.screen.query_one("#session", Choice).render())
        assert "Yes, docs.xn--pthon-eze.org this session" in site
    assert any(address in line for line in approval_lines(*asked))
