"""Signing in to an MCP server: the address to open, and a field for the address it ends at."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.app.passing_questions import answer_while, until
from tui.core.browser import open_page
from tui.core.errors import HoldfastError, ToolError
from tui.core.text_cleaning import one_line, visible
from tui.ui.toolkit.answer_guard import AnswerPlace, guard_of
from tui.ui.widgets.dialog import Dialog, TextField

if TYPE_CHECKING:
    from tui.tools.mcp import Server

_PASTE = "If the browser is on another machine, paste the address that it ends at:"


class _SignedInElsewhereError(ToolError):
    """Another program has signed in to the server."""

    def __init__(self) -> None:
        super().__init__("Signed in elsewhere.")


class McpSignInDialog(Dialog[None], AnswerPlace):
    """Dialog that closes once the person has signed in."""

    DEFAULT_CSS = """
    McpSignInDialog #address { height: auto; margin: 1 0; color: $text-accent; }
    McpSignInDialog #problem { height: auto; color: $text-error; display: none; }
    McpSignInDialog #problem.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "cancel", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#pasted"

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._pasted: asyncio.Queue[str] = asyncio.Queue()

    def compose(self) -> ComposeResult:
        title = f"Sign in to {one_line(visible(self._server.name))}"
        with self.framed(Vertical(), title, ("enter", "use the address"), ("esc", "cancel")):
            yield Static("Asking the server…", id="what", classes="text", markup=False)
            yield Static("", id="address", markup=False)
            yield Static(_PASTE, classes="text", markup=False)
            yield TextField(id="pasted")
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.field_from = guard_of(self).clock.monotonic()
        self.sign_in()

    @work(group="sign in", exclusive=True)
    async def sign_in(self) -> None:
        """Let the person sign in, then close."""

        async def show(address: str) -> None:
            opened = await asyncio.to_thread(open_page, address)
            what = "Sign in in your browser. The page is" if opened else "Open in a browser"
            self.query_one("#what", Static).update(Content(f"{what}:"))
            self.query_one("#address", Static).update(Content(visible(address)))

        async def signed_in_elsewhere() -> None:
            await until(watch.signed_in)
            await until(lambda: self.is_current and not self.query_one("#pasted", TextField).value)

        async def pasted() -> str:
            """Return what is pasted. Raises _SignedInElsewhereError."""
            address = await answer_while(self._pasted.get(), signed_in_elsewhere(), None)
            if address is None:
                raise _SignedInElsewhereError
            return address

        name = one_line(visible(self._server.name))
        try:
            watch = await asyncio.to_thread(self._server.watch_tokens)
            await self._server.sign_in(show, pasted)
        except _SignedInElsewhereError:
            await self._server.restart()
            self.notify(f"Signed in to {name} in another window.", markup=False)
            self.dismiss()
        except HoldfastError as error:
            problem = self.query_one("#problem", Static)
            problem.update(Content(f"{error} Press Enter to try again."))
            problem.add_class("-shown")
        else:
            self.dismiss()

    @on(TextField.Submitted, "#pasted")
    def paste(self, event: TextField.Submitted) -> None:
        """Use the pasted address; after a failure, start again."""
        problem = self.query_one("#problem", Static)
        if problem.has_class("-shown"):
            problem.remove_class("-shown")
            self._pasted = asyncio.Queue()
            self.sign_in()
        elif event.value.strip():
            self._pasted.put_nowait(event.value)
        self.query_one("#pasted", TextField).value = ""

    def action_close(self) -> None:
        self.dismiss()
