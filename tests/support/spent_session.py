"""A session with everything that is paid for, told by its records; each number can be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tui.core.clock import timestamp
from tui.session.records import Record, new_id

Json = dict[str, Any]

OPUS, HAIKU, OTHER = "claude-opus-5-5", "claude-haiku-5-5", "llama3"
START = datetime(2026, 11, 21, 9, tzinfo=UTC)


def usage(fresh: int = 0, output: int = 0, written: int = 0, read: int = 0, **more: int) -> Json:
    """The counts of one answer, as records have them."""
    return {
        "input_tokens": fresh,
        "output_tokens": output,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        **more,
    }


def said(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def call(id_: str, tool: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": id_, "name": tool, "input": given}


@dataclass
class Told:
    """Records as they are told, each after the one before it, ten seconds later."""

    records: list[Record] = field(default_factory=list[Record])
    now: datetime = START
    step: float = 10.0

    def tell(self, kind: str, *, after: str | None = "", **data: Any) -> Record:
        """Tell one more; `after` names the record that it follows, if not the last one."""
        last = self.records[-1].id if self.records else ""
        parent = (last or None) if after == "" else after
        self.now += timedelta(seconds=self.step)
        record = Record(kind, new_id(self.now, last), parent, timestamp(self.now), data)
        self.records.append(record)
        return record

    def prompt(self, text: str) -> Record:
        return self.tell("user", content=said(text), text=text)

    def answer(self, use: Json, *content: Json, model: str = OPUS, **more: Any) -> Record:
        return self.tell(
            "assistant", content=[*content], model=model, server="s", usage=use, **more
        )

    def result(self, call_id: str, name: str, text: str) -> Record:
        return self.tell("tool_result", call_id=call_id, name=name, content=said(text))


def spent_session() -> list[Record]:
    """Six prompts: files, a search by an MCP server, a skill, a sub-agent, a mask that breaks the
    cache, a lunch after which it has expired, another model at the end."""
    told = Told()
    told.prompt("Find out why the scheduler's test fails at midnight")
    told.answer(
        usage(12, 420, 9_000),
        {"type": "thinking", "thinking": "The test first.", "signature": "c2ln"},
        call("c1", "read_file", path="/w/tests/test_scheduler.py"),
        call("c2", "read_file", path="/w/src/scheduler.py"),
    )
    told.result("c1", "read_file", "def test_midnight():\n    assert due()\n" * 120)
    told.result("c2", "read_file", "def due() -> bool:\n    return now() >= at\n" * 400)
    told.answer(usage(8, 610, 11_000, 9_000), *said("It compares local time with UTC. " * 12))
    told.prompt("Look into the docs of the clock library")
    told.answer(usage(20, 90, 700, 20_000), call("c3", "mcp__docs__search", query="midnight"))
    told.result("c3", "mcp__docs__search", "now() returns local time unless told otherwise.\n" * 90)
    told.answer(usage(8, 200, 2_600, 20_700), *said("The library says so, too. " * 6))
    told.prompt("Ask somebody to look for other places")
    told.answer(
        usage(9, 120, 260, 23_300),
        call("c4", "task", agent="explore", description="other places", prompt="Look."),
    )
    spent = [{"model": HAIKU, "requests": 6, "usage": usage(900, 1_200, 22_000, 90_000)}]
    told.tell("sub_agent", call_id="c4", session="ab12", agent="explore",
              description="other places", state="done", spent=spent)  # fmt: skip
    told.result("c4", "task", "Three more places compare the two.\n" * 12)
    told.answer(usage(9, 180, 700, 23_560), *said("There are three more. " * 8))
    told.prompt("Fix all of them")
    target = told.records[2].id
    told.tell("overlay", target=target, view="masked", by="person")
    told.tell("break", reason="mask", by="person")
    told.answer(
        usage(9, 900, 21_000, 2_000),
        call("c5", "skill", name="python-style"),
        call("c6", "edit_file", path="/w/src/scheduler.py", old="now()", new="now(UTC)"),
    )
    told.result("c5", "skill", "Prefer aware datetimes.\n" * 40)
    told.result("c6", "edit_file", "Edited.")
    told.answer(usage(9, 160, 1_500, 23_000), *said("All four are fixed. " * 8))
    told.now += timedelta(hours=2)
    told.prompt("And what about 日本 time?")
    told.answer(usage(9, 300, 25_300), *said("It has no summer time. " * 9))
    told.tell("title", title="Scheduler at midnight", model=HAIKU, usage=usage(400, 12))
    told.prompt("Say it in a word")
    told.answer(usage(30_000, 4), *said("UTC."), model=OTHER)
    return told.records
