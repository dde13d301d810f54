"""edit_file on notebooks: the text of a cell changes, and nothing else in the file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.folder import Folder, said
from tui.core.errors import ToolError
from tui.tools.apply_patch import ApplyPatch
from tui.tools.edit_file import EditFile
from tui.tools.notebook_cells import cells_of
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

read_file, edit_file, write_file, patch = ReadFile(), EditFile(), WriteFile(), ApplyPatch()

CODE: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": 3,
    "metadata": {},
    "outputs": [{"name": "stdout", "output_type": "stream", "text": ["x = 1\n"]}],
    "source": ["x = 1\n", 'print("é")\n', "y = 2"],
}
TEXT: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": "# Title\nx = 1"}
EMPTY: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "source": []}


def book(*cells: dict[str, Any], indent: int | None = 1, ascii_only: bool = False) -> str:
    whole: dict[str, Any] = {
        "cells": list(cells),
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=indent, ensure_ascii=ascii_only) + "\n"


async def edited(folder: Folder, raw: str, old: str, new: str, **more: Any) -> str:
    file = folder.write("a.ipynb", raw)
    await folder.call(read_file, path="a.ipynb")
    await folder.call(edit_file, path="a.ipynb", old_string=old, new_string=new, **more)
    return file.read_text()


@pytest.mark.parametrize("indent", [1, 2, 4, None])
@pytest.mark.parametrize("ascii_only", [True, False])
async def test_the_rest_of_the_file_stays(
    folder: Folder, indent: int | None, *, ascii_only: bool
) -> None:
    raw = book(CODE, TEXT, EMPTY, indent=indent, ascii_only=ascii_only)
    changed = {**CODE, "source": ["x = 1\n", 'print("é")\n', "y = 3\n", 'z = "\\\\ü"']}
    after = await edited(folder, raw, "y = 2", 'y = 3\nz = "\\\\ü"')
    assert after == book(changed, TEXT, EMPTY, indent=indent, ascii_only=ascii_only)


async def test_a_source_that_is_one_text_stays_one(folder: Folder) -> None:
    after = await edited(folder, book(CODE, TEXT), "# Title\nx = 1", "# Other\nx = 1")
    assert after == book(CODE, {**TEXT, "source": "# Other\nx = 1"})


@pytest.mark.parametrize("source", ["x = 1\n\ud800", ["x = 1\n", "é\ud800"]])
def test_half_a_character_stays_an_escape(source: str | list[str]) -> None:
    raw = book({**CODE, "source": source}, TEXT).replace("\ud800", "\\ud800")
    cells = cells_of(raw)
    assert cells
    after = cells.with_text(cells.text.replace("x = 1\n", "x = 2 \ud800\n", 1))
    assert after.encode()
    (first, _) = json.loads(after)["cells"]
    assert "".join(first["source"]) == "".join(source).replace("1", "2 \ud800")


@pytest.mark.parametrize("source", [["x\n", ["y"]], ["x\n", {"y": 1}], ["x\n", None]])
def test_a_source_that_is_no_text_is_left_alone(source: list[object]) -> None:
    cells = cells_of(book({**CODE, "source": source}, TEXT))
    assert cells
    changed = cells.with_text(cells.text.replace("# Title", "# Other"))
    assert json.loads(changed)["cells"][0]["source"] == source
    with pytest.raises(ToolError, match="has no source"):
        cells.with_text(cells.text.replace("---\n", "---\nx", 1))


async def test_lines_are_removed_added_and_all_taken(folder: Folder) -> None:
    raw = book(CODE, TEXT)
    after = await edited(folder, raw, 'print("é")\ny = 2', "")
    assert after == book({**CODE, "source": ["x = 1\n"]}, TEXT)
    after = await edited(folder, raw, 'x = 1\nprint("é")\ny = 2', "")
    assert json.loads(after)["cells"][0] == {**CODE, "source": []}


async def test_the_answer_names_the_cell_and_the_diff_is_of_the_file(folder: Folder) -> None:
    folder.write("a.ipynb", book(TEXT, CODE))
    await folder.call(read_file, path="a.ipynb")
    output = await folder.call(edit_file, path="a.ipynb", old_string="y = 2", new_string="y = 3")
    assert said(output) == "Edited a.ipynb in cell 2: +1 −1 lines."
    assert '-    "y = 2"\n+    "y = 3"' in str(output.display)


async def test_a_passage_of_two_cells_is_ambiguous(folder: Folder) -> None:
    file = folder.write("a.ipynb", book(CODE, TEXT))
    await folder.call(read_file, path="a.ipynb")
    words = {"path": "a.ipynb", "old_string": "x = 1", "new_string": "x = 5"}
    error = await folder.error(edit_file, **words)
    assert error.startswith("old_string occurs 2 times in a.ipynb (cells 1, 2).")
    output = await folder.call(edit_file, **words, replace_all=True)
    assert said(output).startswith("Edited a.ipynb 2 times (cells 1, 2): ")
    sources = ["".join(cell["source"]) for cell in json.loads(file.read_text())["cells"]]
    assert sources == ['x = 5\nprint("é")\ny = 2', "# Title\nx = 5"]
    assert json.loads(file.read_text())["cells"][0]["outputs"] == CODE["outputs"]


async def test_a_passage_over_two_cells_is_not_there(folder: Folder) -> None:
    folder.write("a.ipynb", book(CODE, TEXT))
    await folder.call(read_file, path="a.ipynb")
    old = "y = 2\n--- cell 2 (markdown) ---\n# Title"
    error = await folder.error(edit_file, path="a.ipynb", old_string=old, new_string="")
    assert "old_string isn't in a.ipynb. Copy from the cells of the notebook" in error
    assert "\0" not in error


async def test_the_json_around_the_cells_can_be_edited_but_not_broken(folder: Folder) -> None:
    file = folder.write("a.ipynb", raw := book(CODE))
    await folder.call(read_file, path="a.ipynb")
    words = {"path": "a.ipynb", "old_string": '"execution_count": 3'}
    await folder.call(edit_file, **words, new_string='"execution_count": null')
    assert json.loads(file.read_text())["cells"][0]["execution_count"] is None
    words["old_string"] = '"execution_count": null'
    error = await folder.error(edit_file, **words, new_string='"execution_count": ')
    assert "a.ipynb would no longer be a notebook: it isn't valid JSON" in error
    error = await folder.error(write_file, path="a.ipynb", content="x = 1\n")
    assert "would no longer be a notebook" in error
    hunk = '*** Begin Patch\n*** Update File: a.ipynb\n-  "cells": [\n+  "cellos": [\n*** End Patch'
    error = await folder.error(patch, patch=hunk.replace('  "cell', ' "cell'))
    assert "it has no list of cells" in error
    assert json.loads(raw)["metadata"] == json.loads(file.read_text())["metadata"]


async def test_what_changed_in_another_cell_since_is_told(folder: Folder) -> None:
    file = folder.write("a.ipynb", book(CODE, TEXT))
    await folder.call(read_file, path="a.ipynb")
    file.write_text(book(CODE, {**TEXT, "source": "# Theirs"}))
    output = await folder.call(edit_file, path="a.ipynb", old_string="y = 2", new_string="y = 3")
    assert "had changed elsewhere since you last saw it" in said(output)
    file.write_text(file.read_text().replace("y = 3", "y = 4"))
    error = await folder.error(edit_file, path="a.ipynb", old_string="y = 4", new_string="y = 5")
    assert "changed since it was last read; nothing was written" in error


@given(
    st.lists(st.text('ab\n"\\é\r\u2028 ', max_size=12) | st.lists(st.text('ab\n"é', max_size=4))),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    st.data(),
)
def test_any_text_of_any_cell_comes_back(
    sources: list[str | list[str]], indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    cells = [{"cell_type": "code", "source": source} for source in sources]
    raw = book(*cells, indent=indent, ascii_only=ascii_only)
    found = cells_of(raw)
    assert found is not None
    assert found.with_text(found.text) == raw
    if not sources:
        return
    which = data.draw(st.integers(0, len(sources) - 1))
    new = data.draw(st.text('abc\n"\\ü', max_size=20))
    wanted = ["".join(source) for source in sources]
    wanted[which] = new
    heads = [f"\0--- cell {n} (code) ---\n" for n in range(1, len(sources) + 1)]
    text = "".join(f"{head}{source}\n" for head, source in zip(heads, wanted, strict=True))
    after = json.loads(found.with_text(text))
    assert ["".join(cell["source"]) for cell in after["cells"]] == wanted
    lists = [isinstance(cell["source"], list) for cell in after["cells"]]
    assert lists == [isinstance(source, list) for source in sources]
