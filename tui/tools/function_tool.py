"""Functions of an embedding program as tools for the model.

    async def open_issues(label: str, limit: int = 10) -> list[str]:
        '''The titles of the open issues with a label.'''

The name and the docstring are what the model is shown, and the schema comes from the annotations
(`Annotated[int, msgspec.Meta(description="…", ge=1)]` says more about one). It runs without a
question: the program that hands it over answers for what it does. A function that is not
`async` runs in a thread.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from typing import Any, ClassVar, cast, get_type_hints

import msgspec

from tui.core.errors import ToolError, UsageError
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, input_schema

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionTool(Tool[Params]):
    """A function as a tool. Its return value goes to the model: a text as it is, everything else as
    JSON. An exception becomes an error that the model sees."""

    effect: ClassVar[Effect] = "none"

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises UsageError for a function that cannot be a tool."""
        self.name = _name(function)  # type: ignore[misc]  # one class, many tools
        self.params = _params(function)  # type: ignore[misc]
        self._function = function
        self._description = inspect.getdoc(function) or self.name

    @property
    def description(self) -> str:
        return self._description

    def schema(self) -> dict[str, Any]:
        schema = input_schema(self.params)
        return {"name": self.name, "description": self.description, "input_schema": schema}

    def subject(self, params: Params) -> str:
        return json.dumps(msgspec.to_builtins(params), ensure_ascii=False, sort_keys=True)

    def paths(self, params: Params) -> tuple[str, ...]:  # noqa: ARG002 - what it does is its own affair
        return ()

    def label(self, params: Params) -> str:
        given = cast("dict[str, Any]", msgspec.to_builtins(params))
        return ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())

    async def run(self, params: Params, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002 - as every tool
        given = {name: getattr(params, name) for name in params.__struct_fields__}
        try:
            if inspect.iscoroutinefunction(self._function):
                value = await self._function(**given)
            else:
                value = await asyncio.to_thread(self._function, **given)
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {error}.") from error
        return ToolOutput.text(text)


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name or function!r} can't be a tool's name.",
            hint="Give a function with a name of letters, digits and underscores.",
        )
    return name


def _params(function: Callable[..., Any]) -> type[Params]:
    """Return the arguments of a function as the parameters of a tool."""
    name, fields = _name(function), list[Any]()
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise UsageError(f"The annotations of {name} can't be read: {error}.") from error
    for one in inspect.signature(function).parameters.values():
        if one.kind not in _KINDS or one.name not in hints:
            raise UsageError(
                f"The argument {one.name} of {name} can't be given by the model.",
                hint="Annotate it with a type that JSON has; *args and **kwargs can't be tools'.",
            )
        field = (one.name, hints[one.name])
        fields.append(field if one.default is one.empty else (*field, one.default))
    try:
        struct = msgspec.defstruct(name, fields, bases=(Params,), frozen=True, kw_only=True)
        params_type = cast("type[Params]", struct)
        input_schema(params_type)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The arguments of {name} can't be described: {error}.") from error
    return params_type


def as_tool(given: Tool[Any] | Callable[..., Any]) -> Tool[Any]:
    """Return a tool as it is, and a function as a tool. Raises UsageError."""
    return cast("Tool[Any]", given) if isinstance(given, Tool) else FunctionTool(given)
