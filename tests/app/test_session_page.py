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
from tui.app.session_page import session_page
from tui.core.config import Price
from tui.session.reader import LoadedSession
from tui.session.records import Finding, Header, Record

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


def test_each_picture_is_named_and_has_a_table_behind_it() -> None:
    text = page_of(WorkedSession().made(8, 12))
    check(text)
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert len(figures) > 5
    assert text.count("<svg") == len(figures)
    for figure in figures:
        svg = ElementTree.fromstring(figure[figure.index("<svg") : figure.index("</svg>") + 6])
        assert svg.get("role") == "img"
        named = {one.get("id"): one.text for one in svg.iter() if one.tag in {"title", "desc"}}
        assert all(named[name] for name in (svg.get("aria-labelledby") or "").split())
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
    found = (Finding("B12", "line 3 (byte 99)", "skipped: no JSON"),)
    text = check(session_page(loaded([*records, other], found), {}).text).text
    assert "Damage in the file, line 3 (byte 99): skipped: no JSON" in text
    assert "on other branches aren't in this page" in text


def test_an_empty_session_is_a_page() -> None:
    text = check(page_of([])).text
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
