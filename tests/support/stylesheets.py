"""What the style sheets of one app were parsed to is there for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

Parse: TypeAlias = Callable[..., list[RuleSet]]

_parsed: Final[dict[tuple[Any, ...], list[RuleSet]]] = {}


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every style sheet take rules from those parsed before from the same text and variables.

    Rules do not change once they are parsed; Textual lets all widgets of an app share them.
    """
    parse = Stylesheet._parse_rules  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Stylesheet, "_parse_rules", _sharing(parse))


def _sharing(parse: Parse) -> Parse:
    def parse_once(sheet: Stylesheet, css: str, read_from: Any, *args: Any, **named: Any) -> Any:
        key = (_variables(sheet), css, read_from, args, *sorted(named.items()))
        if key not in _parsed:
            _parsed[key] = parse(sheet, css, read_from, *args, **named)
        return _parsed[key]

    return parse_once


def _variables(sheet: Stylesheet) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(sheet._variables.items()))  # pyright: ignore[reportPrivateUsage]
