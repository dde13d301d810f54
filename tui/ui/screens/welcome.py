"""Setting up a model: a key, a profile, another server, or the practice model. The first screen if
nothing is set up, and the screen of /login."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from tui.app.dialog_data import (
    OTHER_PROFILE,
    KeySetup,
    PracticeSetup,
    ServerSetup,
    Setup,
    SetupElsewhere,
    SetupQuestion,
    SignInSetup,
)
from tui.app.passing_questions import until
from tui.app.services import AppServices
from tui.core.errors import HoldfastError, ToolError
from tui.core.text_cleaning import one_line
from tui.core.web_address import server_address
from tui.settings.local_servers import LocalServer
from tui.ui.screens.external_programs import step_aside
from tui.ui.start.first_frame import welcome_place
from tui.ui.toolkit.answer_guard import AnswerPlace
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.character_input import CharacterInput
from tui.ui.widgets.keys import in_rows
from tui.ui.widgets.welcome_text import head

_WIDTH, _NARROW = 26, 21
_ROOMY = 60
"""Columns from which a choice has its whole description."""
_LOW = 16
"""With fewer rows, only the question is shown above the choices."""
_FORMS = ("sign-in", "key", "server", "practice", "tour")
"""The choices that aren't servers on this machine."""

_KEY_HELP = "Stored in your keychain (or a file only you can read). Sent only to Anthropic."
_SERVER_HELP = (
    "Ollama, LM Studio, llama.cpp, LiteLLM, a gateway: any server that speaks the Messages API. "
    "Leave off /v1/messages. The key is optional."
)
_PRACTICE_HELP = (
    "A small built-in model that works offline. It reads, searches, edits and runs commands in "
    "this folder with the real tools, and asks before changing anything."
)
_SIGN_IN = "made with ant auth login"
_SIGN_IN_HELP = (
    "Anthropic's own library signs in and renews the token. Choosing this removes a key that"
    " you stored here."
)
_TOUR_HELP = "See every safety feature in 5 minutes, in a throwaway folder."


class WelcomeScreen(BaseScreen, Screen[str | None], AnswerPlace):
    """Dismissed with what was done once the services have taken a setup, or None to leave. What
    another program sets up is taken, unless the person asked for this screen."""

    awaited = True
    takes_text = True
    CSS_PATH = "welcome.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#choices"

    def __init__(self, services: AppServices, question: SetupQuestion) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (23, "-middle"), (28, "-tall")]
        self._services, self._question = services, question
        self._entering = self._narrow = False
        self._servers: dict[str, LocalServer] = {}
        self._chosen = "mine" if question.server else "sign-in" if question.sign_in else "key"
        self._trying: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        width, height = self.app.size  # pyright: ignore[reportUnknownMemberType]
        self.add_class("-short" if height < 23 else "-middle" if height < 28 else "-tall")
        with VerticalScroll(id="page", can_focus=False) as page:
            self._place(page, width, height)
            yield Static(self._welcome(height), id="name", markup=False)
            yield OptionList(*self._choices(), id="choices", compact=True)
            with Vertical(classes="form", id="sign-in-form"):
                yield Static(_SIGN_IN_HELP, classes="help", markup=False)
            with Vertical(classes="form", id="key-form"):
                yield from _field("API key", "key", "sk-ant-…", password=True)
                yield Static(_KEY_HELP, classes="help", markup=False)
            with Vertical(classes="form", id="server-form"):
                yield from _field("Address", "base-url", "http://127.0.0.1:11434")
                yield from _field("Model", "model", "model name")
                yield from _field("Key", "server-key", "if needed", password=True)
                yield Static(_SERVER_HELP, classes="help", id="server-help", markup=False)
            with Vertical(classes="form", id="practice-form"):
                yield Static(_PRACTICE_HELP, classes="help", markup=False)
            with Vertical(classes="form", id="tour-form"):
                yield Static(_TOUR_HELP, classes="help", markup=False)
            yield Static(id="problem", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        if not self._question.session:  # it opens by itself
            self.await_quiet()
            self.leave_when_set_up()
        self._show_form(self._chosen)
        self.offer_servers()

    def on_resize(self) -> None:
        narrow = self._narrow
        self._place(self.query_one("#page"), *self.size)
        if self._narrow != narrow:
            self._offer_choices()
        self.query_one("#name", Static).update(self._welcome(self.size.height))
        leave = "back, or cancel" if self._question.session else "back, or quit"
        keys = (("↑ ↓", "choose"), ("enter", "continue"), ("esc", leave))
        self.query_one("#keys", Static).update(in_rows(keys, self.size.width - 2, rows=1))

    def _welcome(self, rows: int) -> Content:
        low = rows < _LOW
        self.set_class(low, "-low")
        why = one_line(self._question.why)
        above = () if low else (head(), "\n\n", (f"{why}\n" if why else "", "$foreground"))
        profile = one_line(self._question.profile)
        whom = f" for profile {profile}" if profile else ""
        return Content.assemble(*above, (f"Connect a model{whom}", "bold $foreground"))

    def _place(self, page: Widget, columns: int, rows: int) -> None:
        _, above, page.styles.width = place = welcome_place(columns, rows)
        page.styles.margin = (above, 0, 0, 0)
        self._narrow = place[2] < _ROOMY

    def _choices(self) -> list[Option]:
        name = one_line(self._question.sign_in)
        offered: list[tuple[str, str, str, str]] = []
        if mine := self._question.server:
            address = mine.base_url.partition("://")[2]
            offered.append(("mine", one_line(address), "paste its key", "paste its key"))
        offered += [("sign-in", f"Sign-in {name}", _SIGN_IN, "signed in")] if name else []
        offered.append(("key", "Anthropic", "paste an API key", "paste a key"))
        here = "" if self._narrow else ", on this machine"
        offered += [
            (url, f"{server.name}{here}", *_models(server)) for url, server in self._servers.items()
        ]
        offered += [
            ("server", "Another server", "address and model", "by address"),
            ("practice", "Practice model", "offline, without a key", "offline"),
            ("tour", "Take the tour first", "5 minutes, no key needed", "5 minutes"),
        ]
        if self._question.others:
            words = "settings and a key of its own", "your profiles"
            offered.append((OTHER_PROFILE, "Another profile", *words))
        width = _NARROW if self._narrow else _WIDTH
        return [
            Option(_choice(name, short if self._narrow else what, width), id=id_)
            for id_, name, what, short in offered
        ]

    def _offer_choices(self) -> None:
        """Offer what there is, in the room that there is, with the same one chosen."""
        choices, chosen = self.query_one("#choices", OptionList), self._chosen
        choices.clear_options()
        choices.add_options(self._choices())
        choices.highlighted = choices.get_option_index(chosen)

    @work(exclusive=True)
    async def offer_servers(self) -> None:
        """Offer the servers that answer on this machine, by name."""
        servers = await self._services.probe_servers()
        if not servers or not self.is_attached:
            return
        self._servers = {server.base_url: server for server in servers}
        self._offer_choices()

    @work(exclusive=True, group="found")
    async def leave_when_set_up(self) -> None:
        """Leave once another program has set up a model, but never while something is entered
        here: the next keys would be a prompt."""
        await until(self._services.set_up_elsewhere)
        await until(lambda: self.is_current and not self._entering)
        self._try(SetupElsewhere())

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._entering = isinstance(event.widget, Input)

    def action_back(self) -> None:
        if self._trying:
            self._trying.cancel()
        self._say("")
        choices = self.query_one("#choices", OptionList)
        if choices.has_focus:
            self.dismiss(None)
        else:
            choices.focus()

    @on(OptionList.OptionHighlighted, "#choices")
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        chosen = event.option_id or ""
        if self._chosen and self._chosen != chosen:
            self._say("")
        self._chosen = chosen
        self._show_form(chosen)

    def _show_form(self, chosen: str) -> None:
        form = chosen if chosen in (*_FORMS, OTHER_PROFILE) else "server"
        for name in _FORMS:
            self.query_one(f"#{name}-form").set_class(name == form, "-shown")
        if form == "server":
            self._fill(self._servers.get(chosen))
        if chosen == "mine" and (mine := self._question.server):
            self.query_one("#base-url", Input).value = mine.base_url
            self.query_one("#model", Input).value = mine.model

    @on(OptionList.OptionSelected, "#choices")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        match event.option_id:
            case "sign-in":
                self._try(SignInSetup(self._question.sign_in))
            case "practice":
                self._try(PracticeSetup())
            case other if other == OTHER_PROFILE:
                self.dismiss(OTHER_PROFILE)
            case "tour":
                self._say(step_aside(cast("App[Any]", self.app), "tour"))
            case chosen:
                self.query_one(_first_field(chosen), Input).focus()

    @on(Input.Submitted, "#key")
    def _key_given(self, event: Input.Submitted) -> None:
        key = event.value.strip()
        if key:
            self._try(KeySetup(key), "Checking the key…")
        else:
            self._say("Paste a key first.")

    @on(Input.Submitted, "#base-url")
    @on(Input.Submitted, "#model")
    @on(Input.Submitted, "#server-key")
    def _server_given(self) -> None:
        url, model, key = (
            self.query_one(f"#{name}", Input) for name in ("base-url", "model", "server-key")
        )
        try:
            url.value = address = server_address(url.value)
        except ToolError as error:
            self._say(str(error) if url.value.strip() else "Enter an address.")
            url.focus()
            return
        if not model.value.strip():
            self._say("Enter a model name.")
            model.focus()
        else:
            setup = ServerSetup(address, model.value.strip(), key.value.strip())
            self._try(setup, "Trying the server…")

    def _try(self, setup: Setup, progress: str = "") -> None:
        self._say(progress, progress=True)
        self._trying = self.try_setup(setup)

    @work(exclusive=True, group="setup")
    async def try_setup(self, setup: Setup) -> None:
        """Use a setup and leave. One that can't be used stays in its fields, with the reason."""
        try:
            done = await self._services.set_up(setup)
        except HoldfastError as error:
            self._say(str(error))
        else:
            self.dismiss(done)

    def on_key(self, event: events.Key) -> None:
        """Pass on what is typed before a field was entered to that field."""
        field_name = _first_field(self._chosen)
        if field_name and event.is_printable and self.query_one("#choices").has_focus:
            event.stop()
            field = self.query_one(field_name, Input)
            self.set_focus(field)
            field.post_message(events.Key(event.key, event.character))

    def on_paste(self, event: events.Paste) -> None:
        """Pass on a key that is pasted before its field was entered to that field."""
        field = self.query_one("#server-key" if self._chosen == "mine" else "#key", Input)
        takes = self._chosen == "mine" or self.query_one("#key-form").display
        if self.query_one("#choices").has_focus and takes:
            event.stop()
            field.value = event.text.strip()
            field.focus()
        elif self.query_one("#choices").has_focus:
            event.stop()
            self._say("Choose where it belongs first, then paste.")

    def _fill(self, server: LocalServer | None) -> None:
        """Fill in what is known of a server that answered."""
        models = server.models if server else ()
        self.query_one("#base-url", Input).value = server.base_url if server else ""
        self.query_one("#model", Input).value = models[0] if models else ""
        text = _SERVER_HELP
        if models:
            more = f" and {len(models) - 8} more" if len(models) > 8 else ""
            text = f"Models: {', '.join(models[:8])}{more}."
        elif server:
            text = "The server answers but lists no models." + (
                "The server needs a key." if server.needs_key else "Load a model there first."
            )
        self.query_one("#server-help", Static).update(Content(text))

    def _say(self, text: str, *, progress: bool = False) -> None:
        line = self.query_one("#problem", Static)
        line.update(Content(text))
        line.set_class(bool(text), "-shown")
        line.set_class(progress, "-progress")
        if text:
            line.call_after_refresh(line.scroll_visible, animate=False)


def _first_field(chosen: str | None) -> str:
    """Return the field that a choice is filled in from; "" if it has none. Any other name is that
    of a server whose address is known."""
    fields = {
        **dict.fromkeys(("sign-in", "practice", "tour", OTHER_PROFILE), ""),
        "key": "#key",
        "mine": "#server-key",
        "server": "#base-url",
    }
    return fields.get(chosen or "", "#model")


def _field(label: str, name: str, example: str, *, password: bool = False) -> ComposeResult:
    with Horizontal(classes="row"):
        yield Static(label, classes="label", markup=False)
        field = CharacterInput(placeholder=example, password=password, id=name)
        field.cursor_blink = False
        yield field


def _choice(name: str, what: str, width: int) -> Content:
    return Content.assemble((f"{name:<{width - 1}} ", "bold"), (what, "$text-muted"))


def _models(server: LocalServer) -> tuple[str, str]:
    """Return what a server offers, in full and in few words."""
    models = ", ".join(server.models[:2]) or (
        "needs a key" if server.needs_key else "no models yet"
    )
    more = f" and {len(server.models) - 2} more" if len(server.models) > 2 else ""
    return f"{models}{more}", models
