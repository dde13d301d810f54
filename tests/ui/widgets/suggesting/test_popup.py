"""The rows above the prompt: what they follow, show and hand back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tui.ui.widgets.autocomplete import IGNORED, ROWS, Suggestion, Suggestions


class Known:
    def commands(self) -> Sequence[Suggestion]:
        return [
            Suggestion("model", "another model"),
            Suggestion("memory", "what is kept"),
            Suggestion("help"),
        ]

    async def arguments(self, command: str) -> Sequence[Suggestion]:
        return [Suggestion("midnight"), Suggestion("daylight")] if command == "theme" else []

    async def files(self) -> Sequence[str]:
        return ["src/", "src/main.py", "with blank.md", *(f"m{n}.txt" for n in range(20))]

    async def unlisted(self, query: str) -> Sequence[str]:
        return [".env"] if query == ".e" else []


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Suggestions(Known())


async def follow(pilot: Pilot[None], text: str) -> Suggestions:
    popup = pilot.app.query_one(Suggestions)
    popup.follow(text, len(text))
    await pilot.app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]
    await pilot.pause()
    return popup


def values(popup: Suggestions) -> list[str]:
    return [choice.value for choice in popup.choices]


async def test_it_follows_what_is_typed():
    async with Host().run_test() as pilot:
        popup = await follow(pilot, "/m")
        assert values(popup) == ["model", "memory"]
        assert popup.display
        assert popup.kind == "command"
        assert values(await follow(pilot, "/theme ")) == ["midnight", "daylight"]
        assert values(await follow(pilot, "see @main")) == ["src/main.py"]
        assert values(await follow(pilot, "nothing")) == []
        assert not popup.display
        assert values(await follow(pilot, "/help")) == [], "what is whole needs no suggestion"


async def test_what_git_ignores_comes_last_and_says_so():
    async with Host().run_test() as pilot:
        popup = await follow(pilot, "see @.e")
        assert [(one.value, one.detail) for one in popup.choices] == [(".env", IGNORED)]
        assert (await follow(pilot, "see @main")).choices == (Suggestion("src/main.py"),)


async def test_a_folder_that_was_taken_offers_what_is_in_it():
    async with Host().run_test() as pilot:
        assert values(await follow(pilot, "see @src")) == ["src/", "src/main.py"]
        assert values(await follow(pilot, "see @src/")) == ["src/main.py"]


async def test_a_choice_goes_into_the_text():
    async with Host().run_test() as pilot:
        popup = await follow(pilot, "/m")
        popup.move(1)
        assert popup.apply("/m", 2) == ("/memory ", 8)
        popup.move(1)
        assert popup.apply("/m", 2) == ("/model ", 7)
        popup.move(-1)
        assert popup.cursor == 1
        popup = await follow(pilot, "@blank")
        assert popup.apply("@blank", 6) == ('@"with blank.md" ', 17)


async def test_dismissed_it_stays_closed_for_the_word():
    async with Host().run_test() as pilot:
        popup = await follow(pilot, "@m")
        popup.dismiss()
        assert not popup.opened
        assert values(await follow(pilot, "@m1")) == []
        assert values(await follow(pilot, "@m1 ")) == []
        assert "m1.txt" in values(await follow(pilot, "@m1 and @m1"))


async def test_the_chosen_row_is_always_in_sight():
    async with Host().run_test(size=(60, 20)) as pilot:
        popup = await follow(pilot, "@m")
        assert popup.size.height == ROWS
        for _ in range(12):
            popup.move(1)
        await pilot.pause()
        drawn = str(popup.render())
        assert f"› {popup.choices[12].value}" in drawn
        assert len(drawn.splitlines()) == ROWS


async def test_it_says_how_many_there_are_where_not_all_are_in_sight():
    async with Host().run_test(size=(60, 20)) as pilot:
        popup = await follow(pilot, "/m")
        assert " of " not in str(popup.render())
        popup = await follow(pilot, "@m")
        popup.move(1)
        rows = str(popup.render()).splitlines()
        assert rows[-1].endswith(f" 2 of {len(popup.choices)}")
        assert {len(row) for row in rows} == {58}
        assert not any(" of " in row for row in rows[:-1])


async def test_a_click_picks_a_row():
    picked: list[str] = []

    class Clicked(Host):
        def on_suggestions_picked(self, event: Suggestions.Picked) -> None:
            picked.append(event.suggestions.apply("/m", 2)[0])

    async with Clicked().run_test() as pilot:
        await follow(pilot, "/m")
        await pilot.click(Suggestions, offset=(3, 1))
        await pilot.pause()
    assert picked == ["/memory "]
