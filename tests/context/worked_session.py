"""Long sessions made up for the timeline: work with all that can happen in it, from a seed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from tui.context.overrides import SPEAKING
from tui.core.dataclass import dataclass, field
from tui.session.records import Record, encode

_FILES = ("src/parser.py", "src/lexer.py", "tests/test_parser.py", "README.md", "src/cli.py")
_ASKED = (
    "Fix the parser: nested brackets are lost",
    "Now the error messages, please",
    "Rename Token to Lexeme everywhere",
    "Write tests for the command line",
    "Why is it slow on large files?",
)
MODEL = "claude-sonnet-5-5"


@dataclass(slots=True)
class WorkedSession:
    """Writes a session: `turns` prompts with `steps` requests each."""

    seed: int = 1
    model: str = MODEL
    words: int = 60
    """Words of a result."""
    stands: bool = False
    """True if compactions have the hash of what they cover, so that their summaries are sent, and
    a new frame."""
    records: list[Record] = field(default_factory=list[Record])
    time: datetime = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    _prompt: int = 9_000
    cached: int = 0
    _requests: int = 0
    _calls: int = 0
    _hashed: int = 0
    _digest: Any = field(default_factory=sha256)

    def made(self, turns: int, steps: int) -> list[Record]:
        """The records of the whole session."""
        chance = random.Random(self.seed)
        text = [{"type": "text", "text": "You are an agent. " * 60}]
        tools = [{"name": f"tool{n}", "description": "Does it. " * 40} for n in range(12)]
        self.add("frame", 0, system=text, tools=tools, reason="start")
        red = True
        for turn in range(turns):
            pause = 60 * chance.randint(1, 30) if turn else 0
            asked = _ASKED[turn % len(_ASKED)]
            self.add("user", pause, content=[{"type": "text", "text": asked}], text=asked)
            if turn % 4 == 3:
                self._compaction()
            for step in range(steps):
                if turn % 3 == 1 and step == 2:
                    self._trouble(turn)
                red = self._step(chance, step, last=step == steps - 1, red=red)
        return self.records

    def add(self, type_: str, after: float, **data: Any) -> Record:
        """Append a record so many seconds `after` the last."""
        self.time += timedelta(seconds=after)
        parent = self.records[-1].id if self.records else None
        time = self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = Record(type_, f"{len(self.records) + 1:020x}", parent, time, data)
        self.records.append(record)
        return record

    def request(self, seconds: float, content: list[dict[str, Any]], output: int) -> None:
        """Append a request and its answer."""
        self._requests += 1
        self.add("request", 0.05, n=self._requests, model=self.model, messages=1)
        new = self._prompt - self.cached
        usage = {
            "input_tokens": min(new, 12),
            "output_tokens": output,
            "cache_creation_input_tokens": max(0, new - 12),
            "cache_read_input_tokens": self.cached,
        }
        self.add("assistant", seconds, content=content, model=self.model, usage=usage)
        self.cached, self._prompt = self._prompt, self._prompt + output

    def _step(self, chance: random.Random, step: int, *, last: bool, red: bool) -> bool:
        if last:
            said = [{"type": "text", "text": "Done: the tests pass again. " * 6}]
            self.request(chance.uniform(2, 9), said, 120)
            return red
        thought = {"type": "thinking", "thinking": "First the cause, then the fix. " * 20}
        kind = step % 5
        calls = [self._call(chance, kind) for _ in range(3 if kind == 0 else 1)]
        self.request(chance.uniform(3, 25), [thought, *calls], 400)
        for call in calls:
            red = self._result(chance, call, kind, red=red)
        return red

    def _call(self, chance: random.Random, kind: int) -> dict[str, Any]:
        self._calls += 1
        path = chance.choice(_FILES)
        name, given = {
            0: ("read_file", {"path": path}),
            1: ("grep_search", {"pattern": "Token"}),
            2: ("edit_file", {"path": path, "old": "a", "new": "b"}),
            3: ("run_command", {"command": "pytest -q tests"}),
            4: ("run_command", {"command": "git diff --stat"}),
        }[kind]
        return {"type": "tool_use", "id": f"call{self._calls}", "name": name, "input": given}

    def _result(self, chance: random.Random, call: dict[str, Any], kind: int, *, red: bool) -> bool:
        given, name, id_ = call["input"], call["name"], call["id"]
        label = given.get("path") or given.get("command") or given.get("pattern")
        self.add("intent", 0.01, call_id=id_, tool=name, effect="read", label=label)
        if kind == 2 and chance.random() < 0.2:
            self.add(
                "permission",
                chance.uniform(2, 40),
                call_id=id_,
                tool=name,
                subject=label,
                answer="once",
                by="person",
            )
        details: dict[str, Any] = {}
        seconds = chance.uniform(0.01, 0.3)
        if kind == 2:
            details = {"path": f"/w/{label}", "before_sha256": "a", "after_sha256": "b"}
        elif kind >= 3:
            seconds = chance.uniform(1, 20) if kind == 3 else 0.2
            red = (not red if chance.random() < 0.3 else red) if kind == 3 else red
            details = {"exit_code": int(red and kind == 3)}
        words = " ".join(
            chance.choices(("def", "token", "=", "self.at", "return", "1"), k=self.words)
        )
        self.add(
            "tool_result",
            seconds,
            call_id=id_,
            name=name,
            content=[{"type": "text", "text": words}],
            is_error=False,
            seconds=seconds,
            details=details,
        )
        self._prompt += self.words * 2
        return red

    def _compaction(self) -> None:
        before, self._prompt, self.cached = self._prompt, 14_000, 9_000
        fits = {"prefix_sha256": self._prefix_sha256()} if self.stands else {}
        self.add(
            "compaction",
            12,
            **fits,
            summary="The parser was fixed. " * 40,
            covers=self.records[-2].id,
            messages_removed=len(self.records) // 4,
            tokens_before=before,
            tokens_after=14_000,
            reason="automatic",
            model=self.model,
            usage={"input_tokens": 20, "output_tokens": 900, "cache_read_input_tokens": before},
        )
        if self.stands:
            self.add("frame", 0, reason="compaction")
        bill = {"reason": "compaction", "by": "program", "tokens": 5_000, "thoughts": 3}
        self.add("break", 0, **bill, cost_usd=0.02)
        self.add("break_billed", 0, **bill, n=self._requests + 1, cost_usd=0.02, billed_usd=0.019)

    def _prefix_sha256(self) -> str:
        """The hash of all but the last record."""
        for record in self.records[self._hashed : -1]:
            if record.type in SPEAKING:
                said = {"type": record.type, "id": record.id, "data": record.data}
                self._digest.update(encode(said))
        self._hashed = len(self.records) - 1
        return self._digest.hexdigest()

    def _trouble(self, turn: int) -> None:
        if turn % 2:
            self._requests += 1
            self.add("request", 0.05, n=self._requests, model=self.model, messages=1)
            why = {"reason": "The server is overloaded.", "status": 529}
            for attempt, delay in ((1, 5.0), (2, 12.0)):
                wait = {"attempt": attempt, "max_attempts": 8, "delay_s": delay}
                self.add(
                    "retry", 1 + delay * (attempt - 1), **wait, **why, error_class="overloaded"
                )
            usage = {
                "input_tokens": 12,
                "output_tokens": 40,
                "cache_read_input_tokens": self.cached,
            }
            said = [{"type": "text", "text": "Going on."}]
            self.add("assistant", 16, content=said, model=self.model, usage=usage)
            return
        self.cached = 0  # as if the cache had expired
        spent = [{"model": "claude-haiku-5-5", "requests": 4, "usage": {"input_tokens": 90_000}}]
        calls = [
            {
                "type": "tool_use",
                "id": f"task{turn}-{n}",
                "name": "task",
                "input": {"prompt": "look"},
            }
            for n in range(3)
        ]
        self.request(8, calls, 300)
        for call in calls:
            begun = {"call_id": call["id"], "session": "5ab", "agent": "explore"}
            self.add("sub_agent", 0.2, **begun, description="look for uses", state="started")
        for n, call in enumerate(calls):
            ended = {"call_id": call["id"], "session": "5ab", "agent": "explore", "calls": 7}
            words = {"description": "look for uses", "model": "claude-haiku-5-5"}
            self.add("sub_agent", 20 + n * 9, **ended, **words, state="done", spent=spent)
            found = [{"type": "text", "text": "12 uses found."}]
            result = {"call_id": call["id"], "name": "task", "content": found, "is_error": False}
            self.add("tool_result", 0.1, **result, seconds=25.0 + n * 9)
