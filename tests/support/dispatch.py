"""Which handlers a message of Textual's has is looked up once, not for every message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, Self, TypeAlias

import pytest
from textual import _callback, message_pump
from textual.message import Message
from textual.message_pump import MessagePump

Handlers: TypeAlias = Iterator[tuple[type, Callable[..., Any]]]
Plan: TypeAlias = list[tuple[type, str]]

_plans: Final[dict[tuple[type, type, str], Plan | None]] = {}

_VARIADIC: Final = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)


def remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every message go to the handlers that the first one of its class has found, and into no
    log: Textual makes two loggers for each, and then sees that nobody listens."""
    look_up = vars(MessagePump)["_get_dispatch_methods"]
    monkeypatch.setattr(MessagePump, "_get_dispatch_methods", _remembering(look_up))
    monkeypatch.setattr(message_pump, "log", _Nowhere())
    count = vars(_callback)["_count_parameters"]
    monkeypatch.setattr(_callback, "_count_parameters", _counting(count))


class _Nowhere:
    """A log of messages that nobody reads."""

    @property
    def event(self) -> Self:
        return self

    def verbosity(self, verbose: bool) -> Self:
        return self

    def warning(self, *what: object) -> None:
        """Forget it."""

    __call__ = warning


def _remembering(look_up: Callable[..., Handlers]) -> Callable[..., Handlers]:
    def handlers(pump: MessagePump, name: str, message: Message) -> Handlers:
        key = (type(pump), type(message), name)
        if key not in _plans:
            _plans[key] = _plan(*key)
        plan = _plans[key]
        if plan is None:
            yield from look_up(pump, name, message)
            return
        for owner, handler in plan:
            if message._no_default_action:  # pyright: ignore[reportPrivateUsage]
                return
            yield owner, owner.__dict__[handler].__get__(pump, owner)

    return handlers


def _plan(pump: type, message: type, name: str) -> Plan | None:
    """The handlers' names, from the class itself to the first of its bases. None where a
    decorated one may take the message: that depends on its sender."""
    plan: Plan = []
    for owner in pump.__mro__:
        decorated: dict[type, object] = owner.__dict__.get("_decorated_handlers") or {}
        if not decorated.keys().isdisjoint(message.__mro__):
            return None
        handler = f"_{name}" if f"_{name}" in owner.__dict__ else name
        method = owner.__dict__.get(handler)
        if method is not None and not getattr(method, "_textual_on", None):
            plan.append((owner, handler))
    return plan


def _counting(count: Callable[[Callable[..., Any]], int]) -> Callable[[Callable[..., Any]], int]:
    """Parameters of a plain function are counted by its code, without its signature."""

    def parameters(function: Callable[..., Any]) -> int:
        code = getattr(function, "__code__", None)
        if code is None or hasattr(function, "__wrapped__"):
            return count(function)
        variadic = sum(bool(code.co_flags & flag) for flag in _VARIADIC)
        return code.co_argcount + code.co_kwonlyargcount + variadic

    return parameters
