"""The bills of all sessions: read fast, kept, and each counted once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import isclose
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tests.support.spent_session import HAIKU, OPUS, Told, said, spent_session, usage
from tui.agent.limits import session_cost
from tui.context.usage import index
from tui.context.usage.amounts import Amount, total_of
from tui.context.usage.index import BilledSession, bills_in, rows_in
from tui.core import two_processes
from tui.core.config import Price
from tui.core.paths import Folders, folders
from tui.session import copies
from tui.session.chain import all_linked
from tui.session.reader import read
from tui.session.records import Header, Record

ID = "0123456789ab"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[:-40],
    "nul": lambda data: data.replace(b"\n", b"\n\0\0\n", 3),
    "mark": lambda data: b"\xef\xbb\xbf" + data,
    "glued": lambda data: data.replace(b'}\n{"type":"assistant"', b'}{"type":"assistant"'),
    "cut": lambda data: data.replace(b"\n", b'\n{"type":"tool_result","content":"torn', 4),
    "copy": lambda data: data + data.splitlines(keepends=True)[-1],
    "headless": lambda data: data.split(b"\n", 1)[1],
    "bytes": lambda data: data.replace(b'"title":"', b'"title":"\xff\xfe'),
}


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path)})


def write(
    home: Folders, records: Sequence[Record], id_: str = ID, *, under: str = "w-1", call: str = ""
) -> Path:
    folder = home.sessions / under
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"20261121T090000Z-{id_}.jsonl"
    header = Header(id_, "2026-11-21T09:00:00.000Z", "/w", "holdfast 1", parent_call=call)
    lines = [header.to_line(), *(record.to_line() for record in records)]
    path.write_bytes(b"".join(all_linked(lines)))
    return path


def tokens(found: Sequence[BilledSession]) -> int:
    return sum(bill.usage.total for session in found for bill in session.bills)


def usd(found: Sequence[BilledSession]) -> float:
    bills = (bill for session in found for bill in session.bills)
    return total_of(Amount.of(bill, bill.price({})) for bill in bills).usd


WHOLE = session_cost(spent_session(), {}).session.usage.total


def test_bills_are_those_of_the_record(home: Folders) -> None:
    write(home, spent_session())
    (session,) = found = bills_in(home)
    assert tokens(found) == WHOLE
    assert session.about.title == "Scheduler at midnight"
    assert (session.about.state, session.about.cwd) == ("", "/w")
    assert [bill.purpose for bill in session.bills].count("sub-agents") == 1


def test_without_damage_only_lines_with_a_bill_are_decoded(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, spent_session())
    monkeypatch.setattr(index, "read", None)
    assert tokens(bills_in(home)) == WHOLE


def test_a_file_is_read_again_only_if_it_changed(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, spent_session())
    bills_in(home)
    with monkeypatch.context() as patch:
        patch.setattr(index, "describe", None)
        assert tokens(bills_in(home)) == WHOLE
    with path.open("ab") as file:
        more = Record("assistant", "z" * 20, None, "2026-11-21T10:00:00Z", {"usage": usage(7)})
        file.write(more.to_line())
    assert tokens(bills_in(home)) == WHOLE + 7
    path.unlink()
    assert bills_in(home) == []


@pytest.mark.parametrize("content", [None, b"no database"])
def test_the_index_may_be_deleted_or_broken(home: Folders, content: bytes | None) -> None:
    write(home, spent_session())
    bills_in(home)
    path = home.cache / "usage.sqlite3"
    path.unlink() if content is None else path.write_bytes(content)
    assert tokens(bills_in(home)) == WHOLE


def test_without_a_cache_folder_everything_is_read(home: Folders) -> None:
    write(home, spent_session())
    home.cache.touch()
    assert tokens(bills_in(home)) == WHOLE
    assert isclose(total_of(rows_of(home, "tool").values()).tokens, WHOLE, rel_tol=1e-6)


def rows_of(home: Folders, by: str) -> dict[str, Amount]:
    ((_, shares),) = rows_in(home, bills_in(home), {})
    return shares.rows(by)  # pyright: ignore[reportArgumentType] - one of them


class TestDamage:
    """Whatever the reader can save is counted, and the file is said to be damaged."""

    @pytest.mark.parametrize("kind", DAMAGE)
    def test_it_is_counted_as_the_reader_reads_it(self, home: Folders, kind: str) -> None:
        path = write(home, spent_session())
        path.write_bytes(DAMAGE[kind](path.read_bytes()))
        loaded = read(path)
        (session,) = found = bills_in(home)
        wanted = session_cost(loaded.records, {}).session.usage.total
        assert tokens(found) == wanted > 0
        assert session.about.state == "damaged"
        ((_, shares),) = rows_in(home, found, {})
        assert isclose(shares.total.tokens, wanted, rel_tol=1e-6)

    def test_what_is_no_session_is_said(self, home: Folders) -> None:
        path = write(home, [])
        path.write_bytes(b"")
        (session,) = bills_in(home)
        assert session.about.state == "empty"
        path.unlink()
        path.mkdir()
        assert bills_in(home) == [] or bills_in(home)[0].about.state == "unreadable"

    def test_a_pipe_stops_nothing(self, home: Folders) -> None:
        path = write(home, spent_session())
        os.mkfifo(path.with_name("20261121T090000Z-ffffffffffff.jsonl"))
        assert tokens(bills_in(home)) == WHOLE


class TestForks:
    """What a fork inherited was billed to the session that it came from."""

    def test_it_is_billed_once(self, home: Folders) -> None:
        path = write(home, spent_session())
        fork = copies.fork(read(path), folders=home, clock=FakeClock())
        told = Told(list(read(fork).records))
        told.answer(usage(1_000, 10), *said("More."), model=HAIKU)
        with fork.open("ab") as file:
            file.write(told.records[-1].to_line())
        found = bills_in(home)
        assert tokens(found) == WHOLE + 1_010
        shares = [one for _, one in rows_in(home, found, {})]
        assert isclose(sum(one.total.tokens for one in shares), WHOLE + 1_010, rel_tol=1e-6)

    def test_two_forks_of_a_deleted_session_are_billed_once(self, home: Folders) -> None:
        path = write(home, spent_session())
        for _ in range(2):
            copies.fork(read(path), folders=home, clock=FakeClock())
        path.unlink()
        assert tokens(bills_in(home)) == WHOLE


class TestSubAgents:
    def child(self, home: Folders, id_: str) -> None:
        told = Told()
        told.prompt("Look.")
        told.answer(usage(500, 10), *said("There."), model=HAIKU)
        family = f"w-1/20261121T090000Z-{ID}"
        write(home, told.records, id_, under=family, call="c4")

    def test_one_in_its_parents_record_is_counted_there(self, home: Folders) -> None:
        write(home, spent_session())
        self.child(home, "ab12")
        assert tokens(bills_in(home)) == WHOLE

    def test_one_whose_end_was_never_recorded_counts_by_itself(self, home: Folders) -> None:
        write(home, spent_session())
        self.child(home, "cd34")
        found = bills_in(home)
        assert tokens(found) == WHOLE + 510
        assert [bill.agent for bill in found[-1].bills] == ["Look."]

    def test_one_that_another_session_names_counts_by_itself(self, home: Folders) -> None:
        write(home, spent_session())
        self.child(home, "cd34")
        told = Told()
        told.prompt("Look.")
        told.tell("sub_agent", call_id="c1", session="cd34", state="done",
                  spent=[{"model": HAIKU, "requests": 1, "usage": usage(1, 1)}])  # fmt: skip
        write(home, told.records, "fedcba987654")
        assert tokens(bills_in(home)) == WHOLE + 510 + 2

    @pytest.mark.parametrize("gone", [True, False])
    def test_one_is_counted_in_a_fork_of_a_session_that_is_lost(
        self, home: Folders, gone: bool
    ) -> None:
        path = write(home, spent_session())
        copies.fork(read(path), folders=home, clock=FakeClock())
        self.child(home, "ab12")
        if gone:
            path.unlink()
        else:
            data = path.read_bytes()
            path.write_bytes(data[: data.index(b'{"type":"sub_agent"') + 50])
        assert tokens(bills_in(home)) == WHOLE


def test_shares_are_kept_until_prices_change(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, spent_session())
    found = bills_in(home)
    first = [one.to_bytes() for _, one in rows_in(home, found, {})]
    with monkeypatch.context() as patch:
        patch.setattr(index, "read", None)
        assert [one.to_bytes() for _, one in rows_in(home, found, {})] == first
    dear = {OPUS: Price(output=1000.0)}
    ((_, shares),) = rows_in(home, found, {"": dear})
    assert shares.total.usd > 1


def test_a_cost_is_that_of_the_session(home: Folders) -> None:
    records = [r for r in spent_session() if r.data.get("model") != "llama3"]
    write(home, records)
    assert isclose(usd(bills_in(home)), session_cost(records, {}).session.usd or 0.0, rel_tol=1e-6)


class TestManySessions:
    """With many, a second process reads every other one."""

    @pytest.fixture
    def found(self, home: Folders, monkeypatch: pytest.MonkeyPatch) -> list[BilledSession]:
        for n in range(5):
            write(home, spent_session(), f"{n:012x}", under=f"w-{n}")
        monkeypatch.setattr(index, "_ALONE", 0)
        monkeypatch.setattr(two_processes, "_can_fork", lambda: True)
        return bills_in(home)

    def test_the_figures_are_the_same(
        self, home: Folders, found: list[BilledSession], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert tokens(found) == 5 * WHOLE
        shares = [one.to_bytes() for _, one in rows_in(home, found, {})]
        (home.cache / "usage.sqlite3").unlink()
        monkeypatch.setattr(two_processes, "_can_fork", lambda: False)
        alone = bills_in(home)
        assert [one.bills for one in alone] == [one.bills for one in found]
        assert [one.to_bytes() for _, one in rows_in(home, alone, {})] == shares

    def test_they_are_kept(
        self, home: Folders, found: list[BilledSession], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = [one.to_bytes() for _, one in rows_in(home, found, {})]
        monkeypatch.setattr(index, "describe", None)
        monkeypatch.setattr(index, "read", None)
        again = bills_in(home)
        assert [one.to_bytes() for _, one in rows_in(home, again, {})] == first

    def test_half_a_surrogate_pair_stops_nothing(
        self, home: Folders, found: list[BilledSession]
    ) -> None:
        told = Told()
        told.prompt("Half \ud800 of it")
        path = {"path": "half \ud800"}
        told.answer(usage(10, 5), {"type": "tool_use", "id": "c", "name": "read", "input": path})
        write(home, told.records, "abcdefabcdef", under="w-9")
        some = bills_in(home)
        assert tokens(some) == tokens(found) + 15
        for _ in range(2):
            rows = [one.rows("file") for _, one in rows_in(home, some, {})]
            assert any("half \ud800" in one for one in rows)
