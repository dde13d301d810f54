"""The schema: names, defaults and bounds that others may rely on."""

from __future__ import annotations

import msgspec
import pytest

from tui.core.config import Config, Retry

R39 = {
    "RetryMaxAttempts": ("retry", "max_attempts", 3),
    "RetryInitialDelayMs": ("retry", "initial_delay_ms", 1000),
    "RetryMaxDelayMs": ("retry", "max_delay_ms", 30_000),
    "PruneToolResultsAfterTurns": ("prune", "after_turns", 6),
    "PruneToolResultMinChars": ("prune", "min_chars", 1000),
    "MaxBootstrapCharsPerFile": ("bootstrap", "max_chars_per_file", 20_000),
    "MaxBootstrapTotalChars": ("bootstrap", "max_total_chars", 150_000),
    "EnablePreCompactionFlush": ("compaction", "memory_flush", True),
}


@pytest.mark.parametrize("name", R39)
def test_R39_every_named_key_is_optional_and_has_its_default(name: str) -> None:
    section, key, default = R39[name]
    value = getattr(getattr(msgspec.convert({}, Config), section), key)
    assert value == default
    assert type(value) is type(default)


@pytest.mark.parametrize("name", R39)
def test_R39_every_named_key_can_be_set(name: str) -> None:
    section, key, default = R39[name]
    other = not default if isinstance(default, bool) else default + 1
    config = msgspec.convert({section: {key: other}}, Config)
    assert getattr(getattr(config, section), key) == other


def test_the_defaults_are_those_of_the_interface() -> None:
    c = Config()
    assert (c.model, c.small_model) == ("claude-sonnet-5-5", "claude-haiku-5-5")
    assert (c.fallback_models, c.base_url, c.theme, c.context_window) == ((), "", "midnight", 0)
    assert (c.retry.first_byte_timeout_s, c.retry.stall_timeout_s) == (600, 120)
    assert (c.prune.when, c.prune.unit) == ("auto", "turns")
    assert (c.compaction.threshold, c.compaction.keep_messages) == (0.8, 6)
    assert (c.guard.default_bytes, c.guard.preview_bytes) == (50_000, 2048)
    assert (c.guard.clamp_bytes, c.guard.clamp_lines) == (51_200, 2000)
    assert (c.guard.token_share, c.guard.spill_max_bytes) == (0.3, 4_294_967_296)
    assert c.permissions.ceiling == "~"
    assert (c.batch.attempts, c.batch.compaction_basis) == (5, "cumulative")
    assert (c.prices, c.mcp, c.redact) == ({}, {}, "off")


def test_R19_bounds_of_the_retry_section() -> None:
    assert Retry(max_attempts=0).max_attempts == 0
    assert msgspec.convert({"initial_delay_ms": 1, "max_delay_ms": 1}, Retry).max_delay_ms == 1
    assert msgspec.convert({"max_delay_ms": 300_000}, Retry).max_delay_ms == 300_000


@pytest.mark.parametrize(
    "section",
    [
        {"max_attempts": -1},
        {"initial_delay_ms": 0},
        {"max_delay_ms": 300_001},
        {"max_delay_ms": 999},
        {"initial_delay_ms": 30_001},
    ],
)
def test_R19_what_is_out_of_bounds_is_refused(section: dict[str, int]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(section, Retry)


def test_R19_the_rule_over_two_keys_holds_for_values_made_in_code_too() -> None:
    with pytest.raises(ValueError, match="max_delay_ms"):
        Retry(initial_delay_ms=2000, max_delay_ms=1000)


@pytest.mark.parametrize(
    "url",
    ["", "https://host", "http://[::1]:8080", "http://u:p@127.0.0.1:80/v1?x=1", "http://h/[x]"],
)
def test_an_address_is_taken(url: str) -> None:
    assert msgspec.convert({"base_url": url}, Config).base_url == url


@pytest.mark.parametrize(
    "url",
    ["host", "ftp://host", "http://", "http://[::1", "http://]", "http://h:port", "http://a b"],
)
def test_what_cannot_be_an_address_is_refused(url: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"base_url": url}, Config)
