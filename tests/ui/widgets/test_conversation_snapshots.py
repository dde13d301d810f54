"""Pictures of conversation and output pane, on Textual's own themes: ours may change colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from textual.pilot import Pilot

from tests.ui.widgets.stage import Stage
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.output_view import OutputView

SnapCompare = Callable[..., bool]

DIFF = """--- a/store.py
+++ b/store.py
@@ -10,5 +10,6 @@ def append(self, record):
     line = encode(record)
-    os.write(self.fd, line)
+    if os.write(self.fd, line) != len(line):
+        raise ShortWrite(line)

     def close(self):
@@ -50,1 +51,1 @@ def close(self):
-    pass
+    self.fd = -1
"""

ITEMS: Sequence[Item] = (
    UserItem("fix the flaky test in test_store.py"),
    ThinkingItem("The test writes, then reads at once."),
    AssistantItem("I'll run it first, then look at `store.py`."),
    ToolItem(
        "1",
        "run_command",
        "pytest -q tests/test_store.py",
        state="error",
        seconds=12.3,
        preview="FAILED tests/test_store.py::test_append\n1 failed, 23 passed in 11.9s",
        receipt={"bytes_total": 482_312, "bytes_shown": 3_055, "path": "/p/tool-results/ab.txt"},
        folded=False,
    ),
    ToolItem(
        "2", "read_file", "tui/session/store.py", state="ok", summary="212 lines", preview="x"
    ),
    ToolItem(
        "3",
        "edit_file",
        "store.py",
        state="ok",
        seconds=0.2,
        summary="+3 −2",
        diff=DIFF,
        folded=False,
    ),
    ToolItem("4", "run_command", "make", state="running", preview="x"),
    ToolItem("5", "write_file", "notes.md", state="waiting"),
    NoticeItem("rate limited · try 2 of 3 in 4 s", kind="warning"),
    NoticeItem("The session could not be saved", kind="error", detail="disk full", folded=False),
    UserItem("then the other one, 漢字 🎉", state="queued"),
)

MARKDOWN = """# Fixing the *flaky* test

Two problems in `store.py`, **both** old; see [the docs](https://example.org).

1. Open with `fsync`
   - flush
   - join
2. Run ~~once~~ twice

- [ ] open
- [x] done

> quoted text

```python
def read(path: str) -> str:
    \"\"\"All of it.\"\"\"
    return open(path).read()  # closed by the collector
```

| Name | Size | What |
|------|-----:|:----:|
| `store.py` | 12 KB | the store, with words enough to be wrapped in this cell |
| 漢字 | 1 | wide |

---
"""


def talk(items: Sequence[Item], theme: str) -> tuple[Stage, ConversationView]:
    conversation = ConversationView()
    conversation.extend(items)
    return Stage(conversation, theme), conversation


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_every_kind_of_item(snap_compare: SnapCompare, theme: str, size: tuple[int, int]) -> None:
    app, _ = talk(ITEMS, theme)
    assert snap_compare(app, terminal_size=size, press=["up"])


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_markdown(snap_compare: SnapCompare, theme: str) -> None:
    app, _ = talk([AssistantItem(MARKDOWN)], theme)
    assert snap_compare(app, terminal_size=(80, 44))


def test_behind_with_a_pill(snap_compare: SnapCompare) -> None:
    app, conversation = talk(ITEMS, "textual-dark")

    async def later(pilot: Pilot[None]) -> None:
        await pilot.press("home")
        conversation.extend([AssistantItem("new"), AssistantItem("newer")])
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=later)


def test_output_with_colours(snap_compare: SnapCompare) -> None:
    view = OutputView()
    app = Stage(view, "textual-dark")

    async def fill(pilot: Pilot[None]) -> None:
        view.show(
            "run_command · pytest -q",
            "\x1b[1m==== test session starts ====\x1b[0m\n\ntests/test_store.py "
            "\x1b[32m..\x1b[31mF\x1b[0m [100%]\n\x1b[31;1mE   ShortWrite: 12\x1b[0m\n\ttab\n"
            + "y" * 5_000
            + "\n\x1b[33m1 failed\x1b[0m, 23 passed",
        )
        await pilot.pause()
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 16), run_before=fill)
