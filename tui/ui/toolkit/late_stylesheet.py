"""Computes the styles of a widget's parts when they are first drawn with, and parses each source
once."""

from __future__ import annotations

from typing import Any, Final

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RenderStyles
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

_SOURCES: Final = 1000
"""More than there are widgets and screens with rules of their own."""


class LateStylesheet(Stylesheet):
    """A style sheet that computes the styles of a component class when a widget asks for them.

    Textual computes those of all component classes whenever a widget's own styles are applied: two
    thirds of what it applies at a start, and most of them are never asked for. It also parses the
    rules of every widget again when a screen brings its own: 25 ms in which no key is heard.
    """

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._parse_cache: LRUCache[tuple[Any, ...], list[RuleSet]] = LRUCache(_SOURCES)

    def reparse(self) -> None:
        """Parse the sources that are new. Other variables have emptied the cache already."""
        self.parse()

    def _process_component_classes(self, node: Any) -> None:
        """Forget the styles of the node's components; if one that it has drawn with has changed,
        let it draw again."""
        if not node._get_component_classes():  # noqa: SLF001
            return
        known = node._component_styles  # noqa: SLF001
        if not isinstance(known, _ComponentStyles):
            node._component_styles = _ComponentStyles(self, node)  # noqa: SLF001
            return
        drawn_with = dict(known)
        known.clear()
        if any(known[name] != styles for name, styles in drawn_with.items()):
            node.refresh()


class _ComponentStyles(dict[str, RenderStyles]):
    """The styles of those components that a node has asked for."""

    def __init__(self, sheet: Any, node: Any) -> None:
        super().__init__()
        self.sheet, self.node = sheet, node

    def __contains__(self, name: object) -> bool:
        return name in self.node._get_component_classes()  # noqa: SLF001

    def __missing__(self, name: str) -> RenderStyles:
        component: Any = DOMNode(classes=name)
        component._attach(self.node)  # noqa: SLF001
        self.sheet.apply(component)
        styles: RenderStyles = component.styles
        self[name] = styles
        return styles
