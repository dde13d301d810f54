"""The report as a page: it loads and runs nothing, hides nothing, and leads to the record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.worked_session import WorkedSession
from tests.support.foreign import codex, pi
from tui.app.session_page import session_page
from tui.core.config import Price
from tui.session import importers
from tui.session.reader import LoadedSession
from tui.session.records import LEFT_OUT, Finding, Header, Record

VOID = {"meta", "br", "img", "link", "input"}
KEY = "sk-ant-api03-" + "a1B2" * 24
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "\"'><img src=x onerror=alert(1)>",
    "</pre></details></main><a href='javascript:alert(1)'>",
    "\x1b]0;x\x07\x00 \u202etxet\u2066 \ud800 \ufffe ]]> <!-- &amp;",
    "{title} %s {0}",
)


class Page(HTMLParser):
    """What a browser would see of a page; raises where elements don't end in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.attributes += given.items()
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


def loaded(records: Sequence[Record], findings: tuple[Finding, ...] = ()) -> LoadedSession:
    header = Header("01a1b2c3", "2026-11-21T09:00:00Z", "/w", "test")
    return LoadedSession(Path("x.jsonl"), header, tuple(records), findings)


def page_of(records: Sequence[Record], title: str = "Fix it", **prices: Price) -> str:
    return session_page(loaded(records), prices, title=title).text


def asked(made: WorkedSession, text: str) -> None:
    made.add("user", 1, content=[{"type": "text", "text": text}], text=text)


def check(text: str) -> Page:
    """The page is whole, loads nothing, runs nothing, and each link has its anchor."""
    page = Page(text)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & {*page.tags}
    names = {name for name, _ in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in {"src", "srcset"}]
    assert all(link.startswith("#") for link in page.links)
    assert len(page.ids) == len({*page.ids})
    assert {link[1:] for link in page.links} <= {*page.ids}
    assert "url(" not in text
    assert "default-src 'none'" in text
    return page


def test_a_command_that_was_over_with_its_call_is_not_left_in_the_background() -> None:
    """Every command has a record when it starts; only some go on behind their call."""
    session = WorkedSession()
    asked(session, "Run them")
    for id_, job in (("a", None), ("b", None), ("c", "job-1")):
        call = {"type": "tool_use", "id": id_, "name": "run_command", "input": {"command": "make"}}
        session.request(1, [call], 10)
        session.add("job", 0.1, call_id=id_, pid=1, command="make")
        session.add("tool_result", 1, call_id=id_, name="run_command", details={"job": job})
    assert (
        "1 command in the background without a recorded end."
        in check(page_of(session.records)).text
    )


def test_the_page_says_when_checks_turned_red_and_leads_there() -> None:
    session = WorkedSession()
    asked(session, "Test it")
    for n, code in enumerate((0, 1, 0)):
        given = {"command": "pytest -q"}
        call = {"type": "tool_use", "id": f"c{n}", "name": "run_command", "input": given}
        session.request(60, [call], 10)
        details = {"exit_code": code}
        session.add("tool_result", 1, call_id=f"c{n}", name="run_command", details=details)
    text = page_of(session.records)
    assert "Checks turned red 1 time. 09:02:03" in check(text).text


def test_each_picture_is_named_and_has_a_table_behind_it() -> None:
    text = page_of(WorkedSession().made(8, 12))
    check(text)
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) > 5
    assert text.count("<svg") == len(figures)
    for figure in figures:
        whole = ElementTree.fromstring(figure)
        named = {one.get("id"): "".join(one.itertext()) for one in whole.iter()}
        assert named[whole.get("aria-labelledby")]
        assert re.search("in all|left to right", named[whole.get("aria-describedby")])
        svg = ElementTree.fromstring(figure[figure.index("<svg") : figure.index("</svg>") + 6])
        assert svg.get("aria-hidden") == "true"
        links = [one for one in svg.iter() if one.tag == "a"]
        assert all(one.get("tabindex") == "-1" for one in links)
        behind = figure[figure.index("</svg>") :]
        assert "<details><summary>" in behind
        assert "<table>" in behind


def test_at_a_glance_says_what_was_asked_paid_and_went_wrong() -> None:
    made = WorkedSession()
    made.made(8, 12)
    asked(made, "one more")
    refused = {"call_id": "no1", "tool": "run_command", "subject": "rm -rf /", "answer": "no"}
    made.add("permission", 1, **refused, by="person")
    made.add("error", 1, message="it broke", hint="", **{"class": "server"})
    made.add("request", 1, n=999, model=made.model, messages=1)
    text = check(page_of(made.records)).text
    assert "Asked 9 prompts" in text
    assert "Answered 8" in text
    assert "1 without an answer to the end" in text
    assert "1 call refused." in text
    assert "Errors and interruptions: 1." in text
    assert "Open when the record ends: request" in text
    assert "The cache restarted 3 times" in text
    assert "Nothing was refused" not in text


def test_an_unknown_price_is_said_and_not_drawn_as_nothing() -> None:
    text = check(page_of(WorkedSession(model="nobody-knows-1").made(2, 6))).text
    assert "Cost unknown" in text or "+ ?" in text
    assert "What 13 answers of nobody-knows-1 cost isn't known." in text
    assert "No price is known for nobody-knows-1" in text


def test_damage_and_other_branches_are_said() -> None:
    records = WorkedSession().made(2, 4)
    last = records[-1]
    parent = records[8].id
    other = Record("user", "f" * 20, parent, last.time, {"content": [], "text": "again"})
    found = (
        Finding("B52", "line 3 (byte 99)", "skipped: not valid JSON"),
        Finding("B46", "line 7 (byte 300)", "2 lines joined to one record"),
    )
    text = check(session_page(loaded([*records, other], found), {}).text).text
    assert "Left out, line 3 of the file: not valid JSON." in text
    assert "Repaired for this page, line 7 of the file: 2 lines joined to one record." in text
    assert "on other branches aren't in this page" in text


def test_what_another_program_keeps_for_itself_is_no_damage() -> None:
    kept = Finding(LEFT_OUT, "line 1 (byte 0)", "left out: 3 records (file-history-snapshot)")
    text = check(session_page(loaded(WorkedSession().made(1, 2), (kept,)), {}).text).text
    assert "Left out, as no part of the conversation: 3 records (file-history-snapshot)." in text
    assert "Damage" not in text
    assert "Nothing was refused, undone, red, waiting or failed" in text


def test_a_link_to_a_step_says_when_it_was() -> None:
    text = page_of(WorkedSession().made(8, 12))
    concerns = text[text.index('class="concerns"') : text.index('id="time"')]
    links = re.findall(r'<a href="#(s\d+)">(.*?)</a>', concerns)
    assert links
    for anchor, name in links:
        assert re.search(f'<li id="{anchor}" class="\\w+"><time>{name}</time>', text)


def test_each_part_of_the_context_is_named_where_it_is_drawn_and_has_an_edge() -> None:
    text = page_of(WorkedSession().made(8, 12))
    named = re.findall(r'<text class="part"[^>]*>(\w+)</text>', text)
    assert {"tools", "messages", "results", "thinking"} <= {*named}
    assert text.count('<path class="between"') == 4


def test_a_name_of_wide_letters_is_cut_before_the_price() -> None:
    made = WorkedSession()
    asked(made, "日本語" * 30)
    made.request(3, [{"type": "text", "text": "ok"}], 10)
    bars = re.search(r'<svg[^>]*class="by-prompt".*?</svg>', page_of(made.records), re.DOTALL)
    assert bars
    name = re.search(r"<text[^>]*>(1\. 日本.*?)</text>", bars[0])
    assert name
    assert 10 < len(name[1]) < 28


def test_what_else_is_said_of_a_step_is_set_apart() -> None:
    text = check(page_of(WorkedSession().made(4, 6))).text
    assert re.search(r"Pause: [\w ]+ passed · [\w ]+ of it aren't drawn\.", text)
    assert re.search(r"messages summarized · [^$]+\$[\d.]+ · [\d.]+k → [\d.]+k tokens", text)


def test_an_imported_session_without_counts_is_not_free(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-02-10T22-00-00-codex-1.jsonl"
    path.write_bytes(codex(2).bytes())
    text = check(session_page(importers.load(path), {}).text).text
    assert "cost not known" in text
    assert "Cost unknown" in text
    assert "$0.00 in all" not in text
    assert "Cost $0.00" not in text
    assert "every price is known" not in text
    assert "The record has no count of tokens, so what was paid isn't known." in text
    assert "4 answers without a count of tokens: the input is estimated from the messages" in text
    assert "estimated: some weren't counted" in text
    assert "0 % from the cache" not in text


def test_an_imported_session_has_its_own_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(pi(2).bytes())
    text = check(session_page(importers.load(path), {}).text).text
    assert "without a count of tokens" not in text
    assert "Tokens 92 39 % of the input from the cache" in text


def test_failed_attempts_are_counted_and_what_they_may_have_cost_is_said() -> None:
    made = WorkedSession()
    asked(made, "go")
    made.add("request", 1, n=1, model=made.model, messages=1)
    wait = {"attempt": 1, "max_attempts": 8, "delay_s": 2.0, "reason": "It broke."}
    made.add("retry", 1, **wait, error_class="overloaded", status=529)
    made.add("retry", 3, **wait, error_class="stream_broken", received=800)
    usage = {"input_tokens": 12, "output_tokens": 40}
    made.add("assistant", 5, content=[], model=made.model, usage=usage)
    text = check(page_of(made.records)).text
    said = "2 attempts failed, and 1 of them may have been billed: no record says what that cost."
    assert f"Requests: {said}" in text
    assert "1 answer cut off or lost: what that cost is in no record" in text
    assert "every price is known" not in text


def test_attempts_that_the_server_refused_cost_nothing() -> None:
    made = WorkedSession()
    asked(made, "go")
    made.add("request", 1, n=1, model=made.model, messages=1)
    wait = {"attempt": 1, "max_attempts": 8, "delay_s": 2.0, "reason": "It broke."}
    made.add("retry", 1, **wait, error_class="overloaded", status=529)
    made.add("assistant", 5, content=[], model=made.model, usage={"input_tokens": 12})
    text = check(page_of(made.records)).text
    assert "1 attempt failed: refused by the server, so not billed." in text
    assert "cut off or lost" not in text


def test_an_empty_session_is_a_page() -> None:
    text = check(page_of([])).text
    assert "Nothing has happened in this session yet." in text
    assert "every price is known" not in text
    assert "No message is in it." in text
    assert "No request was answered" in text


def test_the_record_has_who_allowed_a_call_and_the_turn_of_a_check() -> None:
    text = check(page_of(WorkedSession().made(4, 12))).text
    assert "Allowed once by the person." in text
    assert "Turned red." in text
    assert "Files changed" in text


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60)))
def test_no_text_leaves_its_place(hostile: str) -> None:
    made = WorkedSession()
    made.made(1, 3)
    asked(made, hostile)
    call: dict[str, Any] = {"type": "tool_use", "id": "h1", "name": hostile, "input": {}}
    made.request(2, [call, {"type": "text", "text": hostile}], 10)
    made.add("intent", 0.1, call_id="h1", tool=hostile, effect="read", label=hostile)
    details = {"path": hostile, "after_sha256": "b"}
    content = [{"type": "text", "text": hostile}]
    made.add(
        "tool_result", 9, call_id="h1", name=hostile, content=content, is_error=True,
        seconds=9.0, details=details,
    )  # fmt: skip
    made.add("error", 1, message=hostile, hint=hostile, **{"class": hostile})
    text = page_of(made.records, title=hostile)
    page = check(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)
    if hostile.isalnum() and hostile.isascii():
        assert hostile in page.text


def test_secrets_are_masked_and_counted() -> None:
    made = WorkedSession()
    asked(made, f"use {KEY}")
    page = session_page(loaded(made.records), {})
    assert KEY not in page.text
    assert page.secrets > 0
    assert "removed from this page" in page.text


@pytest.mark.slow
def test_a_long_session_stays_small_and_says_what_is_left_out() -> None:
    made = WorkedSession(words=2)
    for n in range(300):
        asked(made, f"prompt {n} " + "<&" * 20_000)
        for _ in range(3):
            made.request(1, [{"type": "text", "text": "&" * 9_000}], 5)
    made.made(1, 900)
    text = page_of(made.records)
    page = check(text)
    assert len(text.encode()) < 3_000_000
    assert re.search(
        r"Prompts \d+ to \d+ are left out here: \d+ requests, \d+ prompts, \$", page.text
    )
    assert "more characters are left out here" in page.text
    assert re.search(r"Left out here: [\d,]+ calls?, [\d,]+ requests?", page.text)


def test_the_bills_of_a_long_session_are_shared_out_too() -> None:
    made = WorkedSession(words=2)
    made.made(1, 1_900)
    assert len(made.records) > 8_000
    text = check(page_of(made.records)).text
    assert "By model" in text
    assert "By tool" in text
    assert "By file" in text
