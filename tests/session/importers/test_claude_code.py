"""Claude Code's sessions, told as ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.session.importers.telling import (
    codes,
    kinds,
    left_out,
    prompts,
    request,
    said,
    title,
)
from tests.support.foreign import CWD, MODEL, ClaudeCode, claude_code, lines, name, text, tool_use
from tui.session import importers
from tui.session.reader import LoadedSession


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "11111111-2222-4333-8444-555555555555.jsonl"


def load(path: Path, made: ClaudeCode | list[Any]) -> LoadedSession:
    path.write_bytes(made.bytes() if isinstance(made, ClaudeCode) else lines(made))
    assert importers.recognise(path) == "claude_code"
    return importers.load(path)


def test_a_sound_session_is_told_whole_and_needs_no_repair(path: Path) -> None:
    loaded = load(path, claude_code(2))
    assert codes(loaded) == []
    assert kinds(loaded) == [
        "user", "assistant", "tool_result", "tool_result", "assistant",
        "user", "assistant", "tool_result", "tool_result", "assistant", "title",
    ]  # fmt: skip
    messages, findings = request(loaded)
    assert findings == []
    assert said(messages[:4]) == [
        "user: prompt 0",
        "assistant: thinking, look 0, toolu_0a, toolu_0b",
        "user: toolu_0a=out 0a, toolu_0b=out 0b",
        "assistant: answer 0",
    ]


def test_the_header_names_where_it_comes_from(path: Path) -> None:
    made = claude_code()
    header = load(path, made).header
    assert header.origin == f"claude_code:{made.session}"
    assert (header.cwd, header.app) == (CWD, "claude_code 2.1.38")
    assert header.created == made.records[1]["timestamp"]
    assert header.id == importers.load(path).header.id
    assert len(header.id) == 12


def test_ids_are_the_same_on_every_reading_and_in_order(path: Path) -> None:
    loaded = load(path, claude_code())
    ids = [record.id for record in loaded.records]
    assert ids == sorted(set(ids))
    assert loaded == importers.load(path)
    assert loaded.branch == list(loaded.records)


def test_the_summary_is_the_title_else_the_first_prompt_is(path: Path) -> None:
    made = claude_code()
    assert title(load(path, made)) == "A fine session"
    made.records.pop()
    assert title(load(path, made)) == "prompt 0"


def test_pieces_of_one_answer_are_one_record_with_the_last_usage(path: Path) -> None:
    loaded = load(path, claude_code(1))
    answer = next(r for r in loaded.records if r.type == "assistant")
    assert len(answer.data["content"]) == 4
    assert answer.data["model"] == MODEL
    assert answer.data["usage"]["output_tokens"] == 6
    assert all("caller" not in block for block in answer.data["content"])


def test_a_blank_piece_says_nothing(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    made.piece("m", text("\n\n"))
    made.piece("m", {"type": "thinking", "thinking": "hm", "signature": "s"})
    made.piece("m", text("so"))
    messages, findings = request(load(path, made))
    assert said(messages) == ["user: go", "assistant: thinking, so", "user: (continue)"]
    assert findings == []


def test_what_is_no_part_of_the_conversation_is_counted_by_kind(path: Path) -> None:
    made = claude_code(1)
    before = kinds(load(path, made))
    made.records.append({"type": "queue-operation", "operation": "enqueue", "content": "/mcp"})
    made.records.append({"type": "hologram", "uuid": "h", "parentUuid": made.last})
    made.records.append({"type": "hologram", "uuid": "i", "parentUuid": made.last})
    loaded = load(path, made)
    assert kinds(loaded) == before
    said = [words.partition(" (byte")[0] + words.partition(")")[2] for words in left_out(loaded)]
    assert said == [
        "line 1: left out: 1 record (file-history-snapshot)",
        "line 2: left out: 2 records (progress)",
        "line 12: left out: 1 record (system turn_duration)",
        "line 14: left out: 1 record (queue-operation)",
        "line 15: left out: 2 records (hologram)",
    ]
    (words,) = [r.data["text"] for r in loaded.records if r.type == "note"]
    assert words == (
        "7 records stayed in the original file: file-history-snapshot, progress,"
        " system turn_duration, queue-operation, hologram."
    )


def side_chain(made: ClaudeCode, prompt: str, words: str, *, agent: str = "") -> list[Any]:
    """Two records of a sub-agent. The next record of the session follows the one before them."""
    before = made.last
    more: dict[str, Any] = {"isSidechain": True} | ({"agentId": agent} if agent else {})
    made.user(prompt, parent=None, **more)
    made.piece(f"{words} {len(made.records)}", text(words), **more)
    made.last = before
    return made.records[-2:]


def with_task(made: ClaudeCode, call: str, prompt: str) -> None:
    given = {"prompt": prompt, "subagent_type": "Explore", "description": f"about {prompt}"}
    made.piece(f"m {call}", {**tool_use(call, "Task"), "input": given})


def children_of(loaded: LoadedSession) -> list[tuple[str, str, str]]:
    """The call, the prompt and the answer of each sub-agent's session."""
    found: list[tuple[str, str, str]] = []
    for child in loaded.children:
        assert child.header.parent_session == loaded.header.id
        messages = said(request(child)[0])
        found.append((child.header.parent_call, messages[0], messages[1]))
    return found


def test_side_chains_become_sessions_of_sub_agents(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    with_task(made, "call_1", "look here")
    with_task(made, "call_2", "look there")
    side_chain(made, "look there", "found there")  # by its prompt: no id before 2.0
    side_chain(made, "look here", "found here", agent="a1")
    side_chain(made, "Warmup", "ready")  # nobody's call
    made.result("call_1", "found here")
    made.result("call_2", "found there")
    made.piece("m9", text("done"))
    loaded = load(path, made)
    assert codes(loaded) == []
    assert left_out(loaded) == []
    assert "done" in said(request(loaded)[0])[-2]
    assert children_of(loaded) == [
        ("call_2", "user: look there", "assistant: found there"),
        ("call_1", "user: look here", "assistant: found here"),
        ("", "user: Warmup", "assistant: ready"),
    ]
    named = [r for r in loaded.records if r.type == "sub_agent"]
    assert [(r.data["call_id"], r.data["agent"], r.data["state"]) for r in named] == [
        ("call_1", "Explore", "done"), ("call_2", "Explore", "done"), ("", "sub-agent", "done"),
    ]  # fmt: skip
    assert {r.data["session"] for r in named} == {c.header.id for c in loaded.children}
    assert named[0].data["description"] == "about look here"
    assert named[0].data["spent"][0]["requests"] == 1
    behind = loaded.records[loaded.records.index(named[0]) + 1]
    assert (behind.type, behind.data["call_id"]) == ("tool_result", "call_1")


def test_files_beside_the_session_become_sessions_of_sub_agents(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    with_task(made, "call_1", "look here")
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "found"}
    made.user([block], toolUseResult={"status": "completed", "agentId": "a1"})
    made.piece("m9", text("done"))
    folder = path.with_suffix("") / "subagents"
    deep = folder / "workflows" / "wf_1"
    deep.mkdir(parents=True)

    def put(file: Path, prompt: str, more: bytes = b"") -> None:
        agent = file.stem.removeprefix("agent-")
        file.write_bytes(lines(side_chain(ClaudeCode(), prompt, "so", agent=agent)) + more)

    put(folder / "agent-a1.jsonl", "in other words", b'{"torn')
    put(deep / "agent-a2.jsonl", "deep")
    (deep / "agent-a2.meta.json").write_text('{"toolUseId": "call_7"}')
    (deep / "journal.jsonl").write_text("{}\n")
    put(path.with_name("agent-a3.jsonl"), "as before 2.1")
    put(path.with_name("agent-a4.jsonl"), "of another session")
    other = path.with_name("agent-a4.jsonl")
    other.write_bytes(other.read_bytes().replace(made.session.encode(), b"another"))
    (folder / "agent-a5.jsonl").write_bytes(b"\0" * 9)
    loaded = load(path, made)
    assert children_of(loaded) == [
        ("call_1", "user: in other words", "assistant: so"),
        ("call_7", "user: deep", "assistant: so"),
        ("", "user: as before 2.1", "assistant: so"),
    ]
    torn = [one.where for one in loaded.findings if one.code == "B40"]
    assert torn[0].startswith(f"{path.stem}/subagents/agent-a1.jsonl line 3 ")
    words = "\n".join(left_out(loaded))
    assert "journal.jsonl: left out: no sub-agent's session" in words
    assert "agent-a5.jsonl: left out: 1 record (of a sub-agent that said nothing)" in words
    assert loaded == importers.load(path)


def test_a_chain_of_links_that_runs_in_a_circle_is_one_sub_agent(path: Path) -> None:
    made = claude_code(1)
    one, two = side_chain(made, "round", "and round")
    one["parentUuid"] = two["uuid"]
    loaded = load(path, made)
    assert len(loaded.children) == 1
    assert "B53" in codes(loaded)


def test_6_the_file_of_a_sub_agent_is_a_conversation(path: Path) -> None:
    made = claude_code(1)
    before = kinds(load(path, made))
    for record in made.records:
        record["isSidechain"] = True
    assert "assistant" in before
    assert kinds(load(path, made)) == before


def test_B02_8_the_result_of_a_parallel_call_that_is_lost_becomes_text(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    one = made.piece("m1", {"type": "tool_use", "id": "a", "name": "Read", "input": {}})
    two = made.piece("m1", {"type": "tool_use", "id": "b", "name": "Read", "input": {}})
    first = made.result("a", "of the first", parent=one)
    made.result("b", "of the second", parent=two)
    made.piece("m2", text("done"), parent=first)
    made.records = [record for record in made.records if record.get("uuid") != two]
    messages, findings = request(load(path, made))
    assert "of the second" in str(messages)
    assert said(messages)[-2] == "assistant: done"
    assert "B02" in findings


def test_meta_stays_in_the_request_and_is_not_shown_as_typed(path: Path) -> None:
    made = ClaudeCode()
    made.user("a caveat", isMeta=True)
    made.user("<command-name>/mcp</command-name>")
    made.user("the prompt")
    made.piece("m", text("so"))
    loaded = load(path, made)
    assert ["text" in r.data for r in loaded.records if r.type == "user"] == [False, False, True]
    messages, _ = request(loaded)
    assert "a caveat" in said(messages)[0]


BY_THE_PROGRAM: list[tuple[str, dict[str, Any]]] = [
    ("<bash-input>ls</bash-input>", {}),
    ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", {}),
    ("<local-command-stdout>Login successful</local-command-stdout>", {}),
    ("<command-name>/login</command-name>\n<command-message>login</command-message>", {}),
    ("Base directory for this skill: /s\n# Review", {"isMeta": True, "sourceToolUseID": "t"}),
    ("<task-notification>\n<status>completed</status>\n</task-notification>", {}),
    ("It finished.", {"origin": {"kind": "task-notification"}, "promptSource": "system"}),
    ("Please rebase", {"origin": {"kind": "peer"}}),
    ("[Request interrupted by user for tool use]", {}),
    ("Operation stopped by hook: Another session is active.", {}),
]
"""What versions 2.1.5 to 2.1.42 write where nobody typed, shortened; later ones add `origin`."""


@pytest.mark.parametrize(("words", "marks"), BY_THE_PROGRAM)
def test_what_nobody_typed_is_no_prompt_but_in_the_request(
    path: Path, words: str, marks: dict[str, Any]
) -> None:
    made = ClaudeCode()
    made.user("the prompt", origin={"kind": "human"}, promptSource="typed")
    made.piece("m", text("so"))
    made.user(words, **marks)
    made.piece("n", text("yes"))
    made.user("the next", permissionMode="default", thinkingMetadata={"maxThinkingTokens": 1})
    loaded = load(path, made)
    assert prompts(loaded) == ["the prompt", "the next"]
    assert f"user: {words}" in said(request(loaded)[0])


def test_a_summary_at_the_beginning_is_no_prompt(path: Path) -> None:
    made = ClaudeCode()
    made.user("This session is being continued.", isCompactSummary=True)
    made.user("on")
    loaded = load(path, made)
    assert prompts(loaded) == ["on"]
    assert "continued" in said(request(loaded)[0])[0]


def test_a_command_whose_text_is_sent_is_the_prompt_that_was_typed(path: Path) -> None:
    made = ClaudeCode()
    command = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    made.user(command)
    made.user([text("# Review\nRead it all.")], isMeta=True)
    made.piece("m", text("so"))
    made.user(f"{command}\n<command-args>12 fast</command-args>")
    loaded = load(path, made)
    assert prompts(loaded) == ["/review", "/review 12 fast"]
    assert "Read it all." in said(request(loaded)[0])[0]


def test_what_an_editor_adds_is_no_part_of_the_prompt(path: Path) -> None:
    made = ClaudeCode()
    opened = "<ide_opened_file>The user opened the file a.py</ide_opened_file>"
    made.user([text(opened), text("explain it")])
    made.piece("m", text("so"))
    made.user([text(opened)])
    loaded = load(path, made)
    assert prompts(loaded) == ["explain it"]
    assert said(request(loaded)[0])[0] == f"user: {opened}, explain it"


def test_words_sent_while_a_call_ran_are_a_prompt(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    made.piece("m", tool_use("a", command="make"))
    done = {"type": "tool_result", "tool_use_id": "a", "content": "built"}
    made.user([done, text("and test it")], toolUseResult={"stdout": "built"})
    assert prompts(load(path, made)) == ["go", "and test it"]


def test_what_was_sent_while_a_turn_ran_is_a_prompt(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    made.piece("m", tool_use("a", command="make"))
    made.result("a", "built")
    human = {"type": "queued_command", "commandMode": "prompt", "origin": {"kind": "human"}}
    made.add("attachment", attachment={**human, "prompt": "and test it"})
    made.add("attachment", attachment={**human, "prompt": [text("and lint it")], "origin": None})
    ended = "<task-notification>\n<status>completed</status>\n</task-notification>"
    mode = {"commandMode": "task-notification", "origin": {"kind": "task-notification"}}
    made.add("attachment", attachment={**human, **mode, "prompt": ended})
    made.add("attachment", attachment={"type": "date", "date": "2026-09-09"})
    made.piece("n", text("tested"))
    loaded = load(path, made)
    assert prompts(loaded) == ["go", "and test it", "and lint it"]
    messages, findings = request(loaded)
    assert said(messages)[2:4] == [
        f"user: a=built, and test it, and lint it, {ended}",
        "assistant: tested",
    ]
    assert findings == []
    assert [one for one in left_out(loaded) if "queued" in one] == []


def test_a_rewound_branch_stays_behind_and_is_named(path: Path) -> None:
    made = ClaudeCode()
    made.user("first")
    answer = made.piece("m1", text("so"))
    made.user("the wrong way")
    made.piece("m2", text("indeed"))
    made.user("the right way", parent=answer)
    made.piece("m3", text("yes"))
    loaded = load(path, made)
    messages, findings = request(loaded)
    assert said(messages[:4]) == [
        "user: first", "assistant: so", "user: the right way", "assistant: yes",
    ]  # fmt: skip
    assert findings == []
    notes = [r.data["text"] for r in loaded.records if r.type == "note"]
    assert notes == ["2 records of other branches stayed in the original file."]


def test_results_are_found_by_their_call_not_by_their_parent(path: Path) -> None:
    """B06: the next answer hangs on one result; the other hangs on another piece."""
    made = ClaudeCode()
    made.user("go")
    first = made.piece("m", tool_use("a"))
    second = made.piece("m", tool_use("b"))
    made.result("b", "B", parent=second)
    made.result("a", "A", parent=first)
    made.piece("n", text("done"))
    late: dict[str, Any] = {"data": {}, "toolUseID": "b", "parentToolUseID": "b"}
    made.add("progress", parent=second, **late)  # a hook that ended late: the leaf of the file
    messages, findings = request(load(path, made))
    assert said(messages[:4]) == [
        "user: go", "assistant: a, b", "user: a=A, b=B", "assistant: done",
    ]  # fmt: skip
    assert findings == []


def test_a_compaction_is_an_event_where_all_that_it_sums_up_is_there(path: Path) -> None:
    made = claude_code(1)
    made.records.pop()
    made.boundary()
    made.user("The conversation so far: …", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made.user("and on")
    made.piece("m9", text("yes"))
    loaded = load(path, made)
    event = next(r for r in loaded.records if r.type == "compaction")
    assert event.data["summary"] == "The conversation so far: …"
    assert event.data["tokens_before"] == 155_000
    messages, findings = request(loaded)
    assert findings == []
    assert "The conversation so far" not in str(messages)
    assert said(messages)[0] == "user: prompt 0"


def test_a_summary_of_what_is_not_there_is_told(path: Path) -> None:
    made = ClaudeCode()
    made.boundary()
    made.user("The conversation so far: …", isCompactSummary=True)
    made.piece("m9", text("yes"))
    messages, _ = request(load(path, made))
    assert said(messages)[0] == "user: The conversation so far: …"


def test_copies_by_uuid_are_told_once(path: Path) -> None:
    made = claude_code(2)
    copies = [record | {"sessionId": "another"} for record in made.records if "uuid" in record]
    loaded = load(path, [*copies, *made.records])
    assert codes(loaded) == ["B44"]
    assert request(loaded)[0] == request(load(path, made))[0]


def test_B57_error_texts_stored_as_answers_are_shown_not_sent(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    made.piece("e", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    made.user("again")
    made.piece("m", text("so"))
    loaded = load(path, made)
    assert codes(loaded) == ["B57"]
    assert "API Error" not in str(request(loaded)[0])
    assert next(r for r in loaded.records if r.type == "error").data["message"] == "API Error: 529"


def test_B53_a_lost_link_is_bridged_to_the_record_before(path: Path) -> None:
    made = claude_code(2)
    lost = next(n for n, r in enumerate(made.records) if r.get("requestId") == "req_msg_0b")
    del made.records[lost]
    loaded = load(path, made)
    assert codes(loaded) == ["B53"]
    assert "prompt 0" in str(request(loaded)[0])
    assert "prompt 1" in str(request(loaded)[0])


def test_B53_circles_end(path: Path) -> None:
    made = ClaudeCode()
    made.user("one", parent=name(2, 12))
    made.piece("m", text("two"))
    made.user("three")
    loaded = load(path, made)
    assert codes(loaded) == ["B53"]
    assert said(request(loaded)[0]) == ["user: one", "assistant: two", "user: three"]


@pytest.mark.parametrize(
    "message", ["error", None, 5, [], {"role": "user", "contenst": "x"}, {"content": None}]
)
def test_B56_what_is_no_message_costs_itself(path: Path, message: Any) -> None:
    made = claude_code(1)
    whole = request(load(path, made))[0]
    made.add("user", message=message)
    loaded = load(path, made)
    assert codes(loaded) == ["B56"]
    assert request(loaded)[0] == whole


def test_B27_a_bare_string_among_blocks_is_kept(path: Path) -> None:
    made = ClaudeCode()
    made.user(["wow", 5, text("go")])
    loaded = load(path, made)
    assert codes(loaded) == ["B27", "B27"]
    assert said(request(loaded)[0]) == ["user: wow, go"]


def test_B01_an_interrupted_session_goes_on(path: Path) -> None:
    made = ClaudeCode()
    made.user("go")
    made.piece("m", tool_use("a", command="make"))
    made.user([text("[Request interrupted by user]")])
    loaded = load(path, made)
    messages, findings = request(loaded)
    assert findings == ["B01"]
    assert messages[2]["content"][0]["is_error"] is True
    assert not any("text" in r.data for r in loaded.records[2:] if r.type == "user")
