"""A Jupyter notebook as its cells: number, kind, source and outputs, as text with images."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from tui.core.dataclass import dataclass, field
from tui.core.formatting import plural, size
from tui.core.images import base64_image_info
from tui.core.messages import Block, image_block, is_object, list_of, object_of, string_of
from tui.core.text_cleaning import clean
from tui.tools.file_access import WHOLE_FILE_LIMIT

IMAGE_CHARS: Final = 1_000_000
"""Longest base64 text of an image that is shown."""
IMAGES: Final = 10
"""Number of images that a page may show."""

_TEXTS: Final = ("text/plain", "text/markdown", "text/latex", "text/html", "application/json")
"""The forms of an output that are shown as text; of several, the first is."""
_PICTURE = re.compile(r"\[image \d+ of cell \d+: [^\]\n]*, shown below\]")


class NotNotebookError(Exception):
    """A file that can't be shown as cells; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as text. `images` are those that the text names, by their words there."""

    text: str
    cells: int
    images: Mapping[str, Block] = field(default_factory=dict[str, Block])

    def images_in(self, page: str) -> list[Block]:
        """Return the images that a part of the text names, in order, at most IMAGES."""
        words = dict.fromkeys(_PICTURE.findall(page))
        return [self.images[word] for word in words if word in self.images][:IMAGES]


def parse(source: BinaryIO) -> Notebook:
    """Read the notebook in a file. Raises NotNotebookError."""
    if (length := source.seek(0, 2)) > WHOLE_FILE_LIMIT:
        raise NotNotebookError(f"it has {size(length)}")
    source.seek(0)
    try:
        # The hook is a Python call for each object, so that other threads get their turn.
        book = object_of(json.loads(source.read(), object_hook=lambda found: found))
    except UnicodeDecodeError as error:
        raise NotNotebookError("it isn't UTF-8") from error
    except ValueError as error:
        raise NotNotebookError(f"it isn't valid JSON: {error}") from error
    except RecursionError as error:
        raise NotNotebookError("it is nested too deeply") from error
    if not isinstance(book.get("cells"), list):
        older = f" (nbformat {book['nbformat']})" if isinstance(book.get("nbformat"), int) else ""
        raise NotNotebookError(f"it has no list of cells{older}")
    images: dict[str, Block] = {}
    parts: list[str] = []
    cells = [object_of(cell) for cell in list_of(book["cells"])]
    for number, cell in enumerate(cells, 1):
        parts += _cell(number, cell, images)
    kernel = object_of(object_of(book.get("metadata")).get("kernelspec"))
    name = clean(string_of(kernel.get("display_name")) or string_of(kernel.get("name")))
    title = ", ".join(filter(None, ["Notebook", plural(len(cells), "cell"), name]))
    hint = "edit_file edits the text of its cells."
    return Notebook("\n".join([f"[{title}. {hint}]", *parts]) + "\n", len(cells), images)


def _cell(number: int, cell: dict[str, Any], images: dict[str, Block]) -> Iterator[str]:
    kind = clean(string_of(cell.get("cell_type"))) or "unknown kind"
    count = cell.get("execution_count")
    ran = f", ran as [{count}]" if isinstance(count, int) else ""
    yield f"--- cell {number} ({kind}{ran}) ---"
    yield _lines(_joined(cell.get("source")))
    outputs = list_of(cell.get("outputs"))
    shown = [text for each in outputs for text in _output(number, object_of(each), images)]
    if shown:
        yield f"--- output of cell {number} ---"
        yield from shown


def _output(number: int, output: dict[str, Any], images: dict[str, Block]) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield _lines(clean(_joined(output.get("text"))))
        case "error":
            trace = "\n".join(map(_joined, list_of(output.get("traceback"))))
            words = f"{string_of(output.get('ename'))}: {string_of(output.get('evalue'))}"
            yield _lines(clean(trace or words))
        case _:
            yield from _data(number, object_of(output.get("data")), images)


def _data(number: int, data: dict[str, Any], images: dict[str, Block]) -> Iterator[str]:
    """Yield an output: its first form of text, its images, the names of anything else."""
    text = next((form for form in _TEXTS if form in data), "")
    if text:
        value: object = data[text]
        yield _lines(clean(json.dumps(value) if is_object(value) else _joined(value)))
    for form, value in data.items():
        if form.startswith("image/"):
            yield _image(number, form, _joined(value), images)
        elif form not in _TEXTS:
            held = size(len(_joined(value) or json.dumps(value)))
            yield f"[{clean(form)}, {held}: not shown]"


def _image(number: int, form: str, data: str, images: dict[str, Block]) -> str:
    """Return the words for an image, which is put into `images` if it can be shown."""
    data = "".join(data.split())
    info = base64_image_info(data)
    if info is None or len(data) > IMAGE_CHARS:
        return f"[{clean(form)}, {size(len(data) * 3 // 4)}: not shown]"
    facts = f"{info.media_type.removeprefix('image/').upper()} {info.width}×{info.height}"
    word = f"[image {len(images) + 1} of cell {number}: {facts}, shown below]"
    images[word] = image_block(info.media_type, data)
    return word


def _joined(value: object) -> str:
    """Return a text that may be in one piece or in lines."""
    return string_of(value) or "".join(map(string_of, list_of(value)))


def _lines(text: str) -> str:
    return text.removesuffix("\n")
