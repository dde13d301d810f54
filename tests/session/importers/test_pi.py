"""pi's and OpenClaw's sessions, v1 and v3, told as ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.context.pictures import image, png
from tests.session.importers.telling import codes, kinds, prompts, request, said, title
from tests.support.foreign import CWD, MODEL, Pi, name, pi, pi_call, text
from tui.session import importers
from tui.session.reader import LoadedSession


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "2026-02-10_5e55-pi.jsonl"


def load(path: Path, made: Pi) -> LoadedSession:
    path.write_bytes(made.bytes())
    assert importers.recognise(path) == "pi"
    return importers.load(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_sound_session_is_told_whole_and_needs_no_repair(path: Path, version: int) -> None:
    loaded = load(path, pi(2, version))
    assert codes(loaded) == []
    messages, findings = request(loaded)
    assert findings == []
    assert said(messages[:4]) == [
        "user: prompt 0",
        "assistant: thinking, look 0, toolu_0a, toolu_0b",
        "user: toolu_0a=out 0a, toolu_0b=out 0b",
        "assistant: answer 0",
    ]
    assert loaded.header.origin == "pi:5e55-pi"
    assert (loaded.header.cwd, loaded.header.app) == (CWD, f"pi v{version}")


def test_usage_and_stop_reasons_are_the_apis(path: Path) -> None:
    answer = load(path, pi(1)).records[1]
    assert answer.data["stop_reason"] == "tool_use"
    assert answer.data["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": 7,
    }


@pytest.mark.parametrize("kind", ["toolUse", "functionCall", "tool_use"])
def test_openclaws_names_of_calls_are_known(path: Path, kind: str) -> None:
    made = Pi()
    made.user("go")
    made.answer(pi_call("a", command="ls") | {"type": kind}, stop="toolUse")
    made.result("a", "out")
    messages, findings = request(load(path, made))
    assert said(messages) == ["user: go", "assistant: a", "user: a=out"]
    assert findings == []
    assert messages[1]["content"][0]["input"] == {"command": "ls"}


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_B23_a_turn_that_broke_off_keeps_its_text_and_loses_calls_and_results(
    path: Path, stop: str
) -> None:
    made = Pi()
    made.user("go")
    made.answer(
        text("I look."),
        pi_call("a", command="ls"),
        pi_call("b") | {"partialJson": '{"comm'},
        stop=stop,
        errorMessage="terminated",
    )
    made.result("a", "never ran", isError=True)
    made.result("b", "never ran", isError=True)
    made.user("on")
    loaded = load(path, made)
    assert codes(loaded) == ["B23", "B23", "B23"]
    messages, findings = request(loaded)
    assert said(messages) == ["user: go", "assistant: I look.", "user: on"]
    assert findings == []
    assert ("error" in kinds(loaded)) == (stop == "error")


def test_B55_an_empty_answer_that_broke_off_says_nothing(path: Path) -> None:
    made = Pi(1)
    made.user("go")
    made.answer(stop="aborted", errorMessage="Request was aborted.")
    made.user("on")
    loaded = load(path, made)
    assert codes(loaded) == ["B55"]
    assert said(request(loaded)[0]) == ["user: go, on"]


def test_B22_thinking_stays_only_where_an_anthropic_server_signed_it(path: Path) -> None:
    for provider, model, expected in (
        ("anthropic", "claude-sonnet-5-5", "assistant: thinking, so"),
        ("openai", "gpt-5.1-codex", "assistant: so"),
        ("google", "gemini-3", "assistant: so"),
    ):
        made = Pi()
        made.user("go")
        signed = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
        made.answer(signed, text("so"), provider=provider, model=model)
        assert said(request(load(path, made))[0])[1] == expected


def test_redacted_thinking_keeps_its_data(path: Path) -> None:
    made = Pi()
    made.user("go")
    hidden = {"type": "thinking", "thinking": "", "thinkingSignature": "data", "redacted": True}
    made.answer(hidden, text("so"))
    block = request(load(path, made))[0][1]["content"][0]
    assert block == {"type": "redacted_thinking", "data": "data"}


def test_images_become_the_apis(path: Path) -> None:
    source = image(png(9, 9))["source"]
    made = Pi()
    picture = {"type": "image", "data": source["data"], "mimeType": "image/png"}
    made.message(role="user", content=[text("see"), picture])
    messages, findings = request(load(path, made))
    assert messages[0]["content"][1] == {"type": "image", "source": source}
    assert findings == []


def test_a_persons_commands_are_text_of_the_user(path: Path) -> None:
    made = Pi()
    run: dict[str, Any] = {"command": "make", "output": "no rule\n", "exitCode": 2}
    made.message(role="bashExecution", cancelled=False, truncated=False, **run)
    made.message(role="bashExecution", excludeFromContext=True, **run)
    words = said(request(load(path, made))[0])[0]
    assert words == "user: Ran `make`\n```\nno rule\n```\nThe command exited with code 2."


def test_what_nobody_typed_is_no_prompt(path: Path) -> None:
    made = Pi()
    made.user("go")
    made.answer(text("so"))
    made.message(role="bashExecution", command="make", output="built", exitCode=0)
    made.add("custom_message", customType="lint", content="2 warnings", display=True)
    skill = (
        '<skill name="tidy" location="/s/SKILL.md">\nReferences are in /s.\n\nTidy up.\n</skill>'
    )
    made.user(f"{skill}\n\nthe tests")
    made.answer(text("done"))
    made.user(skill)
    loaded = load(path, made)
    assert prompts(loaded) == ["go", "/skill:tidy the tests", "/skill:tidy"]
    words = str(said(request(loaded)[0]))
    assert all(one in words for one in ("built", "2 warnings", "Tidy up."))


def test_a_new_model_or_thinking_level_is_noted_once(path: Path) -> None:
    made = Pi()
    made.add("model_change", provider="anthropic", modelId=MODEL)
    made.add("thinking_level_change", thinkingLevel="off")
    made.user("go")
    made.answer(text("so"))
    for level in ("minimal", "low", "high"):
        made.add("thinking_level_change", thinkingLevel=level)
    for model in ("claude-opus-4-5", MODEL):  # tried, and changed back
        made.add("model_change", provider="anthropic", modelId=model)
    made.user("on")
    made.answer(text("yes"))
    made.add("model_change", provider="anthropic", modelId="claude-opus-4-5")
    loaded = load(path, made)
    told = [r.data["text"] for r in loaded.records if r.type in {"user", "note"}]
    assert told == [
        "go",
        "Thinking was set to high.",
        "on",
        "The model was changed to claude-opus-4-5.",
    ]
    assert request(loaded)[1] == []


def test_a_first_version_says_its_settings_at_the_beginning(path: Path) -> None:
    made = Pi(1)
    made.user("go")
    made.answer(text("so"))
    for level in ("low", "off"):
        made.add("thinking_level_change", thinkingLevel=level)
    made.user("on")
    assert "note" not in [record.type for record in load(path, made).records]


def test_the_branch_of_the_last_line_is_told(path: Path) -> None:
    made = Pi()
    first = made.user("first")
    made.answer(text("the wrong way"))
    made.add("branch_summary", parent=first, fromId="00000002", summary="It was wrong.")
    made.answer(text("the right way"))
    loaded = load(path, made)
    assert said(request(loaded)[0])[:2] == [
        "user: first, [Summary of a branch that was left]\nIt was wrong.",
        "assistant: the right way",
    ]
    notes = [r.data["text"] for r in loaded.records if r.type == "note"]
    assert notes == ["1 record of other branches stayed in the original file."]


def test_B53_a_dangling_parent_is_bridged_to_the_line_before(path: Path) -> None:
    made = pi(2)
    gone = made.records.pop(3)
    assert gone["message"]["role"] == "toolResult"
    loaded = load(path, made)
    assert codes(loaded) == ["B53"]
    messages, findings = request(loaded)
    assert findings == ["B01"]
    assert "prompt 0" in str(messages)
    assert "prompt 1" in str(messages)


def test_a_compaction_is_an_event_that_names_what_it_kept(path: Path) -> None:
    for version in (1, 3):
        made = pi(2, version)
        kept: dict[str, Any] = (
            {"firstKeptEntryId": name(7, 8)} if version == 3 else {"firstKeptEntryIndex": 7}
        )
        made.add("compaction", summary="We did things.", tokensBefore=150_000, **kept)
        made.user("on")
        loaded = load(path, made)
        event = next(r for r in loaded.records if r.type == "compaction")
        second = next(r for r in loaded.records if r.data.get("text") == "prompt 1")
        assert event.data["first_kept"] == second.id
        assert event.data["tokens_before"] == 150_000
        assert request(loaded)[1] == []
        assert "We did things" not in str(request(loaded)[0])


def test_what_a_compaction_kept_may_begin_with_a_setting(path: Path) -> None:
    made = Pi()
    made.user("go")
    made.answer(text("so"))
    kept = made.add("thinking_level_change", thinkingLevel="high")
    made.user("on")
    made.answer(text("yes"))
    made.add("compaction", summary="We went.", tokensBefore=150_000, firstKeptEntryId=kept)
    loaded = load(path, made)
    event = next(r for r in loaded.records if r.type == "compaction")
    assert event.data["first_kept"] == next(
        r.id for r in loaded.records if r.data.get("text") == "on"
    )


def test_a_session_has_the_name_that_it_was_given(path: Path) -> None:
    made = pi(1)
    assert title(load(path, made)) == "prompt 0"
    made.add("session_info", name="My work")
    made.add("label", targetId="00000001", label="here")
    made.add("custom", customType="x", data={})
    assert title(load(path, made)) == "My work"


@pytest.mark.parametrize("message", ["error", None, [], {"role": "user"}, {"content": "x"}])
def test_B56_what_is_no_message_costs_itself(path: Path, message: Any) -> None:
    made = pi(1)
    whole = request(load(path, made))[0]
    made.add("message", message=message)
    loaded = load(path, made)
    assert codes(loaded) == ["B56"]
    assert request(loaded)[0] == whole


def test_B44_a_record_written_twice_is_told_once(path: Path) -> None:
    made = pi(2)
    made.records.insert(4, made.records[3])
    loaded = load(path, made)
    assert codes(loaded) == ["B44"]
    assert request(loaded)[1] == []
