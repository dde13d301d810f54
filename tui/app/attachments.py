"""From pasted text to the images sent along with a prompt, and to mentions of files.

A word in the text stands for each image; whoever deletes the word sends no image. The bytes are
kept in a file until they are sent, so that a draft brings them back after a crash.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tui.agent.prompts import highest_image
from tui.app.frontend import AgentHolder, Frontend
from tui.app.services import AppServices
from tui.core import image_files, images
from tui.core.clipboard import INSTEAD, Clip
from tui.core.errors import ImageError
from tui.core.image_files import pasted_paths
from tui.core.image_resize import fitted
from tui.core.images import Image
from tui.session.records import Record

FOLDER = "attached"
"""In the data folder: what was attached and is not sent yet."""

_ORIGINAL = "The original is unchanged."


class PromptImages:
    """The images of what is typed, queued and brought back, for the agent that `holder` has.
    `clipboard` asks what the system's holds, `copied` what was copied inside this program."""

    def __init__(self, services: AppServices, frontend: Frontend, holder: AgentHolder) -> None:
        self.clipboard: Callable[[], Clip] = services.clipboard
        self.copied: Callable[[], str] = str
        self._frontend = frontend
        self._root = services.workspace
        self._folder = services.folders.data / FOLDER
        self._holder = holder
        self._known: dict[str, Image] = {}
        self._files: dict[str, str] = {}

    # What the prompt asks

    def knows(self, word: str) -> bool:
        """True if an image goes along for a word."""
        return word in self._known

    def could_hold(self, text: str) -> bool:
        """True if a pasted text can be paths. Looks at the text alone."""
        return bool(pasted_paths(text))

    async def of_paste(self, text: str) -> str | None:
        """Return what replaces pasted paths; None where they stay as they are."""
        try:
            loaded = await asyncio.to_thread(_load, pasted_paths(text), self._root)
            return await self._attached(loaded) if loaded else None
        except ImageError as error:
            self._say(error)
            return None

    async def of_clipboard(self) -> tuple[str, bool]:
        """Return what Ctrl+V inserts, and True if that is a text that was copied."""
        clip = await asyncio.to_thread(self.clipboard)
        if clip.image:
            return await self.of_image(clip.image), False
        if text := clip.text or self.copied():
            return text, True
        problem = clip.problem or "The clipboard is empty."
        self._frontend.say(problem, "warning" if clip.problem else "info", hint=clip.hint)
        return "", False

    def recall(self, text: str) -> None:
        """A text comes back into the prompt: find its images, here or in the record."""
        missing = [word for word in images.words_in(text) if word not in self._known]
        agent = self._holder.agent
        for record in reversed(agent.session.records) if agent and missing else ():
            if record.type == "user" and "images" in record.data:
                self.learn(record)
                missing = [word for word in missing if word not in self._known]
                if not missing:
                    break
        if missing:
            what = "An image is" if len(missing) == 1 else f"{len(missing)} images are"
            self._frontend.say(f"{what} gone: only the text is sent.", "warning", hint=INSTEAD)

    # What the conversation asks

    def of(self, text: str) -> dict[str, Image]:
        """The images of a text by their words, in their order."""
        known = ((word, self._known.get(word)) for word in images.words_in(text))
        return {word: image for word, image in known if image is not None}

    def fits(self, text: str) -> bool:
        """True if a text's images can be sent together; else a message says why not."""
        try:
            images.check_together(list(self.of(text).values()))
        except ImageError as error:
            self._say(error)
            return False
        return True

    def files_of(self, texts: Iterable[str]) -> dict[str, str]:
        """For a draft: the files of the images that texts have, by their words."""
        words = (word for text in texts for word in images.words_in(text))
        return {word: self._files[word] for word in words if word in self._files}

    def learn(self, record: Record) -> None:
        """Know the images of a prompt's record."""
        for word, image in images.images_of_record(record.data).items():
            self._known.setdefault(word, image)

    async def restore(self, files: Mapping[str, str]) -> None:
        """Know what an earlier run had attached, and keep what was before a session stood."""
        self._known.update(await asyncio.to_thread(_restored, self._folder, files))
        self._files.update({word: name for word, name in files.items() if word in self._known})
        loose = self.of(self._frontend.prompt_text)
        await self._keep({word: image for word, image in loose.items() if word not in self._files})

    async def of_image(self, data: bytes, name: str = "clipboard") -> str:
        """The word of an image that is attached; "" where it can't be, with a message."""
        try:
            image = await asyncio.to_thread(fitted, data, name)
            if image is not None:
                return await self._attached([image])
        except ImageError as error:
            self._say(error)
            return ""
        self._frontend.say(
            f"The {name} image isn't a PNG, JPEG, GIF or WebP.",
            "warning",
            hint="Save it in one of these formats and paste the file's path.",
        )
        return ""

    async def _attached(self, found: Sequence[Image | str]) -> str:
        """The words of images, which are known and kept from now on. Raises ImageError."""
        new = [image for image in found if isinstance(image, Image)]
        images.check_together([*self.of(self._frontend.prompt_text).values(), *new])
        agent = self._holder.agent
        taken = [
            highest_image(agent.session.records) if agent else 0,
            *map(images.number_of, self._known),
        ]
        number, parts = max(taken), list[str]()
        fresh: dict[str, Image] = {}
        for image in found:
            if isinstance(image, Image):
                number += 1
                fresh[image.word(number)] = image
                parts.append(image.word(number))
            else:
                parts.append(image)
        self._known |= fresh
        for image in fresh.values():
            if image.change:
                name = images.display_name(image.name)
                self._frontend.say(f"Attached {name}, {image.change}.", hint=_ORIGINAL)
        await self._keep(fresh)
        return " ".join(parts)

    async def _keep(self, fresh: Mapping[str, Image]) -> None:
        agent = self._holder.agent
        if agent is None or agent.session.path is None:
            return  # nothing of this session may stay on the disk, or none stands yet
        for word, image in fresh.items():
            if name := await asyncio.to_thread(image_files.store, self._folder, image):
                self._files[word] = name

    def _say(self, error: ImageError) -> None:
        self._frontend.say(error.message, "warning", hint=error.hint)


def _load(ways: Iterable[Sequence[str]], root: Path) -> list[Image | str]:
    """The images and the mentions of the first way to read a paste in which all paths are files or
    folders. What is neither an image nor in the workspace stays a path, and a paste of nothing else
    stays as it is. Blocks; raises ImageError."""
    for reading in ways:
        paths = [_real(path, root) for path in reading]
        if not all(path.is_file() or path.is_dir() for path in paths):
            continue
        each = zip(paths, reading, strict=True)
        loaded = [image_files.load(path) or mention(path, typed, root) for path, typed in each]
        if loaded != [shlex.quote(typed) for typed in reading]:
            return loaded
    return []


def mention(path: Path, given: str, root: Path) -> str:
    """A path as a mention where it leads into the workspace and is written out in full, as a
    terminal writes what is dropped on it; else the path."""
    path = Path(os.path.normpath(path))
    inside = path != root and path.is_relative_to(root)
    if not inside or not given.startswith(("/", "file:")):
        return shlex.quote(given)
    name = str(path.relative_to(root))
    if not re.search(r"[\s\"'\\]", name):
        return f"@{name}"
    return f'@"{name}"' if '"' not in name else "@" + re.sub(r"([\s\"'\\])", r"\\\1", name)


def _real(path: str, root: Path) -> Path:
    if path[1:2] == ":" and path[2:3] in {"\\", "/"}:  # dropped on a Windows terminal, under WSL
        return Path("/mnt", path[0].lower(), *path[3:].replace("\\", "/").split("/"))
    return root / os.path.expanduser(path)  # noqa: PTH111 - an unknown ~user is a plain name


def _restored(folder: Path, files: Mapping[str, str]) -> dict[str, Image]:
    images_by_word: dict[str, Image] = {}
    for word, name in files.items():
        if image := image_files.load_stored(folder, name, images.name_in(word)):
            images_by_word[word] = image
    return images_by_word
