"""The port for message batches: many requests sent at once, answered within a day at half price."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Final, Protocol

from tui.core.dataclass import dataclass
from tui.core.errors import ProviderError
from tui.provider.base import Completed, Provider, Request

REQUESTS_MAX: Final = 100_000
BYTES_MAX: Final = 256 * 1024**2
"""The limits of one batch."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch as the server describes it. `ended`: each of its requests has a result by now.
    `request_id` belongs to the request that asked for this description."""

    id: str
    created_at: datetime
    ended: bool
    waiting: int
    succeeded: int
    failed: int
    request_id: str | None = None

    @property
    def requests(self) -> int:
        return self.waiting + self.succeeded + self.failed


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of one request. An error that is `retryable` may not occur in another batch."""

    custom_id: str
    answer: Completed | ProviderError


class MessageBatches(Provider, Protocol):
    """A provider that takes batches, too. All methods raise ProviderError, or CredentialsError
    before anything is sent. They make one attempt each: the caller retries."""

    async def create(self, requests: Mapping[str, Request]) -> SentBatch:
        """Send requests by their custom ids. After an error without a status, or one of the
        server's, nobody knows if the batch was made."""
        ...

    async def describe(self, batch: str) -> SentBatch:
        """Describe the current state of a batch."""
        ...

    async def cancel(self, batch: str) -> None:
        """Cancel the requests of a batch that have not begun; it ends soon, and has results
        nevertheless."""
        ...

    async def made_since(self, moment: datetime) -> list[SentBatch]:
        """List the batches that were made since, the newest first."""
        ...

    def results(self, batch: str) -> AsyncGenerator[BatchResult]:
        """Yield the results of a batch that has ended, in any order."""
        ...
