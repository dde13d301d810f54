"""From a request to an answer: a phrase is taken up where the results in the messages end.

Summaries are extracted from the conversation, since rules cannot condense.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tui.core.messages import text_of
from tui.provider.base import Request
from tui.provider.practice.conversation import CallResult, LastPrompt, last_prompt
from tui.provider.practice.excerpts import about_images, code
from tui.provider.practice.phrases import PHRASES, Phrase, match_phrase
from tui.provider.practice.script import ScriptedTurn

_ATTEMPTS = 2
"""After this many calls whose arguments arrived broken, one is not asked for again."""

_FIRST_PART = (
    "\n\nThat was the first part. I'm the **practice model** and do one plain thing at a time."
)
_GREETING = re.compile(
    r"hi|hello|hey|help|\?|(?:what|who|which model) (?:can|are|do) you\b.*", re.IGNORECASE
)


def respond(request: Request) -> ScriptedTurn:
    """What the practice model says to a request. The same request gives the same answer."""
    if (summary := summary_of(request)) is not None:
        return ScriptedTurn(text=summary)
    prompt = last_prompt(request.messages)
    if prompt is None:
        return ScriptedTurn(
            text="I no longer see the start of this conversation, so I don't"
            " know what to do. Tell me the next step, and I'll continue from here."
        )
    tools = {str(tool.get("name")) for tool in request.tools}
    for phrase in PHRASES:
        if (found := match_phrase(phrase, prompt.text)) is not None:
            return _play(phrase, found, prompt, request, tools)
    if prompt.images:
        return ScriptedTurn(text=about_images(prompt.images))
    return ScriptedTurn(text=_about(prompt.text, tools))


def _play(
    phrase: Phrase,
    groups: dict[str, str],
    prompt: LastPrompt,
    request: Request,
    tools: Collection[str],
) -> ScriptedTurn:
    """The work of a phrase, over the results that are there, up to what comes next."""
    more = groups.pop("more", "")
    aim = phrase.aim.format(**{name: code(part) for name, part in groups.items()})
    quiet = (request.thinking or {}).get("type") == "disabled" or bool(prompt.results)
    thinking = "" if quiet else f"The prompt asks for one thing: {aim}."
    results = list(prompt.results)
    work = phrase.work(**groups)
    try:
        call = next(work)
        while True:
            if call.name not in tools:
                text = f"For that I'd need the tool `{call.name}`, which I don't have here."
                return ScriptedTurn(text=text, thinking=thinking)
            if (result := _taken(results, call.name)) is None:
                said = "" if prompt.results else f"I'll {aim}."
                return ScriptedTurn(text=said, tools=(call,), thinking=thinking)
            if result.refusal is not None:
                reason = f" Your reason: “{result.refusal}”" if result.refusal else ""
                return ScriptedTurn(text=f"OK, skipping that: {call.name} was not allowed.{reason}")
            call = work.send(result)
    except StopIteration as end:
        return ScriptedTurn(text=f"{end.value}{_FIRST_PART if more else ''}")


def _taken(results: list[CallResult], name: str) -> CallResult | None:
    """The first result of that tool, removed from the list. Broken calls are asked for again."""
    found = [result for result in results if result.name == name]
    result = next((one for one in found if not one.broken), None)
    if result is None and len(found) >= _ATTEMPTS:
        result = found[-1]
    if result is not None:
        del results[: results.index(result) + 1]
    return result


def _about(text: str, tools: Collection[str]) -> str:
    """What the practice model is, and examples of what it understands."""
    examples = "\n".join(f"- {code(one.example)}" for one in PHRASES if one.tool in tools)
    greeted = _GREETING.fullmatch(text.strip(" .!")) is not None
    return (
        (f"I didn't understand {code(text)}. " if not greeted else "")
        + "I'm the **practice model**: a few rules that run offline, without a key or"
        " intelligence. The tools are real, though: they change files and run commands, and"
        " you're asked first."
        + (f" I understand plain requests, one at a time:\n\n{examples}" if examples else "")
        + "\n\nFor real work, connect a model with `/login`."
    )


_CONVERSATION = re.compile(r"<untrusted_content[^>]*>(.*?)</untrusted_content>", re.DOTALL)
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_NOTES = "worth keeping, answer `none`"
"""What only the request for notes says: that there may be nothing."""
_FILES = 12
_LINE = 160


def summary_of(request: Request) -> str | None:
    """The summary that a request wants; None for other requests.

    Such a request has no tools and carries the conversation as wrapped, untrusted content. Where
    notes for later sessions are wanted there are none: real models would read them, too.
    """
    text = "" if request.tools or not request.messages else text_of(request.messages[-1]["content"])
    if not (found := _CONVERSATION.findall(text)):
        return None
    return "none" if _NOTES in text else _extract("\n".join(found))


def _extract(conversation: str) -> str:
    """How a conversation began and ended, and the files that it names."""
    lines = [line.strip() for line in conversation.splitlines() if line.strip()]
    files = list(dict.fromkeys(_PATH.findall(conversation)))
    parts = {
        "How it started": lines[:3],
        "Files mentioned": files[:_FILES],
        "Current state": lines[3:][-6:],
    }
    listed = [
        f"## {title}\n\n" + "\n".join(f"- {line[:_LINE]}" for line in found)
        for title, found in parts.items()
        if found
    ]
    return "\n\n".join(listed) or "The conversation was empty."
