"""From a request to an answer: a phrase is continued where the results in the messages end.

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
"""Number of calls with broken arguments after which a call is not repeated."""

_FIRST_PART = (
    "\n\nThat was the first part. I'm the **practice model** and do one plain thing at a time."
)
_GREETING = re.compile(
    r"hi|hello|hey|help|\?|(?:what|who|which model) (?:can|are|do) you\b.*", re.IGNORECASE
)


def respond(request: Request) -> ScriptedTurn:
    """Answer a request as the practice model. The same request gives the same answer."""
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
        if (groups := match_phrase(phrase, prompt.text)) is not None:
            return _play(phrase, groups, prompt, request, tools)
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
    """Replay the work of a phrase over the results that are there, up to its next step."""
    more = groups.pop("more", "")
    aim = phrase.aim.format(**{name: code(part) for name, part in groups.items()})
    quiet = (request.thinking or {}).get("type") == "disabled" or bool(prompt.results)
    thinking = "" if quiet else f"The prompt asks for one thing: {aim}."
    results = list(prompt.results)
    work = phrase.work(**groups)
    try:
        call = next(work)
        # The work starts over at every request, up to the first call without a result.
        while True:
            if call.name not in tools:
                text = f"For that I'd need the tool `{call.name}`, which I don't have here."
                return ScriptedTurn(text=text, thinking=thinking)
            if (result := _taken(results, call.name)) is None:
                intro = "" if prompt.results else f"I'll {aim}."
                return ScriptedTurn(text=intro, tools=(call,), thinking=thinking)
            if result.refusal is not None:
                reason = f" Your reason: “{result.refusal}”" if result.refusal else ""
                return ScriptedTurn(text=f"OK, skipping that: {call.name} was not allowed.{reason}")
            call = work.send(result)
    except StopIteration as end:
        return ScriptedTurn(text=f"{end.value}{_FIRST_PART if more else ''}")


def _taken(results: list[CallResult], name: str) -> CallResult | None:
    """Remove the first result of that tool from the list and return it. Broken calls are
    repeated."""
    own_results = [result for result in results if result.name == name]
    result = next((one for one in own_results if not one.broken), None)
    if result is None and len(own_results) >= _ATTEMPTS:
        result = own_results[-1]
    if result is not None:
        del results[: results.index(result) + 1]
    return result


def _about(text: str, tools: Collection[str]) -> str:
    """Introduce the practice model, with examples of what it understands."""
    examples = "\n".join(f"- {code(one.example)}" for one in PHRASES if one.tool in tools)
    greeted = _GREETING.fullmatch(text.strip(" .!")) is not None
    return (
        (f"I didn't understand {code(text.rstrip(' .') or text)}. " if not greeted else "")
        + "I'm the **practice model**: a few rules that run offline, without a key or"
        " intelligence. The tools are real, though: they change files and run commands, and"
        " you're asked first."
        + (f" I understand plain requests, one at a time:\n\n{examples}" if examples else "")
        + "\n\nFor real work, connect a model with `/login`."
    )


_CONVERSATION = re.compile(r"<untrusted_content[^>]*>(.*?)</untrusted_content>", re.DOTALL)
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_NOTES = "worth keeping, answer `none`"
"""A text that only the request for notes has: that there may be none."""
_FILES = 12
_LINE = 160


def summary_of(request: Request) -> str | None:
    """The summary that a request asks for; None for other requests.

    Such a request has no tools and contains the conversation as wrapped, untrusted content. It
    never gives notes for later sessions: real models would read them, too.
    """
    text = "" if request.tools or not request.messages else text_of(request.messages[-1]["content"])
    if not (wrapped := _CONVERSATION.findall(text)):
        return None
    return "none" if _NOTES in text else _extract("\n".join(wrapped))


def _extract(conversation: str) -> str:
    """Extract how a conversation began and ended, and the files that it names."""
    lines = [line.strip() for line in conversation.splitlines() if line.strip()]
    files = list(dict.fromkeys(_PATH.findall(conversation)))
    parts = {
        "How it started": lines[:3],
        "Files mentioned": files[:_FILES],
        "Current state": lines[3:][-6:],
    }
    listed = [
        f"## {title}\n\n" + "\n".join(f"- {line[:_LINE]}" for line in entries)
        for title, entries in parts.items()
        if entries
    ]
    return "\n\n".join(listed) or "The conversation was empty."
