"""What the style sheets of one app were parsed to is there for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

Parse: TypeAlias = Callable[..., list[RuleSet]]
Everything: TypeAlias = tuple[list[RuleSet], dict[str, list[RuleSet]]]

_parsed: Final[dict[tuple[Any, ...], list[RuleSet]]] = {}
_whole: Final[dict[tuple[Any, ...], Everything]] = {}


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every style sheet take rules from those parsed before from the same text and variables.

    Rules do not change once they are parsed; Textual lets all widgets of an app share them. Each is
    its own equal only, which the interpreter decides faster than a method of Textual's does.
    """
    parse_rules = Stylesheet._parse_rules  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Stylesheet, "_parse_rules", _sharing(parse_rules))
    monkeypatch.setattr(Stylesheet, "parse", _sharing_all(Stylesheet.parse))
    monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)


def _sharing(parse: Parse) -> Parse:
    def parse_once(sheet: Stylesheet, css: str, read_from: Any, *args: Any, **named: Any) -> Any:
        key = (_variables(sheet), css, read_from, args, *sorted(named.items()))
        if key not in _parsed:
            _parsed[key] = parse(sheet, css, read_from, *args, **named)
        return _parsed[key]

    return parse_once


def _sharing_all(parse: Callable[[Stylesheet], None]) -> Callable[[Stylesheet], None]:
    """What one app's sheets were parsed to together, with their index."""

    def parse_all_once(sheet: Stylesheet) -> None:
        key = (_variables(sheet), *sheet.source.items())
        if key not in _whole:
            parse(sheet)
            _whole[key] = (sheet.rules, sheet.rules_map)
        sheet._rules, sheet._rules_map = _whole[key]  # pyright: ignore[reportPrivateUsage]
        sheet._require_parse = False  # pyright: ignore[reportPrivateUsage]

    return parse_all_once


def _variables(sheet: Stylesheet) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(sheet._variables.items()))  # pyright: ignore[reportPrivateUsage]
