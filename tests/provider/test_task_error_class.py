"""A12 to A19: the class of a failed task, by structure first and by text where there is none."""

from __future__ import annotations

import socket
import subprocess
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.errors import CredentialsError, ErrorClass, ProviderError, ToolError
from tui.provider.task_error_class import TASK_CLASS, TaskClass, classify_error, classify_text


def _said(kind: TaskClass, *texts: str) -> list[tuple[str, TaskClass]]:
    return [(text, kind) for text in texts]


@pytest.mark.parametrize(
    ("text", "kind"),
    _said("rate_limit", "HTTP 429", "error=rate_limit_error", "Too Many Requests", "(429)", "429."),
)
def test_A12_rate_limit(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    _said(
        "context_overflow",
        "context_length_exceeded",
        "the token limit is 8192",
        "This model's maximum context length is 8192",
    ),
)
def test_A13_context_overflow(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    _said(
        "auth", "401 Unauthorized", "authentication_error", "Invalid x-api-key", "invalid API key"
    ),
)
def test_A14_auth(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"), _said("timeout", "ReadTimeout", "killed by SIGTERM", "The request timed out")
)
def test_A15_timeout(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    _said("network", "connect ECONNREFUSED ::1:80", "DNS lookup failed", "Network is unreachable"),
)
def test_A16_network(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == kind


@pytest.mark.parametrize(
    "text", ["", "Segmentation fault", "the key is invalid", "invalid argument\nno key", "exit 1"]
)
def test_A17_everything_else_is_unknown(text: str) -> None:
    assert classify_text(text) == "unknown"


@pytest.mark.parametrize(
    "text", ["14290 files", "4290", "x429", "req_429", "1,429 tokens", "0.429 s", "429,000", "4014"]
)
def test_A18_numbers_count_as_whole_words_only(text: str) -> None:
    assert classify_text(text) == "unknown"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("network timeout after 429", "rate_limit"),
        ("network timeout: token limit", "context_overflow"),
        ("network timeout: authentication", "auth"),
        ("network timeout", "timeout"),
    ],
)
def test_A18_the_first_rule_in_order_wins_in_any_case(text: str, kind: TaskClass) -> None:
    assert classify_text(text) == classify_text(text.upper()) == kind


@given(st.text())
def test_A18_any_text_has_a_class(text: str) -> None:
    assert classify_text(text) in get_args(TaskClass)


def test_A19_the_class_of_the_adapter_comes_before_any_text() -> None:
    misleading = "429 context_length 401 timeout network"
    for error_class in get_args(ErrorClass):
        if error_class != "unknown":
            error = ProviderError(error_class, misleading)
            assert classify_error(error) == TASK_CLASS[error_class]
    assert set(TASK_CLASS) == set(get_args(ErrorClass))


def test_A19_decision_29_maps_every_class_to_its_action() -> None:
    groups: dict[TaskClass, set[str]] = {}
    for error_class, kind in TASK_CLASS.items():
        groups.setdefault(kind, set()).add(error_class)
    assert groups == {
        "rate_limit": {"rate_limit", "overloaded"},
        "context_overflow": {"context_overflow", "payload_too_large"},
        "auth": {"auth", "billing", "not_found"},
        "timeout": {"timeout"},
        "network": {"network", "server", "stream_broken"},
        "unknown": {"invalid_request", "refusal", "unknown"},
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ProviderError("unknown", "timeout", status=429), "rate_limit"),
        (ProviderError("unknown", "timeout", status=401), "auth"),
        (ProviderError("unknown", "it timed out", status=418), "timeout"),
        (ProviderError("unknown", "?"), "unknown"),
        (CredentialsError("No key."), "auth"),
        (TimeoutError("429"), "timeout"),
        (subprocess.TimeoutExpired("x", 3), "timeout"),
        (ConnectionRefusedError(), "network"),
        (socket.gaierror(), "network"),
        (ToolError("Too many requests"), "rate_limit"),
        (ValueError("?"), "unknown"),
    ],
)
def test_A19_status_and_type_come_first_then_the_text(
    error: BaseException, kind: TaskClass
) -> None:
    assert classify_error(error) == kind
