"""`holdfast sessions replay ID --at N`: what if. A past request is sent once more, with one thing
changed, and its answer shown beside the one that came then.

The request is rebuilt from the record, and sent as it is: no agent has a part in it, so the calls
of its answer can only be shown. The session is only read; the answer goes into a new one, a fork of
the records before the request.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import zip_longest
from typing import Any, Final

from tui.agent.launch import Launch
from tui.agent.limits import Spent
from tui.agent.model_access import (
    is_first_party,
    lacks_of,
    listed_model,
    make_provider,
    server_name,
)
from tui.agent.request.frame_state import form_of
from tui.agent.turn import message_of
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.cli import request_commands
from tui.cli.session_io import load, path_of, print_json
from tui.context.breaks import BREAK
from tui.context.effort import field_of
from tui.context.notices import Form
from tui.context.overrides import SPEAKING
from tui.context.request_assembly import thinking_of
from tui.context.request_difference import difference
from tui.context.request_replay import ReplayedRequest, RequestReplay
from tui.core.clock import SystemClock, timestamp
from tui.core.config import Price
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.facts import Overlay, RetryScheduled, TitleChanged
from tui.core.formatting import money, plural, tokens
from tui.core.messages import Block, Usage, blocks_of, object_of, string_of
from tui.core.standard_output import cells, note, print_text
from tui.core.text_cleaning import clean
from tui.provider.base import Completed, ModelInfo, Request
from tui.provider.prices import price_of
from tui.provider.server_tools import is_server_tool
from tui.session import copies
from tui.session.reader import LoadedSession
from tui.session.records import Record, is_answer, new_id
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

_WIDE: Final = 120
_GAP: Final = "   "
_ANSWER_TOKENS: Final = 4000
"""Tokens assumed for an answer that nobody has seen, to estimate the price."""
_INDENT: Final = 2


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer as it is shown: whose it is, its blocks, and what it took."""

    model: str
    blocks: list[Block]
    stop_reason: str
    usage: Usage
    usd: float | None

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "content": self.blocks,
            "stop_reason": self.stop_reason,
            "usage": self.usage.to_json(),
            "cost_usd": self.usd,
        }


def replay(options: Options) -> int:
    """Send a request again, once that was agreed to. Exit 1 where it was not."""
    if options.sessions.request is None:
        raise UsageError("Which request?", hint="Name it with --at N, as `sessions view` does.")
    loaded = load(path_of(options))
    made = request_commands.rebuilt(loaded, options.sessions.request)
    if made.request is None or made.problem:
        raise HoldfastError(f"Request {made.number} can't be rebuilt: {made.problem}.")
    model = options.models.model or made.request.model
    launch = launch_config.with_key(launch_config.prepare(options.having(model=model)))
    info = listed_model(launch, launch.model)
    records = _records(loaded, made, info, launch, options)
    request = RequestReplay(records).at(made.number).request
    assert request is not None  # the other one could be made
    kept_out = [string_of(tool.get("name")) for tool in request.tools if is_server_tool(tool)]
    tools = [tool for tool in request.tools if not is_server_tool(tool)]
    request = replace(request, tools=tools, diagnostics=None)
    if options.sessions.unmask is not None and request.messages == made.request.messages:
        raise UsageError(f"Message {options.sessions.unmask} was sent whole, or is summarized.")
    for text in _about(made, request, kept_out, launch):
        note(text)
    if not options.yes and not _agrees():
        note("Nothing was sent.")
        return 1
    answer = asyncio.run(_sent(launch, request))
    prices = launch.config.prices
    before, after = _then(loaded, made, prices), _now(answer, prices)
    session = _keep(loaded, made, records[:-1], answer, launch)
    if options.json:
        sides = {"before": before.to_json() if before else None, "after": after.to_json()}
        return print_json({"request": made.number, "session": session, **sides})
    for line in _shown(made.number, before, after):
        print_text(line)
    note(f"Kept as session {session}. No call of it was run.")
    return 0


def _records(
    loaded: LoadedSession,
    made: ReplayedRequest,
    info: ModelInfo,
    launch: Launch,
    options: Options,
) -> list[Record]:
    """The records before the request, what changes them, and its own record, changed."""
    before = request_commands.before(loaded, made.number)
    data = dict(made.record.data) | {"server": server_name(launch)}
    others: list[tuple[str, dict[str, Any]]] = []
    if options.sessions.unmask is not None:
        target = _message(before, options.sessions.unmask)
        others.append(("overlay", Overlay(target.id, "full", reason="replay").to_json()))
        others.append((BREAK, {"reason": "replay", "by": "person", "from": target.id}))
    if info.id != data.get("model"):
        form = form_of(info, first_party=is_first_party(launch), lacks=lacks_of(launch))
        data |= _for_model(data, info, form)
    if options.models.effort:
        data["effort"] = field_of(info, options.models.effort)
    if info.id != made.record.data.get("model") or options.models.effort:
        others.append((BREAK, {"reason": "replay", "by": "person"}))
    records = [*before]
    for type_, fields in others:
        last = records[-1]
        records.append(Record(type_, f"{last.id}-{len(records)}", last.id, last.time, fields))
    return [*records, replace(made.record, parent=records[-1].id, data=data)]


def _for_model(data: dict[str, Any], info: ModelInfo, form: Form) -> dict[str, Any]:
    """The fields of a request that another model is sent."""
    thinking, most = object_of(data.get("thinking")), data.get("max_tokens")
    features = [form.system_messages, form.tool_additions, form.turn_effort, form.compaction_blocks]
    return {
        "model": info.id,
        "max_tokens": min(most, info.max_output) if isinstance(most, int) else info.max_output,
        "thinking": thinking_of(
            info, think=bool(thinking), display=string_of(thinking.get("display"))
        ),
        "effort": data["effort"] if data.get("effort") in info.efforts else None,
        "form": features,
        "shared_thinking": False,
    }


def _message(before: Sequence[Record], number: int) -> Record:
    """A message by its number, as /recall has it."""
    speaking = [record for record in before if record.type in SPEAKING]
    if not 1 <= number <= len(speaking):
        raise UsageError(
            f"There is no message {number} before that request.",
            hint=f"It has {plural(len(speaking), 'message')}; /recall numbers them.",
        )
    return speaking[number - 1]


def _about(
    made: ReplayedRequest, request: Request, kept_out: Sequence[str], launch: Launch
) -> Iterator[str]:
    """Describe what will be sent, how it differs, and about what it will cost."""
    assert made.request is not None
    changes = difference(made.request, request)
    differs = list(changes.front)
    changed = len(changes.gone) + len(changes.added)
    if changed or changes.thoughts_gone:
        differs.append(f"{plural(changed, 'block')} of its messages changed")
    if changes.thoughts_gone:
        differs.append(f"{plural(changes.thoughts_gone, 'thought')} left out")
    if differs:
        yield f"Request {made.number} with a change: {'; '.join(differs)}."
    else:
        yield f"Request {made.number} as it was sent."
    if kept_out:
        yield f"Left out, because it would run on the server: {', '.join(kept_out)}."
    if made.frame is not None and not made.own_frame:
        yield "Its system prompt and tools come from another installation, or were edited."
    size = round(estimate.request_weight(request.system, request.tools, request.messages))
    price = price_of(request.model, launch.config.prices)
    output = min(_ANSWER_TOKENS, request.max_tokens)
    usd = money(price.forecast(written=size, output=output)) if price else "at an unknown price"
    yield f"About {tokens(size)} tokens to {request.model}, {usd}. No call will be run."


def _agrees() -> bool:
    """True if the person wants it sent."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("There is nobody to ask whether to send it.", hint="Add --yes.")
    sys.stderr.write("Send it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def _sent(launch: Launch, request: Request) -> Completed:
    """The answer. Raises ProviderError, or CredentialsError."""
    provider, answer = make_provider(launch, SystemClock()), None
    try:
        async with aclosing(provider.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Completed):
                    answer = part
                elif isinstance(part, RetryScheduled):
                    note(f"{part.reason} Retry {part.attempt} of {part.max_attempts}.")
    finally:
        await provider.aclose()
    assert answer is not None  # the port says so
    return answer


def _keep(
    loaded: LoadedSession,
    made: ReplayedRequest,
    records: Sequence[Record],
    answer: Completed,
    launch: Launch,
) -> str:
    """Write the answer into a session of its own. Returns its id."""
    clock = SystemClock()
    header = copies.header_of(loaded, clock=clock, cwd=launch.workspace.root)
    title = f"Replay of {loaded.header.id}, request {made.number}"
    copied = [*copies.with_payers_of(records, header.profile, launch.config.profile, clock)]
    for fact in (
        message_of(answer, answer.content, "", server_name(launch)),
        TitleChanged(title),
    ):
        now, last = clock.now(), copied[-1].id if copied else None
        id_, fields = new_id(now, after=last or ""), fact.to_record()
        copied.append(Record(fact.recorded_as(), id_, last, timestamp(now), fields))
    copies.write_session(
        copies.place_of(header, folders=launch.folders, clock=clock), header, copied
    )
    return header.id


def _then(loaded: LoadedSession, made: ReplayedRequest, prices: dict[str, Price]) -> _Answer | None:
    """The answer that came then; None where none is recorded."""
    after = {made.record.id}
    for record in loaded.records:
        if record.parent not in after or record.type == REQUEST:
            continue
        after.add(record.id)
        if is_answer(record):
            data, usage = record.data, Usage.from_json(record.data.get("usage"))
            model = string_of(data.get("model"))
            blocks, stop = blocks_of(data.get("content")), string_of(data.get("stop_reason"))
            usd = Spent.on(usage, price_of(model, prices, record.payer)).usd
            return _Answer(model, blocks, stop, usage, usd)
    return None


def _now(answer: Completed, prices: dict[str, Price]) -> _Answer:
    usd = Spent.on(answer.usage, price_of(answer.model, prices)).usd
    return _Answer(answer.model, answer.content, answer.stop_reason or "", answer.usage, usd)


def _shown(number: int, before: _Answer | None, after: _Answer) -> Iterator[str]:
    """Both answers: side by side where there is room, else one under the other."""
    width = shutil.get_terminal_size().columns
    wide = width >= _WIDE and sys.stdout.isatty()
    each = (width - len(_GAP)) // 2 if wide else min(width, 100)
    left = _column(f"request {number}, then", before, each)
    right = _column("now", after, each)
    if not wide:
        yield from [*left, "", *right]
        return
    for one, other in zip_longest(left, right, fillvalue=""):
        yield f"{one}{' ' * (each - cells(one))}{_GAP}{other}".rstrip()


def _column(name: str, answer: _Answer | None, width: int) -> list[str]:
    """An answer as lines of at most that many characters."""
    if answer is None:
        return [f"── {name} ──", "No answer is recorded."]
    use = answer.usage
    facts = f"{tokens(use.total - use.output_tokens)} in, {tokens(use.output_tokens)} out"
    facts += f", {money(answer.usd)}, {answer.stop_reason}"
    lines = [f"── {name}: {answer.model} ──", facts, ""]
    for block in answer.blocks:
        match block.get("type"):
            case "text":
                lines += _wrapped(string_of(block.get("text")), width)
            case "thinking" if thought := string_of(block.get("thinking")):
                lines += [*_wrapped(f"Thinking: {thought}", width), ""]
            case "tool_use":
                arguments = json.dumps(block.get("input"), ensure_ascii=False, indent=_INDENT)
                lines += ["", *_wrapped(f"→ {block.get('name')} {arguments}", width)]
            case _:
                pass
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return [
        part
        for line in clean(text).splitlines()
        for part in textwrap.wrap(line, width, drop_whitespace=False) or [""]
    ]
