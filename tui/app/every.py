"""/every: a background session repeats a prompt at an interval.

The times are multiples of the interval after the first run, by a clock that also counts while the
machine sleeps and that nobody sets: nothing drifts. One run at a time: where one takes longer, or
the machine slept, the times that were missed are left out. It lives as long as its process.
"""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tui.agent.prompts import parse
from tui.app import background
from tui.app.commands import find, split
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.repeat_wish import OVER, RepeatWish, named, read_repetition
from tui.app.reports import Report, Row
from tui.app.router import require_typed, route_own
from tui.core.clock import Clock, SuspendAwareClock
from tui.core.dataclass import replace
from tui.core.errors import UsageError
from tui.core.formatting import moment, money, plural, wait_time
from tui.core.partly_typed import part_of
from tui.core.text_cleaning import one_line
from tui.session.records import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui.app.conversation import Conversation
    from tui.app.frontend import Submitted
    from tui.core.config import EverySettings

FAILURES: Final = 3
"""Runs in a row that failed, after which it ends."""
_LOOK_S: Final = 15.0
"""Seconds between two looks at the clock: timers stand still while the machine sleeps."""
_TITLE: Final = "Repeat this prompt in the background?"


def with_limits(wish: RepeatWish, limits: EverySettings) -> RepeatWish:
    """A wish with the configured limits where it names none."""
    return replace(
        wish,
        usd=limits.usd if wish.usd is None else wish.usd,
        seconds=3600.0 * limits.hours if wish.seconds is None else wish.seconds,
    )


def limits_of(wish: RepeatWish, *, priced: bool = True) -> str:
    """The limits of a repetition in words; `priced`: its cost is known."""
    runs = [] if wish.runs is None else [plural(wish.runs, "run")]
    usd = [money(wish.usd)] if wish.usd and priced else []
    time = [] if wish.seconds is None else [wait_time(wish.seconds)]
    return f"up to {', '.join([*runs, *usd, *time])}"


class Repetition:
    """Repeats a prompt in one conversation. `wake` is set when it should look up: somebody stops
    it, or wants the session."""

    def __init__(
        self,
        conversation: Conversation,
        wish: RepeatWish,
        attached: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.wish = with_limits(wish, conversation.services.settings.now.every)
        self.wake = asyncio.Event()
        self.runs = 0
        self._conversation, self._attached = conversation, attached
        self._clock = clock or SuspendAwareClock()
        self._failures = 0
        self._stopped = False
        self._next: float | None = None
        self._cost_before = self._cost()

    def stop(self) -> None:
        """Repeat it no more; a running prompt finishes first."""
        self._stopped = True
        self.wake.set()

    @property
    def report(self) -> Report:
        """The repeated prompt, how often it ran, and when it runs again."""
        wish = self.wish
        rows = (
            one_line(wish.prompt),
            f"Every {wait_time(wish.interval_s)}, {self._limits()}",
            f"{plural(self.runs, 'run')} so far{self._when(', the next at ')}",
        )
        return Report("Repeated prompt", rows, notes=("/every stop ends it.",))

    async def run(self, goes_on: Callable[[], bool]) -> None:
        """Repeat until a limit is reached, it is stopped, or `goes_on` says no. Raises UsageError
        where the prompt is refused."""
        wish = self.wish
        began = self._clock.monotonic()
        often = f"Repeats every {wait_time(wish.interval_s)}, {self._limits()}"
        await self._note(f"{often}: {one_line(wish.prompt)}", every=wish.typed)
        number = 0
        while True:
            if await self._send() == "refused":
                frontend = self._conversation.frontend
                raise UsageError(getattr(frontend, "said", "") or "The prompt was refused.")
            self.runs += 1
            await self._rest()
            why = self._end(goes_on, self._clock.monotonic() - began)
            if not why:
                passed = self._clock.monotonic() - began
                due = max(number + 1, math.ceil(passed / wish.interval_s))
                if missed := due - number - 1:
                    what = plural(missed, "time")
                    await self._note(
                        f"Left out {what}: the run before took longer, or the machine slept."
                    )
                number = due
                why = await self._wait(began, number, goes_on)
            if why:
                break
        self._plan(None)
        if why != _GONE:
            text = f"No longer repeated: {why}. {plural(self.runs, 'run')}."
            await self._note(text, every=OVER)
        else:
            again = f"/every {wait_time(wish.interval_s).replace(' ', '')} …"
            await self._note(
                f"No longer repeated: its background process ends. {again} starts it again."
            )

    async def _send(self) -> Submitted | None:
        prompt, conversation = self.wish.prompt, self._conversation
        words = split(prompt)
        if (words is not None and find(words[0]) is None) or named(prompt, "goal") is not None:
            return await route_own(conversation, prompt, self._attached)
        return conversation.submit_parsed(replace(parse(prompt, self._attached), by=EVERY))

    async def _rest(self) -> None:
        """Wait until nothing runs."""
        while self._conversation.busy:
            await self._conversation.at_rest()

    def _end(self, goes_on: Callable[[], bool], passed: float) -> str:
        """Why it is not repeated any more; "" where it is."""
        live, wish = self._conversation.door.live, self.wish
        failed = live is not None and live.outcome == "failed"
        self._failures = self._failures + 1 if failed else 0
        spent = self._spent()
        if not goes_on():
            return _GONE
        if self._stopped:
            return "you ended it"
        if wish.runs is not None and self.runs >= wish.runs:
            return f"it has had its {plural(wish.runs, 'run')}"
        if wish.usd and spent is not None and spent >= wish.usd:
            return f"it has cost {money(spent)} of {money(wish.usd)}"
        if wish.seconds is not None and passed + wish.interval_s > wish.seconds + 1:
            return f"its {wait_time(wish.seconds)} are up"
        if self._failures >= FAILURES:
            return f"it failed {FAILURES} times in a row"
        return ""

    async def _wait(self, began: float, number: int, goes_on: Callable[[], bool]) -> str:
        """Wait for the time of a run, and until nothing else runs then. Returns why it is not
        repeated any more, or ""."""
        at = began + number * self.wish.interval_s
        self._plan(at)
        while True:
            await self._rest()
            if not goes_on():
                return _GONE
            if self._stopped:
                return "you ended it"
            left = at - self._clock.monotonic()
            if left <= 0:
                self._plan(None)
                return ""
            self.wake.clear()
            try:
                async with asyncio.timeout(min(left, _LOOK_S)):
                    await self.wake.wait()
            except TimeoutError:
                pass

    def _plan(self, at: float | None) -> None:
        self._next = at
        self._conversation.door.plan(self._when("next at "))

    def _when(self, before: str) -> str:
        if self._next is None:
            return ""
        now = self._conversation.services.clock.now()
        left = max(0.0, self._next - self._clock.monotonic())
        return f"{before}{moment(now + timedelta(seconds=left), now)}"

    def _limits(self) -> str:
        return limits_of(self.wish, priced=self._cost_before is not None)

    def _cost(self) -> float | None:
        agent = self._conversation.agent
        return agent.spending().session.usd if agent is not None else None

    def _spent(self) -> float | None:
        now, before = self._cost(), self._cost_before
        return None if now is None or before is None else now - before

    async def _note(self, text: str, *, every: str = "") -> None:
        conversation = self._conversation
        if (agent := conversation.agent) is not None and not agent.session.read_only:
            for event in await agent.note(text, every=every):
                conversation.frontend.show(event)


_GONE: Final = "gone"


async def every(conversation: Conversation, argument: str) -> None:
    """/every: offer to repeat a prompt in the background; show or end what this session repeats."""
    from tui.app.to_background import options_now  # noqa: PLC0415 - few prompts are repeated

    say, repetition = conversation.frontend.say, conversation.repetition
    if argument == "stop":
        if repetition is None:
            say("Nothing is repeated here.", hint="`holdfast stop ID` ends another session.")
        else:
            repetition.stop()
        return
    if not argument:
        conversation.frontend.report(repetition.report if repetition else _planned(conversation))
        return
    wish = read_repetition(argument)
    require_typed(part_of(argument, wish.prompt, len(argument) - len(wish.prompt)))
    options = options_now(conversation)
    if options is None:
        say("Nothing can run in the background here.", "warning")
        return
    wish = with_limits(wish, conversation.services.settings.now.every)
    text = (
        f"{one_line(wish.prompt)}\n\nEvery {wait_time(wish.interval_s)}, {limits_of(wish)}, in a"
        " background session of its own. It ends when the machine restarts; /help schedule has"
        " what doesn't."
    )
    if options.permissions.yolo:
        text += f"\n\n{background.ELEVATED}"
    question = ChoiceQuestion(_TITLE, text, (AnswerOption("s", "Start", "start"),))
    if await conversation.frontend.choose(question) != "start":
        return
    prompt = replace(options, prompt=f"/every {argument}")
    one = await asyncio.to_thread(background.start, conversation.services.folders, prompt)
    started, attach = background.started_words(one)
    say(f"{started}.", "success", hint=f"{attach}.")


def _planned(conversation: Conversation) -> Report:
    """The background sessions that wait for the time of their next run."""
    services = conversation.services
    known = background.listed(services.folders, services.clock.now())
    rows = [
        Row(one.id, (one.detail, one.title or one.cwd))
        for one in known
        if one.running and one.detail.startswith("next at ")
    ]
    notes = ("/every 10m PROMPT repeats one.",)
    return Report("Repeated prompts" if rows else "No prompt waits for its time", rows, notes=notes)
