"""Which schedulers a run is given to: those that nobody else can use."""

from __future__ import annotations

import pytest

from tui.batch.cluster.engines.dask_address import check_address
from tui.batch.cluster.engines.port import EngineError


@pytest.mark.parametrize(
    "address",
    [
        "tls://10.0.0.1:8786",
        "tls://scheduler.example:8786",
        "tcp://127.0.0.1:8786",
        "tcp://127.3.2.1:8786",
        "tcp://[::1]:8786",
        "tcp://localhost:8786",
    ],
)
def test_an_encrypted_or_local_scheduler_is_used(address: str) -> None:
    check_address(address, insecure=False)


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.1:8786", "tcp://0.0.0.0:8786", "tcp://127.0.0.1.example:8786", "tcp://h:1"],
)
def test_one_that_others_could_use_needs_a_word(address: str) -> None:
    with pytest.raises(EngineError, match="runs programs on all its machines") as caught:
        check_address(address, insecure=False)
    assert "--insecure-cluster" in caught.value.hint
    check_address(address, insecure=True)


@pytest.mark.parametrize(
    "address",
    ["tls://", "tls://host", "tcp://:8786", "tcp://host:port", "ws://host:1", "tls://[::1"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(EngineError, match="isn't the address of a Dask scheduler"):
        check_address(address, insecure=True)
