"""The conversation and the output pane: cost by length, and beside Textual's own widgets.

All is processor time of this process, headless, in one run. A step is an action of the widget and
the drawing of all its rows.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Callable
from time import process_time

from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Log, Markdown

from tui.ui.widgets.conversation.items import AssistantItem, Item, ToolItem, UserItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.output_view import OutputView

SIZE = (140, 50)
LONG, SHORT = 50_000, 300
STEPS = 15
"""No more than the pages of the short conversation: every page up meets items not drawn yet."""
TOKENS, REFERENCE_TOKENS = 20_000, 1_000
OUTPUT_MB = 20

REPLY = """I looked at `store.py` and found **two** problems.

1. The writer does not wait for the disk.
2. The reader takes a half line for a whole one.

```python
def append(self, record: dict[str, object]) -> None:
    line = json.dumps(record)  # one line
    os.write(self.fd, line.encode() + b"\\n")
```

The first shows only when the disk is slow; see [the notes](https://example.org/notes).

"""


class _Stage(App[None]):
    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.shown = widget

    def compose(self) -> ComposeResult:
        yield self.shown


def _items(count: int) -> list[Item]:
    items: list[Item] = []
    for number in range(count // 4 + 1):
        items += [
            UserItem(f"please look at problem {number} in the store"),
            AssistantItem(REPLY),
            ToolItem(str(number), "run_command", "pytest -q", state="ok", seconds=1.0),
            AssistantItem(f"Done with {number}: all tests pass."),
        ]
    return items[:count]


def _step(widget: Widget, action: Callable[[], object]) -> float:
    started = process_time()
    action()
    widget.render_lines(widget.size.region)
    return process_time() - started


async def _conversation(count: int) -> dict[str, float]:
    """Median seconds of a step, by kind."""
    talk = ConversationView()
    async with _Stage(talk).run_test(size=SIZE) as pilot:
        talk.extend(_items(count))
        await pilot.pause()
        gc.collect()
        pages = [_step(talk, lambda: talk.action_page(-1)) for _ in range(STEPS)]
        talk.action_edge(1)  # else the short one is at its top, where a key does nothing
        keys = [_step(talk, lambda: talk.action_cursor(-1)) for _ in range(STEPS)]
        talk.action_edge(1)
        appends = [_step(talk, lambda: talk.append(AssistantItem(REPLY))) for _ in range(STEPS)]
    return {
        "page up": statistics.median(pages),
        "key": statistics.median(keys),
        "append": statistics.median(appends),
    }


def _tokens(text: str, count: int) -> list[str]:
    """`count` tokens of four characters."""
    long = text * (4 * count // len(text) + 1)
    return [long[start : start + 4] for start in range(0, 4 * count, 4)]


async def _ours(tokens: list[str]) -> float:
    talk = ConversationView()
    async with _Stage(talk).run_test(size=SIZE) as pilot:
        item = AssistantItem()
        talk.append(item)
        await pilot.pause()
        started = process_time()
        for token in tokens:
            talk.stream(item, token)
            await asyncio.sleep(0)
        talk.finish(item)
        await pilot.pause()
        return process_time() - started


async def _textual(tokens: list[str]) -> float:
    markdown = Markdown()
    async with _Stage(markdown).run_test(size=SIZE) as pilot:
        await pilot.pause()
        started = process_time()
        stream = Markdown.get_stream(markdown)
        for token in tokens:
            await stream.write(token)
            await asyncio.sleep(0)
        await stream.stop()
        await pilot.pause()
        return process_time() - started


def _output(megabytes: float) -> list[str]:
    line = "2026-11-21 07:00:00 \x1b[32mmodule.{0:06d}\x1b[0m  some text with /usr/lib/{0}\n"
    text = "".join(line.format(n) for n in range(int(megabytes * 1e6 / len(line.format(0)))))
    return [text[start : start + 65_536] for start in range(0, len(text), 65_536)]


async def _written(widget: OutputView | Log, chunks: list[str]) -> tuple[float, float]:
    """Seconds to write all chunks, and of a page up then."""
    async with _Stage(widget).run_test(size=SIZE) as pilot:
        gc.collect()
        started = process_time()
        for chunk in chunks:
            widget.write(chunk)
            await asyncio.sleep(0)
        await pilot.pause()
        seconds = process_time() - started

        def page() -> None:
            widget.scroll_to(y=widget.scroll_y - SIZE[1] + 1, animate=False)

        pages = [_step(widget, page) for _ in range(STEPS)]
    return seconds, statistics.median(pages)


async def _measure() -> list[tuple[str, float, float]]:
    rows: list[tuple[str, float, float]] = []
    await _conversation(SHORT)  # what is imported on first use is imported
    short, long = await _conversation(SHORT), await _conversation(LONG)
    for name, seconds in long.items():
        what = f"{name} with {LONG:,} items, {1e3 * seconds:.2f} ms ÷ with {SHORT}"
        rows.append((what, seconds / short[name], 1.5))
    code = "```python\n" + REPLY.split("```")[1].removeprefix("python\n") * 400
    for name, text in (("mixed", REPLY), ("one code fence", code)):
        ours = await _ours(_tokens(text, TOKENS))
        reference = await _textual(_tokens(text, REFERENCE_TOKENS))
        # The reference grows faster than its text, so scaling it evenly is in its favour.
        scaled = reference * TOKENS / REFERENCE_TOKENS
        what = f"{TOKENS:,} tokens, {name}, {ours:.2f} s ÷ MarkdownStream's {scaled:.1f} s"
        what += f" ({TOKENS // REFERENCE_TOKENS} × {REFERENCE_TOKENS:,} tokens)"
        rows.append((what, ours / scaled, 0.1))
    chunks = _output(OUTPUT_MB)
    ours, page = await _written(OutputView(), chunks)
    theirs, _ = await _written(Log(highlight=False), chunks)
    _, small_page = await _written(OutputView(), _output(0.2))
    what = f"{OUTPUT_MB} MB of output, {ours:.2f} s ÷ Textual's Log {theirs:.2f} s"
    rows.append((what, ours / theirs, 0.25))
    what = f"page up in {OUTPUT_MB} MB of output, {1e3 * page:.2f} ms ÷ in 0.2 MB"
    rows.append((what, page / small_page, 1.5))
    return rows


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of every claim."""
    return asyncio.run(_measure())
