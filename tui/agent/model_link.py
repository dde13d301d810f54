"""The model that an agent asks, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tui.core.config import ProviderSettings, profile_of
from tui.core.dataclass import dataclass, field, replace
from tui.provider.base import ModelInfo, Provider
from tui.provider.prices import CacheLife
from tui.provider.retry import RetryControl


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server as an agent's requests see it."""

    host: str = ""
    """The name by which the thinking that it signed is recognized; "" where nobody signs."""
    first_party: bool = False
    """True if it is the API's own, which knows what other servers do not."""
    lacks: frozenset[str] = frozenset()
    """Features that it is known not to have, though its models have them elsewhere."""
    cache_life: CacheLife = "5m"
    """The time for which it is to keep what new frames begin."""
    request_bytes: int = 0
    """The size of the largest request that it takes; 0 for that of the API."""
    settings: ProviderSettings = ProviderSettings()
    """The person's own settings of it."""


@dataclass(slots=True)
class ModelLink:
    """The way to a model. All of it may change between two requests (/model, /login), so that
    nobody keeps a part of it."""

    provider: Provider
    """Answers the conversation; with fallbacks, another model can take over."""
    model: ModelInfo
    """Asked from the next request on."""
    fallbacks: Sequence[str] = ()
    """Models to continue with, in this order; those of other profiles by `@PROFILE/MODEL`."""
    small_model: ModelInfo | None = None
    """For titles and exams; None where there is none to ask, as with the practice model."""
    control: RetryControl = field(default_factory=RetryControl)
    """Ends the provider's waits."""
    max_wait_s: float | None = None
    """Bounds the agent's own waits for a server's limits; None is no bound."""
    own: ModelServer = ModelServer()
    """The server of the profile in use."""
    others: Mapping[str, ModelServer] = field(default_factory=dict[str, ModelServer])
    """The servers of the profiles that the fallbacks name."""
    find_model: Callable[[str], ModelInfo | None] = lambda _: None
    """Looks up a model by its name or short name, None where it can't be asked; blocks."""

    direct: Provider = field(init=False)
    """Answers small jobs: the same provider without fallbacks."""
    beside: str = field(default="", init=False)
    """The model that answered last beside the conversation; "" where none was asked yet."""
    fallback_window: int | None = field(default=None, init=False)
    """Tokens that the model takes which answers in the place of `model`; None where none does."""

    def __post_init__(self) -> None:
        self.direct = self.provider

    def at(self, model: str) -> ModelServer:
        """The server that a model is asked of."""
        return self.others.get(profile_of(model), self.own)

    @property
    def server(self) -> str:
        """The host of the model that is asked."""
        return self.at(self.model.id).host

    @property
    def first_party(self) -> bool:
        """True if the server of the model that is asked is the API's own."""
        return self.at(self.model.id).first_party

    @property
    def lacks(self) -> frozenset[str]:
        """Features that the server of the asked model lacks."""
        return self.at(self.model.id).lacks

    @property
    def cache_life(self) -> CacheLife:
        """The time for which the server of the model that is asked is to keep what it gets."""
        return self.at(self.model.id).cache_life

    @property
    def window(self) -> int:
        """Tokens that fit whichever model may answer."""
        return min(self.model.window, self.fallback_window or self.model.window)

    def for_sub_agent(self, model: ModelInfo, life: CacheLife) -> ModelLink:
        """The link of a sub-agent that asks `model` on the same servers, which keep what it sends
        for a `life` of its own."""
        own = replace(self.own, cache_life=life)
        others = {name: replace(one, cache_life=life) for name, one in self.others.items()}
        return replace(self, provider=self.direct, model=model, own=own, others=others)
