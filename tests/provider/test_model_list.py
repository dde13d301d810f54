"""What a server lists is kept for a day; short names stand for the newest of a line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.provider.conversation import provider_for
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tests.support.server_models import MODELS
from tui.core.formatting import retirement
from tui.provider import model_list

URL = "http://127.0.0.1:1"


def _kept(cache: Path, *models: object) -> None:
    model_list.keep(cache, URL, models, FakeClock().now())


@pytest.mark.parametrize(
    ("short", "model"),
    [
        ("opus", "claude-opus-5-5"),
        ("sonnet", "claude-sonnet-5-5"),
        ("Haiku", "claude-haiku-5-5"),
        ("fable", "claude-fable-5-2"),
        ("claude-opus-4-8", "claude-opus-4-8"),
        ("practice", "practice"),
        ("mythos", "mythos"),
    ],
)
def test_short_names_without_a_list_are_the_newest_of_the_catalogue(
    tmp_path: Path, short: str, model: str
) -> None:
    assert model_list.resolve(short, tmp_path, URL) == model


async def test_a_server_says_which_is_the_newest(tmp_path: Path) -> None:
    async with LoopbackServer({"catalogue": True}) as server:
        provider = provider_for(server)
        listed = await provider.list_models()
        await provider.aclose()
    _kept(tmp_path, *listed)
    assert [model["id"] for model in model_list.listed(tmp_path, URL)] == list(MODELS)
    assert model_list.resolve("fable", tmp_path, URL) == "claude-fable-5-2"


def test_the_newest_is_the_one_released_last_that_is_not_retired(tmp_path: Path) -> None:
    new = {"id": "claude-opus-7", "line": "opus", "created_at": "2027-05-01T00:00:00Z"}
    old = {"id": "claude-opus-6", "line": "opus", "created_at": "2027-01-01T00:00:00Z"}
    gone = {**new, "id": "claude-opus-8", "created_at": "2028", "lifecycle": "retired"}
    none = {**new, "id": "claude-opus-9", "created_at": "2029", "line": None}
    _kept(tmp_path, old, gone, none, new)
    assert model_list.resolve("opus", tmp_path, URL) == "claude-opus-7"
    assert model_list.resolve("sonnet", tmp_path, URL) == "claude-sonnet-5-5"
    assert model_list.resolve("opus", tmp_path, "http://other") == "claude-opus-5-5"


def test_a_list_lasts_a_day(tmp_path: Path) -> None:
    clock = FakeClock()
    assert model_list.is_due(tmp_path, URL, clock.now())
    _kept(tmp_path, {"id": "m"})
    assert not model_list.is_due(tmp_path, URL, clock.now() + timedelta(hours=23))
    assert model_list.is_due(tmp_path, URL, clock.now() + timedelta(hours=24))
    assert model_list.is_due(tmp_path, URL, clock.now() - timedelta(hours=1))


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"\xff", b'{"models": 3, "at": 4}', b'{"models": [1, {"id": []}]}']
)
def test_a_damaged_list_is_none(tmp_path: Path, data: bytes) -> None:
    _kept(tmp_path)
    (file,) = (tmp_path / "models").iterdir()
    file.write_bytes(data)
    assert model_list.is_due(tmp_path, URL, FakeClock().now())
    assert model_list.resolve("opus", tmp_path, URL) == "claude-opus-5-5"


def test_a_list_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    _kept(tmp_path, {"id": "m"})
    assert model_list.listed(tmp_path, URL) == []


@pytest.mark.parametrize("script", [{"keys": ["another"]}, {"models": {}}])
async def test_a_server_that_lists_none_gives_none(script: dict[str, object]) -> None:
    async with LoopbackServer(script) as server:
        provider = provider_for(server)
        assert await provider.list_models() == []
        await provider.aclose()
    nowhere = provider_for(server)
    assert await nowhere.list_models() == []
    await nowhere.aclose()


def test_a_retirement_is_told_two_months_before() -> None:
    now = FakeClock().now()
    day = (now + timedelta(days=8)).date()
    assert retirement(day.isoformat(), now) == f"retires on {day.day} {day:%b}"
    assert retirement(f"{day}T00:00:00Z", now) == f"retires on {day.day} {day:%b}"
    assert retirement((now + timedelta(days=61)).isoformat(), now) == ""
    assert retirement((now - timedelta(days=2)).isoformat(), now).startswith("was to retire on")
    assert retirement("", now) == retirement("soon", now) == ""
