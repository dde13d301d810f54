"""The tour as data: a step for every protective feature, and a word for every place."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.app.commands import find
from tui.core import facts
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.demo import tour_steps as places
from tui.demo.tour_progress import Tour
from tui.demo.tour_steps import (
    BUSY,
    CHAT,
    CONTEXT,
    END,
    OUTPUT,
    REPAIR,
    SESSIONS,
    STEPS,
    WHOLE,
    Cue,
    TourStep,
)
from tui.session.records import Record

FEATURES = {
    "ask": (),
    "approval": ("1", "4", "Esc"),
    "long output": ("F4", "Tab", "o"),
    "context": ("F2", "m", "u"),
    "compaction": ("/compact", "/uncompact"),
    "rate limit": ("/retry",),
    "stop": ("Esc",),
    "rewind": ("Esc", "f"),
    "sessions": ("F3", "Ctrl+F"),
    "repair": ("c",),
    "debug view": ("/verbose on", "F12"),
}
"""What protects a person's work, with the keys and commands that show it."""

SCREENS = {
    "ApprovalModal": "tui.ui.widgets.approval",
    "ChoiceDialog": "tui.ui.widgets.questions",
    "PickScreen": "tui.ui.screens.picker",
    "ContextScreen": "tui.ui.screens.context",
    "SessionsScreen": "tui.ui.screens.sessions",
    "RepairScreen": "tui.ui.screens.repair",
    "DebugLogScreen": "tui.ui.screens.debug_log",
}
PLACES = (CHAT, BUSY, OUTPUT, WHOLE, *SCREENS, "HelpScreen")
CUT = {"bytes_total": 500_000, "bytes_shown": 2048}
EVENTS: tuple[Fact, ...] = (
    facts.UserMessage("go"),
    facts.RequestSent(1, 100, "practice", 1),
    facts.RetryScheduled(1, 3, 20.0, "rate limited", 429, "rate_limit"),
    facts.ToolStarted("t", "run_command", {}),
    facts.PermissionAnswered("t", "edit_file", "once", "person"),
    facts.PermissionAnswered("t", "edit_file", "no", "person"),
    facts.ToolFinished("t", "run_command", False, 1.0, CUT),
    facts.ToolFinished("t", "read_file", False, 1.0, None),
    facts.ContextChanged(({"call_id": "t", "view": "masked"},)),
    facts.ContextChanged(({"call_id": "t", "view": "full"},)),
    facts.CompactionFinished(100, 50, 3, "so far"),
    facts.CompactionUndone(100),
    facts.QueueChanged(("and then",)),
    facts.QueueChanged(()),
    facts.DirectivesChanged(False, True, False),
    facts.SessionStarted("s", None, "practice", "/", True),
    facts.TurnFinished("done", Usage(), None),
    facts.TurnFinished("interrupted", Usage(), None),
)
RECORDS = [Record(kind, f"r{n}", None, "", {}) for n, kind in enumerate(("user", "tool_result"))]


def texts_of(step: TourStep) -> str:
    """All that a step may say."""
    return " ".join(f"{cue.say} {cue.lay}" for cue in step.cues)


def test_every_protective_feature_has_a_step() -> None:
    assert [step.name for step in STEPS] == list(FEATURES)
    for step in STEPS:
        missing = [key for key in FEATURES[step.name] if key not in texts_of(step)]
        assert missing == []


def test_the_places_are_screens_of_the_program() -> None:
    named = {cue.at for step in (*STEPS, END) for cue in step.cues}
    assert named <= {CHAT, BUSY, OUTPUT, WHOLE, *SCREENS}
    for name, module in SCREENS.items():
        assert hasattr(import_module(module), name)
    assert {CONTEXT, SESSIONS, REPAIR, places.DEBUG, places.PICK} <= set(SCREENS)


def test_the_commands_that_are_laid_ready_exist() -> None:
    laid = [cue.lay for step in STEPS for cue in step.cues if cue.lay.startswith("/")]
    assert len(laid) >= 4
    assert [text for text in laid if find(text[1:].split()[0]) is None] == []


def test_what_is_said_fits_a_small_terminal() -> None:
    cues = [cue for step in (*STEPS, END) for cue in step.cues]
    said = [cue.say for cue in cues if cue.at != CHAT or cue not in END.cues]
    assert [text for text in said if len(text.replace("`", "")) > 2 * 58] == []
    lines = [cue.news for cue in cues] + [step.happened for step in STEPS]
    assert [line for line in lines if isinstance(line, str) and len(line) > 76] == []


@given(
    at=st.integers(0, len(STEPS)),
    place=st.sampled_from(PLACES),
    narrow=st.booleans(),
    output=st.booleans(),
    heard=st.lists(st.sampled_from(EVENTS), max_size=8),
    records=st.sampled_from([RECORDS, RECORDS[:1], []]),
)
def test_wherever_the_person_is_there_is_a_word_and_a_way_on(
    at: int,
    place: str,
    narrow: bool,
    output: bool,
    heard: list[Fact],
    records: list[Record],
) -> None:
    tour = Tour("01damaged")
    for _ in range(at):
        tour.skip()
    before = tour.at
    for event in heard:
        tour.hear(event)
    tour.observe(place, narrow=narrow, output=output, records=records)
    said = tour.panel_text()
    assert said.now
    assert "{" not in said.lay
    assert said.title.startswith("tour · ")
    assert tour.at in {before, before + 1}  # one thing done is never two steps
    tour.skip()
    assert tour.over or tour.at > before


def test_a_step_is_not_done_by_what_happened_before_it() -> None:
    tour = Tour("01")
    tour.hear(EVENTS[6])
    tour.observe(CHAT, narrow=False, output=True, records=())
    assert tour.step is STEPS[1]
    tour.skip()
    tour.observe(WHOLE, narrow=False, output=True, records=())
    tour.observe(CHAT, narrow=False, output=True, records=())
    assert tour.step.name == "long output"


def test_one_can_go_back_and_begin_anew() -> None:
    tour = Tour("01")
    tour.back()
    assert tour.at == 0
    tour.skip()
    tour.skip()
    tour.back()
    assert tour.at == 1
    assert tour.panel_text().happened == ""
    tour.restart()
    assert tour.at == 0


@pytest.mark.parametrize(("answer", "words"), [("once", "You allowed it"), ("no", "You declined")])
def test_it_says_what_was_answered(answer: str, words: str) -> None:
    tour = Tour("01")
    tour.skip()
    tour.hear(facts.PermissionAnswered("t", "edit_file", answer, "person"))
    tour.observe(CHAT, narrow=False, output=True, records=())
    assert words in tour.panel_text().happened


def test_a_fault_strikes_once_in_its_step_alone() -> None:
    tour = Tour("01")
    assert tour.strike("practice") is None
    while tour.step.fault is None:
        tour.skip()
    fault = tour.strike("practice")
    assert fault is not None
    assert fault.status == 429
    assert tour.strike("practice") is None
    tour.skip()
    tour.back()
    assert tour.strike("practice") is fault


def test_the_first_hint_that_fits_is_shown() -> None:
    cues = (
        Cue(CHAT, "no", when=lambda _: False),
        Cue(BUSY, "busy"),
        Cue(CHAT, "yes"),
    )
    tour = Tour("01", [TourStep("one", "one", cues, lambda _: False, "")])
    assert tour.panel_text().now == "yes"
    tour.observe(BUSY, narrow=False, output=True, records=())
    assert tour.panel_text().now == "busy"
