"""What every test gets: no key, no colour override, no animation, and folders of its own.

Property tests draw the same examples in every run, and no example fails because the machine was
busy: whether a change is good does not depend on luck. `--hypothesis-profile=default` draws others.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

_FOREIGN = ("ANTHROPIC_", "HOLDFAST_", "TEXTUAL_")
_COLOUR = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES")

for _name in [n for n in os.environ if n.startswith(_FOREIGN) or n in _COLOUR]:
    if not _name.startswith("TEXTUAL_SNAPSHOT_"):  # the plugin's own, set for its workers
        del os.environ[_name]
os.environ["TEXTUAL_ANIMATIONS"] = "none"
# Hundreds of tests start the program: each would compile it anew where nothing may be kept.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(
        Path(__file__).parents[1] / ".pytest_cache" / "compiled"
    )
if _constants := sys.modules.get("textual.constants"):  # the snapshot plugin imports it earlier
    _constants.TEXTUAL_ANIMATIONS = "none"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOLDFAST_HOME in a fresh folder, and an SDK configuration folder that is empty."""
    home = tmp_path_factory.mktemp("holdfast-home")
    (home / "anthropic").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(home / "anthropic"))
    return home


NOT_FAST = {
    *("ui", "e2e", "demo", "plain", "batch", "tools/mcp"),
    *("agent/test_caching.py", "agent/test_interrupt.py"),
}
"""What `pytest -m fast` leaves out: tests that run programs, draw screens or last long."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is not collected costs no import."""
    within = collection_path.relative_to(Path(__file__).parent).as_posix() in NOT_FAST
    return True if within and config.getoption("markexpr") == "fast" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as fast what is neither slow nor a property that is tried on many examples."""
    for item in items:
        tried = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if not tried and item.get_closest_marker("slow") is None:
            item.add_marker("fast")
