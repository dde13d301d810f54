"""One session with everything that is paid for: each place that tells its cost tells the same."""

from __future__ import annotations

import json
import re
import time
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from tests.context.usage.test_index import write
from tests.support.clock import FakeClock
from tests.support.spent_session import HAIKU, OPUS, Told, call, said, usage
from tui.agent.limits import session_cost
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.session_page import session_page
from tui.app.session_report import session_report
from tui.cli import main
from tui.context.spans import spans_of
from tui.context.timeline.fold import SessionTimeline
from tui.context.usage.attribution import GROUPINGS, LiveAttribution, attribute
from tui.core.formatting import money
from tui.core.paths import folders
from tui.session.reader import read
from tui.session.records import COSTLY, SUB_AGENT, Record
from tui.session.session import Session

_QUICK = ("day", "model", "repository", "session", "purpose", "profile")


def everything() -> list[Record]:
    """A session with each type of record that has a bill, and a change of profile in it."""
    told = Told()
    told.prompt("Make the tests pass")
    told.answer(usage(12, 420, 9_000), call("c1", "task", agent="explore", description="look"))
    spent = [{"model": HAIKU, "requests": 2, "usage": usage(900, 1_200, 22_000, 90_000)}]
    told.tell("sub_agent", call_id="c1", session="ab12", agent="explore", description="look",
              state="done", spent=spent)  # fmt: skip
    told.result("c1", "task", "Two places.\n" * 12)
    told.tell("profile", name="work", before="default")
    used: dict[str, Any] = {"model": OPUS, "usage": usage(3_000, 700, 11_000, 52_000)}
    told.tell("side_question", question="Why?", answer="So.", seconds=2.0, outcome="answered",
              cost_usd=9.0, server="s", n=1, **used)  # fmt: skip
    told.answer(usage(9, 180, 700, 23_560), *said("Done."))
    told.tell("goal", state="checked", goal="pass", round=1, why="not yet",
              spent_usd=9.0, **{**used, "model": HAIKU})  # fmt: skip
    told.tell("goal", state="continued", goal="pass", round=2, spent_usd=9.0)
    told.tell("user", content=said("Go on"), text="Go on", by="goal")
    told.answer(usage(9, 80, 900, 26_000), *said("Now it is."), batch="batch_1")
    told.tell("goal", state="met", goal="pass", round=2, **{**used, "model": HAIKU})
    for type_ in ("title", "memory", "unused", "exam", "compaction", "cache_warmed"):
        told.tell(type_, title="Tests", summary="So far", cost_usd=9.0, seconds=1.0, **used)
    told.prompt("And now?")
    told.answer(usage(9, 300, 25_300), *said("It passes."))
    assert {record.type for record in told.records} >= COSTLY
    assert SUB_AGENT in {record.type for record in told.records}
    return told.records


COST = session_cost(everything(), {}).session.usd or 0.0


def same(usd: float | None) -> bool:
    return usd is not None and isclose(usd, COST, rel_tol=1e-9)


def test_it_is_the_sum_of_all_bills() -> None:
    alone = [session_cost([record], {}).session.usd or 0.0 for record in everything()]
    assert isclose(sum(alone), COST)
    assert len([usd for usd in alone if usd]) == 14


def test_the_figures_that_are_made_of_records() -> None:
    records = everything()
    timeline = SessionTimeline({}, "/w")
    timeline.extend(records)
    assert same(timeline.usd)
    steps = (step.usd or 0.0 for step in timeline.steps if step.kind != "break")
    assert same(sum(steps))
    shares = attribute(records, {}, cwd="/w")
    for by in GROUPINGS:
        assert same(sum(one.usd for one in shares.rows(by).values())), by
    paid = (one.attributes.get("holdfast.cost_usd", 0.0) for one in spans_of("5e55", records, {}))
    assert same(sum(one for one in paid if isinstance(one, float)))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return write(folders(), everything())


@pytest.mark.parametrize("by", [*_QUICK, *GROUPINGS])
def test_usage_by(session: Path, capsys: pytest.CaptureFixture[str], by: str) -> None:
    assert main.main(["usage", "--by", by, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert isclose(told["total"]["cost_usd"], COST, abs_tol=1e-5)
    assert isclose(sum(row["cost_usd"] for row in told["rows"]), COST, abs_tol=1e-4)
    if by == "profile":
        assert {row["key"] for row in told["rows"]} == {"default", "work"}


def test_reports_and_pages(session: Path) -> None:
    loaded = read(session)
    whole = f"{money(COST)} in all"
    assert whole in session_report(loaded, {}).text
    page = session_page(loaded, {}).text
    assert whole in page
    # what the page says of each prompt adds up to it, to a cent each
    prompts = re.findall(r"steps? · \$([0-9.]+)", page)
    assert prompts
    assert abs(sum(map(float, prompts)) - COST) < 0.01 * len(prompts)


def configure(text: str) -> None:
    file = folders().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


TWICE = '[profile.work.prices."*"]\ntimes = 2.0\n'
"""Settings with which one of the session's two profiles pays twice the price."""


def shares_of(session: Path) -> tuple[float, float]:
    """What each of its two profiles has paid at the usual price."""
    usd = {"": 0.0, "work": 0.0}
    for record in read(session).records:
        usd[record.payer] += session_cost([record], {}).session.usd or 0.0
    assert all(usd.values())
    return usd[""], usd["work"]


@pytest.mark.parametrize("now", ["default", "work"])
def test_each_request_has_the_price_of_the_profile_that_paid_it(
    session: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    now: str,
) -> None:
    configure(f'default_profile = "{now}"\n{TWICE}' if now != "default" else TWICE)
    monkeypatch.chdir(tmp_path)
    usual, twice = shares_of(session)
    sum_, id_ = usual + 2 * twice, session.stem.rpartition("-")[2]
    assert main.main(["sessions", "timeline", id_, "--json"]) == 0
    assert isclose(json.loads(capsys.readouterr().out)["cost_usd"], sum_, abs_tol=1e-5)
    assert main.main(["sessions", "tree", id_, "--json"]) == 0
    (branch,) = json.loads(capsys.readouterr().out)["branches"]
    assert isclose(branch["cost_usd"], sum_, abs_tol=1e-5)
    for form in ("md", "html"):
        out = tmp_path / f"page.{form}"
        assert main.main(["sessions", "report", id_, "--out", str(out)]) == 0
        assert f"{money(sum_)} in all" in out.read_text(), form
    capsys.readouterr()
    spans = tmp_path / "spans.jsonl"
    assert main.main(["sessions", "export", id_, "--format", "otlp", "--out", str(spans)]) == 0
    costs = re.findall(r'"holdfast.cost_usd","value":\{"doubleValue":([^}]+)\}', spans.read_text())
    assert isclose(sum(map(float, costs)), sum_, abs_tol=1e-5)
    capsys.readouterr()
    for by in ("profile", "model", "tool"):
        assert main.main(["usage", "--by", by, "--json"]) == 0
        total = json.loads(capsys.readouterr().out)["total"]["cost_usd"]
        assert isclose(total, sum_, abs_tol=1e-5), by
    prices = launch_config.prepare(Options(cwd=tmp_path)).config.prices
    opened = Session.of(read(session), clock=FakeClock())
    assert isclose(session_cost(opened.records, prices).session.usd or 0.0, sum_)
    live = LiveAttribution(prices, cwd="/w")
    shares = live.follow(opened.records)
    assert isclose(sum(one.usd for one in shares.rows("model").values()), sum_)


def test_a_session_is_sent_to_the_collector_of_its_own_profile(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(
        '[otel]\nenabled = true\nendpoint = "http://home.example"\n'
        "[profile.work.otel]\nenabled = false\n"
    )
    id_ = session.stem.rpartition("-")[2]
    assert main.main(["sessions", "send", id_]) != 0
    assert "No collector is switched on" in capsys.readouterr().err


def test_a_profile_that_is_gone_has_paid_the_usual_price(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", TWICE.replace("work", "other")):
        configure(text)
        words = ["sessions", "timeline", session.stem.rpartition("-")[2], "--json"]
        assert main.main(words) == 0
        assert isclose(json.loads(capsys.readouterr().out)["cost_usd"], COST, abs_tol=1e-5)


def test_the_morning(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", "--format", "json", "--since", "2026-11-20"]) == 0
    (night,) = json.loads(capsys.readouterr().out)["sessions"]
    for money_by in ("money", "money_by_profile"):
        told = [one["cost_usd"] for one in night[money_by].values()]
        assert len(told) == 2
        assert isclose(sum(told), COST, abs_tol=1e-5)
