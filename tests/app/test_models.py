"""The models to choose from are those that the server lists; short names stand for the newest."""

from __future__ import annotations

from pathlib import Path

from tests.support.server import LoopbackServer
from tests.support.server_catalogue import listed
from tests.support.server_models import MODELS
from tui.app.options.arguments import ModelOptions, Options
from tui.app.program import Program
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.provider import model_list

NEWER = {**listed("claude-opus-5-5"), "id": "claude-opus-6", "created_at": "2026-12-01T00:00:00Z"}


def _program(tmp_path: Path, server: LoopbackServer | None = None, model: str = "opus") -> Program:
    if server is not None:
        folders().config.mkdir(parents=True, exist_ok=True)
        folders().config_file.write_text(f'base_url = "{server.url}"')
    program = Program(Options(cwd=tmp_path, models=ModelOptions(model=model)), None)
    program.launch = program.launch.with_key("k")
    return program


def test_a_short_name_is_resolved_at_once_and_asks_nobody(tmp_path: Path) -> None:
    program = _program(tmp_path)
    assert program.launch.model == "claude-opus-5-5"
    assert program.launch.config.model == "claude-opus-5-5"
    assert program.models()[0].name == "claude-opus-5-5"
    assert _program(tmp_path, model="claude-opus-4-8").launch.model == "claude-opus-4-8"


def test_short_names_count_wherever_a_model_is_named(tmp_path: Path) -> None:
    options = Options().having(cwd=tmp_path, model="sonnet", fallback_models=("haiku", "mine"))
    launch = Program(options, None).launch
    assert launch.model == "claude-sonnet-5-5"
    assert launch.config.fallback_models == ("claude-haiku-5-5", "mine")


async def test_the_server_says_which_models_there_are(tmp_path: Path) -> None:
    async with LoopbackServer({"catalogue": True}) as server:
        program = _program(tmp_path, server)
        await program.refresh_models()
        await program.refresh_models()
    assert [request.path for request in server.requests] == ["/v1/models"], "once a day"
    rows = {row.name: row for row in program.models()}
    assert set(MODELS) <= rows.keys()
    assert rows["claude-opus-5-5"].source == "server"
    assert rows["claude-opus-5-5"].window == 1_000_000
    assert rows["claude-opus-5-5"].price == "$4/$20"


async def test_a_newer_model_of_the_list_is_what_a_short_name_stands_for(tmp_path: Path) -> None:
    async with LoopbackServer({"models": {"claude-opus-6": NEWER}}) as server:
        program = _program(tmp_path, server)
        assert program.launch.model == "claude-opus-5-5", "nobody waits for the list"
        await program.refresh_models()
        assert program.whole_name("opus") == "claude-opus-6"
        assert _program(tmp_path, server).launch.model == "claude-opus-6"


def test_a_model_that_goes_soon_says_so(tmp_path: Path) -> None:
    now = SystemClock().now()
    program = _program(tmp_path)
    cache = program.launch.folders.cache
    goes = now.date().isoformat()
    model_list.keep(cache, "", [{"id": "claude-opus-5-5", "retires_at": goes}], now)
    program._listed = model_list.listed(cache, "")  # pyright: ignore[reportPrivateUsage]
    assert program.models()[0].retires == f"retires on {now.day} {now:%b}"
