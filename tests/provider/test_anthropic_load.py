"""Loading the SDK late, and asking for a model's limits."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.provider.conversation import MODEL, ask, provider_for
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.errors import CredentialsError, ProviderError
from tui.provider.anthropic import AnthropicProvider, client_factory
from tui.provider.base import ModelInfo

_ADAPTIVE = {"thinking": {"types": {"adaptive": {"supported": True}}}}


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_and_making_a_provider_loads_no_sdk() -> None:
    code = (
        "from tui.core.clock import SystemClock\n"
        "from tui.provider.anthropic import AnthropicProvider\n"
        "AnthropicProvider(api_key='k', clock=SystemClock())"
    )
    assert not {"anthropic", "httpx2", "pydantic"} & _modules_after(code)


def test_loading_restores_the_interpreter_and_keeps_the_loop_alive() -> None:
    code = (
        "import asyncio, gc, sys\n"
        "from tui.core.clock import SystemClock\n"
        "from tui.provider.anthropic import AnthropicProvider\n"
        "provider = AnthropicProvider(api_key='k', clock=SystemClock())\n"
        "async def main():\n"
        "    before = gc.isenabled(), sys.getswitchinterval()\n"
        "    turns, loading = 0, asyncio.create_task(provider.load())\n"
        "    while not loading.done():\n"
        "        await asyncio.sleep(0.001)\n"
        "        turns += 1\n"
        "    await loading\n"
        "    assert before == (gc.isenabled(), sys.getswitchinterval()), 'not restored'\n"
        "    assert turns > 20, turns\n"
        "asyncio.run(main())"
    )
    assert {"anthropic", "httpx2"} <= _modules_after(code)


async def test_loading_leaves_a_collector_that_was_off_off() -> None:
    gc.disable()
    try:
        await AnthropicProvider(api_key="k", clock=FakeClock()).load()
        assert not gc.isenabled()
    finally:
        gc.enable()


async def test_a_broken_sdk_is_said_to_be_one_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = AnthropicProvider(api_key="k", clock=FakeClock())
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "anthropic", None)
        with pytest.raises(ProviderError, match="Can't load"):
            await provider.load()
    await provider.load()


async def test_who_stops_waiting_for_the_sdk_stops_nobody_else() -> None:
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        first = asyncio.create_task(provider.load())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answer = await ask(provider)
        await provider.aclose()
    assert answer.content == [{"type": "text", "text": "ok"}]


async def test_what_errors_are_told_by_is_loaded_with_the_first_and_not_in_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []
    monkeypatch.setattr(
        "tui.provider.anthropic.client_factory._import_errors",
        lambda: threads.append(threading.current_thread()),
    )
    turns: Json = {"turns": [{"text": "ok"}, {"text": "no", "faults": [{"status": 429}]}]}
    async with LoopbackServer(turns) as server:
        provider = provider_for(server)
        await ask(provider)
        assert not threads
        with pytest.raises(ProviderError):
            await ask(provider)
        await provider.aclose()
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_loading_without_a_key_says_so() -> None:
    with pytest.raises(CredentialsError):
        await AnthropicProvider(api_key=None, clock=FakeClock()).load()


async def test_credentials_of_the_environment_are_not_sent_to_other_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server, api_key=None)
        await ask(provider)
        await provider.aclose()
    assert "environment" not in " ".join(server.posts[0].headers.values())


async def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        await ask(provider)
        await provider.aclose()
    assert len(server.posts) == 1


async def test_closing_does_not_wait_for_the_import() -> None:
    provider = AnthropicProvider(api_key="k", clock=FakeClock())
    loading = asyncio.create_task(provider.load())
    await asyncio.sleep(0)
    await provider.aclose()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await provider.aclose()


def test_the_key_for_the_api_itself_goes_into_one_header() -> None:
    assert client_factory.is_the_api(client_factory.api_url(""))
    assert client_factory.is_the_api(client_factory.api_url("https://api.anthropic.com/v1"))
    assert not client_factory.is_the_api("http://127.0.0.1:8080")
    with pytest.raises(CredentialsError):
        client_factory.usable_key(None, "https://api.anthropic.com")


async def _info(script: Json, model: str = MODEL, **options: Any) -> ModelInfo:
    async with LoopbackServer(script) as server:
        provider = provider_for(server, **options)
        info = await provider.model_info(model)
        await provider.aclose()
    return info


async def test_limits_come_from_the_server() -> None:
    facts = {"max_input_tokens": 1_000_000, "max_tokens": 96_000, "capabilities": _ADAPTIVE}
    info = await _info({"models": {"local-1": facts}}, "local-1")
    assert info == ModelInfo("local-1", 1_000_000, 96_000, "server", thinking_types=("adaptive",))


async def test_the_server_is_asked_once() -> None:
    async with LoopbackServer() as server:
        provider = provider_for(server)
        assert await provider.model_info(MODEL) == await provider.model_info(MODEL)
        await provider.aclose()
    assert [r.path for r in server.requests] == [f"/v1/models/{MODEL}"]


async def test_a_server_that_failed_is_asked_again_later() -> None:
    clock = FakeClock()
    async with LoopbackServer({"models": {}}) as server:
        provider = provider_for(server, clock=clock)
        assert (await provider.model_info(MODEL)).source == "catalogue"
        server.script.models = {MODEL: {"max_input_tokens": 500_000}}
        assert (await provider.model_info(MODEL)).source == "catalogue"
        clock.elapsed += 301
        assert (await provider.model_info(MODEL)).window == 500_000
        await provider.aclose()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "facts", [{}, {"max_input_tokens": None}, {"max_input_tokens": "many"}, {"max_input_tokens": 0}]
)
async def test_a_server_that_does_not_say_leaves_it_to_the_catalogue(facts: Json) -> None:
    assert (await _info({"models": {MODEL: facts}})).source == "catalogue"
    assert (await _info({"models": {"mine": facts}}, "mine")).source == "assumed"


async def test_a_configured_window_wins() -> None:
    info = await _info({}, context_window=32_768)
    assert (info.window, info.source, info.max_output) == (32_768, "config", 64_000)


async def test_asking_never_raises() -> None:
    no_key = AnthropicProvider(api_key=None, clock=FakeClock())
    nowhere = AnthropicProvider(api_key="k", base_url="http://127.0.0.1:1", clock=FakeClock())
    nonsense = AnthropicProvider(api_key="k", base_url="nonsense", clock=FakeClock())
    for provider in (no_key, nowhere, nonsense):
        assert (await provider.model_info(MODEL)).source == "catalogue"
        assert (await provider.model_info("")).source == "assumed"
        await provider.aclose()
