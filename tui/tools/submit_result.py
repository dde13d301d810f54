"""submit_result: the model hands over a result that has to fit a JSON schema.

A tool, and not the API's own output format: it works with every server and model, takes the whole
of JSON Schema, leaves the model free to write between its calls, and does not change the beginning
of the request. The result is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, cast

from tui.core.errors import ToolError, UsageError
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext

_WRAPPER: Final = "result"
_CHOICES: Final = frozenset({"oneOf", "anyOf", "allOf", "$ref", "enum", "const", "not", "if"})
_DEFINITIONS: Final = ("$defs", "definitions")
_NAMED: Final = 5
"""Number of faults of a result that are named at once."""
_FAULT_CHARS: Final = 300

REMINDER: Final = "Hand over the result now: call submit_result."
"""The prompt for a model that ended its turn without a result."""


class ResultParams(Params, frozen=True):
    value: Any


class SubmitResult(Tool[ResultParams]):
    """Takes the result of the run, which is in `value` once `given` is True."""

    name: ClassVar[str] = "submit_result"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = ResultParams

    def __init__(self, schema: object) -> None:
        """Raises UsageError for an invalid JSON schema."""
        self._validator = _validator(schema)
        self._input, self._wrapped = _input_schema(cast("Mapping[str, Any]", schema))
        self.given = False
        self.value: Any = None

    def schema(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self._input}

    def label(self, params: ResultParams) -> str:
        return json.dumps(params.value, ensure_ascii=False)

    def parse(self, arguments: object) -> ResultParams:
        value = arguments
        if self._wrapped and isinstance(arguments, dict):
            value = cast("dict[str, Any]", arguments).get(_WRAPPER, arguments)
        if faults := self._faults(value):
            raise ToolError(
                f"The result doesn't fit the schema: {' '.join(faults)}",
                hint="Call submit_result again with a result that does.",
            )
        return ResultParams(value=value)

    async def run(self, params: ResultParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002 - as every tool
        self.given, self.value = True, params.value
        return ToolOutput([{"type": "text", "text": "The result fits."}], ends_turn=True)

    def _faults(self, value: Any) -> list[str]:
        """Return the faults of a result, a sentence each. Raises ToolError if a reference of the
        schema leads nowhere."""
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - for a schema only

        try:
            errors: Iterator[Any] = self._validator.iter_errors(value)
            errors_named = list(islice(errors, _NAMED))
        except Unresolvable as error:
            raise ToolError(f"The schema refers to something that isn't in it: {error}.") from error
        return [
            f"{one.json_path}: {str(one.message)[:_FAULT_CHARS].rstrip('.')}."
            for one in errors_named
        ]


def _validator(schema: object) -> Any:
    """Return a validator for a schema; it never fetches one. Raises UsageError."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - for a schema only
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415
    from referencing.jsonschema import EMPTY_REGISTRY  # noqa: PLC0415

    if not isinstance(schema, dict):
        raise UsageError("The JSON schema isn't an object.", hint='Begin with {"type": …}.')
    given = cast("dict[str, Any]", schema)
    kind: Any = validator_for(given, default=Draft202012Validator)
    try:
        kind.check_schema(given)
    except SchemaError as error:
        raise UsageError(
            f"The JSON schema is wrong at {error.json_path}: {error.message}."
        ) from error
    return kind(given, registry=EMPTY_REGISTRY)


def _input_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the schema as the API takes that of a tool. The second value is True if the result is
    wrapped in `result`: a tool's input is an object, without a choice at the top."""
    if schema.get("type") == "object" and _CHOICES.isdisjoint(schema):
        return dict(schema), False
    definitions = {name: schema[name] for name in _DEFINITIONS if name in schema}
    inner = {name: part for name, part in schema.items() if name not in _DEFINITIONS}
    wrapped = {"type": "object", "properties": {_WRAPPER: inner}, "required": [_WRAPPER]}
    return wrapped | definitions, True


def result_tool(tools: Sequence[Tool[Any]]) -> SubmitResult | None:
    """Return the tool that takes the result; None if none is asked for."""
    return next((tool for tool in tools if isinstance(tool, SubmitResult)), None)
