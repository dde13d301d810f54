"""Session files of other agents, made by code: as their formats say, record by record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

Json = Any
CWD = "/home/user/proj"
MODEL = "claude-sonnet-5-5"
CODEX_ID = "019c4a7e-0000-7000-8000-000000000001"


def lines(records: list[Json]) -> bytes:
    """JSONL."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def name(number: object, length: int) -> str:
    """An id that shares nothing with that of the next number."""
    return sha256(str(number).encode()).hexdigest()[:length]


def at(number: int) -> str:
    return f"2026-02-10T22:{number // 60:02}:{number % 60:02}.000Z"


@dataclass
class ClaudeCode:
    """A Claude Code session. Every method adds one record and returns its uuid."""

    session: str = "11111111-2222-4333-8444-555555555555"
    records: list[Json] = field(default_factory=list[Json])
    last: str | None = None

    def add(self, type_: str, *, parent: str | None = "", **fields: Json) -> str:
        number = len(self.records)
        uuid = name(number, 12)
        self.records.append(
            {
                "parentUuid": self.last if parent == "" else parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": CWD,
                "sessionId": self.session,
                "version": "2.1.38",
                "gitBranch": "main",
                "type": type_,
                "uuid": uuid,
                "timestamp": at(number),
                **fields,
            }
        )
        self.last = uuid
        return uuid

    def user(self, content: Json, **fields: Json) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str, words: str, **fields: Json) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": words}
        return self.user([block], toolUseResult={"stdout": words}, **fields)

    def piece(self, message: str, block: Json, *, model: str = MODEL, **fields: Json) -> str:
        return self.add(
            "assistant",
            requestId=f"req_{message}",
            message={
                "id": name(message, 12),
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 3, "output_tokens": len(self.records)},
            },
            **fields,
        )

    def boundary(self, **metadata: Json) -> str:
        return self.add(
            "system",
            parent=None,
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=self.last,
            compactMetadata={"trigger": "auto", "preTokens": 155_000, **metadata},
        )

    def turn(self, n: object) -> None:
        """A prompt, thinking and two parallel calls whose results hang on different pieces, and an
        answer."""
        self.user(f"prompt {n}")
        self.piece(f"msg_{n}a", {"type": "thinking", "thinking": "hm", "signature": "sig"})
        self.piece(f"msg_{n}a", text(f"look {n}"))
        first = self.piece(f"msg_{n}a", tool_use(f"toolu_{n}a", command="ls"))
        second = self.piece(f"msg_{n}a", tool_use(f"toolu_{n}b", command="pwd"))
        self.add("progress", parent=first, data={}, toolUseID="t", parentToolUseID="t")
        self.result(f"toolu_{n}b", f"out {n}b", parent=second)
        self.result(f"toolu_{n}a", f"out {n}a", parent=first)
        self.piece(f"msg_{n}b", text(f"answer {n}"))
        self.add("system", subtype="turn_duration", durationMs=1200, isMeta=False)

    def bytes(self) -> bytes:
        return lines(self.records)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def tool_use(id_: str, name: str = "Bash", **arguments: Json) -> Json:
    return {
        "type": "tool_use",
        "id": id_,
        "name": name,
        "input": arguments,
        "caller": {"type": "direct"},
    }


def claude_code(turns: int = 3) -> ClaudeCode:
    """Turns, and records of other kinds around them."""
    made = ClaudeCode()
    made.records.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    made.add("progress", data={"type": "hook_progress"}, toolUseID="t", parentToolUseID="t")
    for n in range(turns):
        made.turn(n)
    made.records.append({"type": "summary", "summary": "A fine session", "leafUuid": made.last})
    return made


def compacted_claude_code(turns: int, preserved: str = "") -> ClaudeCode:
    """A session that was compacted halfway. `preserved`: how it names the two last messages that
    it left as they were ("messages", "segment"); "" where it left none."""
    made = ClaudeCode()
    for n in range(turns // 2):
        made.turn(n)
    asked = made.user("one more thing")
    answered = made.piece("msg_more", text("here it is"))
    anchor = name(len(made.records) + 1, 12)
    ends = {"headUuid": asked, "anchorUuid": anchor, "tailUuid": answered}
    kept: Json = {
        "": {},
        "messages": {"preservedMessages": {"uuids": [asked, answered], "anchorUuid": anchor}},
        "segment": {"preservedSegment": ends},
    }[preserved]
    made.boundary(**kept)
    made.user("This session is being continued. Summary: ...", isCompactSummary=True)
    if preserved:
        made.last = answered
    for n in range(turns // 2, turns):
        made.turn(n)
    return made


@dataclass
class Pi:
    """A pi session of format `version`."""

    version: int = 3
    records: list[Json] = field(default_factory=list[Json])
    last: str | None = None

    def __post_init__(self) -> None:
        header = {"type": "session", "id": "5e55-pi", "timestamp": at(0), "cwd": CWD}
        if self.version > 1:
            header |= {"version": self.version}
        else:
            header |= {"provider": "anthropic", "modelId": MODEL, "thinkingLevel": "off"}
        self.records.append(header)

    def add(self, type_: str, *, parent: str | None = "", **fields: Json) -> str:
        number = len(self.records)
        id_ = name(number, 8)
        record: Json = {"type": type_, "timestamp": at(number), **fields}
        if self.version > 1:
            record |= {"id": id_, "parentId": self.last if parent == "" else parent}
        self.records.append(record)
        self.last = id_
        return id_

    def message(self, *, parent: str | None = "", **message: Json) -> str:
        return self.add("message", parent=parent, message=message)

    def user(self, words: str, **more: Json) -> str:
        return self.message(role="user", content=[text(words)], **more)

    def answer(self, *blocks: Json, stop: str = "stop", **more: Json) -> str:
        given: Json = {
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": MODEL,
            "usage": {"input": 10, "output": 5, "cacheRead": 7, "cacheWrite": 1, "cost": {}},
            "stopReason": stop,
        }
        return self.message(role="assistant", content=list(blocks), **(given | more))

    def result(self, call: str, words: str, **more: Json) -> str:
        given: Json = {
            "toolCallId": call,
            "toolName": "bash",
            "content": [text(words)],
            "isError": False,
        }
        return self.message(role="toolResult", **(given | more))

    def bytes(self) -> bytes:
        return lines(self.records)


def pi_call(id_: str, **arguments: Json) -> Json:
    return {"type": "toolCall", "id": id_, "name": "bash", "arguments": arguments}


def pi(turns: int = 3, version: int = 3) -> Pi:
    made = Pi(version)
    for n in range(turns):
        made.user(f"prompt {n}")
        thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
        made.answer(
            thinking,
            text(f"look {n}"),
            pi_call(f"toolu_{n}a", command="ls"),
            pi_call(f"toolu_{n}b", command="pwd"),
            stop="toolUse",
        )
        made.result(f"toolu_{n}a", f"out {n}a")
        made.result(f"toolu_{n}b", f"out {n}b")
        made.add("thinking_level_change", thinkingLevel="low")
        made.answer(text(f"answer {n}"))
    return made


@dataclass
class Codex:
    """A Codex rollout."""

    records: list[Json] = field(default_factory=list[Json])

    def add(self, type_: str, **payload: Json) -> None:
        number = len(self.records)
        self.records.append({"timestamp": at(number), "type": type_, "payload": payload})

    def said(self, role: str, words: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        block = {"type": kind, "text": words}
        self.add("response_item", type="message", role=role, content=[block])

    def call(self, id_: str, arguments: str = '{"command":["ls"]}') -> None:
        self.add(
            "response_item", type="function_call", call_id=id_, name="shell", arguments=arguments
        )

    def output(self, id_: str, words: Json) -> None:
        self.add("response_item", type="function_call_output", call_id=id_, output=words)

    def bytes(self) -> bytes:
        return lines(self.records)


def codex(turns: int = 3) -> Codex:
    made = Codex()
    made.add(
        "session_meta", id=CODEX_ID, timestamp=at(0), cwd=CWD, cli_version="0.77.0",
        originator="codex_cli_rs", source="cli", instructions=None, model_provider="openai",
    )  # fmt: skip
    made.said("developer", "You are another agent.")
    made.said("user", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>")
    for n in range(turns):
        made.add("turn_context", cwd=CWD, model="gpt-5.1-codex", approval_policy="on-request")
        made.said("user", f"prompt {n}")
        made.add("event_msg", type="user_message", message=f"prompt {n}")
        made.add("response_item", type="reasoning", summary=[], encrypted_content="gAAA")
        made.said("assistant", f"look {n}")
        made.call(f"call_{n}a")
        made.call(f"call_{n}b", '{"command":["pwd"]}')
        made.output(f"call_{n}a", f"out {n}a")
        made.output(f"call_{n}b", {"content": f"out {n}b", "success": True})
        made.said("assistant", f"answer {n}")
        made.add("event_msg", type="agent_message", message=f"answer {n}")
    return made
