"""Themes: small TOML files of colors, the program's own and the person's.

A file has `dark` (true or false) and a table `[colors]` with the names of ROLES. A person's file
may leave colors out or get one wrong: the built-in theme of the same kind fills in, and the problem
is reported, never fatal. The program's own files are in `themes/` of a checkout and in `tui/themes`
of a wheel; a file of the same name in the config folder's `themes/` takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from textual.color import Color, ColorParseError
from textual.theme import Theme

from tui.core import theme_cache
from tui.core.dataclass import dataclass
from tui.core.errors import ConfigError
from tui.core.theme_cache import COLOURS

DEFAULT_DARK = "midnight"
DEFAULT_LIGHT = "daylight"

ROLES = COLOURS
"""The roles that a theme colors. `muted` is secondary text, `rule` the lines between panes."""

HIGH_CONTRAST = 10.0
"""Contrast of secondary text from which a theme counts as high-contrast."""

_SIZE_LIMIT = 64_000
_NAMED = ("primary", "secondary", "accent", "success", "warning", "error")
_TINTS = (
    *(f"{role}-muted" for role in _NAMED),
    "block-cursor-background",
    "block-cursor-blurred-background",
)
_HEX = re.compile("#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class LoadedTheme:
    """A theme that can be shown, its colors by role, and the problems of its file."""

    theme: Theme
    colours: Mapping[str, str]
    problems: tuple[ConfigError, ...] = ()

    @property
    def kind(self) -> str:
        """Dark or light, preceded by "contrast" if even the secondary text stands out."""
        ground, text = (Color.parse(self.colours[role]) for role in ("background", "muted"))
        tone = "dark" if self.theme.dark else "light"
        return f"contrast, {tone}" if contrast(ground, text) >= HIGH_CONTRAST else tone


@dataclass(frozen=True, slots=True)
class ListedTheme:
    """A theme to choose, or the reason why it can't be shown. `own` is true for the person's."""

    loaded: LoadedTheme | ConfigError
    own: bool


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colors, from 1 to 21 (WCAG)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def toned(color: Color, ground: Color, level: float) -> Color:
    """Return a color mixed with its ground, or with what is farthest from it, until it has that
    contrast to the ground: colors of different levels differ for every kind of color vision."""
    ends = Color(255, 255, 255), Color(0, 0, 0)
    nearer = contrast(color, ground) > level
    target = ground if nearer else max(ends, key=lambda end: contrast(end, ground))
    low, high = 0.0, 1.0
    for _ in range(10):
        share = (low + high) / 2
        if (contrast(color.blend(target, share), ground) > level) == nearer:
            low = share
        else:
            high = share
    return color.blend(target, high)


def _luminance(colour: Color) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def builtin_folder() -> Path:
    """Return the folder of the program's own themes, in a wheel or in a checkout."""
    package = Path(__file__).parents[2]
    shipped = package / "themes"
    return shipped if shipped.is_dir() else package.parent / "themes"


def available(user: Path) -> dict[str, Path]:
    """Return every theme file by name, in order. `user` is the person's own folder and need not
    exist."""
    paths: dict[str, Path] = {}
    for folder in (builtin_folder(), user):
        paths |= {path.stem: path for path in folder.glob("*.toml")}
    return dict(sorted(paths.items()))


def listed(user: Path) -> dict[str, ListedTheme]:
    """Load every theme by name, in order, ready to be shown. Blocks."""
    themes: dict[str, ListedTheme] = {}
    for name, path in available(user).items():
        try:
            loaded = load(name, user)
        except ConfigError as error:
            loaded = error
        themes[name] = ListedTheme(loaded, path.parent == user)
    return themes


def load(name: str, user: Path) -> LoadedTheme:
    """Load the theme of that name. Raises ConfigError if there is none."""
    themes = available(user)
    if name not in themes:
        raise ConfigError("theme", name, "no such theme.", hint=f"Available: {', '.join(themes)}.")
    own = builtin_folder() / f"{name}.toml"
    if themes[name] == own:
        return _build(name, own, {})
    raw = _read(themes[name])
    base = DEFAULT_LIGHT if raw.get("dark") is False else DEFAULT_DARK
    palette = _read(builtin_folder() / f"{base}.toml")["colors"]
    return _build(name, themes[name], cast("dict[str, str]", palette))


def _read(path: Path) -> dict[str, Any]:
    from tui.core.toml_files import parse_toml  # noqa: PLC0415 - not for the first frame

    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise ConfigError(path, "", "the file is too large for a theme.")
        return parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(path, "", f"can't be read as a theme: {error}.") from error


def _build(name: str, path: Path, base: dict[str, str]) -> LoadedTheme:
    raw = _read(path)
    problems: list[ConfigError] = []
    dark = raw.get("dark", True)
    if not isinstance(dark, bool):
        problems.append(ConfigError(path, "dark", "must be true or false; using true."))
        dark = True
    table: object = raw.get("colors", {})
    if not isinstance(table, dict):
        problems.append(ConfigError(path, "colors", "must be a table of colors."))
        table = {}
    colors = dict(base)
    for role, value in cast("dict[str, object]", table).items():
        if problem := _problem(role, value):
            problems.append(ConfigError(path, f"colors.{role}", problem))
        else:
            colors[role] = str(value)
    problems += [
        ConfigError(path, f"colors.{role}", "is missing.") for role in ROLES if role not in colors
    ]
    if any(role not in colors for role in ROLES):
        raise problems[-1]
    return LoadedTheme(_theme(name, colors, dark=dark), colors, tuple(problems))


def _problem(role: str, value: object) -> str:
    if role not in ROLES:
        return f"isn't a theme color; available: {', '.join(ROLES)}."
    if not isinstance(value, str):
        return 'must be text such as "#62d2c6".'
    try:
        color = Color.parse(value)
    except ColorParseError:
        return f'{value!r} is no color; write it as "#62d2c6".'
    if color.a < 1 or color.ansi is not None:
        return f'{value!r} must be an opaque color such as "#62d2c6".'
    return ""


def grey_tints(theme: Theme) -> dict[str, str]:
    """Return the variables of a theme that are tints of its background, in grey: a terminal of
    sixteen colors draws most of them as the background itself."""
    grey = "#555555" if theme.dark else "#aaaaaa"
    return dict.fromkeys(_TINTS, grey)


def cached_colours(loaded: LoadedTheme) -> dict[str, str]:
    """Return the look from which `remembered` builds the theme again, as `tui.core.theme_cache`
    keeps it."""
    look = {"theme": loaded.theme.name, "dark": "yes" if loaded.theme.dark else "no"}
    for role, colour in loaded.colours.items():
        look[role] = colour if _HEX.fullmatch(colour) else Color.parse(colour).hex
    return look


def remember(name: str, user: Path) -> None:
    """Save a theme's colors for the first frame of the next run. A theme that cannot be read is
    left to the app, which reports it."""
    with suppress(ConfigError):
        theme_cache.save(cached_colours(load(name, user)))


def remembered(look: Mapping[str, str]) -> Theme:
    """Return the theme of a look that `tui.core.theme_cache` found valid; no file is read."""
    colours = {role: look[role] for role in ROLES}
    return _theme(look["theme"], colours, dark=look["dark"] == "yes")


def _theme(name: str, colors: dict[str, str], *, dark: bool) -> Theme:
    """Build a Textual theme in which every text role is exactly a color of the file."""
    background, foreground = Color.parse(colors["background"]), Color.parse(colors["foreground"])
    primary = Color.parse(colors["primary"])
    muted, rule = colors["muted"], colors["rule"]
    selection = background.blend(primary, 0.28).hex
    # Set here because Textual would derive them by blending.
    variables = {
        "rule": rule,
        "text": foreground.hex,
        "text-muted": muted,
        "text-disabled": background.blend(Color.parse(muted), 0.7).hex,
        "foreground-muted": muted,
        "foreground-disabled": background.blend(Color.parse(muted), 0.7).hex,
        **{f"text-{role}": colors[role] for role in _NAMED},
        **{f"{r}-muted": background.blend(Color.parse(colors[r]), 0.16).hex for r in _NAMED},
        "border": colors["primary"],
        "border-blurred": rule,
        "block-cursor-background": background.blend(primary, 0.16).hex,
        "block-cursor-foreground": foreground.hex,
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": background.blend(primary, 0.16).hex,
        "block-cursor-blurred-foreground": foreground.hex,
        "block-hover-background": colors["panel"],
        "input-cursor-background": colors["primary"],
        "input-cursor-foreground": background.hex,
        "input-selection-background": selection,
        "input-selection-foreground": foreground.hex,
        "screen-selection-background": selection,
        "screen-selection-foreground": foreground.hex,
        "scrollbar": rule,
        "scrollbar-hover": muted,
        "scrollbar-active": colors["primary"],
        "scrollbar-background": background.hex,
        "scrollbar-background-hover": background.hex,
        "scrollbar-background-active": background.hex,
        "scrollbar-corner-color": background.hex,
        "link-color": colors["secondary"],
        "link-color-hover": colors["primary"],
        "link-background-hover": "transparent",
        "footer-background": background.hex,
        "footer-foreground": muted,
        "footer-key-foreground": colors["accent"],
        "footer-description-foreground": muted,
        "button-foreground": foreground.hex,
        "button-focus-text-style": "bold",
    }
    return Theme(
        name=name,
        dark=dark,
        background=background.hex,
        surface=colors["surface"],
        panel=colors["panel"],
        boost=colors["panel"],
        foreground=foreground.hex,
        primary=colors["primary"],
        secondary=colors["secondary"],
        accent=colors["accent"],
        success=colors["success"],
        warning=colors["warning"],
        error=colors["error"],
        variables=variables,
    )
