"""What every test gets: no key, no colour override, no animation, and folders of its own.

Property tests draw the same examples in every run, and no example fails because the machine was
busy: whether a change is good does not depend on luck. `--hypothesis-profile=default` draws others.
The default suite tries a part of them; `pytest -m "slow or property"`, as in .ci/run, tries all.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, settings

from tests.support import disk
from tests.support.collector import collect_between_tests, keep_frozen

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

# The usual 700 new objects are one widget: collections were a fifth of what a test of the screen
# costs. So many are a few of these tests, or thirty that run commands, each with an open file or
# two in what is to be collected: a system may allow no more than 256.
gc.set_threshold(150_000, 20, 10)

disk.sync_at_once()

_FOREIGN = ("ANTHROPIC_", "HOLDFAST_", "TEXTUAL_")
_COLOUR = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES")

for _name in [n for n in os.environ if n.startswith(_FOREIGN) or n in _COLOUR]:
    if not _name.startswith("TEXTUAL_SNAPSHOT_"):  # the plugin's own, set for its workers
        del os.environ[_name]
os.environ["TEXTUAL_ANIMATIONS"] = "none"
# Tests of the sandbox switch it on; the others are of what is asked where there is none.
os.environ["HOLDFAST_SANDBOX"] = "off"
# A shell lets its background ignore Ctrl+C, and nohup the end of its terminal; so would every
# program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if _constants := sys.modules.get("textual.constants"):  # the snapshot plugin imports it earlier
    _constants.TEXTUAL_ANIMATIONS = "none"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders that nobody has used. pytest's own way reads all there are, every time."""
    parent = tmp_path_factory.mktemp("homes")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(scope="session")
def numbers() -> Counter[str]:
    """How many folders of a name there are."""
    return Counter()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    numbers: Counter[str],
) -> Path:
    """A folder of the test's name and a number, as pytest names it; that one reads the names of all
    tests before it twice, which takes the longer the more there were."""
    node = cast("pytest.Item", request.node)  # pyright: ignore[reportUnknownMemberType]
    name = re.sub(r"\W", "_", node.name)[:30]
    while True:
        number = numbers[name]
        numbers[name] += 1
        with suppress(FileExistsError):  # of a test whose name ends with a figure
            return tmp_path_factory.mktemp(f"{name}{number}", numbered=False)


@pytest.fixture(autouse=True)
def own_folders(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOLDFAST_HOME in a fresh folder, which is the home folder too: what other agents keep there
    counts. The SDK's configuration folder is empty."""
    home = next(homes)
    home.mkdir(mode=0o700)
    (home / "anthropic").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(home / "anthropic"))
    return home


NOT_FAST = {
    *("ui", "e2e", "demo", "plain", "batch", "cli", "keeper", "permissions/sandbox"),
    *("tools/mcp", "tools/lsp", "core/git", "session/rescue"),
    *("test_linear_time.py", "test_packaging.py", "test_install_script.py"),
    *("app/test_doctor.py", "app/test_installed.py", "core/test_standard_output.py"),
    *("agent/test_caching.py", "agent/test_call_recovery.py", "agent/test_confined_commands.py"),
    *("agent/test_faults.py", "agent/test_guarded_commands.py", "agent/test_hooks.py"),
    *("agent/test_interrupt.py", "agent/test_server_compaction.py", "agent/test_skills.py"),
    *("agent/test_sub_agent_worktree.py", "context/test_token_ledger.py"),
    *("provider/test_anthropic_light.py", "provider/test_anthropic_load.py"),
    *("provider/test_anthropic_process.py", "tools/test_read_pdf.py"),
    "support/test_preloaded.py",
    *("support/test_strict_server.py", "support/test_server_reports.py"),  # import all of the SDK
    *("tools/test_plain_search.py", "permissions/test_plain_git.py"),
    # A test of these takes 0.03 CPU seconds or more: whole sessions, worlds of git, large images.
    *("test_manual_site.py", "test_review_action.py", "provider/test_real_streams.py"),
    *("agent/request/test_break_reasons.py", "agent/request/test_image_limits.py"),
    *("agent/test_a_week.py", "agent/test_background_jobs.py", "agent/test_binding.py"),
    *("agent/test_break_bills.py", "agent/test_cache_marks.py", "agent/test_cases_by_name.py"),
    *("agent/test_checkpoints.py", "agent/test_command_costs.py", "agent/test_documents.py"),
    *("agent/test_edit_checks.py", "agent/test_exact_view.py", "agent/test_frame_blocks.py"),
    *("agent/test_generated_sessions.py", "agent/test_guards.py"),
    *("agent/test_hooks_as_recorded.py", "agent/test_next_prompt.py", "agent/test_odd_calls.py"),
    *("agent/test_one_cost.py", "agent/test_overflow_recovery.py", "agent/test_pause.py"),
    *("agent/test_prune_auto.py", "agent/test_prune_figures.py", "agent/test_recall_blame.py"),
    *("agent/test_request_replay.py", "agent/test_requests_grow.py"),
    *("agent/test_search_installed.py", "agent/test_sub_agents.py", "agent/test_threats.py"),
    "agent/test_token_counter.py",
    *("app/packs/test_packs.py", "app/test_api.py", "app/test_half_written.py"),
    *("app/test_permissions_command.py", "app/test_python_manual.py", "app/test_session_page.py"),
    *("app/test_session_report.py", "app/test_timeline_report.py", "app/test_user_shell.py"),
    *("context/blame/test_cut_off.py", "context/blame/test_former_names.py"),
    *("context/blame/test_real_sessions.py", "context/blame/test_worlds.py"),
    *("context/test_request_trail.py", "context/test_timeline.py"),
    "context/usage/test_attribution.py",
    *("core/test_bytecode_bundle.py", "core/test_gc_pause.py", "core/test_image_resize.py"),
    *("golden/test_corpus.py", "golden/test_silences.py"),
    "permissions/test_hidden_code.py",
    *("session/checkpoints/test_checkpoints.py", "session/checkpoints/test_scratch.py"),
    *("session/importers/test_odd_lines.py", "session/importers/test_opencode.py"),
    *("session/test_branches.py", "session/test_crash.py"),
    *("support/test_dispatch.py", "support/test_fuzzed_model.py"),
    "tokens/test_tokenizer.py",
    *("tools/test_kept_form.py", "tools/test_list_dir.py", "tools/test_search_scope.py"),
    "tools/test_stale_text.py",
}
"""What `pytest -m fast` leaves out: tests that run programs, draw screens or last long."""


_TIMEOUT_AGAIN_S = 2.0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is not collected costs no import."""
    within = collection_path.relative_to(Path(__file__).parent).as_posix() in NOT_FAST
    return True if within and config.getoption("markexpr") == "fast" else None


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """One more than there are cores: who waits for a program or a terminal leaves a core to it.
    The fast tests wait for none, and `PYTEST_XDIST_AUTO_NUM_WORKERS` is the person's own word."""
    cores = yield
    said = "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    return cores if said or config.getoption("markexpr") == "fast" else cores + 1


_SETTINGS = "_hypothesis_internal_use_settings"
"""Where a property keeps its settings; Hypothesis' own plugin for pytest reads them there."""
_PART = 5
"""A property is tried on one example in so many by the default suite, but on `_FEWEST` at least."""
_FEWEST = 15


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Mark the properties, and as fast what is neither slow nor a property."""
    chosen = str(config.getoption("markexpr"))
    whole = "property" in chosen
    fewer = set[object]()  # one may be collected for several items
    for item in items:
        slow = item.get_closest_marker("slow") is not None
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        if getattr(test, "is_hypothesis_test", False):
            item.add_marker("property")
            if not whole and not slow and test not in fewer:
                fewer.add(test)
                _try_fewer(test)
        elif not slow:
            item.add_marker("fast")
    if chosen == "fast":
        # Hypothesis would read all of the program's code where a property is left.
        items[:] = [item for item in items if item.get_closest_marker("fast")]


def _try_fewer(test: object) -> None:
    """Let a property be tried on a part of its examples."""
    said: settings = getattr(test, _SETTINGS)
    fewer = min(said.max_examples, max(_FEWEST, said.max_examples // _PART))
    setattr(test, _SETTINGS, settings(said, max_examples=fewer))


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Generator[None, object, object]:
    """A timeout comes again: where it hits a task, asyncio takes it for that task's failure, and
    the test would go on without a limit."""
    done = yield
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if left:
        signal.setitimer(signal.ITIMER_REAL, left, _TIMEOUT_AGAIN_S)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is imported and collected for all tests is ever garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """From here on it is not looked at again."""
    keep_frozen()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A test's objects are collected when it is over, and all of them at once."""
    try:
        return (yield)
    finally:
        collect_between_tests()
