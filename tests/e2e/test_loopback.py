"""The real program with the real SDK, against a server that rejects what the API rejects."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.support.clock import PATIENCE_S
from tests.support.preloaded import SCREEN
from tests.support.program import Program, of_type, until
from tests.support.server import LoopbackServer
from tests.support.server_script import signature_of
from tests.support.terminal import HOLDFAST, Terminal
from tui.context.repair import INTERRUPTED

FAST = "[retry]\ninitial_delay_ms = 1\n"
KEY = "sk-ant-test-0123456789"

Ask = Callable[..., Program]


@pytest.fixture
def asking(work: Path, env: dict[str, str], config: Callable[[str], Path]) -> Ask:
    """The program with a key, pointed at a server; retries wait a millisecond."""

    def at(server: LoopbackServer | str, settings: str = FAST) -> Program:
        config(settings)
        url = server if isinstance(server, str) else server.url
        return Program(work, {**env, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url})

    return at


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def breakpoints(body: dict[str, Any]) -> int:
    blocks = [*body["system"], *body["tools"]]
    blocks += [block for message in body["messages"] for block in message["content"]]
    return sum("cache_control" in block for block in blocks)


def unmarked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages less their cache breakpoints, which move from request to request."""
    return [
        {
            **m,
            "content": [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]],
        }
        for m in messages
    ]


def thoughtless(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**m, "content": [b for b in m["content"] if "thinking" not in b["type"]]} for m in messages
    ]


def results(message: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Id, failure and text of the results in a message."""
    return [
        (b["tool_use_id"], b.get("is_error", False), "".join(c["text"] for c in b["content"]))
        for b in message["content"]
        if b["type"] == "tool_result"
    ]


WORK = (
    {
        "thinking": "First I look at what there is.\nThen I decide.",
        "text": "I'll look.",
        "tools": [
            call("read_file", path="README.md"),
            call("grep_search", pattern="def"),
            call("read_file", path="app.py"),
        ],
        "usage": {"input_tokens": 1000, "cache_creation_input_tokens": 900, "output_tokens": 50},
    },
    {
        "thinking": "The greeting is wrong.",
        "redacted_thinking": "b3BhcXVl",
        "text": "I'll change the greeting.",
        "tools": [call("edit_file", path="app.py", old_string="helo", new_string="hello")],
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 30},
    },
    {
        "tools": [call("run_command", command="cat app.py; echo seen > proof")],
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 20},
    },
    {"thinking": "Done.", "text": "The greeting is right now: “hello”."},
    {"text": "You asked for a greeting."},
    {"text": "Still here — ✓."},
)


@pytest.mark.slow
def test_a_session_of_work_in_three_processes(serve: Serve, asking: Ask, work: Path) -> None:
    (work / "app.py").write_text("def greet():\n    return 'helo'\n")
    models = {"claude-sonnet-5-5": {"max_input_tokens": 300_000}, "claude-opus-5-5": {}}
    server = serve(*WORK, models=models)
    holdfast = asking(server)
    rules = ("--allow", "edit_file", "--allow", "run_command(cat *)")
    events = holdfast.lines("-p", "Fix the greeting.", *rules)

    assert (work / "app.py").read_text() == "def greet():\n    return 'hello'\n"
    assert not (work / "proof").exists(), "the rule allowed cat, not what came behind it"
    assert [e["outcome"] for e in of_type(events, "turn_finished")] == ["done"]
    assert events[-1]["usage"] == {
        "input_tokens": 1300,
        "output_tokens": 120,
        "cache_creation_input_tokens": 900,
        "cache_read_input_tokens": 1900,
    }
    assert [e["name"] for e in of_type(events, "tool_started")] == [
        "read_file",
        "grep_search",
        "read_file",
        "edit_file",
        "run_command",
    ]
    window = of_type(events, "context_measured")[-1]
    assert (window["window"], window["window_source"]) == (300_000, "server")

    posts = [post.body for post in server.posts]
    assert len(posts) == 4
    for post in posts:
        assert 1 <= breakpoints(post) <= 4
    headers = server.posts[0].headers
    assert headers["x-api-key"] == KEY
    assert headers["authorization"] == f"Bearer {KEY}"
    _, first, reads, second, edit, *_ = posts[3]["messages"]
    thought = first["content"][0]
    assert (thought["type"], thought["thinking"]) == ("thinking", WORK[0]["thinking"])
    assert thought["signature"].startswith(signature_of(str(WORK[0]["thinking"])))
    assert [b["type"] for b in second["content"]] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
    ]
    assert [id_ for id_, _, _ in results(reads)] == [b["id"] for b in first["content"][2:]]
    assert "The demo project." in results(reads)[0][2]
    assert not any(failed for _, failed, _ in (*results(reads), *results(edit)))

    again = holdfast("-c", "-p", "/think What did I ask for?", "--output-format", "json")
    found, sent = again.object, server.posts[4].body
    assert found["session_id"] == events[0]["session_id"]
    assert (found["result"], found["is_error"], found["turns"]) == (WORK[4]["text"], False, 1)
    last, resumed = posts[3]["messages"], sent["messages"]
    assert unmarked(resumed)[: len(last)] == unmarked(last), "it begins with the last request"
    assert [b["type"] for b in resumed[len(last)]["content"]][-1] == "text"
    *_, asked, noticed = resumed[-1]["content"]
    assert asked["text"] == "What did I ask for?"
    assert "step-by-step" in noticed["text"]
    assert sent["thinking"]["type"] == "adaptive"
    assert breakpoints(sent) <= 4

    switch = ("-r", found["session_id"][:8], "-m", "claude-opus-5-5")
    text = holdfast(*switch, "-p", "/think off And now?")
    assert text.stdout == "Still here — ✓.\n"
    sent = server.posts[5].body
    assert "thinking" not in sent
    kinds = {block["type"] for message in sent["messages"] for block in message["content"]}
    assert kinds == {"text", "tool_use", "tool_result"}, "another model's thoughts are not sent"
    assert text.stderr.splitlines() == ["think is off"]
    assert not server.script.next()[0], "every turn was answered, none was rejected"


def test_a_kill_9_in_a_command_leaves_a_session_that_the_server_takes(
    serve: Serve, asking: Ask, work: Path
) -> None:
    command = "echo $$ > pid; echo begun; exec sleep 300"
    server = serve(
        {
            "thinking": "It may take long.",
            "tools": [
                call("read_file", path="README.md"),
                call("run_command", command=command),
                call("run_command", command="echo never"),
            ],
        },
        {"text": "It was interrupted."},
    )
    holdfast = asking(server)
    with holdfast.started("-y", "-p", "run it", "--output-format", "stream-json") as process:
        until(process, "tool_output", "begun")
        process.kill()
    os.kill(int((work / "pid").read_text()), signal.SIGKILL)

    lines = holdfast.lines("-c", "-p", "What happened?")
    assert lines[-1]["outcome"] == "done"
    (repair,) = of_type(lines, "repair_applied")
    assert {f["code"] for f in repair["findings"]} == {"B01"}
    message = server.posts[-1].body["messages"][-1]
    found = results(message)
    assert "The demo project." in found[0][2]
    _, failed, text = found[1]  # its keeper has seen the end
    assert failed
    assert text.startswith("begun\n[killed by SIGKILL")
    assert [(failed, text) for _, failed, text in found[2:]] == [(True, INTERRUPTED)]
    assert message["content"][-1]["text"] == "What happened?"


def test_an_interrupt_lets_go_of_the_server_and_the_session_goes_on(
    serve: Serve, asking: Ask
) -> None:
    server = serve(
        {"text": "This is a long answer.", "faults": [{"stall_s": 300, "after": 4}]},
        {"text": "On we go."},
    )
    holdfast = asking(server)
    with holdfast.started("-p", "talk", "--output-format", "stream-json") as process:
        until(process, "text_delta")
        process.send_signal(signal.SIGINT)
        assert until(process, "turn_finished")["outcome"] == "interrupted"
        assert process.wait(PATIENCE_S) == 130
    assert server.posts[0].gone.is_set()
    server.script.next()  # the turn that nobody waited for
    assert holdfast("-c", "-p", "continue").stdout == "On we go.\n"
    assert "This is a" in json.dumps(server.posts[-1].body["messages"])


def test_retries_are_told_and_what_failed_is_void(serve: Serve, asking: Ask, home: Path) -> None:
    faults = [{"status": 429, "retry_after": 0.05}, {"status": 529}, {"cut_after": 6}]
    server = serve({"thinking": "Hm.", "text": "All of the answer.", "piece": 4, "faults": faults})
    done = asking(server)("-p", "ask", "--output-format", "stream-json")
    retries = of_type(done.events, "retry_scheduled")
    assert [(r["attempt"], r["max_attempts"], r["status"]) for r in retries] == [
        (1, 3, 429),
        (2, 3, 529),
        (3, 3, None),
    ]
    assert [r["error_class"] for r in retries] == ["rate_limit", "overloaded", "stream_broken"]
    assert retries[0]["delay_s"] == 0.05
    assert all(0 < r["delay_s"] < 0.01 for r in retries[1:])
    assert [e["attempt"] for e in of_type(done.events, "request_sent")] == [1, 2, 3, 4]
    assert "Retry 1 of 3" in done.stderr
    assert len(server.posts) == 4
    (answer,) = of_type(done.events, "assistant_message")
    assert answer["text"] == "All of the answer."
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [r["type"] for r in records if r["type"] in {"retry", "assistant"}] == [
        "retry",
        "retry",
        "retry",
        "assistant",
    ]


@pytest.mark.parametrize(
    ("faults", "settings", "error_class", "posts"),
    [
        ([{"status": 529}] * 2, "[retry]\ninitial_delay_ms = 1\nmax_attempts = 1", "overloaded", 2),
        ([{"eof_after": 5}], "[retry]\nmax_attempts = 0", "stream_broken", 1),
        ([{"status": 429, "retry_after": 3600}], FAST, "rate_limit", 1),
        ([{"overflow": True}], FAST, "context_overflow", 1),
    ],
    ids=["overloaded", "eof", "wait-too-long", "overflow"],
)
def test_a_turn_that_fails_says_so_and_the_session_goes_on(
    serve: Serve,
    asking: Ask,
    faults: list[dict[str, Any]],
    settings: str,
    error_class: str,
    posts: int,
) -> None:
    server = serve({"text": "An answer that never gets through.", "faults": faults})
    done = asking(server, settings)("-p", "ask", "--output-format", "json", code=1)
    assert (done.object["is_error"], done.object["error_class"]) == (True, error_class)
    assert done.object["result"] == ""
    assert f"{error_class}: " in done.stderr
    assert len(server.posts) == posts
    if error_class == "stream_broken":
        again = asking(server)("-c", "-p", "again")
        assert again.stdout == "An answer that never gets through.\n"


def test_a_refusal_is_an_error_that_says_what_to_do(serve: Serve, asking: Ask) -> None:
    server = serve({"text": "I can't", "stop_reason": "refusal"}, {"text": "Gladly."})
    holdfast = asking(server)
    done = holdfast("-p", "x", code=1)
    assert done.stdout == ""
    assert "refusal: The model declined" in done.stderr
    assert "Rephrase" in done.stderr
    assert holdfast("-c", "-p", "y").stdout == "Gladly.\n"


def closed_port() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


PAGE = "<html><head><title>Sign in</title></head><body><script>x</script></body></html>"


@pytest.mark.parametrize(
    ("answer", "more", "code", "error_class", "words"),
    [
        ({}, {"keys": ["another"]}, 3, "auth", ["rejected", "ANTHROPIC_API_KEY"]),
        ({}, {"models": {}}, 1, "not_found", ["claude-sonnet-5-5", "--model"]),
        ({"status": 502, "html": PAGE}, {}, 1, "server", ["web page", "Sign in", "proxy"]),
        ({"status": 200, "html": PAGE}, {}, 1, "not_found", ["web page", "ANTHROPIC_BASE_URL"]),
        (None, {}, 1, "network", ["Can't reach http://127.0.0.1:"]),
    ],
    ids=["key", "model", "502-page", "200-page", "nobody"],
)
def test_what_the_server_does_is_told_in_words(
    serve: Serve,
    asking: Ask,
    answer: dict[str, Any] | None,
    more: dict[str, Any],
    code: int,
    error_class: str,
    words: list[str],
) -> None:
    turn = {"faults": [answer] * 5} if answer else {}
    holdfast = asking(closed_port() if answer is None else serve(turn, **more))
    done = holdfast("-p", "ask", "--output-format", "json", code=code)
    assert done.object["error_class"] == error_class
    *_, message, hint = done.stderr.splitlines()
    assert message.startswith(f"{error_class}: ")
    told = f"{message} {hint}"
    for word in words:
        assert word in told
    assert KEY not in done.stderr
    assert "<" not in told


def test_calls_that_cannot_be_carried_out_get_results(
    serve: Serve, asking: Ask, work: Path
) -> None:
    server = serve(
        {
            "tools": [
                {"name": "read_file", "json": '{"path": "README'},
                {"name": "read_file", "json": '["README.md"]'},
                call("teleport", to="home"),
                call("read_file", path=5),
                call("read_file", path="README.md", colour="red"),
                call("edit_file", path="README.md"),
                {"name": "list_dir", "json": ""},
            ]
        },
        {
            "tools": [{"name": "write_file", "json": '{"path": "new.txt", "content": "half of'}],
            "stop_reason": "max_tokens",
        },
        {"text": "I see."},
        any_calls=True,
    )
    done = asking(server)("-y", "-p", "try", "--output-format", "stream-json")
    finished = of_type(done.events, "tool_finished")
    assert len(finished) == 8
    assert len({e["id"] for e in finished}) == 8
    sent = server.posts[1].body["messages"]
    assert all(isinstance(b["input"], dict) for b in sent[1]["content"])
    failures = [(failed, text) for _, failed, text in results(sent[2])]
    assert [failed for failed, _ in failures] == [True, True, True, True, True, True, False]
    assert "JSON" in failures[0][1]
    assert "teleport" in failures[2][1]
    assert "read_file" in failures[2][1], "the tools that there are"
    assert "path" in failures[3][1]
    assert "colour" in failures[4][1]
    assert "old_string" in failures[5][1]
    assert "README.md" in failures[6][1]
    ((_, failed, text),) = results(server.posts[2].body["messages"][4])
    assert failed
    assert "reached its limit" in text
    assert not (work / "new.txt").exists()


@pytest.mark.slow
def test_on_the_screen_ask_approve_run_quit_and_resume(
    serve: Serve, asking: Ask, work: Path
) -> None:
    (work / "app.py").write_text("print('helo')\n")
    server = serve(
        {
            "thinking": "Let me see.",
            "text": "I'll look.",
            "tools": [call("read_file", path="app.py")],
        },
        {"tools": [call("edit_file", path="app.py", old_string="helo", new_string="hello")]},
        {"tools": [call("run_command", command="cat app.py > proof; echo pr''oved")]},
        {"text": "All is well now."},
        {"text": "It was a greeting."},
    )
    holdfast = asking(server, FAST + "[compaction]\nmemory_flush = false\n")

    def opened(*argv: str) -> Terminal:
        return Terminal([*HOLDFAST, *argv], cwd=work, env=holdfast.env, preload=SCREEN)

    with opened() as screen:
        screen.wait_for("Ask for anything")
        screen.type("fix the greeting\r")
        screen.wait_for("print('helo')", "print('hello')", "1 Yes")
        screen.press("1", lambda: "hello" in (work / "app.py").read_text())
        screen.wait_for("cat app.py")
        screen.press("1", (work / "proof").exists)
        screen.wait_for("✓ Run cat app.py", "All is well now.", "1 prompt")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
    with opened("-c") as screen:
        screen.wait_for("fix the greeting", "All is well now.")
        screen.type("what was it?\r")
        screen.wait_for("It was a greeting.")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
    assert len(server.posts) == 5
    assert unmarked(server.posts[4].body["messages"])[:7] == unmarked(
        server.posts[3].body["messages"]
    )


def test_interrupted_calls_say_so(serve: Serve, asking: Ask, work: Path) -> None:
    server = serve(
        {"tools": [call("run_command", command="echo begun; exec sleep 300")]}, {"text": "Fine."}
    )
    holdfast = asking(server)
    with holdfast.started("-y", "-p", "run", "--output-format", "stream-json") as process:
        until(process, "tool_output", "begun")
        process.send_signal(signal.SIGTERM)
        assert until(process, "turn_finished")["outcome"] == "interrupted"
        assert process.wait(PATIENCE_S) == 130
    assert holdfast("-c", "-p", "continue").stdout == "Fine.\n"
    assert [text for _, _, text in results(server.posts[1].body["messages"][-1])] == [INTERRUPTED]


def test_30_the_environment_s_keys_never_reach_a_server_that_a_folder_names(
    work: Path, env: dict[str, str], serve: Serve
) -> None:
    server = serve({"text": "Hello."})
    (work / ".holdfast").mkdir()
    (work / ".holdfast" / "config.toml").write_text(f'base_url = "{server.url}"\n')
    secrets = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_AUTH_TOKEN": "token-0123456789",
        "ANTHROPIC_CUSTOM_HEADERS": "x-team: secret-0123456789",
    }
    holdfast = Program(work, {**env, **secrets})
    done = holdfast("--trust", "-p", "hello")
    assert done.stdout == "Hello.\n"
    assert "ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN and ANTHROPIC_CUSTOM_HEADERS won't be" in (
        done.stderr
    )
    (post,) = server.posts
    assert "0123456789" not in str(post.headers)
