"""A person's own keys: what is understood, what is refused and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

from tui.core.keymap import DEFAULT_KEYS, faults, keymap_of, normalized, refusal, shown
from tui.ui.widgets.keys import HELP

NAMES = st.sampled_from(sorted(DEFAULT_KEYS)) | st.text(max_size=8)
KEYS = st.text(max_size=12) | st.sampled_from(["ctrl+k", "f7", "alt+x", "Ctrl + Shift + PgUp", "+"])


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Ctrl+K", "ctrl+k"),
        ("pgup", "pageup"),
        ("shift+option+PgDn", "alt+shift+pagedown"),
        ("ctrl+_", "ctrl+underscore"),
        (" F7 ", "f7"),
    ],
)
def test_a_key_is_understood_as_people_write_it(written: str, key: str) -> None:
    assert normalized(written) == key
    assert refusal(key) == ""


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("a", "types into the prompt"),
        ("shift+a", "types into the prompt"),
        ("space", "types into the prompt"),
        ("?", "types into the prompt"),
        ("ctrl+i", "reaches programs as Tab"),
        ("ctrl+m", "reaches programs as Enter"),
        ("alt+f", "reaches programs as Ctrl+Right"),
        ("ctrl+5", "isn't sent as a key of its own by most terminals"),
        ("ctrl+shift+a", "isn't sent as a key of its own by most terminals"),
        ("cmd+k", "doesn't reach programs in a terminal: use Ctrl, Alt or Shift"),
        ("up", "moves or deletes in the prompt"),
        ("escape", "always stops the agent"),
        ("ctrl+c", "always stops the agent"),
        ("f99", "isn't a known key"),
        ("ctrl+", "isn't a known key"),
        ("hyper", "isn't a known key"),
    ],
)
def test_a_key_that_cannot_be_pressed_or_spared_is_refused(key: str, why: str) -> None:
    assert refusal(normalized(key)) == why


def test_no_key_of_a_terminal_is_called_unknown() -> None:
    sent = {key.value for keys in ANSI_SEQUENCES_KEYS.values() if isinstance(keys, tuple)
            for key in keys if not key.value.startswith("<")}  # fmt: skip
    unknown = {key for key in sent if refusal(normalized(key)) == "isn't a known key"}
    assert unknown == set()


def test_the_defaults_are_valid_and_each_has_a_row() -> None:
    rows = [row for _, keys in HELP for row in keys if row.name]
    assert {row.name for row in rows} == set(DEFAULT_KEYS)
    assert {name: tuple(row.keys.split(",")) for row in rows for name in [row.name]} == DEFAULT_KEYS
    assert list(faults({name: keys for name, keys in DEFAULT_KEYS.items() if name != "stop"})) == []


def test_a_key_of_two_actions_is_named_with_both() -> None:
    assert list(faults({"find": "f8", "tasks": ["f8"]})) == [
        (
            "tasks",
            "F8 is also the key of find.",
            'Give find another key, or none with find = "".',
        )
    ]
    assert next(faults({"find": "ctrl+t"}))[1] == "Ctrl+T is also the key of tasks."
    assert list(faults({"find": "ctrl+t", "tasks": "ctrl+f"})) == []
    assert list(faults({"find": "ctrl+t", "tasks": ""})) == []


def test_stop_keeps_escape() -> None:
    assert keymap_of({"stop": "f8"})["stop"] == ("escape", "f8")
    assert keymap_of({"stop": ""})["stop"] == ("escape",)
    assert keymap_of({"find": ""})["find"] == ()
    assert next(faults({"find": "esc"}))[1] == "Esc isn't allowed: it always stops the agent."


def test_an_unknown_action_says_which_was_meant() -> None:
    assert list(faults({"fold-tools": "f7"})) == [
        ("fold-tools", "isn't an action.", "Did you mean fold_tools?")
    ]


@given(st.dictionaries(NAMES, KEYS | st.lists(KEYS, max_size=3), max_size=4))
def test_whatever_is_written_is_judged(own: dict[str, str | list[str]]) -> None:
    for name, message, _ in faults(own):
        assert name in own
        assert message
    for key in (
        key for value in own.values() for key in ([value] if isinstance(value, str) else value)
    ):
        assert normalized(normalized(key)) == normalized(key)
        shown(normalized(key))
