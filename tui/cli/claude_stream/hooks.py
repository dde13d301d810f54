"""Hooks that are functions of the driver: each run is a request to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from tui.cli.claude_stream import tool_names
from tui.cli.claude_stream.link import DriverLink, short_id
from tui.core.dataclass import dataclass
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.settings.hook_files import DEFAULT_TIMEOUT_S, TIMEOUT_MAX_S, Hook, HookEvent, OnError

EVENTS: Final[tuple[HookEvent, ...]] = get_args(HookEvent)


@dataclass(slots=True)
class KnownCalls:
    """The calls of this session and its sub-agents that began: the tool and the input of each, as
    far as it is known here."""

    calls: dict[str, tuple[str, Mapping[str, Any]]]
    root: Path = Path()


@dataclass(frozen=True, slots=True)
class DriverHook:
    """One function of the driver, by its id."""

    id: str
    link: DriverLink
    known: KnownCalls

    async def __call__(self, given: bytes) -> bytes:
        """Return the function's answer. Raises DriverError where there is none."""
        input_ = object_of(json.loads(given))
        call = string_of(input_.get("tool_use_id"))
        tool, before = self.known.calls.get(call, ("", {}))
        if tool and "tool_input" in input_:
            shown = tool_names.shown(tool, before, self.known.root)
            input_["tool_name"], input_["tool_input"] = shown
        request = {"subtype": "hook_callback", "callback_id": self.id, "input": input_}
        answer = await self.link.ask(request | {"tool_use_id": call or short_id()})
        specific = object_of(answer.get("hookSpecificOutput"))
        if tool and is_object(changed := specific.get("updatedInput")):
            back = tool_names.own(tool, before, changed, self.known.root)
            self.known.calls[call] = tool, back
            answer = answer | {"hookSpecificOutput": specific | {"updatedInput": back}}
        return json.dumps(answer).encode() if answer else b""


def hooks_of(
    given: object, link: DriverLink, known: KnownCalls
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Read the hooks of `initialize`: those that can run here, and what is wrong with others, a
    sentence each."""
    hooks, problems = list[Hook](), list[str]()
    for event, groups in object_of(given).items():
        if event not in EVENTS:
            problems.append(f"There is no hook event {event!r} here: its hooks don't run.")
            continue
        for group in map(object_of, list_of(groups)):
            limit = group.get("timeout")
            seconds = float(limit) if isinstance(limit, int | float) else DEFAULT_TIMEOUT_S
            fails: OnError = "continue"
            if group.get("onFailure") not in {None, "continue"}:
                fails = "block"
            hooks += [
                Hook(
                    event,
                    string_of(group.get("matcher")),
                    f"{id_} of the driver",
                    min(seconds, TIMEOUT_MAX_S),
                    on_error=fails,
                    callback=DriverHook(str(id_), link, known),
                )
                for id_ in list_of(group.get("hookCallbackIds"))
            ]
    return tuple(hooks), tuple(problems)
