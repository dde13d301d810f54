"""The providers of several profiles as one: a model's name says which of them is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

from tui.core.config import model_of, profile_of, through
from tui.core.errors import CredentialsError, ProviderError
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Provider, Request, StreamPart
from tui.provider.provider_wrapper import ProviderWrapper


class ByProfile(ProviderWrapper):
    """Asks `@PROFILE/MODEL` through the profile's own provider, which only ever gets the model's
    name, and everything else through `own`. What comes back names the model as it was asked for.
    Implements `Provider`.

    A profile that can't sign in is an error of its request: the program runs without it, and the
    next fallback is asked.
    """

    def __init__(self, own: Provider, others: Mapping[str, Provider]) -> None:
        super().__init__(own)
        self._others = others

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        profile, provider = self._asked(request.model)
        if provider is self._provider:
            async with aclosing(provider.stream(request)) as parts:
                async for part in parts:
                    yield part
            return
        try:
            async with aclosing(provider.stream(_as_there(request))) as parts:
                async for part in parts:
                    yield _as_here(part, profile)
        except CredentialsError as error:
            raise ProviderError("auth", error.message, hint=error.hint) from error

    async def count_tokens(self, request: Request) -> int:
        _, provider = self._asked(request.model)
        return await provider.count_tokens(_as_there(request))

    async def model_info(self, model: str) -> ModelInfo:
        _, provider = self._asked(model)
        return replace(await provider.model_info(model_of(model)), id=model)

    async def aclose(self) -> None:
        for provider in (self._provider, *self._others.values()):
            await provider.aclose()

    def _asked(self, model: str) -> tuple[str, Provider]:
        profile = profile_of(model)
        return profile, self._others.get(profile, self._provider)


def _as_there(request: Request) -> Request:
    return replace(request, model=model_of(request.model))


def _as_here(part: StreamPart, profile: str) -> StreamPart:
    if isinstance(part, (AttemptStarted, Completed)):
        return replace(part, model=through(profile, part.model))
    return part
