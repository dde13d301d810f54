"""What a newcomer reads in the first hour is in common words; three terms have to be learned."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TUI = Path(__file__).parents[2] / "tui"

LEARNED: Final = ("context", "token", "cache")
"""The terms of every model's documentation that the daily screens use."""

UNCOMMON: Final = re.compile(
    r"\b(un)?mask(s|ed|ing)?\b|\bprun(e|es|ed|ing)\b|\bthe (next )?breaks?\b|^Break\b"
    r"|\bcompactions?\b|\bdirectives?\b|\breceipts?\b|\bspill(s|ed)?\b|\bpark(s|ed)?\b"
    r"|\bfailover\b|\boverrides?\b|\boverlays?\b|\bledger\b|\bthe frame\b|\bdigest\b|\bverbatim\b"
    r"|\bin bulk\b|\belided?\b|\bthrottl\w+|\bpayload\b|\bprefix\b|\btruncat\w+|\binference\b"
    r"|\b(the|this|last) turns?\b|\bjobs?\b(?! \[)|\brules?\b"
    r"|\btelemetry\b|\bstdout\b|\bstderr\b|\bTTY\b|\bheuristic\w*|\bidempotent\b",
    re.IGNORECASE,
)
"""The program's inner terms, and those of a trade: the manual explains them, screens say it in
other words."""

_STYLE: Final = re.compile(r"^#|\{\s*\w")
"""Selectors and style sheets, which nobody reads on the screen."""

NAMES: Final = re.compile(r"/[a-z-]+|\w+\.\w+")
"""Names of commands and settings."""

DAILY: Final = (
    *("ui/screens/chat.py", "ui/screens/footer.py", "ui/screens/conversation_side.py"),
    *("ui/screens/output_side.py", "ui/screens/prompt_side.py", "ui/screens/welcome.py"),
    *("ui/screens/context.py", "ui/screens/context_rows.py", "ui/screens/context_changes.py"),
    *("ui/screens/context_item.py", "ui/screens/sessions.py", "ui/screens/session_rows.py"),
    *("ui/screens/session_actions.py", "ui/screens/help.py", "ui/screens/palette.py"),
    *("ui/screens/picker.py", "ui/screens/jobs.py", "ui/screens/plan.py"),
    *("ui/widgets/approval.py", "ui/widgets/bars.py", "ui/widgets/context_meter.py"),
    *("ui/widgets/conversation/tool_card.py", "ui/widgets/conversation/items.py"),
    *("ui/widgets/keys.py", "ui/widgets/notices.py", "ui/widgets/questionnaire.py"),
    *("ui/widgets/resume_card.py", "ui/widgets/retry_banner.py", "ui/widgets/welcome_text.py"),
    *("ui/app.py", "ui/fact_renderer.py", "ui/frontend.py", "ui/commands/views.py"),
    *("app/commands/table.py", "app/commands/context.py", "app/commands/effort.py"),
    *("app/commands/rewind.py", "app/commands/sessions.py", "app/commands/permissions.py"),
    *("app/conversation.py", "app/error_options.py", "app/start_rows.py", "app/router.py"),
    *("core/fact_words.py", "agent/agent_servers.py", "ui/toolkit/familiar_keys.py"),
)
"""The modules whose words are on the chat, approvals, the footer, the meter, F2, sessions, help and
notices."""


def _read(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that a person may read: strings with a space, docstrings not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unread = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in unread and " " in text.strip():
                if not _STYLE.search(text):
                    yield node.lineno, text
            case _:
                pass


@pytest.mark.parametrize("module", DAILY)
def test_the_daily_screens_speak_in_common_words(module: str) -> None:
    found = [
        f"{module}:{line}: {match[0]!r} in {text[:70]!r}"
        for line, text in _read(TUI / module)
        for match in UNCOMMON.finditer(NAMES.sub("", text))
    ]
    assert found == []


def test_three_terms_have_to_be_learned() -> None:
    assert len(LEARNED) <= 3
    manual = (TUI / "manual" / "context.md").read_text(encoding="utf-8")
    assert all(term in manual for term in LEARNED)
