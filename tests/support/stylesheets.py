"""What the style sheets of one app, and the colours of its theme, were parsed to is there for the
next one, as are the rules for a node in the same place of the same tree. What was not seen before
is found the short way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest
from textual.app import App
from textual.css import stylesheet
from textual.css.match import _check_selectors  # pyright: ignore[reportPrivateUsage]
from textual.css.model import CombinatorType, RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.tokenize import tokenize_values
from textual.css.tokenizer import Token
from textual.dom import DOMNode
from textual.widget import Widget

Parse: TypeAlias = Callable[..., list[RuleSet]]
Apply: TypeAlias = Callable[..., None]
Place: TypeAlias = tuple[Any, ...]
Everything: TypeAlias = tuple[list[RuleSet], dict[str, list[RuleSet]]]


@dataclass(frozen=True, slots=True)
class Applied:
    """What the rules say of one place: `styles` as they stand on a node afterwards."""

    rules: Any
    styles: dict[str, Any]
    flags: dict[str, bool]


_FLAGS: Final = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")

_parsed: Final[dict[tuple[Any, ...], list[RuleSet]]] = {}
_whole: Final[dict[tuple[Any, ...], Everything]] = {}
_applied: Final[dict[int, tuple[list[RuleSet], dict[Place, Applied]]]] = {}
_tokens: Final[dict[tuple[tuple[str, str], ...], dict[str, list[Token]]]] = {}


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every style sheet take rules from those parsed before from the same text and variables.

    Rules do not change once they are parsed; Textual lets all widgets of an app share them. Each is
    its own equal only, which the interpreter decides faster than a method of Textual's does.
    """
    parse_rules = Stylesheet._parse_rules  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Stylesheet, "_parse_rules", _sharing(parse_rules))
    monkeypatch.setattr(Stylesheet, "parse", _sharing_all(Stylesheet.parse))
    monkeypatch.setattr(stylesheet, "tokenize_values", _tokenize_once)
    monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)
    monkeypatch.setattr(Stylesheet, "_check_rule", staticmethod(_check_rule))
    monkeypatch.setattr(Stylesheet, "apply", _remembering(vars(Stylesheet)["apply"]))


def _remembering(apply: Apply) -> Apply:
    """As Textual's, with its own cache, which lasts for one update of one app. It leaves out what
    depends on the nodes beside or inside, and so does this."""

    def apply_once(sheet: Any, node: Any, *, animate: bool = False, cache: object = None) -> None:
        _, places = _applied.setdefault(id(sheet.rules), (sheet.rules, {}))
        place = tuple(map(_seen, node.css_path_nodes))
        known = places.get(place)
        if known is None:
            found: dict[Any, Any] = {}
            apply(sheet, node, animate=animate, cache=found)
            for rules in found.values():
                flags = {name: getattr(node, name) for name in _FLAGS}
                places[place] = Applied(rules, dict(node.styles.base._rules), flags)
            return
        for name, flag in known.flags.items():
            setattr(node, name, flag)
        has = node.styles.base._rules
        if type(node) is DOMNode and not has:  # one that is never drawn
            has.update(known.styles)
        elif has == known.styles:
            node.notify_style_update()
        else:
            sheet.replace_rules(node, known.rules, animate=animate)
        sheet._process_component_classes(node)

    return apply_once


def _seen(node: Any) -> Place:
    """All of a node that a selector can ask for."""
    seen: Place = (node.__class__, node._id, frozenset(node._classes))
    if isinstance(node, Widget):
        return (*seen, node.mouse_hover, node.has_focus, node.disabled, node.allow_focus())
    return (*seen, node.pseudo_classes) if isinstance(node, App) else seen


def _check_rule(rule_set: RuleSet, path: list[DOMNode]) -> Iterator[tuple[int, int, int]]:
    """As Textual's, but looks at the node itself first: few are what the selector ends with."""
    node = path[-1]
    for selector_set in rule_set.selector_set:
        selectors = selector_set.selectors
        if not selectors[-1].check(node):
            continue
        alone = len(selectors) == 1 and selectors[0].combinator == CombinatorType.DESCENDENT
        if alone or _check_selectors(selectors, path):
            yield selector_set.specificity


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


def _tokenize_once(variables: dict[str, str]) -> dict[str, list[Token]]:
    key = tuple(sorted(variables.items()))
    if key not in _tokens:
        _tokens[key] = tokenize_values(variables)
    return _tokens[key]


def _variables(sheet: Stylesheet) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(sheet._variables.items()))  # pyright: ignore[reportPrivateUsage]
