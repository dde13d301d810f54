"""The two directions of the stream: lines out, and requests that the other side answers."""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final, TextIO
from uuid import uuid4

from tui.cli.event_output import json_line, write_line
from tui.core.errors import ToolError
from tui.core.messages import object_of, string_of

Line = dict[str, Any]

UNSUPPORTED: Final = "unsupported_request"
"""The code of an answer to a request that there is none of here."""


class DriverError(ToolError):
    """The driver answered a request with an error, or can't answer any more."""


class DriverLink:
    """Writes lines for the driver, and waits for its answers to our requests."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waiting: dict[str, asyncio.Future[Line]] = {}
        self.ended = False

    def write(self, line: Line) -> None:
        """Write one line. Raises BrokenPipeError or StorageError."""
        write_line(self._out, json_line(line))

    async def ask(self, request: Line) -> Line:
        """Send a request of ours, and return the driver's answer to it.

        Cancelling takes the request back. Raises DriverError for an answer that is an error, and
        where the input has ended.
        """
        if self.ended:
            raise DriverError("The driver's input has ended, so it can't be asked.")
        id_ = str(uuid4())
        answer: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = answer
        self.write({"type": "control_request", "request_id": id_, "request": request})
        try:
            return await answer
        except asyncio.CancelledError:
            if not self.ended:
                self.write({"type": "control_cancel_request", "request_id": id_})
            raise
        finally:
            self._waiting.pop(id_, None)

    def answered(self, line: Line) -> bool:
        """Hand an answer of the driver's to who waits for it. False where nobody does."""
        response = object_of(line.get("response"))
        waiting = self._waiting.get(string_of(response.get("request_id")))
        if waiting is None or waiting.done():
            return False
        if response.get("subtype") == "success":
            waiting.set_result(object_of(response.get("response")))
        else:
            reason = string_of(response.get("error")) or "it doesn't say why"
            waiting.set_exception(DriverError(f"The driver couldn't answer: {reason}"))
        return True

    def end(self) -> None:
        """Nobody answers any more: the input has ended."""
        self.ended = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(DriverError("The driver's input has ended."))

    def accept(self, id_: str, response: Line | None = None) -> None:
        """Answer a request of the driver's."""
        body: Line = {"subtype": "success", "request_id": id_}
        self.write(
            {
                "type": "control_response",
                "response": body | ({"response": response} if response is not None else {}),
            }
        )

    def refuse(self, id_: str, why: str, code: str = "") -> None:
        """Answer a request of the driver's with an error."""
        body: Line = {"subtype": "error", "request_id": id_, "error": why}
        self.write(
            {
                "type": "control_response",
                "response": body | ({"error_code": code} if code else {}),
            }
        )


def short_id() -> str:
    """Return an id for something that has none of its own."""
    return token_hex(8)
