"""`holdfast usage`: where tokens and money went, as a person and a program get it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.context.usage.test_index import write
from tests.support.spent_session import OTHER, START, Told, said, spent_session, usage
from tui.agent.limits import session_cost
from tui.app.reports.usage_table import IN_ORDER, lines, plain, table_of
from tui.cli import main
from tui.context.usage import index
from tui.context.usage.attribution import GROUPINGS, attribute
from tui.context.usage.bills import bills_of
from tui.core.paths import folders
from tui.session.reader import LoadedSession, read
from tui.session.records import Record

_QUICK = ("day", "folder", "repository", "session", "purpose")
_PRICED = [record for record in spent_session() if record.data.get("model") != OTHER]
COST = session_cost(_PRICED, {}).session.usd or 0.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


def told(records: Sequence[Record] | None = None) -> Path:
    return write(folders(), spent_session() if records is None else records)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main.main(["usage", *words]) == 0
    out, err = capsys.readouterr()
    return out, err


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return json.loads(asked(capsys, *words, "--json")[0])


def test_days_are_told_with_their_cost(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    out, err = asked(capsys)
    assert "1 session\n" in out
    (row,) = [line for line in out.splitlines() if line.startswith("2026-11-21")]
    assert "$0.45 + ?" in row
    assert "░" in row
    assert "░░ from the cache" in out
    assert "No price is known for llama3" in err


@pytest.mark.parametrize("by", [*_QUICK, *GROUPINGS])
def test_each_grouping_adds_up_to_the_same(capsys: pytest.CaptureFixture[str], by: str) -> None:
    told()
    described = data(capsys, "--by", by)
    assert isclose(described["total"]["cost_usd"], COST, abs_tol=0.001)
    rows = described["rows"]
    assert isclose(sum(row["cost_usd"] or 0 for row in rows), COST, abs_tol=0.001)
    assert described["models_without_price"] == ["llama3"]


def test_each_row_has_the_promised_fields(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    for by in ("day", "model", "folder", "prompt", "tool", "file"):
        described = data(capsys, "--by", by)
        rows = described["rows"]
        assert all({"key", "requests", "tokens", "cost_usd"} <= row.keys() for row in rows)
        parts = sum(row["tokens"] for row in rows)
        assert isclose(parts, described["total"]["tokens"], abs_tol=9)
        assert described["total_usd"] == described["total"]["cost_usd"]
        counted = [row["requests"] for row in rows]
        if by in {"tool", "file"}:  # each request is shared among several
            assert {*counted} == {None}
        else:
            assert sum(counted) == sum(
                bill.requests for one in spent_session() for bill in bills_of(one)
            )


def test_a_restart_takes_its_requests_from_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    rows = {row["key"]: row["requests"] for row in data(capsys, "--by", "break")["rows"]}
    assert min(rows.values()) > 0
    assert sum(rows.values()) == sum(
        bill.requests for one in spent_session() for bill in bills_of(one)
    )


def test_folders_are_those_of_the_sessions(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    (row,) = data(capsys, "--by", "folder")["rows"]
    assert row["key"] == "/w"


def test_no_price_is_null_and_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    rows = {row["key"]: row for row in data(capsys, "--by", "model")["rows"]}
    assert rows["llama3"]["cost_usd"] is None
    assert rows["llama3"]["tokens_of"]["without_price"] == 30_004
    out, _ = asked(capsys, "--by", "model")
    (row,) = [line for line in out.splitlines() if line.startswith("llama3")]
    assert "price unknown" in row
    assert "$0" not in row


def test_prices_of_the_person_count(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    folders().config.mkdir(exist_ok=True)
    folders().config_file.write_text("[prices.llama3]\ninput = 10.0\noutput = 20.0\n")
    described = data(capsys, "--by", "tool")
    assert described["models_without_price"] == []
    assert isclose(described["total"]["cost_usd"], COST + 0.30008, abs_tol=0.001)


@pytest.mark.parametrize("by", ["profile", "model", *_QUICK, *GROUPINGS])
def test_each_profile_pays_its_own_price(
    home: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    file = folders({"HOLDFAST_HOME": str(home)}).config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '[provider]\nkind = "bedrock"\nregion = "eu-west-1"\n'
        '[profile.direct.provider]\nkind = "anthropic"\n'
    )
    records = list(_PRICED)
    half = len(records) // 2
    changed = Record("profile", "p", records[half - 1].id, records[half].time, {"name": "direct"})
    told([*records[:half], changed, *records[half:]])
    cost = (session_cost(part, {}).session.usd or 0.0 for part in (records[:half], records[half:]))
    regional, direct = cost
    assert isclose(
        data(capsys, "--by", by)["total"]["cost_usd"], 1.1 * regional + direct, abs_tol=1e-5
    )


@pytest.mark.parametrize("by", ["profile", "model", "day", "prompt", "kind", "agent"])
def test_a_sub_agent_that_went_on_through_another_profile_is_priced_by_both(
    home: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    file = folders({"HOLDFAST_HOME": str(home)}).config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[profile.dear.prices."*"]\ntimes = 3.0\n')
    model, one = "claude-opus-5-5", {"requests": 1, "usage": {"output_tokens": 100_000}}
    made = Told()
    made.prompt("Look.")
    spent = [{"model": model, **one}, {"model": f"@dear/{model}", **one}]
    made.tell("sub_agent", call_id="c", session="ab12", state="done", spent=spent)
    told(made.records)
    assert isclose(data(capsys, "--by", by)["total_usd"], 2.0 + 3 * 2.0)


def test_prompts_have_their_words_and_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    told()
    names = [row["name"] for row in data(capsys, "--by", "prompt")["rows"]]
    assert names[0] == "01234567 1. Find out why the scheduler's test fails at midnight"
    assert [name[9] for name in names] == ["1", "2", "3", "4", "5", "6"]


class TestSince:
    @pytest.fixture(autouse=True)
    def two_days(self) -> None:
        made = Told()
        made.prompt("Hello")
        made.answer(usage(100, 10), *said("Hello."))
        made.now = START + timedelta(days=1, hours=14, minutes=30)  # 23:30 in UTC
        made.answer(usage(200, 20), *said("Again."))
        told(made.records)

    def test_it_takes_whole_days(self, capsys: pytest.CaptureFixture[str]) -> None:
        for words in ((), ("--by", "tool")):
            described = data(capsys, "--since", "2026-11-22", *words)
            assert described["total"]["tokens_of"]["output"] == 20

    @pytest.mark.parametrize(
        ("zone", "day"), [("UTC", "22"), ("Asia/Kolkata", "23"), ("America/New_York", "22")]
    )
    def test_days_are_those_of_the_persons_zone(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        zone: str,
        day: str,
    ) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert data(capsys)["rows"][-1]["key"] == f"2026-11-{day}"
        late = data(capsys, "--since", f"2026-11-{day}", "--by", "kind")
        assert late["total"]["tokens_of"]["output"] == 20

    def test_sessions_of_other_days_are_not_read(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = Told()
        before.prompt("Earlier")
        before.answer(usage(300, 30), *said("Hello."), model=OTHER)
        write(folders(), before.records, "ba9876543210")
        opened: list[str] = []

        def noted(path: Path) -> LoadedSession:
            opened.append(path.stem[-12:])
            return read(path)

        monkeypatch.setattr(index, "read", noted)
        late = data(capsys, "--since", "2026-11-22", "--by", "tool")
        assert opened == ["0123456789ab"]
        assert late["total"]["tokens_of"]["output"] == 20
        assert late["models_without_price"] == ["llama3"]
        assert data(capsys, "--by", "tool")["total"]["tokens_of"]["output"] == 60
        assert sorted(opened) == ["0123456789ab", "ba9876543210"]

    def test_nothing_since_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert (
            "No session has used anything since 2027" in asked(capsys, "--since", "2027-01-01")[1]
        )


def test_damage_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    path = told()
    path.write_bytes(path.read_bytes()[:-40])
    _, err = asked(capsys)
    assert "1 damaged session: counted as far as can be read (first: 0123456789ab)." in err


def test_without_sessions_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = asked(capsys)
    assert (out, err) == ("", "No session has used anything so far.\n")
    assert data(capsys)["rows"] == []


@pytest.mark.parametrize("width", [*range(36, 130), 200, 300])
def test_every_line_fits(width: int) -> None:
    found = attribute(spent_session(), {}, cwd="/w")
    for by in GROUPINGS:
        names = {key: f"{key}. {title} 日本" for key, title in found.titles.items()}
        table = table_of(by, found.rows(by), names if by in IN_ORDER else {})
        told_lines = [plain(line) for line in lines(table, width, cell_len)]
        assert max(map(cell_len, told_lines)) <= width
        ends = {cell_len(line) for line in told_lines[:-1]}
        assert len(ends) == 1 or width < 60  # the last column is one
        assert all(plain(line).isprintable() for line in lines(table, width, cell_len))


def test_bars_can_do_without_block_characters() -> None:
    found = attribute(spent_session(), {})
    table = table_of("kind", found.rows("kind"))
    shown = "\n".join(plain(line) for line in lines(table, 80, ascii_only=True))
    assert shown.isascii()
    assert "+" in shown


def test_it_loads_neither_the_sdk_nor_the_screen(home: Path) -> None:
    told()
    code = (
        "import sys; from tui.cli.main import main; main(['usage']);"
        "print([m for m in ('anthropic', 'textual', 'rich', 'httpx', 'tui.agent.agent')"
        " if m in sys.modules], file=sys.stderr)"
    )
    env = os.environ | {"HOLDFAST_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
