"""Markdown read aloud: by finished lines and sentences, its signs as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.plain.markdown_to_speech import LONG, Reader, code_of, read
from tui.plain.prompt_reader import MultilineEntry


@pytest.mark.parametrize(
    ("source", "spoken"),
    [
        ("# Title #", ["Heading: Title"]),
        ("**bold** and *soft* and `**kept**`", ["bold and soft and **kept**"]),
        ("2 * 3 * 4 and a_b_c and __init__", ["2 * 3 * 4 and a_b_c and init"]),
        ("see [the docs](https://x.org/a)", ["see the docs (https://x.org/a)"]),
        ("[https://x.org](https://x.org)", ["https://x.org"]),
        ("- one\n* two\n  + three\n1. four", ["- one", "- two", "  - three", "1. four"]),
        ("- [x] a\n- [ ] b", ["- done: a", "- open: b"]),
        ("> said\n\n---\n\nend", ["Quote: said", "end"]),
        (
            "```python\nx = '**a**'\n\n# no heading\n```",
            ["Code, python:", "x = '**a**'", "", "# no heading", "End of code."],
        ),
        ("~~~\n```\n~~~", ["Code:", "```", "End of code."]),
        ("```\nnever closed", ["Code:", "never closed", "End of code."]),
        (
            "| name | size |\n|---|---:|\n| a | 1 |\n| `b\\|c` | 2 |\nafter",
            [
                "Table with 2 columns: name, size.",
                "Row 1: name: a; size: 1",
                "Row 2: name: b|c; size: 2",
                "after",
            ],
        ),
        ("| only | one |", ["| only | one |"]),
    ],
)
def test_markdown_in_words(source: str, spoken: list[str]) -> None:
    assert read(source) == spoken


def test_a_token_alone_is_never_said() -> None:
    reader = Reader()
    assert [reader.feed(token) for token in ("I ", "will ", "look", ".")] == [[], [], [], []]
    assert reader.end() == ["I will look."]


def test_a_long_line_is_said_by_whole_sentences() -> None:
    reader, said = Reader(), list[str]()
    text = "This is a sentence of some words. " * 20
    for at in range(0, len(text), 7):
        said += reader.feed(text[at : at + 7])
    assert len(said) > 2
    assert all(line.endswith("words.") and len(line) <= LONG + 40 for line in said)
    assert " ".join([*said, *reader.end()]) == text.strip()


NESTED = """1. one
   ~~~python
   def f():
       return 1
   ~~~
   - two
       ```
       cd sub
         ls
       ```

````md
```
inner
````
"""


def test_code_blocks_are_said_with_the_number_by_which_they_are_copied() -> None:
    said = read(NESTED, numbered=True)
    assert [line for line in said if line.startswith(("Code", "End"))] == [
        *("Code 1, python:", "End of code.", "Code 2:", "End of code."),
        *("Code 3, md:", "End of code."),
    ]
    assert code_of(NESTED) == ["def f():\n    return 1", "cd sub\n  ls", "```\ninner"]
    assert [line for line in read(NESTED) if line.startswith("Code")][:2] == [
        "Code, python:",
        "Code:",
    ]


def test_numbers_go_on_in_an_answer_and_begin_again_in_the_next() -> None:
    reader = Reader(numbered=True)
    said = [*reader.feed("```\na\n```\n"), *reader.end(), *reader.feed("```\nb"), *reader.end()]
    assert said == ["Code 1:", "a", "End of code.", "Code 2:", "b", "End of code."]
    assert reader.code == ["a", "b"]
    reader.drop()
    assert reader.feed("```\n") == ["Code 1:"]


def test_void_text_is_not_said() -> None:
    reader = Reader()
    reader.feed("```\nnever")
    reader.drop()
    assert reader.feed("new\n") == ["new"]
    assert reader.end() == []


@given(st.text(alphabet="ab *_`|#->\n\\[]()x1.~", max_size=80), st.integers(1, 9))
def test_pieces_make_no_difference(text: str, size: int) -> None:
    reader, said = Reader(), list[str]()
    for at in range(0, len(text), size):
        said += reader.feed(text[at : at + size])
    assert [*said, *reader.end()] == read(text)


@given(st.text(max_size=60))
def test_nothing_gets_through_that_is_no_text(text: str) -> None:
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set("\n".join(read(text)))


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        (["one"], "one"),
        (["one\\", "two"], "one\ntwo"),
        (["a\\\\"], "a\\\\"),
        (['"""', "a", "", 'b"""'], "a\n\nb"),
        (['"""a', '"""'], "a"),
        (['"""a b"""'], "a b"),
    ],
)
def test_lines_that_belong_together(typed: list[str], whole: str) -> None:
    entry = MultilineEntry()
    *more, last = [entry.add(line) for line in typed]
    assert more == [None] * len(more)
    assert last == whole
    assert not entry.begun
