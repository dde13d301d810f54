"""A search of the web in a session that is opened again: its card, one text, the pages it cites."""

from __future__ import annotations

from tests.support.server_search import call_block, citation, result_block
from tui.session.records import Record
from tui.ui.widgets.conversation.items import AssistantItem, NoticeItem, ToolItem
from tui.ui.widgets.record_items import items_of

PAGES = [
    {"url": "https://a.org/", "title": "A page"},
    {"url": "https://b.org/", "title": ""},
]


def test_the_card_has_the_pages_and_the_answer_its_sources() -> None:
    content = [
        {"type": "text", "text": "I look."},
        call_block("srvtoolu_1", "what is it"),
        result_block("srvtoolu_1", PAGES),
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "this", "citations": [citation(PAGES[0]), citation(PAGES[1])]},
        {"type": "text", "text": "."},
    ]
    first, card, text, cited = items_of([Record("assistant", "a", None, "", {"content": content})])
    assert isinstance(first, AssistantItem)
    assert first.text == "I look."
    assert isinstance(card, ToolItem)
    assert (card.label, card.state, card.summary) == ("what is it", "ok", "2 pages")
    assert card.preview == "A page · https://a.org/\nhttps://b.org/"
    assert isinstance(text, AssistantItem)
    assert text.text == "It is this."
    assert isinstance(cited, NoticeItem)
    assert cited.text == "Cites 2 pages"
    assert cited.detail == "A page · https://a.org/\nhttps://b.org/"


def test_a_search_without_a_result_was_interrupted() -> None:
    content = [call_block("srvtoolu_1", "what is it")]
    (card,) = items_of([Record("assistant", "a", None, "", {"content": content})])
    assert isinstance(card, ToolItem)
    assert card.state == "interrupted"
