"""The models and the server of a launch.

What is heavy (the SDK) is not imported here: the provider loads it when it is first asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from tui.agent.launch import PRACTICE, Launch
from tui.agent.model_link import ModelServer
from tui.core.clock import Clock
from tui.core.config import Config, model_of, profile_of
from tui.core.errors import UsageError
from tui.provider import catalogue, model_list
from tui.provider.base import ModelInfo, Provider
from tui.provider.prices import CacheLife
from tui.provider.retry import RetryControl, RetryProvider
from tui.settings.credentials import DEFAULT_SERVER, server_of

if TYPE_CHECKING:
    from tui.provider.message_batches import MessageBatches


def make_provider(launch: Launch, clock: Clock, control: RetryControl | None = None) -> Provider:
    """The model's side: the practice model, or the server behind retries, which `control` ends, and
    those of other profiles.

    Raises UsageError for a broken practice script.
    """
    if launch.others:
        from tui.provider.other_profiles import ByProfile  # noqa: PLC0415 - few name any

        control = control or RetryControl()
        others = {name: make_provider(one, clock, control) for name, one in launch.others.items()}
        return ByProfile(make_provider(launch.reached(others={}), clock, control), others)
    if launch.access.practice:
        from tui.provider.practice.provider import PracticeModel  # noqa: PLC0415 - one is used
        from tui.provider.practice.script import read_script  # noqa: PLC0415

        script = read_script(launch.access.script) if launch.access.script else None
        model: Provider = PracticeModel(
            clock=clock, script=script, delay_s=launch.access.practice_delay_s
        )
    else:
        from tui.provider.anthropic import AnthropicProvider  # noqa: PLC0415 - one is used

        model = AnthropicProvider(**_server_arguments(launch), clock=clock)
    if launch.access.around is not None:
        model = launch.access.around(model, clock)
    retry, most = launch.config.retry, launch.max_wait_s
    short = most is not None and most * 1000 < retry.max_delay_ms  # longer waits are the agent's
    return RetryProvider(
        model, retry=retry, clock=clock, max_wait_s=most if short else None, control=control
    )


def make_batches(launch: Launch, clock: Clock) -> MessageBatches:
    """The server of the launch, as one that takes message batches. Raises UsageError for a cloud,
    which takes none."""
    if launch.access.cloud is not None:
        raise UsageError(
            f"{launch.access.cloud.cloud.title} has no message batches.",
            hint="Leave out --batch-api, or use Anthropic's API.",
        )
    from tui.provider.anthropic.batches import AnthropicBatches  # noqa: PLC0415 - as above

    return AnthropicBatches(**_server_arguments(launch), clock=clock)


def _server_arguments(launch: Launch) -> dict[str, Any]:
    """Return the arguments for the server of a launch."""
    return {
        "api_key": launch.access.key,
        "profile": launch.access.sign_in.profile if launch.access.sign_in else None,
        "env_headers": not launch.access.foreign_server,
        "base_url": launch.base_url,
        "cloud": launch.access.cloud,
        "first_byte_timeout_s": launch.config.retry.first_byte_timeout_s,
        "stall_timeout_s": launch.config.retry.stall_timeout_s,
        "context_window": launch.config.context_window,
    }


def server_name(launch: Launch) -> str:
    """Return the name of the server, by which the thinking that it signed is recognized."""
    return PRACTICE if launch.access.practice else server_of(launch.base_url)


def is_first_party(launch: Launch) -> bool:
    """True if the server knows all that the API has, as its own servers do."""
    features = launch.config.api_features
    own = server_name(launch) == DEFAULT_SERVER or launch.access.cloud is not None
    return not launch.access.practice and (features == "all" or (features == "auto" and own))


def lacks_of(launch: Launch) -> frozenset[str]:
    """Return the features that are not asked of the server, by what is known of a cloud."""
    cloud = launch.access.cloud
    if cloud is None or launch.access.practice or launch.config.api_features == "all":
        return frozenset()
    return cloud.cloud.lacks


def cache_life(launch: Launch) -> CacheLife:
    """Return how long the server is to keep what a session sends."""
    if "cache_life" in lacks_of(launch):
        return "5m"
    wanted = launch.config.cache.ttl
    if wanted != "auto":
        return wanted
    return "1h" if is_first_party(launch) and not launch.one_turn else "5m"


def server_of_launch(launch: Launch) -> ModelServer:
    """Return the server of a launch, as an agent's requests see it."""
    cloud = None if launch.access.practice else launch.access.cloud
    return ModelServer(
        host=server_name(launch),
        first_party=is_first_party(launch),
        lacks=lacks_of(launch),
        cache_life=cache_life(launch),
        request_bytes=cloud.cloud.request_bytes if cloud else 0,
        settings=launch.config.provider,
    )


def other_servers(launch: Launch) -> dict[str, ModelServer]:
    """Return the servers of the other profiles that a launch may ask."""
    return {name: server_of_launch(one) for name, one in launch.others.items()}


def known_model(launch: Launch, name: str) -> ModelInfo:
    """Return what is known of a model before the server has been asked."""
    if (other := launch.at(name)) is not launch:
        return replace(known_model(other, model_of(name)), id=name)
    if launch.access.practice:
        from tui.provider.practice.provider import INFO  # noqa: PLC0415 - one is used

        return INFO
    info = catalogue.model_info(name)
    window = launch.config.context_window
    return replace(info, window=window, source="config") if window else info


def listed_model(launch: Launch, name: str) -> ModelInfo:
    """Return what the server reported of a model when it listed them last, else what is known.
    Blocks."""
    if (other := launch.at(name)) is not launch:
        return replace(listed_model(other, model_of(name)), id=name)
    known = known_model(launch, name)
    if launch.access.practice:
        return known
    listed = model_list.listed(launch.folders.cache, launch.base_url)
    entry = next((model for model in listed if model.get("id") == name), None)
    if entry is None:
        return known
    from tui.provider.anthropic import convert  # noqa: PLC0415 - as above

    info, window = convert.model_info(name, entry), launch.config.context_window
    return replace(info, window=window, source="config") if window else info


def asked_model(launch: Launch, name: str) -> ModelInfo | None:
    """The model that a command asks for; None where the server is not known to have it. A command
    chooses no account. Blocks."""
    if launch.access.practice or profile_of(name):
        return None
    whole, config = launch.whole_name(name), launch.config
    listed = model_list.listed(launch.folders.cache, launch.base_url)
    known = {str(model.get("id")) for model in listed}
    known |= {name for name in config.prices if not profile_of(name)}
    known |= {config.model, config.small_model, *config.fallback_models}
    usual = launch.access.cloud is not None or not launch.base_url
    known |= set(catalogue.names() if usual and not listed else ())
    return listed_model(launch, whole) if whole in known else None


def small_model_of(launch: Launch) -> ModelInfo | None:
    """Return the model that titles sessions and explores. A server of another kind has the default
    one only if it lists it."""
    if launch.access.practice:
        return None
    model = listed_model(launch, launch.config.small_model)
    chosen = launch.config.small_model != Config().small_model
    return model if chosen or is_first_party(launch) or model.source == "server" else None


def agent_model(launch: Launch, name: str) -> ModelInfo | None:
    """Return what is known of a model that a definition names. A server of another kind has it only
    if it lists it. A definition chooses no account."""
    if launch.access.practice or profile_of(name):
        return None
    model = listed_model(launch, launch.whole_name(name))
    return model if is_first_party(launch) or model.source == "server" else None


@asynccontextmanager
async def refreshed_models(launch: Launch, clock: Clock) -> AsyncGenerator[None]:
    """Ask for the list in the background meanwhile. What is not there by the end is given up."""
    task = asyncio.create_task(refresh_models(launch, clock), name="list of models")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def refresh_models(launch: Launch, clock: Clock) -> None:
    """Ask the server which models it has, unless it said so within a day. Never raises."""
    cache, url = launch.folders.cache, launch.base_url
    if (
        launch.access.practice
        or launch.access.cloud
        or not await asyncio.to_thread(model_list.is_due, cache, url, clock.now())
    ):
        return
    from tui.provider.anthropic import AnthropicProvider  # noqa: PLC0415 - as above

    server = AnthropicProvider(**_server_arguments(launch), clock=clock)
    try:
        if models := await server.list_models():
            await asyncio.to_thread(model_list.keep, cache, url, models, clock.now())
    finally:
        await server.aclose()


def with_whole_names(launch: Launch) -> Launch:
    """With the models that short names stand for (see `tui.provider.model_list`). Blocks."""
    config = launch.config
    named = (config.model, config.small_model, *config.fallback_models)
    model, small, *fallbacks = (launch.whole_name(name) for name in named)
    if (model, small, *fallbacks) == named:
        return launch
    changed = structs.replace(
        config, model=model, small_model=small, fallback_models=tuple(fallbacks)
    )
    return replace(launch, config=changed).reached(short_names=True)
