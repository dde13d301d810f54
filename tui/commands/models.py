"""Commands about the model and its errors."""

from __future__ import annotations

from tui.desk import choosing, examining, recovery
from tui.desk.desk import Desk


async def model(desk: Desk, name: str) -> None:
    await choosing.model(desk, name)


async def retry(desk: Desk, argument: str) -> None:
    await recovery.retry(desk, argument)


async def doctor(desk: Desk, _: str) -> None:
    await examining.doctor(desk)


def tour(desk: Desk, _: str) -> None:
    examining.tour(desk)


def drill(desk: Desk, faults: str) -> None:
    examining.drill(desk, faults)
