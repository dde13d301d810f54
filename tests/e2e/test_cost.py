"""What a conversation costs, as the program tells it: the server's own sum, without any set-up."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Serve
from tests.e2e.test_background import until
from tests.support.program import Program
from tui.core.formatting import money
from tui.core.paths import folders

CALL = {"name": "read_file", "input": {"path": "README.md"}}
TURNS: list[dict[str, Any]] = [{"text": "I look.", "tools": [CALL]}, {"text": "Done."}]


def test_print_mode_tells_what_the_server_charges(
    serve: Serve, work: Path, env: dict[str, str]
) -> None:
    server = serve(*TURNS, priced=True, catalogue=True)
    program = Program(work, {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url})
    told = json.loads(program("-p", "go", "--output-format", "json").stdout)
    assert not told["is_error"], told
    assert isclose(told["cost_usd"], server.cache.dollars)
    assert told["usage"].keys() >= {"input_tokens", "cache_read_input_tokens"}


def test_a_limit_of_cost_needs_no_set_up(serve: Serve, work: Path, env: dict[str, str]) -> None:
    server = serve(*TURNS, priced=True, catalogue=True)
    program = Program(work, {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url})
    ended = program("-p", "go", "--max-cost", "0.000001", "--output-format", "json", code=1)
    assert json.loads(ended.stdout)["is_error"]
    assert len(server.posts) == 1


def test_the_list_of_what_runs_tells_the_same(
    serve: Serve, work: Path, home: Path, env: dict[str, str]
) -> None:
    server = serve(*TURNS, {"text": "Again."}, priced=True, catalogue=True)
    env = {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
    program = Program(work, env)
    id_ = program("--bg", "go").stdout.split()[4]
    kept = folders({"HOLDFAST_HOME": str(home)})
    until(kept, id_, "done")
    (listed,) = json.loads(program("ps", "--all", "--json").stdout)
    assert isclose(listed["cost_usd"], server.cache.dollars)
    assert f"Turn done, {money(server.cache.dollars)}." in program("logs", id_).stdout
    before = server.cache.dollars
    told = json.loads(program("-r", id_, "-p", "again", "--output-format", "json").stdout)
    assert isclose(told["cost_usd"], server.cache.dollars - before)
    status = program("sessions", "report", id_).stdout
    assert f"{money(server.cache.dollars)} in all" in status
