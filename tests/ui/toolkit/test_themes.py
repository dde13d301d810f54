"""Themes: every text colour can be read, and a person's broken file never stops the program."""

from __future__ import annotations

import tomllib
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Literal

import pytest
import rich.color
from rich.console import Console
from textual.color import Color

from tui.core import theme_cache
from tui.core.errors import ConfigError
from tui.ui.toolkit import themes
from tui.ui.toolkit.base_app import ThemedApp

SHIPPED = ("clear", "contrast", "daylight", "linen", "midnight", "sixteen")
TEXT = (
    "foreground",
    "text",
    "text-muted",
    "text-primary",
    "text-secondary",
    "text-accent",
    "text-success",
    "text-warning",
    "text-error",
)
GROUNDS = ("background", "surface", "panel", "block-cursor-background", "warning-muted")


def _colors(name: str) -> dict[str, str]:
    theme = themes.load(name, Path("/nowhere")).theme
    return theme.to_color_system().generate() | theme.variables


def _contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two colours, 1 to 21."""

    def luminance(text: str) -> float:
        parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(text))
        return sum(
            weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
        )

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _rgb(text: str) -> tuple[float, float, float]:
    return Color.parse(text).normalized


def test_six_themes_are_shipped_two_of_them_light() -> None:
    assert tuple(themes.available(Path("/nowhere"))) == SHIPPED
    dark = [themes.load(name, Path("/nowhere")).theme.dark for name in SHIPPED]
    assert dark.count(False) == 2


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("role", TEXT)
def test_text_stands_out_from_every_ground(name: str, ground: str, role: str) -> None:
    colors = _colors(name)
    contrast = _contrast(colors[role], colors[ground])
    assert contrast >= 4.5, f"{role} on {ground}: {contrast:.2f}"


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize(
    ("role", "ground"),
    [
        ("foreground", "input-selection-background"),
        ("text-success", "success-muted"),
        ("text-error", "error-muted"),
        ("background", "primary"),
        ("background", "error"),
    ],
)
def test_text_on_tinted_grounds_can_be_read(name: str, role: str, ground: str) -> None:
    colors = _colors(name)
    assert _contrast(colors[role], colors[ground]) >= 4.5


@pytest.mark.parametrize("name", SHIPPED)
def test_lines_between_panes_can_be_seen(name: str) -> None:
    colors = _colors(name)
    assert _contrast(colors["rule"], colors["background"]) > 1.4


_SEEN_BY = {
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.0520)),
    "deuteranopia": (
        (0.3673, 0.8606, -0.2280),
        (0.2801, 0.6726, 0.0473),
        (-0.0118, 0.0429, 0.9689),
    ),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}
"""How linear RGB is seen without one kind of cone: Machado, Oliveira and Fernandes (2009)."""


def _seen(text: str, vision: str) -> tuple[float, float, float]:
    """A colour in CIE L*a*b* as it is seen."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(text)]
    r, g, b = (
        min(1.0, max(0.0, sum(w * c for w, c in zip(row, linear, strict=True))))
        for row in _SEEN_BY[vision]
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", _SEEN_BY)
def test_states_are_told_apart_by_everyone_in_clear(vision: str) -> None:
    colors = _colors("clear")
    states = ("text-success", "text-warning", "text-error")
    for one, other in combinations(states, 2):
        far = dist(_seen(colors[one], vision), _seen(colors[other], vision))
        assert far >= 20, f"{one} and {other}: {far:.0f}"


def test_sixteen_uses_only_what_every_terminal_has() -> None:
    steps = {0, 85, 170, 255}
    loaded = tomllib.loads((themes.builtin_folder() / "sixteen.toml").read_text())
    for value in loaded["colors"].values():
        assert set(Color.parse(value).rgb) <= steps


def _on_sixteen(text: str) -> int:
    """The number of the colour that a terminal of sixteen shows."""
    number = rich.color.Color.parse(text).downgrade(rich.color.ColorSystem.STANDARD).number
    assert number is not None
    return number


@pytest.mark.parametrize("name", SHIPPED)
def test_on_sixteen_colours_what_is_tinted_differs_from_the_ground_and_the_text(name: str) -> None:
    theme = themes.load(name, Path("/nowhere")).theme
    tints = themes.grey_tints(theme)
    colors = _colors(name)
    assert tints.keys() <= colors.keys()
    assert tints.keys() >= {"primary-muted", "warning-muted", "block-cursor-background"}
    for tint in map(_on_sixteen, tints.values()):
        assert tint not in {_on_sixteen(colors["background"]), _on_sixteen(colors["foreground"])}


@pytest.mark.parametrize("system", ["standard", "256", "truecolor"])
async def test_only_a_terminal_of_sixteen_colours_gets_grey_tints(
    system: Literal["standard", "256", "truecolor"],
) -> None:
    app = ThemedApp()
    app.console = Console(color_system=system, force_terminal=True)
    async with app.run_test() as pilot:
        app.use_theme("contrast")
        await pilot.pause()
        few = system == "standard"
        assert app.has_class("-few-colours") is few
        for variables in (app.get_css_variables(), app.theme_variables):
            assert (variables["warning-muted"] == "#555555") is few


def test_a_wrong_colour_is_replaced_and_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'dark = false\n[colors]\nprimary = "#123456"\naccent = "no colour"\nsparkle = "#fff"\n'
    )
    loaded = themes.load("mine", tmp_path)
    daylight = themes.load("daylight", tmp_path).theme
    assert loaded.theme.primary == "#123456"
    assert loaded.theme.accent == daylight.accent
    assert loaded.theme.dark is False
    assert [problem.key for problem in loaded.problems] == ["colors.accent", "colors.sparkle"]


@pytest.mark.parametrize("value", ['"#12345678"', '"ansi_red"', "7", "[1]"])
def test_only_opaque_colours_count(tmp_path: Path, value: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[colors]\nprimary = {value}\n")
    loaded = themes.load("mine", tmp_path)
    assert [problem.key for problem in loaded.problems] == ["colors.primary"]
    assert loaded.theme.primary == themes.load("midnight", tmp_path).theme.primary


def test_a_persons_file_goes_before_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "midnight.toml").write_text('[colors]\nprimary = "#abcdef"\n')
    assert themes.load("midnight", tmp_path).theme.primary == "#abcdef"


@pytest.mark.parametrize("content", [b"not toml [", b"\xff\xfe", b"#" * 70_000])
def test_a_file_that_is_no_theme_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        themes.load("mine", tmp_path)


def test_an_unknown_theme_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such theme") as caught:
        themes.load("mauve", tmp_path)
    assert "midnight" in caught.value.hint


@pytest.mark.parametrize("name", SHIPPED)
def test_a_look_makes_the_same_theme_again(name: str, tmp_path: Path) -> None:
    loaded = themes.load(name, tmp_path)
    kept = themes.cached_colours(loaded)
    assert kept.keys() == {"theme", "dark", *theme_cache.COLOURS}
    assert themes.remembered(kept) == loaded.theme
