"""Variables in the texts of a configuration: `${NAME}`, and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tui.core.late_pattern import late_pattern

_VARIABLE = late_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables of a text by their values. A default counts for an empty one too, as in
    a shell. Raises KeyError with the name of one that has neither a value nor a default."""

    def value(found: re.Match[str]) -> str:
        name, default = found.groups()
        return variables[name] if default is None else variables.get(name) or default

    return _VARIABLE.sub(value, text)


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the variables in some texts, each once."""
    names = (match[1] for text in texts for match in _VARIABLE.finditer(text))
    return tuple(dict.fromkeys(names))
