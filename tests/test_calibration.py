"""What is learned of a model: within reason whatever is reported, and kept between sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui import calibration
from tui.calibration import TRUST, Calibration, Sample
from tui.context.weigh import of_text
from tui.errors import StorageError

FIGURES = st.floats(0, 1e6)
FIRST = st.sampled_from([0.0, 1.0])
SAMPLES = st.builds(Sample, FIGURES, FIGURES, FIGURES, FIGURES, FIGURES, FIRST)
KEPT = json.loads(Calibration().encoded())


def taught(ratio: float, answers: int = 6) -> Calibration:
    made = Calibration()
    for n in range(1, answers + 1):
        made.learn(Sample(text=1000.0 * n, quarter=900.0 * n, frames=12), ratio * 1000 * n)
    return made


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.4, 2.0])
def test_a_ratio_is_learned_from_few_answers(ratio: float) -> None:
    estimate = taught(ratio).tokens(Sample(text=5000, quarter=4500, frames=12))
    assert abs(estimate / (ratio * 5000) - 1) < 0.03


def test_before_anything_is_learned_the_measure_stands() -> None:
    assert Calibration().tokens(Sample(text=100, wide=20, quarter=90, frames=4)) == 124


def test_what_the_server_adds_to_a_request_is_told_from_the_ratio() -> None:
    made = Calibration()
    made.learn(Sample(text=4000, quarter=3800, first=1), 4000 * 1.2 + 500)
    for n in range(1, 30):
        made.learn(Sample(text=300.0 * n, quarter=280.0 * n), 360.0 * n)
    assert abs(made.tokens(Sample(text=1000, quarter=950)) - 1200) < 30
    assert made.tokens(Sample(first=1)) > 100


def test_a_script_not_seen_yet_follows_what_was_learned_of_others() -> None:
    """Whoever counts bytes counts those of Chinese as well."""
    made = Calibration()
    for n in range(1, 7):  # dense text and words: told apart by their bytes
        made.learn(Sample(text=700.0 * n, quarter=300.0 * n), 300 * n)
        made.learn(Sample(text=1000.0 * n, quarter=1050.0 * n), 1050 * n)
    assert abs(made.tokens(Sample(wide=1050, quarter=750)) / 750 - 1) < 0.1


def test_text_that_repeats_itself_never_spoils_the_estimates() -> None:
    """Its two measures say the same, so nothing tells their weights apart."""
    made = Calibration()
    sizes = (6000, 700, 14_000, 2500, 400, 20_000, 9000, 1200)
    for n in range(400):
        text = f"step {n}: " + "some output of it, " * (sizes[n % 8] // 19)
        said = of_text(text)
        sample = Sample(said.text, 0.0, said.quarter, 8.0, 0.0, float(n == 0))
        reported = (len(text) + 90) / 4
        if n > 10:
            assert abs(made.tokens(sample) - reported) < 0.02 * reported + 15, n
        made.learn(sample, reported)


LESSONS = st.lists(st.tuples(SAMPLES, st.floats(0.05, 8.0)), max_size=30)
CONTENT = st.builds(Sample, FIGURES, FIGURES, FIGURES, FIGURES, st.just(0.0), st.just(0.0))


@given(LESSONS, CONTENT)
def test_no_estimate_is_more_than_three_times_off_what_it_was_before_learning(
    lessons: list[tuple[Sample, float]], content: Sample
) -> None:
    made = Calibration()
    for sample, ratio in lessons:
        made.learn(sample, ratio * Calibration().tokens(sample))
    plain, estimate = Calibration().tokens(content), made.tokens(content)
    assert plain / TRUST - 1e-6 <= estimate <= plain * TRUST + 1e-6
    gone = Sample(*(-figure for figure in content))
    assert made.tokens(gone) == -estimate
    assert TRUST == 3


def test_an_answer_far_off_teaches_nothing() -> None:
    made = taught(1.2)
    weights = made.weights
    for reported in (1e9, -1e9, float("nan"), float("inf")):
        made.learn(Sample(text=1000, quarter=1000), reported)
    made.learn(Sample(text=3), 9)
    assert made.weights == weights
    assert made.answers == 6


@given(st.lists(st.tuples(SAMPLES, st.floats(allow_nan=True, allow_infinity=True)), max_size=12))
def test_weights_stay_within_reason_and_are_kept(lessons: list[tuple[Sample, float]]) -> None:
    made = Calibration()
    for sample, reported in lessons:
        made.learn(sample, reported)
    text, wide, quarter, frames, thought, first = made.weights
    assert all(0 <= weight <= 8 for weight in (text, text + wide, quarter, frames))
    assert -1 <= thought <= 0
    assert 0 <= first <= 4000
    again = Calibration.decoded(made.encoded())
    assert again.answers == made.answers
    assert again.tokens(Sample(100, 10, 90, 4, 0, 1)) >= 0


DAMAGED = [
    b"",
    b"not json",
    b"[]",
    b"null",
    b"{}",
    json.dumps(KEPT | {"gram": [[1]]}).encode(),
    json.dumps(KEPT | {"gram": KEPT["gram"][:3]}).encode(),
    json.dumps(KEPT | {"moment": ["x"] * 6}).encode(),
    json.dumps(KEPT | {"moment": [float("nan")] * 6}).encode(),
    json.dumps(KEPT | {"answers": None}).encode(),
    json.dumps(KEPT | {"version": 1}).encode(),
    b"\xff\xfe",
    b"[" * 10_000,
]


@pytest.mark.parametrize("kept", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_as_none_and_said_in_the_log(
    tmp_path: Path, kept: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    calibration.save(tmp_path, "m", kept)
    assert calibration.load(tmp_path, "m") == Calibration()
    assert "is not used" in caplog.text


def test_no_file_is_nothing_learned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert calibration.load(tmp_path, "m") == Calibration()
    assert not caplog.records


def test_names_of_models_make_no_paths(tmp_path: Path) -> None:
    calibration.save(tmp_path, "../../etc/passwd", taught(1.2).encoded())
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "calibration"]
    assert calibration.load(tmp_path, "../../etc/passwd").answers == 6


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "calibration").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        calibration.save(tmp_path, "m", b"{}")
