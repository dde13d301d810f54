"""A strict server whose model does what the prompt spells out, so that a person can play a day.

A prompt has a line `Steps: …`, with steps that `;` separates. Each is one answer:

    say S WORD…       streams WORD… over S seconds
    think S           thinks for S seconds, then says a line
    run COMMAND       runs a command
    write PATH TEXT…  writes a file
    ask QUESTION      asks the person, with the answers Yes and No
    plan TITLE        puts a plan up for approval
    start COMMAND     starts a command in a terminal
    type JOB TEXT…    types TEXT and Enter there; a word such as <up> is a key instead
    look JOB          reads its screen
    wait JOB TEXT…    waits for a text on it
    close JOB         ends it
    busy              is overloaded once, then says a line
    end               says that it is done, though steps are left: those of a goal's next round

Asked whether a goal is met, it says so from the third round on.
A text that isn't the last step calls `true`, so that the turn goes on.
`python -m tests.desk.real.model` serves until it is stopped, and prints its address; with --key it
takes no other one.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path
from typing import Any, cast

from tests.support.server import LoopbackServer
from tests.support.server_script import Json, Script

_EVERY_S = 0.1
_MARK = "Steps:"
_ROUNDS = 3
_KEY = re.compile(r"<[a-z0-9+]+>")


class PromptedScript(Script):
    """Answers come from the conversation alone: of any number of sessions, and after restarts."""

    _busy: set[str] = set()  # noqa: RUF012 - of the one server of this process

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        assert body is not None
        messages = cast("list[Json]", body["messages"])
        if "You judge whether" in str(body.get("system", "")):
            number = 1 + str(messages).count("A model that checked the goal")
            words = "MET: all is there" if number >= _ROUNDS else f"NOT MET: part {number} is left"
            return {"text": words}, None, 1
        at = max((n for n, one in enumerate(messages) if _steps(one)), default=-1)
        if at < 0:
            return {"text": "Nothing to do."}, None, len(messages)
        done = sum(one["role"] == "assistant" and not _is_check(one) for one in messages[at:])
        steps = _steps(messages[at])
        if done >= len(steps):
            return {"text": f"All {len(steps)} steps are done."}, None, len(messages)
        step = steps[done]
        if step == "busy" and (key := f"{id(self)}{at}{steps}") not in self._busy:
            self._busy.add(key)
            return {"text": "Here."}, {"status": 529}, len(messages)
        turn = answer(step)
        if "tools" not in turn and done + 1 < len(steps) and step != "end":
            turn |= _call("run_command", command="true") | {"text": turn["text"]}
        return turn, None, len(messages)


def answer(step: str) -> Json:  # noqa: C901 - one case per step
    """The answer that a step spells out."""
    verb, _, rest = step.partition(" ")
    match verb:
        case "say":
            seconds, _, words = rest.partition(" ")
            count = max(1, int(float(seconds) / _EVERY_S))
            text = f"{words} " * max(1, count * 16 // (len(words) + 1))
            return {"text": text, "every_s": _EVERY_S}
        case "think":
            count = max(1, int(float(rest) / _EVERY_S))
            return {"thinking": "Let me see. " * count, "text": "I see.", "every_s": _EVERY_S}
        case "run":
            return _call("run_command", command=rest)
        case "write":
            path, _, content = rest.partition(" ")
            return _call("write_file", path=path, content=f"{content}\n")
        case "ask":
            choices = [{"label": "Yes"}, {"label": "No"}]
            question = {"header": "Choice", "question": rest, "choices": choices}
            return _call("ask_user", questions=[question])
        case "plan":
            return _call("present_plan", title=rest, plan=f"# {rest}\n\n1. Do it.\n2. Check it.\n")
        case "end":
            return {"text": "That should do it."}
        case "start":
            return _call("terminal", action="start", command=rest)
        case "type":
            job, _, text = rest.partition(" ")
            keys = [word[1:-1] for word in text.split() if _KEY.fullmatch(word)]
            typed = {"keys": keys} if keys else {"text": text, "keys": ["enter"]}
            return _call("terminal", action="send", terminal=job, **typed)
        case "look":
            return _call("terminal", action="read", terminal=rest)
        case "wait":
            job, _, text = rest.partition(" ")
            return _call("terminal", action="wait", terminal=job, until=[text] if text else [])
        case "close":
            return _call("terminal", action="close", terminal=rest)
        case _:
            return {"text": f"{step}."}


def _call(name: str, **input_: Any) -> Json:
    words = {} if name == "terminal" else {"text": f"I use {name}."}
    return {**words, "tools": [{"name": name, "input": input_}]}


def _is_check(message: Json) -> bool:
    """Whether a message of the assistant's is a call that the program made."""
    return any(str(one.get("id", "")).startswith("mention") for one in message["content"])


def _steps(message: Json) -> list[str]:
    """The steps that a prompt names; none for any other message."""
    if message["role"] != "user":
        return []
    content = message["content"]
    blocks = [{"text": content}] if isinstance(content, str) else content
    texts = [str(one.get("text", "")) for one in blocks if one.get("type", "text") == "text"]
    texts = [text for text in texts if "nobody typed it.]" not in text]
    line = next((line for text in texts for line in text.splitlines() if _MARK in line), "")
    return [step.strip() for step in line.partition(_MARK)[2].split(";") if step.strip()]


async def _main(port: int, keys: list[str] | None, log: Path | None) -> None:
    async with LoopbackServer(PromptedScript(keys=keys), port=port) as server:
        server.log = log
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", action="append", help="takes this key only (repeatable)")
    parser.add_argument("--log", type=Path, help="writes each request to this file")
    given = parser.parse_args()
    asyncio.run(_main(given.port, given.key, given.log))
