"""The full screen's app: themes, global keys, submitted text. It routes; others do the work."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from textual import events, on, work
from textual.screen import Screen

import tui
from tui.core.clock import Clock
from tui.core.errors import CredentialsError, HoldfastError
from tui.core.gc_pause import gc_pause
from tui.core.keymap import keymap_of
from tui.core.partly_typed import PartlyTyped
from tui.core.paths import folders
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.footer import MODES
from tui.ui.start import early_keys
from tui.ui.toolkit import themes
from tui.ui.toolkit.answer_guard import SEND_AGAIN, USELESS_S, writes
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.toolkit.base_screen import BaseScreen, TooSmall, note_for, uncovered
from tui.ui.toolkit.familiar_keys import INSTEAD
from tui.ui.toolkit.key_parser import AltKey, DoubtfulKey, typed
from tui.ui.toolkit.key_sequencer import CommandLine, DoublePress, Pressed
from tui.ui.widgets.conversation.items import TERMINAL
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.keys import APP_KEYS, bindings
from tui.ui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from textual.signal import Signal

    from tui.app.conversation import Conversation
    from tui.app.open_session import SessionWatch
    from tui.app.services import Opening
    from tui.core.keymap import Keymap
    from tui.ui.frontend import ScreenFrontend, TurnEnded
    from tui.ui.screens.terminal import TerminalWatchScreen
    from tui.ui.start.terminal_takeover import TerminalTakeover
    from tui.ui.widgets.asked_line import LineAsked
    from tui.ui.widgets.conversation import view
    from tui.ui.widgets.conversation.items import Item
    from tui.ui.widgets.retry_banner import RetryBanner
    from tui.ui.widgets.welcome_text import Intro

log = logging.getLogger(__name__)

QUIT_WITHIN_S = 2.0
REWIND_WITHIN_S = 2.0
SHOW_EARLY_S = 0.3
"""Seconds after which a key that waits is shown."""
_TYPED_S = 0.25
"""Seconds to wait for letters to be in the prompt, in case its own work takes long."""
_WAITING = ("for the session.", "for the command.")


class HoldfastApp(ThemedApp):
    """The program on the full screen.

    Its first frame needs few imports. Then `load` runs in a thread and returns what the rest works
    with; prompts entered meanwhile wait for it. Until a session is open, every key that does more
    than edit the prompt waits too, and what is pressed after it: all of it acts in order then. An
    exception from `load` ends the app and is `failure` afterwards. Until it has returned, `theme`
    is a guess. `first` is the early frame that this app takes over, and `end` the last items of the
    session that will be opened, shown in the first frame.

    `early` is what waits. `conversation` and `frontend` exist once `ready` is true.
    """

    TITLE = "holdfast"
    CSS_PATH = ["app.tcss", "screens/chat.tcss"]  # noqa: RUF012 - the default screen loads none
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]

    conversation: Conversation
    frontend: ScreenFrontend
    _watch: SessionWatch

    def __init__(
        self,
        load: Callable[[], Opening],
        *,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        version: str = tui.__version__,
        first: TerminalTakeover | None = None,
        end: Sequence[Item] = (),
    ) -> None:
        super().__init__(clock=clock, takeover=first)
        self.ready = False
        self._load = load
        self._waiting: list[str] = []
        self.early: deque[tuple[Pressed, float]] = deque()
        self._early_goes_on = False  # to the screen that a command opens
        self._quit = DoublePress(self.clock, QUIT_WITHIN_S)
        self._asks_to_quit = False
        self._rewind = DoublePress(self.clock, REWIND_WITHIN_S)
        early = first.first if first else None
        self.chat = ChatScreen(
            self.clock,
            version=version,
            layout_file=folders().data / "screen.json",
            fresh=(early is None or early.fresh) and not end,
            end=end,
            covered=early is not None and early.welcoming and not end,
        )
        self.guard.draft = self.chat.prompt
        self.guess_theme(theme, early.look if early else None)

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def use_keys(self, keymap: Keymap) -> None:
        super().use_keys(keymap)
        self.chat.use_keys(keymap)

    def on_mount(self) -> None:
        typed = self.takeover.typed()
        if typed.draft:
            self.chat.prompt.put_typed(typed.draft, typed.typed[-1])
        for pasted in typed.pasted:
            self.chat.prompt.attach_paths(pasted)
        for text, count in zip(typed.sent, typed.typed, strict=False):
            self._wait(text if count >= len(text) else PartlyTyped(text, count))

    def on_ready(self) -> None:
        """Begin loading: the first frame is painted."""
        self.begin()

    def resumed(self) -> None:
        super().resumed()
        if self.ready:
            self.frontend.terminal.resume()

    async def on_unmount(self) -> None:
        if self.ready:
            await self.conversation.close()

    @work(group="session")
    async def begin(self) -> None:
        """Load the rest of the program after the first frame, then open the first session.

        Questions come before the session: whether to trust the folder, and which session to open.
        """
        self.heed_ends(self._leave)
        await self.painted()  # the first key comes before the thread that loads the rest
        try:
            opening = await asyncio.to_thread(self._prepare)
        except Exception as error:  # noqa: BLE001 - for the caller of the app
            self.failure = error
            self.exit()
            return
        await self._complete(opening)
        if await self._open_first(opening):
            self.chat.queued.texts = self.conversation.queue.texts
            if opening.verbose:
                await self.action_debug_view()

    async def action_command(self, name: str) -> None:
        """Run a command by its name, from a key, a click or the palette, once whatever covers the
        chat has closed."""
        self.uncover()
        await self._do(f"/{name}")

    def uncover(self) -> bool:
        """Close the screens that cover the chat, down to one that is awaited. True if there were
        any."""
        return uncovered(self, self.chat)

    async def action_output(self) -> None:
        """F4: show or hide the output; from another screen, show it."""
        if not (self.uncover() and self.chat.side.display):
            await self._do("/output")

    async def action_to_background(self) -> None:
        """Ctrl+B: move the running command to the background. With none running, the key does in
        the prompt what it does in a shell."""
        if self.ready and self.conversation.busy:
            self.conversation.to_background()
        elif self.chat.prompt.has_focus:
            self.chat.prompt.action_cursor_left()

    async def action_palette(self) -> None:
        """Ctrl+P: all commands, over the current screen; again closes them."""
        from tui.ui.commands.palette import open_palette  # noqa: PLC0415 - on demand

        own = self.conversation.user_commands.commands.values() if self.ready else ()
        await open_palette(self, self.chat, own, self.uncover)

    async def action_help(self) -> None:
        """F1: what works here, over the current screen; again closes it."""
        from tui.ui.screens.help import HelpScreen  # noqa: PLC0415 - on demand

        open_ = any(isinstance(screen, HelpScreen) for screen in self.screen_stack)
        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        elif not (open_ or isinstance(self.screen, TooSmall)):
            await self._do("/help")

    async def action_mark(self, what: Literal["mask", "pin"], shown: bool = False) -> None:
        """Mask or pin the tool call under the cursor, or undo that; with `shown`, the one whose
        output is shown."""
        if self.ready:
            from tui.ui.commands.views import mark  # noqa: PLC0415 - on demand

            await mark(self.frontend, what, shown=shown)

    @work(group="editor", exclusive=True)
    async def action_edit_prompt(self) -> None:
        """Ctrl+G: edit the prompt in the person's own editor."""
        if self.ready:
            from tui.ui.screens.external_programs import edit_prompt  # noqa: PLC0415 - on demand

            await edit_prompt(self, self.chat.prompt, self.chat.notice)

    async def action_debug_view(self) -> None:
        """F12: every event, over the current screen; again closes it."""
        if not self.ready:
            return
        from tui.ui.screens.debug_log import toggle_debug_log  # noqa: PLC0415 - on demand

        chats = (screen for screen in self.screen_stack if isinstance(screen, ChatScreen))
        logs = (screen.watched_log for screen in chats)
        log = next((log for log in logs if log is not None), self.frontend.log)
        await toggle_debug_log(self, log)

    async def action_switch(self, what: Literal["mode", "think"]) -> None:
        """Switch to the next mode, or /think on or off."""
        agent, order = self.conversation.agent if self.ready else None, tuple(MODES)
        if agent is None:
            return
        if what == "think":
            await self._do(f"/think {'off' if agent.directives.think else 'on'}")
            return
        agent.permissions.mode = order[(order.index(agent.permissions.mode) + 1) % len(order)]
        self.chat.show_mode(agent.permissions.mode)
        self.frontend.status.poke()

    @work(group="effort", exclusive=True)
    async def action_next_effort(self, step: int = 1) -> None:
        """F5, once a session is open: a question may have to be answered before."""
        if self.ready:
            from tui.app.commands.effort import next_effort  # noqa: PLC0415 - on demand

            if await self.conversation.settle():
                await next_effort(self.conversation, step)

    async def action_interrupt(self) -> None:
        """Ctrl+C: stop what runs, else clear the prompt, else quit at the second press. A prompt
        behind another screen is left alone."""
        if self.early:
            self.early.clear()
            self.chat.notice.clear()
            return
        above = [screen for screen in self.screen_stack if isinstance(screen, BaseScreen)]
        asked_here = bool(above) and above[-1].about is self.chat  # over another session, too
        if not asked_here and any(screen.takes_interrupt() for screen in reversed(above)):
            return
        if self.ready and self.conversation.cancel():
            return
        if self.screen is self.chat and self.chat.prompt.text:
            self._clear_prompt()
            return
        await self.action_quit_if_again("Ctrl+C")

    async def action_quit_if_again(self, key: str) -> None:
        """Quit at the second press, or at once while something is being saved before leaving."""
        if self._quit.asked() or (self.ready and self.conversation.leaving):
            await self.action_quit()
        elif self.screen is self.chat:
            self._say_for(QUIT_WITHIN_S, f"Press {key} again to quit.")
        else:
            note_for(self.screen, QUIT_WITHIN_S, f"Press {key} again to quit.")

    async def action_quit(self) -> None:
        """Save what is worth keeping, close the session, then leave."""
        self.run_worker(self._save_and_go(), group="leave")

    async def _save_and_go(self) -> None:
        """Ask what to do with running work; asking to quit a second time leaves it running."""
        how = "end"
        if self._asks_to_quit:
            how = "leave"
        elif self.ready and not self.conversation.leaving:
            from tui.app.quitting import ask_to_quit  # noqa: PLC0415 - at the end

            self._asks_to_quit = True
            try:
                how = await ask_to_quit(self.conversation)
            except HoldfastError as error:
                self.frontend.say(error.message, "error", hint=error.hint)
                return
            finally:
                self._asks_to_quit = False
        if how and (not self.ready or await self.conversation.save_memory_first()):
            await self._go(leave=how == "leave")

    async def _go(self, code: int = 0, *, leave: bool = False) -> None:
        """Close the session, then exit with this code. With `leave`, commands keep running."""
        try:
            if self.ready:
                await self.conversation.close(leave=leave)
            else:
                # A session that opens now would build on a screen that is closing.
                self.workers.cancel_group(self, "session")  # pyright: ignore[reportUnknownMemberType]
        except HoldfastError:
            log.exception("couldn't close the session")
        self.exit(return_code=code)

    def claims(self, event: events.Key) -> bool:
        if event.is_printable:  # typing shows that no second Ctrl+C is meant
            self._quit.forget()
        doubtful = isinstance(event, DoubtfulKey)
        settled = not doubtful and not self.guard.unsettled(self.arrived_at, event)
        return self.screen is self.chat and self.chat.claim(event, settled=settled)

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        if not self.guard.sends(self.arrived_at):
            self.chat.note(SEND_AGAIN)
            return
        if await self._do(event.text):
            event.prompt.accept(event.text)
        self._edited()

    async def on_intro_row_chosen(self, event: Intro.RowChosen) -> None:
        """Resume the session of a chosen row of the first screen, or send its prompt."""
        from tui.app.services import SessionChoice  # noqa: PLC0415 - not for the first frame

        self.chat.prompt.focus()
        if event.row.path:
            self.frontend.switch_session(SessionChoice(event.row.path))
        elif not await self._do(event.row.prompt):
            self.chat.prompt.put_back(event.row.prompt)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        """Forget a first Ctrl+C or Esc: typing shows that no second one is meant."""
        self._quit.forget()
        self._rewind.forget()
        if self.ready:
            self.conversation.drafts.touch()
            self.frontend.expect_prompt()

    @on(ChatScreen.StopAsked)
    async def _stop_asked(self) -> None:
        """Esc: stop what runs, or take back what waits for a session; with neither, the second
        press clears the prompt, or rewinds if it is empty. Vim's normal mode clears by its own
        commands."""
        if self.ready and self.conversation.cancel():
            self._rewind.forget()
            return
        prompt = self.chat.prompt
        if self.ready and not self._settled and (waiting := self.conversation.take_back()):
            prompt.put_back(waiting)
            return
        if prompt.text and not prompt.in_normal_mode:
            if self._rewind.asked():
                self._clear_prompt()
            else:
                self._say_for(REWIND_WITHIN_S, "Press Esc again to clear.")
            return
        if not self.ready:
            return
        agent = self.conversation.agent
        if agent is None or not agent.session.records:
            return
        if self._rewind.asked():
            self._rewind.forget()
            await self._do("/rewind")
        else:
            self._say_for(REWIND_WITHIN_S, "Press Esc again to rewind.")

    def _clear_prompt(self) -> None:
        """Empty the prompt; the history keeps what was in it."""
        self._rewind.forget()
        self.chat.prompt.accept()
        self._say_for(REWIND_WITHIN_S, "Cleared. Up brings it back.")

    @on(ConversationView.UndoAsked)
    async def _undo_asked(self) -> None:
        """Undo the last rewind."""
        await self._do("/rewind undo")

    def say_useless(self, key: str) -> None:
        if self.screen is not self.chat:
            super().say_useless(key)
        elif not self.chat.notice.text:
            other = INSTEAD.get(key.lower(), "")
            hint = "" if other else "F1 shows the keys."
            self._say_for(USELESS_S, other or f"{key} does nothing here.", hint=hint)

    def _say_for(self, seconds: float, text: str, *, hint: str = "") -> None:
        """Show a notice for that many seconds."""
        notice = self.chat.notice
        notice.say(text, hint=hint)
        content = notice.content
        self.set_timer(seconds, lambda: notice.clear() if notice.content is content else None)

    def on_turn_ended(self, event: TurnEnded) -> None:
        """Offer ways to recover from a failed turn whose error would only come back."""
        on_top = self.screen_stack[-1:] == [self.chat]  # at the end there is no screen any more
        if event.outcome == "failed" and event.error and on_top:
            from tui.app.error_options import offer_recovery  # noqa: PLC0415 - on demand

            work = offer_recovery(self.conversation, event.error)
            self.run_worker(work, group="recovery", exclusive=True)

    async def on_retry_banner_asked(self, event: RetryBanner.Asked) -> None:
        await self._do("/retry" if event.wish == "now" else "/retry other")

    def on_conversation_view_item_selected(self, event: view.ConversationView.ItemSelected) -> None:
        if self.ready:
            self.frontend.renderer.open_output(event.item)

    async def on_conversation_view_item_opened(
        self, event: view.ConversationView.ItemOpened
    ) -> None:
        if self.ready and self.screen is self.chat:
            if event.item.name == TERMINAL:
                from tui.ui.screens.terminal_opening import open_terminal  # noqa: PLC0415 - on demand

                await open_terminal(self.frontend, event.item)
                return
            from tui.ui.screens.sub_agents import open_sub_agent  # noqa: PLC0415 - as above

            await open_sub_agent(self.frontend, event.item.id)

    async def _on_terminal_watch_screen_person_typed(
        self, event: TerminalWatchScreen.PersonTyped
    ) -> None:
        if self.ready:
            from tui.ui.screens.terminal_opening import record_typing  # noqa: PLC0415 - on demand

            await record_typing(self.frontend, event.job)

    def _on_line_asked(self, event: LineAsked) -> None:
        if self.ready:
            from tui.ui.commands.views import ask_line  # noqa: PLC0415 - on demand

            ask_line(self.frontend, event.line)

    @work(group="recheck")
    async def action_recheck(self) -> None:
        """Check that everything is saved and that the session is still ours."""
        if await self._watch.check(self.conversation):
            from tui.ui.screens.lost_session import ask_to_fork  # noqa: PLC0415 - on demand

            await ask_to_fork(self.frontend)

    def _prepare(self) -> Opening:
        """Import what the rest needs, and load it; runs in a thread."""
        with gc_pause():
            from tui.ui.start.deferred_mount import prepare  # noqa: PLC0415 - not for the first frame

            return prepare(self._load)

    async def _complete(self, opening: Opening) -> None:
        """Complete the screen, then send what was entered meanwhile."""
        from tui.app.open_session import RECHECK_S, SessionWatch  # noqa: PLC0415 - not for the first frame
        from tui.ui.start.deferred_mount import mount_rest  # noqa: PLC0415 - as before

        settings = opening.services.settings
        settings.apply(lambda now: now.keys, lambda keys: self.use_keys(keymap_of(keys)))
        settings.apply(lambda now: now.vim, self.chat.prompt.use_vim)
        settings.apply(lambda now: now.copy_on_select, self._copy_selections)
        settings.follow(lambda now: now.theme, self.use_theme)
        for problem in self.correct_theme(opening.theme)[:1]:
            self.chat.notice.say(problem.message, "warning", hint=problem.hint)
        self.frontend = await mount_rest(self, self.chat, opening.services)
        self.use_terminal(self.frontend.terminal)
        self.conversation, self._watch = self.frontend.conversation, SessionWatch()
        self.set_interval(RECHECK_S, self.action_recheck)
        self.ready = True
        self.chat.queued.texts = ()
        if opening.prompt:
            self.conversation.submit(opening.prompt)
        await self._do_waiting()

    def _copy_selections(self, on: bool) -> None:
        self.copies_selection = on

    async def _do_waiting(self) -> None:
        for text in self._waiting:
            self.chat.prompt.past.add(text)
            if not await self._do(text):
                self.chat.prompt.put_back(text)
        self.call_later(self._take_up_early)  # some of it needs no session

    async def _open_first(self, opening: Opening) -> bool:
        """Open the first session. False if the person leaves instead."""
        from tui.app.open_session import open_first  # noqa: PLC0415 - not for the first frame
        from tui.ui.widgets.record_items import warm  # noqa: PLC0415 - as before

        try:
            await open_first(self.conversation, opening.choice)
        except CredentialsError:
            await self._go()
            return False
        except HoldfastError as error:
            self.chat.notice.say(error.message, "error", hint=error.hint)
            if not self.conversation.busy:
                self.chat.idle()
        self.chat.uncover()
        with gc_pause():
            await asyncio.to_thread(warm)
        return True

    async def _do(self, text: str) -> bool:
        """Run a command, a shell line or a prompt. False if the text should stay in the prompt."""
        if text.startswith("/") and not self._has_what_it_needs(line := CommandLine(text)):
            self._keep(line)
            return True
        if not self.ready:
            self._wait(text)
            return True
        from tui.app.router import route  # noqa: PLC0415 - not for the first frame

        self.chat.notice.clear()
        submitted = await route(self.conversation, text)
        if submitted is not None:
            self.chat.conversation.follow()
        return submitted != "refused"

    async def pass_on(self, event: Pressed) -> None:
        if isinstance(event, AltKey | DoubtfulKey) and self._is_text_after_esc(event):
            # Esc and a letter that came together, as over a slow line. With more after them that is
            # sure.
            if isinstance(event, DoubtfulKey):
                await self.pass_on(DoubtfulKey(events.Key("escape", None), follows=event.follows))
            letter = DoubtfulKey(typed(event.types), follows=False)
            await self.take_up([(letter, self.arrived_at)])
            return
        if isinstance(event, events.Paste) and self.ready and self.screen is self.chat:
            self.frontend.expect_prompt(whole=True)
        chatting = self.screen is self.chat or self._early_goes_on
        if chatting and not self._settled and early_keys.depends_on_text(event):
            await self._letters_typed()  # a question may open meanwhile, which gets no such key
        if chatting and not self._has_what_it_needs(event):
            self._keep(event)
        elif isinstance(event, CommandLine):
            if not await self._do(event.text):
                self.chat.prompt.put_back(event.text)
        else:
            await super().pass_on(event)

    def _is_text_after_esc(self, event: AltKey | DoubtfulKey) -> bool:
        """True if a letter with Alt means nothing here, and is no rest of a report.

        Modes of vim take the Esc in it themselves.
        """
        vim = self.chat.prompt.has_focus and self.chat.prompt.has_vim_keys
        if not event.types or vim or event.key in self.screen.active_bindings:
            return False
        if isinstance(event, DoubtfulKey):
            return not event.follows
        return writes(self.focused) and event.key not in INSTEAD

    @property
    def _settled(self) -> bool:
        return self.ready and self.conversation.settled

    def _has_what_it_needs(self, event: Pressed) -> bool:
        """True unless a key or a command has to wait for a session, or for one before it."""
        if self._command_opens:
            return early_keys.needs_nothing(event, self.screen)
        if not self.early and self._settled:  # as nearly always: the rest looks up all bindings
            return True
        return early_keys.needs_nothing(event, self.screen) or (
            not self.early and early_keys.acts_now(event, self.chat, loaded=self.ready)
        )

    @property
    def _command_opens(self) -> bool:
        return self._settled and self.frontend.command_opens

    async def _letters_typed(self) -> None:
        """Wait until the prompt has the letters that were pressed before."""
        done = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(_TYPED_S):
                self.chat.prompt.call_later(done.set)
                await done.wait()

    def _keep(self, event: Pressed) -> None:
        """Keep what came early, and show it if it has to wait for long."""
        self.early.append((event, self.arrived_at))
        self.set_timer(SHOW_EARLY_S, self._show_early)
        if len(self.early) == 1 and self.ready:
            self._act_on_early()

    def _show_early(self) -> None:
        if self.early and (not self._settled or self._command_opens):
            waiting = early_keys.named(event for event, _ in self.early)
            say = self.frontend.say if self.ready else self.chat.notice.say
            waits = "waits" if len(waiting) == 1 else "wait"
            what_for = _WAITING[self._settled]
            say(f"{' '.join(waiting)} {waits} {what_for}", hint="Ctrl+C cancels.")

    @work(group="early")
    async def _act_on_early(self) -> None:
        """Let what came early act, in its order: on the screen of the command that it waits for,
        else once a session is open and nothing covers the chat."""
        if self._command_opens:
            self._early_goes_on = True
            await self.frontend.command_settled()
            self.call_later(self._take_up_early)
            return
        if not await self.conversation.settle():
            self._forget_early()
            return
        uncovered = asyncio.Event()
        screens = cast("Signal[Screen[Any]]", self.screen_change_signal)  # pyright: ignore[reportUnknownMemberType]

        def shown(screen: Screen[Any]) -> None:
            if screen is self.chat:
                uncovered.set()

        node = self.chat.prompt  # whoever unsubscribes takes all of a node's callbacks away
        screens.subscribe(node, shown, immediate=True)
        try:
            if self.screen is not self.chat:
                await uncovered.wait()
        finally:
            screens.unsubscribe(node)
        self.call_later(self._take_up_early)

    async def _take_up_early(self) -> None:
        if self.screen is not self.chat and not self._early_goes_on:
            self._act_on_early()
            return
        self._early_goes_on = False
        held = list(self.early)
        self._forget_early()
        await self.take_up(held)

    def _forget_early(self) -> None:
        self.early.clear()
        if any(what_for in self.chat.notice.text for what_for in _WAITING):
            self.chat.notice.clear()

    def _wait(self, text: str) -> None:
        """Keep a text until `ready`, and show that it waits."""
        self._waiting.append(text)
        self.chat.queued.texts = tuple(self._waiting)

    def _leave(self, number: int) -> None:
        """Leave after a signal, or because the terminal has gone (`number` is 0)."""
        code = 128 + number if number else 0
        work = partial(self._go, code, leave=number in {0, signal.SIGHUP})
        self.run_worker(work, group="leave")  # called only while the app runs
