"""Decision 31: keys of known shapes are masked and counted; ordinary text is left alone."""

from __future__ import annotations

import json
import time

import pytest

from tui.core.redaction import MASK, child_environment, mask, mask_values

PEM = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    + "b3BlbnNzaC1rZXktdjEAAAAA\n" * 4
    + "-----END OPENSSH PRIVATE KEY-----"
)
KEYS = [
    "sk-ant-api03-" + "aB3_" * 10,
    "sk-proj-" + "aB3x" * 10,
    *[f"{kind}_{'a1B2' * 6}" for kind in ("sk_live", "sk_test", "rk_live", "rk_test")],
    *[f"gh{kind}_{'a1B2' * 9}" for kind in "pousr"],
    "github_pat_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 6,
    "xoxb-" + "12345-67890-abc",
    "xapp-1-" + "A1B2" * 6,
    "AKIA" + "ABCD1234" * 2,
    "ASIA" + "ABCD1234" * 2,
    "AIza" + "a1B2_" * 7,
    "npm_" + "a1B2" * 9,
    "hf_" + "a1B2" * 9,
    "pypi-AgE" + "a1B2_" * 11,
    "SG." + "a1B2_" * 5 + "." + "a1B2_" * 7,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ",
    PEM,
    PEM[:110],
]


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "HOLDFAST_PROFILE",
    ],
)
def test_what_pays_for_the_model_is_in_no_commands_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("ANTHROPIC_MODEL", "opus")
    assert name not in child_environment()
    assert child_environment()["ANTHROPIC_MODEL"] == "opus"


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_masked_wherever_they_stand(key: str) -> None:
    assert mask(f"a {key} b") == (f"a {MASK} b", 1)
    assert mask(f'KEY="{key}"')[1] == 1
    assert mask(f'"one line\\n{key} \\t{key}"')[1] == 2
    masked, count = mask_values({"a": [{"b": key}], key: 1, "n": None})
    assert count == 2
    assert key not in json.dumps(masked)
    assert masked["a"] == [{"b": MASK}]


@pytest.mark.parametrize(
    "plain",
    [
        "disk-encryption-configuration-of-2026",
        "sk-folding-cube-container-wrapper",
        "task-force-141-and-some-more-words",
        "AKIA is how they begin",
        "-----BEGIN PRIVATE KEY----- is how it begins, and the rest of the text goes on.",
        "eyJ.eyJ.x",
    ],
)
def test_ordinary_text_is_left_alone(plain: str) -> None:
    assert mask(plain) == (plain, 0)


@pytest.mark.parametrize(
    "unit",
    ["-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "sk-a-", "-eyJaaaaaaaaaa"],
)
def test_the_work_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(count: int) -> float:
        text, times = unit * count, list[float]()
        for _ in range(5):
            begun = time.process_time()
            mask(text)
            times.append(time.process_time() - begun)
        return min(times)

    assert seconds(6400) / seconds(400) < 16 * 4  # 256, if each part were compared with each


def test_a_text_without_any_key_takes_a_fraction_of_the_work() -> None:
    def seconds(text: str) -> float:
        times = list[float]()
        for _ in range(7):
            begun = time.process_time()
            mask(text)
            times.append(time.process_time() - begun)
        return min(times)

    plain = "def read(path: Path) -> str: return path.read_text()\n" * 2_000
    assert seconds(plain) / seconds(f"{plain} AKIA is how they begin") < 0.6


def test_private_keys_behind_one_another_are_counted_one_by_one() -> None:
    other = PEM.replace("OPENSSH", "RSA")
    assert mask(f"{PEM}{other}\n{PEM}") == (f"{MASK}{MASK}\n{MASK}", 3)
    begins = "-----BEGIN RSA PRIVATE KEY-----\n"
    assert mask(begins + PEM) == (begins + MASK, 1)  # the kind is another one
    assert mask(begins + other) == (MASK, 1)
