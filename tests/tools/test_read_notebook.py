"""read_file on notebooks: cells with their outputs, and edits of the JSON behind them."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from tests.tools.folder import Folder, said
from tui.tools.edit_file import EditFile
from tui.tools.paging import without_numbers
from tui.tools.read_file import ReadFile

read_file = ReadFile()


def picture(width: int = 20, height: int = 10) -> str:
    made = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(made, "PNG")
    return base64.encodebytes(made.getvalue()).decode()


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps(
        {
            "cells": list(cells),
            "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def code(
    source: str | list[str], *outputs: dict[str, Any], count: int | None = 1
) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "source": source,
        "outputs": list(outputs),
        "metadata": {},
    }


def result(**data: Any) -> dict[str, Any]:
    forms = {name.replace("_", "/"): value for name, value in data.items()}
    return {"output_type": "execute_result", "data": forms, "execution_count": 1}


async def test_a_notebook_comes_as_cells(folder: Folder) -> None:
    markdown = {"cell_type": "markdown", "source": ["# Title\n", "Words."]}
    stream = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no",
        "traceback": ["\x1b[0;31mValueError\x1b[0m: no"],
    }
    folder.write(
        "a.ipynb",
        notebook(
            markdown,
            code(["x = 1\n", "print(x)"], stream, result(text_plain="1"), count=7),
            code("boom()", error, count=None),
            {"cell_type": "raw", "source": "as is"},
        ),
    )
    output = await folder.call(read_file, path="a.ipynb")
    assert said(output) == (
        "[Notebook, 4 cells, Python 3 (ipykernel). edit_file edits the text of its cells.]\n"
        "--- cell 1 (markdown) ---\n# Title\nWords.\n"
        "--- cell 2 (code, ran as [7]) ---\nx = 1\nprint(x)\n"
        "--- output of cell 2 ---\none\ntwo\n1\n"
        "--- cell 3 (code) ---\nboom()\n"
        "--- output of cell 3 ---\nValueError: no\n"
        "--- cell 4 (raw) ---\nas is\n"
    )
    assert output.summary == "4 cells"


async def test_a_long_one_is_read_in_pages(folder: Folder) -> None:
    long = code(
        "print()", {"output_type": "stream", "text": "".join(f"{n}\n" for n in range(5000))}
    )
    folder.write("a.ipynb", notebook(long))
    output = await folder.call(read_file, path="a.ipynb")
    assert said(output).endswith("[lines 1-1999 of 5004; continue with offset=2000]")
    assert output.summary == "1 cell, more follows"
    assert (await folder.text(read_file, path="a.ipynb", offset=5004)) == "4999\n"


async def test_images_in_outputs_are_shown_where_they_are_named(folder: Folder) -> None:
    data = picture()
    cell = code("plot()", result(text_plain="<Figure>", image_png=data), result(image_jpeg=[data]))
    folder.write("a.ipynb", notebook(cell, code("x")))
    output = await folder.call(read_file, path="a.ipynb")
    text = said(output)
    assert "<Figure>\n[image 1 of cell 1: PNG 20×10, shown below]\n" in text
    assert [block["type"] for block in output.content] == ["text", "image", "image"]
    source = output.content[1]["source"]
    assert source == {
        "type": "base64",
        "media_type": "image/png",
        "data": "".join(data.split()),
    }
    rest = await folder.call(read_file, path="a.ipynb", offset=8)
    assert [block["type"] for block in rest.content] == ["text"], "the images were before"


async def test_what_is_no_image_for_the_model_is_named(folder: Folder) -> None:
    wide = result(image_svg="<svg>", image_png="not base64", application_x="{}")
    wide["data"]["image/gif"] = "A" * 2_000_000
    folder.write("a.ipynb", notebook(code("plot()", wide)))
    output = await folder.call(read_file, path="a.ipynb")
    assert [block["type"] for block in output.content] == ["text"]
    assert said(output).count(": not shown]") == 4


async def test_at_most_ten_images_come_at_once(folder: Folder) -> None:
    plots = [result(image_png=picture(width)) for width in range(1, 15)]
    folder.write("a.ipynb", notebook(code("plot()", *plots)))
    output = await folder.call(read_file, path="a.ipynb")
    assert sum(block["type"] == "image" for block in output.content) == 10


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"cells": [', "it isn't valid JSON: "),
        ('{"worksheets": [], "nbformat": 3}', "it has no list of cells (nbformat 3)"),
        ("[1]", "it has no list of cells"),
        ("[" * 100_000, "it is nested too deeply"),
        (b'{"cells": "\xff"}', "it isn't UTF-8"),
    ],
    ids=["cut", "old", "list", "deep", "bytes"],
)
async def test_a_damaged_one_comes_as_it_is_with_the_reason(
    folder: Folder, content: str | bytes, why: str
) -> None:
    folder.write("a.ipynb", content)
    text = await folder.text(read_file, path="a.ipynb")
    assert text.startswith('1\t{"' if text[2] == "{" else "1\t[")
    assert f"\n[the notebook as it is, not as cells: {why}" in text


async def test_odd_cells_are_shown_as_far_as_they_go(folder: Folder) -> None:
    odd: list[Any] = [
        1,
        None,
        {},
        {"cell_type": 3, "source": [1, "a"], "outputs": [2, {"data": []}]},
    ]
    folder.write("a.ipynb", json.dumps({"cells": odd, "metadata": [], "nbformat": 4}))
    text = await folder.text(read_file, path="a.ipynb")
    assert "--- cell 4 (unknown kind) ---\na\n" in text


async def test_an_edit_works_on_the_json_that_raw_shows(folder: Folder) -> None:
    folder.write("a.ipynb", notebook(code('print("a")')))
    await folder.call(read_file, path="a.ipynb")
    edit = EditFile()
    raw = await folder.text(read_file, path="a.ipynb", raw=True)
    assert without_numbers(raw) == (folder.root / "a.ipynb").read_text()
    await folder.call(
        edit, path="a.ipynb", old_string='print(\\"a\\")', new_string='print(\\"b\\")'
    )
    assert 'print("b")' in await folder.text(read_file, path="a.ipynb")
