"""The model that an agent asks, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.core.dataclass import dataclass, field, replace
from tui.provider.base import ModelInfo, Provider
from tui.provider.prices import CacheLife
from tui.provider.retry import RetryControl


@dataclass(slots=True)
class ModelLink:
    """The way to a model. All of it may change between two requests (/model, /login), so that
    nobody keeps a part of it."""

    provider: Provider
    """Answers the conversation; with fallbacks, another model can take over."""
    model: ModelInfo
    """Asked from the next request on."""
    fallbacks: Sequence[str] = ()
    """Models of the same provider to continue with, in this order."""
    small_model: ModelInfo | None = None
    """For titles and exams; None where there is none to ask, as with the practice model."""
    control: RetryControl = field(default_factory=RetryControl)
    """Ends the provider's waits."""
    max_wait_s: float | None = None
    """Bounds the agent's own waits for a server's limits; None is no bound."""
    server: str = ""
    """The host that is asked, whose signatures thinking bears; "" where nobody signs."""
    first_party: bool = False
    """True if it is the API's own, which knows what other servers do not."""
    lacks: frozenset[str] = frozenset()
    """Features that it is known not to have, though its models have them elsewhere."""
    cache_life: CacheLife = "5m"
    """The time for which the server is to keep what new frames begin."""
    find_model: Callable[[str], ModelInfo | None] = lambda _: None
    """Looks up a model by its name or short name, None where it can't be asked; blocks."""

    direct: Provider = field(init=False)
    """Answers small jobs: the same provider without fallbacks."""
    fallback_window: int | None = field(default=None, init=False)
    """Tokens that the model takes which answers in the place of `model`; None where none does."""

    def __post_init__(self) -> None:
        self.direct = self.provider

    @property
    def window(self) -> int:
        """Tokens that fit whichever model may answer."""
        return min(self.model.window, self.fallback_window or self.model.window)

    def for_sub_agent(self, model: ModelInfo, life: CacheLife) -> ModelLink:
        """The link of a sub-agent that asks `model` on the same server, which keeps what it sends
        for a `life` of its own."""
        return replace(self, provider=self.direct, model=model, cache_life=life)
