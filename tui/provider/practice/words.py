"""What the practice model says when it talks about itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tui.figures import size
from tui.images.images import of_block
from tui.messages import Block
from tui.provider.practice.steps import code

_ABILITIES = (
    ("read_file", "`read README.md`", "and `read tui/app.py from line 40`"),
    ("grep_search", "`search TODO in src`", ""),
    ("find_by_name", "`find *.py`", ""),
    ("list_dir", "`list`", "or `list src`"),
    ("run_command", "`run pytest -q`", "or `run sleep 30 in the background`"),
    ("write_file", '`create notes.txt with "hello"`', "or several lines after a colon"),
    ("edit_file", "`change foo to bar in app.py`", "add `everywhere` for all of them"),
    ("edit_file", '`append "one more line" to notes.txt`', ""),
    ("todo_write", "`plan: read the code, write a test, run it`", "then `mark 1 done`"),
    ("run_command", "`fix the failing test`", "I run the tests and show what fails"),
)

WHO = (
    "I am the **practice model**: a small set of rules that runs offline, inside this program. "
    "No key, no network, no cost, and no intelligence either. What I do with the tools is real, "
    "though: files are really read and written, commands really run, and you are asked first."
)
REAL_MODEL = "For real work choose a model with `/model`, or give a key on the welcome screen."


def talk(kind: str, tools: Collection[str]) -> str:
    """The answer to small talk."""
    match kind:
        case "hello":
            return (
                "Hello! I am the **practice model**: rules, not intelligence, but with the real "
                "tools.\n\n" + abilities(tools, limit=4) + "\n\nSay `help` for everything I know."
            )
        case "help":
            joined = "Join several with *and then*: `read a.py and then run pytest -q`."
            return f"{WHO}\n\nI understand plain requests:\n\n{abilities(tools)}\n\n{joined}"
        case "who":
            return f"{WHO}\n\n{REAL_MODEL}"
        case "thanks":
            return "You are welcome. Rules do not tire: what next?"
        case _:
            return "All right, I leave it there. Say `continue` if you change your mind."


def abilities(tools: Collection[str], *, limit: int | None = None) -> str:
    """What can be asked for with these tools, as a list."""
    lines = [
        f"- {ask}" + (f", {more}" if more else "")
        for tool, ask, more in _ABILITIES
        if tool in tools
    ]
    return "\n".join(lines[:limit]) or "- nothing much: I was given none of the tools that I know"


def did_not_understand(text: str, found: Sequence[str], tools: Collection[str]) -> str:
    """An answer to what no rule fits, with examples for the files that are there."""
    files = [name for name in found if not name.endswith("/") and not name.startswith(".")]
    folders = [
        name.rstrip("/") for name in found if name.endswith("/") and not name.startswith(".")
    ]
    ideas: list[tuple[str, str]] = []
    if files:
        first = next((f for f in files if f.lower().startswith("readme")), files[0])
        ideas.append(("read_file", f"read {first}"))
    if folders:
        ideas.append(("list_dir", f"list {folders[0]}"))
    source = next((f for f in folders if f in {"src", "lib", "tui", "app"}), "")
    ideas.append(("grep_search", f"search TODO in {source}" if source else "search TODO"))
    if any(name in {"tests/", "test/", "pyproject.toml", "pytest.ini"} for name in found):
        ideas.append(("run_command", "run pytest -q"))
    ideas.append(("write_file", 'create notes.txt with "hello"'))
    shown = "\n".join(f"- `{ask}`" for tool, ask in ideas if tool in tools)
    examples = f" What would work here, for instance:\n\n{shown}" if shown else ""
    return (
        f"I did not understand {code(text)}. I am the practice model and go by simple rules."
        f"{examples}\n\n`help` shows everything I understand. {REAL_MODEL}"
    )


def of_images(blocks: Sequence[Block]) -> str:
    """What can be said of images without looking at them: type, pixels, bytes."""
    if not blocks:
        return ""
    lines: list[str] = []
    for block in blocks:
        image = of_block(block, "")
        if image is None:
            lines.append("- an image whose header I cannot read")
            continue
        picture, kind = image.picture, image.picture.media_type.removeprefix("image/").upper()
        lines.append(f"- {kind}, {picture.width} × {picture.height} pixels, {size(image.bytes)}")
    what = "an image" if len(blocks) == 1 else f"{len(blocks)} images"
    listed = "\n".join(lines)
    return (
        f"I was given {what}:\n\n{listed}\n\nThat is what the header says. I am the practice model,"
        f" rules without eyes: what is in it I cannot tell. {REAL_MODEL}"
    )


def pondering(topic: str) -> str:
    """Thoughts about a topic, such as they are."""
    return (
        f"The topic is {topic!r}. A real model would now weigh what it knows against the question. "
        "I have rules instead of knowledge, so the honest course is to look at the request itself: "
        f"it is {len(topic)} characters long, and names no file that I could read and no command "
        "that I could run. So there is nothing to act on, and the best answer says so in few words."
    )


THOUGHT = (
    "I have thought about {topic}; unfold the thinking above to see it. It is what a rule can do: "
    "it shows how thinking streams, not what a model knows.\n\nGive me something to *do* instead, "
    "for instance `read README.md`."
)
