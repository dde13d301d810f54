"""Commands about the model and its errors."""

from __future__ import annotations

from tui.ui.session_flow import diagnostics, error_dialog, model_switch
from tui.ui.session_flow.command_context import Desk


async def model(desk: Desk, name: str) -> None:
    await model_switch.model(desk, name)


async def retry(desk: Desk, argument: str) -> None:
    await error_dialog.retry(desk, argument)


async def doctor(desk: Desk, _: str) -> None:
    await diagnostics.doctor(desk)


def tour(desk: Desk, _: str) -> None:
    diagnostics.tour(desk)


def drill(desk: Desk, faults: str) -> None:
    diagnostics.drill(desk, faults)
