"""`-p --input-format stream-json`: a conversation with the program by lines, as another one has."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import Process, start
from tests.support.program import Program
from tests.support.terminal import HOLDFAST

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5Er"
    "kJggg=="
)
STREAM = ("--input-format", "stream-json", "--output-format", "stream-json")
Script = Callable[[str], str]


class Talk:
    """The program's side of a conversation by lines."""

    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self.process, self.input, self.output = process, process.stdin, process.stdout
        self.seen: list[dict[str, Any]] = []

    def put(self, line: dict[str, Any] | str) -> None:
        text = line if isinstance(line, str) else json.dumps(line)
        self.input.write(text.encode() + b"\n")
        self.input.flush()

    def until(self, type_: str) -> dict[str, Any]:
        """The next event of a type."""
        while line := self.output.readline():
            self.seen.append(json.loads(line))
            if self.seen[-1]["type"] == type_:
                return self.seen[-1]
        raise AssertionError(f"no {type_} came; the last was {self.seen[-1:]}")

    def end(self) -> int:
        """End the input, and take what still comes. Returns the exit code."""
        self.input.close()
        self.seen += map(json.loads, self.output)
        return self.process.wait()


@pytest.fixture
def talk(work: Path, env: dict[str, str]) -> Callable[..., Any]:
    @contextmanager
    def open_(*words: str) -> Generator[Talk]:
        pipe = subprocess.PIPE
        with start(
            [*HOLDFAST, "-p", *STREAM, *words], cwd=work, env=env, stdin=pipe, stdout=pipe
        ) as process:
            try:
                yield Talk(process)
            finally:
                process.kill()

    return open_


def prompt(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def write_file(path: str) -> str:
    return (
        f'[[turn]]\ntools = [{{name = "write_file", input = {{path = "{path}", content = "x"}}}}]\n'
    )


def say(text: str) -> str:
    return f'[[turn]]\ntext = "{text}"\n'


def test_prompts_and_answers_come_as_lines(
    talk: Callable[..., Any], script: Script, work: Path
) -> None:
    name = script(write_file("a.txt") + write_file("b.txt") + say("one") + say("two"))
    with talk("--practice-script", name) as other:
        other.put(prompt("write them"))
        asked = other.until("permission_asked")
        other.put({"type": "permission_answer", "id": asked["id"], "answer": "once"})
        asked = other.until("permission_asked")
        no = {"type": "permission_answer", "id": asked["id"], "answer": "no", "reason": "Not b."}
        other.put(no)
        other.until("turn_finished")
        other.put({"type": "user", "text": "and now?"})
        assert other.until("assistant_message")["text"] == "two"
        assert other.end() == 0
    assert [event["text"] for event in other.seen if event["type"] == "user_message"] == [
        "write them",
        "and now?",
    ]
    assert (work / "a.txt").exists()
    assert not (work / "b.txt").exists()
    assert other.seen[0]["type"] == "session_started"


def test_the_models_questions_are_answered_by_lines(
    talk: Callable[..., Any], script: Script
) -> None:
    question = (
        'header = "Color", question = "Which?", choices = [{label = "red"}, {label = "blue"}]'
    )
    ask = f'[[turn]]\ntools = [{{name = "ask_user", input = {{questions = [{{{question}}}]}}}}]\n'
    with talk("--practice-script", script(ask + say("thanks"))) as other:
        other.put(prompt("go"))
        asked = other.until("question_asked")
        answers = [{"chosen": ["blue"]}]
        other.put({"type": "question_answer", "id": asked["id"], "answers": answers})
        given = other.until("question_answered")
        assert given["answers"] == [{"header": "Color", "chosen": ["blue"], "text": ""}]
        assert other.end() == 0


def test_an_answer_of_another_type_leaves_the_question_open(
    talk: Callable[..., Any], script: Script, work: Path
) -> None:
    with talk("--practice-script", script(write_file("a.txt") + say("done"))) as other:
        other.put(prompt("write it"))
        asked = other.until("permission_asked")
        for wrong in ("question_answer", "plan_answer"):
            other.put({"type": wrong, "id": asked["id"], "answer": "ask"})
            assert "waits for a permission_answer" in other.until("error")["message"]
        assert not (work / "a.txt").exists()
        other.put({"type": "permission_answer", "id": asked["id"], "answer": "once"})
        assert other.until("turn_finished")["outcome"] == "done"
        assert other.end() == 0
    assert (work / "a.txt").exists()


def test_after_the_input_nobody_is_asked_and_what_runs_is_finished(
    talk: Callable[..., Any], script: Script, work: Path
) -> None:
    with talk("--practice-script", script(write_file("a.txt") + say("done"))) as other:
        other.put(prompt("write it"))
        other.until("permission_asked")
        assert other.end() == 0
    assert other.seen[-1]["type"] == "turn_finished"
    assert not (work / "a.txt").exists()


def test_a_turn_is_interrupted_by_a_line(talk: Callable[..., Any], script: Script) -> None:
    slow = '[[turn]]\ntext = "slow"\ndelay_s = 3600\n'
    with talk("--practice-script", script(slow + say("next"))) as other:
        other.put(prompt("go"))
        other.until("request_sent")
        other.put({"type": "interrupt"})
        assert other.until("turn_finished")["outcome"] == "interrupted"
        other.put(prompt("on"))
        assert other.until("turn_finished")["outcome"] == "done"
        assert other.end() == 0


def test_a_signal_ends_the_conversation(talk: Callable[..., Any], script: Script) -> None:
    slow = '[[turn]]\ntext = "slow"\ndelay_s = 3600\n'
    with talk("--practice-script", script(slow)) as other:
        other.put(prompt("go"))
        other.until("request_sent")
        other.process.send_signal(signal.SIGTERM)
        assert other.until("turn_finished")["outcome"] == "interrupted"
        assert other.process.wait() == 130


def test_a_mode_is_set_and_an_image_goes_along(
    talk: Callable[..., Any], script: Script, work: Path
) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    with talk("--practice-script", script(write_file("a.txt") + say("done"))) as other:
        other.put({"type": "set_mode", "mode": "edits"})
        content = [{"type": "text", "text": "look"}, image]
        other.put({"type": "user", "message": {"role": "user", "content": content}})
        assert "image" in other.until("user_message")["text"]
        assert other.end() == 0
    assert (work / "a.txt").exists()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "isn't JSON"),
        ("[]", "isn't an object"),
        pytest.param("[" * 200_000, "isn't JSON", id="nested too deeply"),
        (
            {
                "type": "user",
                "message": {"content": [{"type": "image", "source": {"data": "\u00e9"}}]},
            },
            "base64",
        ),
        ({"type": "dance"}, "The type 'dance' isn't known"),
        pytest.param({"type": "d" * 100_000}, "isn't known", id="a large type"),
        pytest.param({"type": [["d" * 1000] * 9] * 100}, "isn't known", id="a type of many parts"),
        pytest.param(
            {"type": "permission_answer", "id": "x" * 100_000, "answer": "once"},
            "waits",
            id="a large id",
        ),
        pytest.param({"type": "set_mode", "mode": "f" * 100_000}, "one of", id="a large mode"),
        ({"type": "user", "text": "  "}, "empty"),
        ({"type": "user", "text": "/compact"}, "is a command of the program"),
        ({"type": "user", "message": {"content": [{"type": "video"}]}}, "text and images"),
        ({"type": "permission_answer", "id": "x", "answer": "maybe"}, "one of"),
        ({"type": "permission_answer", "id": "x", "answer": "once"}, "waits"),
        ({"type": "set_mode", "mode": "fast"}, "one of"),
        (
            {
                "type": "user",
                "message": {
                    "content": [
                        {
                            "type": "image",
                            "source": {"data": base64.b64encode(b"no image").decode()},
                        }
                    ]
                },
            },
            "image",
        ),
    ],
)
def test_a_line_that_says_nothing_is_named_and_costs_nothing(
    talk: Callable[..., Any], script: Script, line: dict[str, Any] | str, why: str
) -> None:
    with talk("--practice-script", script(say("one"))) as other:
        other.put(line)
        error = other.until("error")
        assert error["class"] == "invalid_request"
        assert error["message"].startswith("Line 1 of the input: ")
        assert why in error["message"]
        assert len(error["message"]) < 300
        other.put(prompt("go"))
        assert other.until("turn_finished")["outcome"] == "done"
        assert other.end() == 0


def test_a_result_that_fits_the_schema_is_printed(
    holdfast: Program, script: Script, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}}')
    name = script('[[turn]]\ntools = [{name = "submit_result", input = {result = [1, 2]}}]\n')
    more = ("--practice-script", name, "--json-schema", str(schema))
    run = partial(holdfast, "-p", "count", *more)
    plain, whole = run(), run("--output-format", "json")
    assert plain.stdout == "[1,2]\n"
    assert whole.object["structured_output"] == [1, 2]
    script(say("no") + say("no"))
    without = run(code=1)
    assert without.stdout == ""
    assert "no result that fits" in without.stderr
    for bad in ("{", "[" * 50_000):
        schema.write_text(bad)
        run(code=2)


def test_where_no_line_could_be_used_the_run_has_failed(talk: Callable[..., Any]) -> None:
    with talk("--practice") as other:
        other.put(prompt("/compact"))
        other.until("error")
        assert other.end() == 1
