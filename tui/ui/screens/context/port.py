"""What the inspector asks of an agent; `tui.agent.agent.Agent` says what each does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tui.agent.events import Event
from tui.context.overrides import Overlay
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.provider.base import Request
from tui.session.records import Record


class Session(Protocol):
    @property
    def records(self) -> Sequence[Record]: ...


class Inspected(Protocol):
    @property
    def session(self) -> Session: ...
    @property
    def window(self) -> int: ...
    @property
    def ledger(self) -> Ledger: ...
    def view(self) -> View: ...
    def fixed_texts(self) -> Mapping[str, str]: ...
    def next_request(self, *, prompt_follows: bool = False) -> Request: ...
    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]: ...
    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]: ...
