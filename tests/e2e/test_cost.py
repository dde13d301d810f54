"""What a conversation costs, as the program tells it: the server's own sum, without any set-up."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Serve
from tests.support.program import Program

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
