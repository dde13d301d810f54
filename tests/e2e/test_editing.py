"""Files changed by every way of editing in a real program, then brought back byte for byte."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.preloaded import PLAIN
from tests.support.terminal import HOLDFAST, Terminal

APP = "class App:\n\tdef run(self):\n\t\tif self.ready:\n\t\t\treturn “done”\n"
PATCH = """*** Begin Patch
*** Update File: b.txt
@@
-two
+2
*** Delete File: gone.sh
*** Update File: c.txt
*** Move to: moved/d.txt
@@
 x
-y
+z
*** Add File: new.txt
+new
*** End Patch"""


def turn(tool: str, **arguments: Any) -> str:
    return f"[[turn]]\ntools = [{{name = {json.dumps(tool)}, input = {toml(arguments)}}}]\n"


def toml(value: object) -> str:
    if isinstance(value, dict):
        pairs: list[str] = [f"{key} = {toml(each)}" for key, each in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"  # pyright: ignore[reportUnknownArgumentType]
    return json.dumps(value)


def contents(work: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(work)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in work.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


def test_every_way_of_editing_can_be_undone(
    work: Path, home: Path, env: dict[str, str], script: Callable[[str], str]
) -> None:
    (work / "app.py").write_text(APP)
    (work / "b.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "c.txt").write_text("x\ny")
    (work / "gone.sh").write_text("echo\n")
    (work / "gone.sh").chmod(0o755)
    before = contents(work)
    indented = "    def run(self):\n        if self.ready:"
    edits = [
        {"old_string": "# Demo", "new_string": "# The demo"},
        {"old_string": "3\tThe demo project.", "new_string": "3\tIt is a project."},
    ]
    path = script(
        "".join(turn("read_file", path=name) for name in ("app.py", "README.md", "gone.sh"))
        + turn("edit_file", path="app.py", old_string=indented, new_string=f"{indented}  # now")
        + turn("edit_file", path="README.md", edits=edits)
        + turn("apply_patch", patch=PATCH)
        + '[[turn]]\ntext = "All done."\n'
    )
    words = [*HOLDFAST, "--plain", "--practice-script", path, "--allow", "edit_file"]
    with Terminal([*words, "--allow", "apply_patch"], cwd=work, env=env, preload=PLAIN) as screen:
        screen.wait_for("Ctrl+D quits.", "> ")
        screen.type("edit it all\r")
        screen.wait_for(
            "1 line added, 1 removed, indentation differs", "it had line numbers", "All done."
        )
        assert contents(work) == {
            "README.md": (b"# The demo\n\nIt is a project.\n", before["README.md"][1]),
            "app.py": (
                APP.replace("ready:", "ready:  # now").encode(),
                before["app.py"][1],
            ),
            "b.txt": (b"one\r\n2\r\n", before["b.txt"][1]),
            "moved/d.txt": (b"x\nz", before["c.txt"][1]),
            "new.txt": (b"new\n", before["b.txt"][1]),
        }
        screen.forget()
        screen.type("/diff\r")
        screen.wait_for("7 files changed", "File gone.sh, deleted", "added: new >")
        screen.forget()
        screen.type("/undo 1\r")
        screen.wait_for("Rewind the files too?", "just Enter for none:")
        screen.type("1\r")
        screen.wait_for("Restored 7 of 7 files.")
        screen.type("\x04\x04")
    assert contents(work) == before
    (record,) = (home / "data" / "sessions").rglob("*.jsonl")
    results = [json.loads(line) for line in record.read_bytes().splitlines()]
    details = [r["details"] for r in results if r.get("name") == "apply_patch" and "details" in r]
    assert [Path(file["path"]).name for file in details[0]["files"]] == [
        *("b.txt", "gone.sh", "d.txt", "c.txt", "new.txt"),
    ]
