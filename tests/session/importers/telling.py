"""What an imported session comes to: its records, and the request that it gives."""

from __future__ import annotations

from typing import Any

from tests.support.foreign import MODEL
from tui.app.session_report import turn_parts, turns
from tui.context.timeline.fold import SessionTimeline
from tui.context.usage.parts import Owners
from tui.context.validate import check
from tui.context.view import build
from tui.core.messages import Message, blocks_of, text_of
from tui.session.branches import branches
from tui.session.reader import LoadedSession
from tui.session.records import LEFT_OUT, is_prompt
from tui.session.text_index import passages_of


def codes(loaded: LoadedSession) -> list[str]:
    """What is damaged."""
    return [finding.code for finding in loaded.findings if finding.code != LEFT_OUT]


def left_out(loaded: LoadedSession) -> list[str]:
    """What is not taken over, each with its first place."""
    return [f"{one.where}: {one.action}" for one in loaded.findings if one.code == LEFT_OUT]


def kinds(loaded: LoadedSession) -> list[str]:
    """The types of the records, less the notes about what stayed in the original."""
    return [record.type for record in loaded.records if record.type != "note"]


def prompts(loaded: LoadedSession) -> list[str]:
    """The prompts, as they were typed: as many in the report as in the timeline, the list of
    branches, the bill and the search."""
    found = [str(record.data.get("text")) for record in loaded.records if is_prompt(record)]
    timeline, owners = SessionTimeline(), Owners()
    timeline.extend(loaded.branch)
    for record in loaded.branch:
        owners.learn(record)
    texts = [kind for one in passages_of(loaded) for kind, _ in one.texts]
    counts = {
        "report": sum(
            part.who.startswith("Asked at")
            for turn in turns(loaded.branch)
            for part in turn_parts(turn, {})
        ),
        "timeline": len(timeline.prompt_costs),
        "branches": sum(one.prompts for one in branches(loaded.records)),
        "usage": len(owners.titles),
        "search": texts.count("prompt"),
    }
    assert set(counts.values()) == {len(found)}, counts
    return found


def request(loaded: LoadedSession, model: str = MODEL) -> tuple[list[Message], list[str]]:
    """The messages of the next request, which the API takes, and the codes of its repairs."""
    view = build(loaded.branch, model=model)
    assert check(view.messages) == []
    return view.messages, [finding.code for finding in view.findings]


def said(messages: list[Message]) -> list[str]:
    """Messages in a few words each."""
    return [f"{m['role']}: {', '.join(map(_short, m['content']))}" for m in messages]


def _short(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return str(block["id"])
        case "tool_result":
            return f"{block['tool_use_id']}={text_of(blocks_of(block['content']))}"
        case kind:
            return str(kind)


def title(loaded: LoadedSession) -> str:
    """The title of the session."""
    (found,) = [record.data["title"] for record in loaded.records if record.type == "title"]
    return str(found)
