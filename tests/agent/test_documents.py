"""PDFs as documents: where the model and its server take them, and text everywhere else."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_server_features import bodies, talking, turn
from tests.support.server_documents import document_violations
from tests.support.server_script import Json
from tests.tools.pdf_files import numbered, pdf, texts
from tui.context.rules.media import media_in
from tui.core import facts
from tui.core.documents import document_block, page_count
from tui.core.facts import Fact
from tui.core.messages import Block, text_of
from tui.core.redaction import mask_values
from tui.tokens import estimate
from tui.ui.screens.context_item import shown

SMALL = "claude-haiku-4-5"


def reading(path: str = "book.pdf", **arguments: Any) -> Json:
    return {"tools": [{"name": "read_file", "input": {"path": path, **arguments}}]}


def documents(body: Json) -> list[Block]:
    return [block for m in body["messages"] for _, block in media_in(m["content"], "")]


def results(body: Json) -> list[str]:
    """The texts of the results in a request."""
    blocks = [b for m in body["messages"] for b in m["content"] if b["type"] == "tool_result"]
    return [text_of(block["content"]) for block in blocks]


def pages(block: Block) -> list[str]:
    return texts(base64.b64decode(block["source"]["data"]))


def is_done(found: list[Fact]) -> bool:
    last = found[-1]
    return isinstance(last, facts.TurnFinished) and last.outcome == "done"


async def test_the_pages_are_sent_as_a_document_and_stay(tmp_path: Path) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(45), ""))
    turns = [reading(), reading(pages="41-60"), {"text": "Read."}, {"text": "Again."}]
    async with talking(tmp_path, turns=turns) as (agent, server):
        assert is_done(await turn(agent, "one"))
        first, second = documents(bodies(server)[-1])
        assert first["title"] == "book.pdf, pages 1-20 of 46"
        assert pages(first) == list(numbered(20))
        assert pages(second) == [*[*numbered(45)][40:], ""]
        assert results(bodies(server)[-1]) == [
            "[pages 1-20 of 46, as a document; continue with pages=21-40]",
            "[pages 41-46 of 46, as a document]",
        ]
        assert is_done(await turn(agent, "two"))
        assert documents(bodies(server)[-1]) == [first, second]
        assert len(server.posts) == 4
        assert not [r for r in agent.session.records if r.type == "break"]


@pytest.mark.parametrize("parts", [{"first_party": False}, {"model": "claude-mythos-preview"}])
async def test_elsewhere_their_text_is_sent(tmp_path: Path, parts: dict[str, Any]) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(3)))
    turns = [reading(), {"text": "Read."}]
    script: dict[str, Any] = {"turns": turns, "catalogue": "model" not in parts, **parts}
    async with talking(tmp_path, **script) as (agent, server):
        assert is_done(await turn(agent, "one"))
        assert documents(bodies(server)[-1]) == []
        assert results(bodies(server)[-1])[0].startswith("--- page 1 of 3 ---\npage 1 line 1\n")


async def test_a_server_that_refuses_documents_gets_none_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(3)))
    turns = [reading(), reading(), {"text": "Read."}]
    async with talking(tmp_path, turns=turns, lacks=["documents"]) as (agent, server):
        found = await turn(agent, "one")
        assert is_done(found)
        notes = [event.text for event in found if isinstance(event, facts.Notice)]
        assert notes == [
            "The server doesn't support PDF documents. Sending the request again without that."
        ]
        refused = [bool(documents(body)) for body in bodies(server)]
        assert refused == [False, True, False, False]
        gone, text = results(bodies(server)[-1])
        assert gone.endswith(
            "[document left out: the server takes no documents. Read the file again to get its "
            "text.]"
        )
        assert text.startswith("--- page 1 of 3 ---\n")


async def test_a_document_that_a_server_cannot_read_does_not_stop_the_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(3)))
    message = "messages.1.content.0.document.source.base64.data: The PDF specified was not valid."
    fault = {"status": 400, "type": "invalid_request_error", "message": message}
    turns = [reading(), {"text": "Read.", "faults": [fault]}]
    async with talking(tmp_path, turns=turns) as (agent, server):
        assert is_done(await turn(agent, "one"))
        assert [len(documents(body)) for body in bodies(server)] == [0, 1, 0]


LEFT_OUT = (
    "4 documents, the oldest, left out: claude-haiku-4-5 accepts at most 100 images and pages per "
    "request."
)


async def test_a_small_window_takes_fewer_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "PAGE_TOKENS", 100)  # pages with few words
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(45)))
    every = [reading(pages="1-")["tools"][0] for _ in range(11)]
    turns = [{"tools": every}, {"text": "Read."}]
    async with talking(tmp_path, model=SMALL, turns=turns) as (agent, server):
        found = await turn(agent, "one")
        assert is_done(found)
        sent = documents(bodies(server)[-1])
        assert {block["title"] for block in sent} == {"book.pdf, pages 1-10 of 45"}
        assert len(sent) == 7, "of 100 pages three quarters at most"
        notes = [event.text for event in found if isinstance(event, facts.Notice)]
        assert [note for note in notes if "left out" in note] == [LEFT_OUT]


async def test_an_encrypted_one_is_sent_without_its_encryption(tmp_path: Path) -> None:
    def lock(user: str) -> bytes:
        return pdf("secret", change=lambda w: w.encrypt(user, "owner", algorithm="RC4-128"))

    (tmp_path / "open.pdf").write_bytes(lock(""))
    (tmp_path / "locked.pdf").write_bytes(lock("open sesame"))
    turns = [reading("open.pdf"), reading("locked.pdf"), {"text": "Read."}]
    async with talking(tmp_path, turns=turns) as (agent, server):
        assert is_done(await turn(agent, "one"))
        (sent,) = documents(bodies(server)[-1])
        assert pages(sent) == ["secret"]
        assert "protected with a password" in results(bodies(server)[-1])[-1]


async def test_documents_are_weighed_by_their_pages(tmp_path: Path) -> None:
    (tmp_path / "book.pdf").write_bytes(pdf(*numbered(20)))
    async with talking(tmp_path, turns=[reading(), {"text": "Read."}]) as (agent, _server):
        await turn(agent, "one")
        (item,) = [item for item in agent.context.ledger.items() if item.kind == "result"]
        assert 30_000 < item.tokens < 90_000


BROKEN = base64.b64encode(b"%PDF-1.7 cut off").decode()
LOCKED = base64.b64encode(
    pdf("x", change=lambda w: w.encrypt("a", "b", algorithm="RC4-128"))
).decode()
LONG = base64.b64encode(pdf(*[""] * 101)).decode()


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (BROKEN, "The PDF specified was not valid."),
        (LOCKED, "The PDF is password protected."),
        (LONG, "A maximum of 100 PDF pages may be provided."),
    ],
    ids=["broken", "locked", "long"],
)
def test_the_strict_server_knows_the_rules_of_documents(data: str, refusal: str) -> None:
    document = document_block("a.pdf", "page 1 of 1", data)
    body = {"messages": [{"role": "user", "content": [document]}]}
    (found,) = document_violations(body, 200_000)
    assert found.endswith(refusal)


async def test_its_bytes_are_shown_nowhere_and_masked_as_no_key(tmp_path: Path) -> None:
    document = document_block("a.pdf", "pages 1-2 of 9", base64.b64encode(pdf("x", "y")).decode())
    assert mask_values({"content": [document]}) == ({"content": [document]}, 0)
    (text,) = shown([document]).splitlines()
    assert text.startswith("── a.pdf, pages 1-2 of 9, ")
    assert page_count(document) == 2
    assert page_count({"type": "document", "source": {"data": "A" * 250_000}}) == 2
