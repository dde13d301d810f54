"""Markdown as lines: what is drawn, and that streaming draws the same as drawing at once."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from tui.core.text_cleaning import clean
from tui.ui.widgets.line_view.strips import copied
from tui.ui.widgets.markdown import Document, Line, code, flow, render
from tui.ui.widgets.markdown import document as markdown_document
from tui.ui.widgets.markdown.parse import parse
from tui.ui.widgets.markdown.text import RULES

STYLES = {name: Style(color=f"color({index + 16})") for index, name in enumerate(RULES)}


def shown(text: str, width: int = 60) -> str:
    return "\n".join(line.text.rstrip() for line in render(text, STYLES, width))


def streamed(text: str, cuts: list[int], *, draw: bool, width: int = 40) -> list[Line]:
    document = Document(STYLES, width)
    settled: list[Line] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        document.feed(text[start:end])
        if draw:
            document.draw()
            assert document.lines[: len(settled)] == settled, "settled lines must stay"
            settled = document.lines[: document.settled]
    document.finish()
    return list(document.lines)


PIECES = st.sampled_from(
    [
        "# Title", "## *x* `y`", "text", " ", "  ", "    ", "\t", "\n", "\n\n", "\n\n\n", "\r\n",
        "\r", "- ", "* ", "+ ", "1. ", "2) ", "9. ", "- [ ] ", "- [x] ", "-", "1.", "   ", "> ",
        ">", ">> ", "```", "```py\n", "~~~\n", "`````\n", "\n```\n", "`", "``",
        "def f():\n    return 1\n", "**", "*", "_", "~~", "[a](http://x.org)", "[a][b]", "[b]",
        "[b]: http://y.org 'T'\n", "[", "]", "(", "![i](u)", "<http://z.org>", "<b>", "<div>\n",
        "</div>\n", "<!-- c", "-->", "&amp;", "| a | b |\n|---|:-:|\n", "| 1 | 2 |\n", "|", "|--",
        "a | b\n", "---\n", "---", "===\n", "***\n", "\\", "\\\n", "漢字", "e\u0301", "🎉",
        "👨‍👩‍👧", "\x1b[31m", "\x00", "\u202e", "\ud800", "x" * 50, "word " * 12, "'''\n",
        '"""\n', "# comment\n", "class A:\n", "http://x.org/a_b",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=30).map("".join),
    st.text(alphabet="ab -*#>`|:\n\t[]()1.~=\\<", max_size=120),
)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
@example("1. a\n   ```sh\n   b\n   ```\n\n> ~~~\n> c\n\n    d\n\n```\n\n```\n```py\ne")
def test_each_code_block_has_the_number_by_which_it_is_copied(text: str) -> None:
    numbers = [line.block for line in render(text, STYLES, 40) if line.block]
    written = code.blocks(text)
    assert numbers == sorted(set(numbers))
    assert set(numbers) >= {n for n, block in enumerate(written, 1) if block}
    assert not numbers or numbers[-1] <= len(written)


def test_a_code_block_is_copied_as_it_was_written() -> None:
    long = "x = '" + "y" * 200 + "'\n\n\tz"
    text = f"A\n\n```py\n{long}\n```\n\n- list\n\n  ```\n  in it\n  ```\n"
    assert code.blocks(text) == [long, "in it"]


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[int]]:
    text = draw(TEXTS)
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=20))
    return text, sorted(cuts)


@settings(max_examples=400, deadline=None)
@given(cut_texts(), st.booleans(), st.sampled_from([60, 200, 8_000]))
def test_streamed_in_any_pieces_is_the_same_as_at_once(
    case: tuple[str, list[int]], draw: bool, cap: int
) -> None:
    text, cuts = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_document, "CAP", cap)
        assert streamed(text, cuts, draw=draw) == list(render(text, STYLES, 40))


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_letter_by_letter_is_the_same_as_at_once(text: str) -> None:
    cuts = list(range(1, len(text)))
    assert streamed(text, cuts, draw=True) == list(render(text, STYLES, 40))


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example("a&#10;b\n\nc")
@example("![](" + 10 * '"' + ")\n\nc")
@example("1. &#10;a\n2. b\n")
def test_lines_drawn_when_they_are_read_are_those_that_are_drawn_at_once(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "height", Mock(return_value=None))
        at_once = list(render(text, STYLES, 24))
    assert list(render(text, STYLES, 24)) == at_once


def test_of_a_text_that_comes_at_once_only_what_is_read_is_colored_and_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    color, parse_text = Mock(wraps=code.draw_rows), Mock(wraps=flow.unit)
    monkeypatch.setattr(code, "draw_rows", color)
    monkeypatch.setattr(flow, "unit", parse_text)
    part = "## Part\n\nSome **text**\n\n- item\n\n```python\nx = 1\ny = 2\n```\n\n"
    lines = render(part * 300, STYLES, 60)
    assert len(lines) == 300 * 10 - 1
    assert color.call_count == parse_text.call_count == 0
    assert [line.text for line in lines[-3:]] == [" python", " x = 1", " y = 2"]
    assert (color.call_count, parse_text.call_count) == (1, 0)
    assert lines[-1] is lines[len(lines) - 1]
    assert len({segment.style for segment in lines[-1].segments}) > 1
    assert lines[0].text == "Part"
    assert (color.call_count, parse_text.call_count) == (1, 1)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
@example("# Title<!-- c\t-->")
def test_no_line_is_wider_than_asked_and_none_holds_control_characters(text: str) -> None:
    for line in render(text, STYLES, 30):
        assert line.cells == cell_len(line.text)
        assert line.cells <= 31
        assert line.text == clean(line.text)
        assert "\n" not in line.text
        assert "\t" not in line.text


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_the_blocks_are_those_of_the_whole_text(text: str) -> None:
    """Cutting the text at blocks must not change what the blocks are."""
    text = clean(text.replace("\r", "\n"))
    whole = parse(text.split("\n"), {})
    rows = (text + "\n").split("\n")
    ends = [unit.start for unit in whole[1:]] + [len(rows)]
    for unit, end in zip(whole, ends[: len(whole)], strict=True):
        alone = parse(rows[unit.start : end], {})
        assert [part.kind for part in alone] == [unit.kind]
        assert [t.type for t in alone[0].tokens] == [t.type for t in unit.tokens]


def test_what_a_document_looks_like() -> None:
    text = (
        "# Title\n\nA **bold** word and `code`.\n\nSteps:\n1. one\n2. two\n   - inner\n\n"
        "     more\n10. three\n\n- [ ] open\n- [x] done\n\n> quoted\n> text\n\n"
        "```py\ndef f():\n\treturn 1\n```\n\n---\nlast  \nline"
    )
    assert shown(text, 30).split("\n") == [
        "Title", "",
        "A bold word and code.", "",
        "Steps:", "1. one", "2. two", "   ◦ inner", "", "     more", "3. three", "",
        "☐ open", "☑ done", "",
        "▎ quoted text", "",
        " py", " def f():", "     return 1", "",
        "─" * 30, "",
        "last", "line",
    ]  # fmt: skip


def test_a_table_is_boxed_and_fitted() -> None:
    table = "| Name | Size |\n|:--|--:|\n| `a` | 12 |\n| long words here | 3 |\n"
    assert shown(table, 22).split("\n") == [
        "┌─────────────┬──────┐",
        "│ Name        │ Size │",
        "├─────────────┼──────┤",
        "│ a           │   12 │",
        "├─────────────┼──────┤",
        "│ long words  │    3 │",
        "│ here        │      │",
        "└─────────────┴──────┘",
    ]


def test_a_table_without_room_becomes_fields() -> None:
    table = "| " + " | ".join(f"column{n}" for n in range(6)) + " |\n" + "|---" * 6 + "|\n"
    table += "| " + " | ".join(f"value {n}" for n in range(6)) + " |\n"
    assert shown(table, 24).split("\n")[:2] == ["· column0: value 0", "· column1: value 1"]


def test_words_of_a_table_stay_whole_or_it_becomes_fields() -> None:
    table = "| a | b |\n|---|---|\n| sequential dependency | checkpoints of a store |\n"
    boxed = shown(table, 30)
    assert boxed.startswith("┌")
    assert all(word in boxed for word in ("sequential", "dependency", "checkpoints"))
    assert shown(table, 26).split("\n")[0] == "· a: sequential dependency"


def test_a_long_line_of_code_goes_on_behind_a_mark_and_is_copied_as_it_is() -> None:
    code = "    total = compute(first_value, second_value, third_value)"
    lines = render(f"```\n{code}\n```", STYLES, 40)
    assert [line.text.rstrip() for line in lines] == [
        "     total = compute(first_value,",
        "     ↪ second_value, third_value)",
    ]
    assert copied(lines, (0, 0), (len(lines), 1 << 30)) == code


def test_wide_characters_in_a_table_keep_the_box_straight() -> None:
    lines = render("| 漢字 | b |\n|---|---|\n| 🎉 | x |\n| a | y |\n", STYLES, 40)
    assert {line.cells for line in lines} == {12}


@pytest.mark.parametrize(
    ("href", "opened"),
    [
        ("http://a.org/x", "http://a.org/x"),
        ("https://a.org", "https://a.org"),
        ("mailto:a@b.org", None),
        ("ssh://host", None),
        ("relative", None),
    ],
)
def test_only_web_links_can_be_opened(href: str, opened: str | None) -> None:
    (line,) = render(f"[text]({href})", STYLES, 40)
    (segment,) = line.segments
    assert segment.text == "text"
    assert segment.style is not None
    assert segment.style.link == opened


def test_markup_of_the_screen_library_and_html_are_text() -> None:
    assert shown("[red]x[/red] [@click=app.quit]y[/]\n\n<b>z</b>") == (
        "[red]x[/red] [@click=app.quit]y[/]\n\n<b>z</b>"
    )


LONG = "https://example.org/a/rather/long/path?with=a&query=1#end"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        (
            "see http://a.org/b_c_d, or (https://b.org/(x)_y).",
            "http://a.org/b_c_d https://b.org/(x)_y",
        ),
        ("**http://a.org/x** and `http://b.org/y`", "http://a.org/x http://b.org/y"),
        ("[http://shown.org](http://meant.org)", "http://meant.org"),
        ("| a |\n|---|\n| http://a.org |", "http://a.org"),
        ("在https://a.org/路径。不是", "https://a.org/路径"),
        ("http:// ftp://x.org javascript://x xhttp://y.org", ""),
        ("http://a.org/" + "x" * 5_000, ""),
        ("```\nhttp://a.org\n```", ""),
    ],
)
def test_a_bare_url_is_a_link_to_what_it_says(text: str, links: str) -> None:
    parts = [part for line in render(text, STYLES, 100) for part in line.segments]
    opened = dict.fromkeys(part.style.link for part in parts if part.style and part.style.link)
    assert " ".join(opened) == links


@pytest.mark.parametrize("before", ["", "It is described here: ", "word " * 30])
def test_a_url_that_fits_on_a_line_of_its_own_is_not_broken(before: str) -> None:
    lines = render(f"{before}{LONG}.", STYLES, len(LONG) + 1)
    (whole,) = [line for line in lines if LONG in line.text]
    assert whole.segments[-2].text == LONG
    broken = render(f"{before}{LONG}.", STYLES, 30)
    styles = {
        part.style for line in broken for part in line.segments if part.style and part.style.link
    }
    assert [style.link for style in styles] == [LONG]  # one link on all its rows


def test_a_link_defined_at_the_end_reaches_back() -> None:
    line = render("see [the docs][d]\n\nother\n\n[d]: https://a.org", STYLES, 40)[0]
    assert line.text == "see the docs"
    assert line.segments[-1].style is not None
    assert line.segments[-1].style.link == "https://a.org"


def test_code_is_coloured_by_its_language_and_tabs_are_kept_for_copying() -> None:
    top, code, comment = render("```python\n\tif x:\n# c\n```", STYLES, 40)
    assert top.text == " python"
    assert [s.style for s in code.segments if s.text == "if"] == [STYLES["keyword"]]
    assert comment.segments[-1].style == STYLES["comment"]
    assert code.source == "\tif x:"


def test_an_unknown_language_is_plain() -> None:
    assert shown("```no-such-language\nx = 1\n```") == " no-such-language\n x = 1"
    assert shown("```\nx = 1\n```\n\nthen") == " x = 1\n\nthen"


def test_what_is_half_written_is_not_shown_as_characters() -> None:
    document = Document(STYLES, 40)
    seen: list[str] = []
    for letter in "A **bold** `co`\n- i\n\n| a | b |\n|---|---|\n":
        document.feed(letter)
        document.draw()
        seen.append("\n".join(line.text.rstrip() for line in document.lines))
    assert not any("*" in text or "`" in text or "|" in text for text in seen)
    assert not any("\n-" in text for text in seen)


def test_a_long_fence_settles_while_it_streams() -> None:
    document = Document(STYLES, 60)
    document.feed("```python\n")
    for number in range(1_000):
        document.feed(f"\ndef f{number}():\n    return {number}\n")
    document.draw()
    assert len(document.lines) - document.settled < 200


def test_a_long_list_settles_item_by_item() -> None:
    document = Document(STYLES, 60)
    document.feed("".join(f"{n}. item\n" for n in range(1, 500)))
    document.draw()
    assert len(document.lines) - document.settled == 1
    assert document.lines[-1].text == "499. item"


@pytest.mark.slow
def test_an_unbroken_paragraph_and_a_long_table_are_capped() -> None:
    for text, head in (("word\n" * 9_000, ""), ("| a |\n|---|\n" + "| x |\n" * 9_000, "│ a │")):
        document = Document(STYLES, 60)
        document.feed(text)
        document.draw()
        assert document.settled > 0
        tail = document.lines[document.settled :]
        assert sum(line.cells for line in tail) < 30_000
        assert any(line.text == head for line in tail) == bool(head)


@pytest.mark.parametrize("width", [10, 24, 40])
def test_a_path_that_is_too_long_is_broken_behind_a_slash(width: int) -> None:
    path = "/data/sessions/a-folder/another/2026-11-21T09-00.jsonl"
    lines = shown(path, width).splitlines()
    assert "".join(lines) == path
    assert max(map(len, lines)) <= width
    names = max(map(len, path.split("/"))) + 1
    if width >= 2 * names:
        assert all(line.endswith("/") for line in lines[:-1])


def test_code_is_drawn_the_same_before_what_colors_it_is_loaded() -> None:
    text = "```python\nx = 1  # one\n\tprint('a tab')\n```\n"
    colored = list(render(text, STYLES, 40))
    code.color(on=False)
    try:
        plain = list(render(text, STYLES, 40))
    finally:
        code.color(on=True)
    assert [line.text for line in plain] == [line.text for line in colored]
    assert plain != colored
    assert list(render(text, STYLES, 40)) == colored
