"""A session as a script, a task file and a skill: what counts, and that no text gets out of its
place."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.session.checkpoints.test_scratch import tree_of
from tui.batch.taskfile import parse
from tui.context.call_origin import CallOrigin
from tui.context.distillation import Correction, FileStep, GreenCheck, corrections, distilled
from tui.context.distilled_script import comment, quoted, script
from tui.context.distilled_texts import DistilledPrompt, skill, task_file
from tui.core import front_matter
from tui.session.checkpoints.entries import NEVER, Kind, PathEntry
from tui.session.records import Record

WILD = (
    "END", "\nEND\n", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "',
    "\\", "\r\n", "<<'END'", "\n#!", "-->", "<!-- ", "```", "- [ ] ", "## ", "\t", "é", "\x1b[31m",
    "\u2028", "!!", "-n", "\n- [ ] more\n", "---", "a: b",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(WILD), st.text(max_size=4)), max_size=8).map("".join)
whole_texts = texts.filter(lambda text: "\0" not in text).map(
    lambda text: text.encode("utf-8", "replace").decode()
)
contents = st.one_of(whole_texts.map(str.encode), st.binary(max_size=40))
names = st.one_of(
    st.sampled_from(
        [b"a", b"d/b", b"d/e/c.txt", b"-rf", b"sp ace", b"$(touch pwned)", b"\xff\xfe"]
    ),
    whole_texts.map(lambda text: text.replace("/", "_").encode()[:60]).filter(
        lambda name: name not in {b"", b".", b".."}
    ),
)
Files = dict[bytes, tuple[bytes, int]]


class Store:
    """Contents by their hash."""

    def __init__(self) -> None:
        self.known: dict[bytes, bytes] = {}

    def entry(self, data: bytes, mode: int = 0o644, kind: Kind = Kind.FILE) -> PathEntry:
        digest = sha256(data).digest()
        self.known[digest] = data
        return PathEntry(kind, mode, len(data), NEVER, digest, ignored=False)

    def content(self, digest: bytes) -> bytes:
        return self.known[digest]


def made(store: Store, steps: list[FileStep], checks: list[GreenCheck], title: str = "t") -> str:
    return script(
        distilled(steps), checks, store.content, session="s", title=title, began="b", root="/w"
    ).text


def bash(text: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    place = folder.with_name("script.sh")
    place.write_bytes(text.encode("utf-8", "replace"))
    return subprocess.run(["bash", str(place)], cwd=folder, capture_output=True, check=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            names, st.tuples(contents, st.sampled_from([0o644, 0o755, 0o600])), max_size=3
        ),
        min_size=1,
        max_size=4,
    ),
    whole_texts,
)
@example([{b"a": (b"one\nEND\n", 0o644)}, {b"a": (b"two\nEND\nno end", 0o755)}], "\nEND")
@example([{b"a": (b"a\r\nb\r\n", 0o644)}, {b"a": (b"a\r\nc\n\n", 0o644)}], "x\ntouch pwned")
def test_a_script_makes_the_same_files_whatever_is_in_them(
    versions: list[Files], title: str
) -> None:
    store, steps = Store(), list[FileStep]()
    before: dict[bytes, PathEntry] = {}
    for version in versions:
        now = {path: store.entry(data, mode) for path, (data, mode) in version.items()}
        changes: dict[bytes, tuple[PathEntry | None, PathEntry | None]] = {
            path: (before.get(path), now.get(path))
            for path in {*before, *now}
            if not (path in now and now[path].same(before.get(path)))
        }
        steps.append(FileStep(changes, title))
        before = now
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "clone"
        folder.mkdir()
        ended = bash(made(store, steps, [], title), folder)
        assert ended.returncode == 0, ended.stderr
        files = {
            os.fsencode(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
            for path in folder.rglob("*")
            if path.is_file()
        }
        assert files == versions[-1]


@settings(max_examples=60, deadline=None)
@given(whole_texts, whole_texts)
def test_a_command_and_a_comment_stay_what_they_are(command: str, title: str) -> None:
    store = Store()
    end = sha256(command.encode()).hexdigest()
    line = f"cat > got <<'{end}'\n{command}\n{end}"
    changes: Mapping[bytes, tuple[PathEntry | None, PathEntry | None]] = {
        b"got": (None, store.entry(b"?"))
    }
    step = FileStep(changes, title, command=line)
    check = GreenCheck(f"printf %s {quoted(command)} > seen", "", title, 0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "clone"
        folder.mkdir()
        ended = bash(made(store, [step], [check], title), folder)
        assert ended.returncode == 0, ended.stderr
        assert sorted(os.listdir(folder)) == ["got", "seen"]
        assert (folder / "got").read_bytes() == f"{command}\n".encode()
        assert (folder / "seen").read_bytes() == command.encode()
    assert "\n" not in comment(title)


def test_detours_are_left_out_and_commands_keep_what_they_need() -> None:
    store = Store()
    v = [store.entry(f"{n}\n".encode()) for n in range(6)]
    steps = [
        FileStep({b"a": (None, v[0])}, "edit 0"),
        FileStep({b"a": (v[0], v[1])}, "edit 1, undone"),
        FileStep({b"b": (None, v[2])}, "edit 2, written over"),
        FileStep({b"a": (v[1], v[0])}, "edit 3, undoes"),
        FileStep({b"b": (v[2], v[3])}, "write 4", whole=True),
        FileStep({b"c": (None, v[4]), b"d": (None, v[5])}, "run 5", command="make"),
        FileStep({b"d": (v[5], None)}, "edit 6: removes what the command left"),
        FileStep({b"e": (None, v[5])}, "run 7, undone", command="touch e"),
        FileStep({b"e": (v[5], None)}, "edit 8"),
    ]
    assert [one.step.title for one in distilled(steps)] == [
        "edit 0",
        "write 4",
        "run 5",
        "edit 6: removes what the command left",
    ]


def ignored(name: bytes, command: str) -> FileStep:
    entry = PathEntry(Kind.OMITTED, 0o755, 0, NEVER, None, ignored=True)
    return FileStep({name: (None, entry)}, f"run_command {command}", command)


def test_a_command_that_prepares_what_git_ignores_is_kept_and_named() -> None:
    store = Store()
    steps = [
        ignored(b"node_modules", "npm ci"),
        ignored(b"node_modules", "npm ci"),
        ignored(b"tests/__pycache__", "pytest"),
        ignored(b".env", ""),
        FileStep({b"a": (None, store.entry(b"1"))}, "edit"),
        ignored(b"node_modules", "npm ci"),
    ]
    result = script(distilled(steps), [], store.content, session="", title="", began="", root="/")
    assert [one.step.title for one in distilled(steps)] == [
        "run_command npm ci",
        "edit",
        "run_command npm ci",
    ]
    assert result.text.count("\nrun . 'npm ci'\n") == 2
    said = "changed only what git ignores, which isn't checked: npm ci"
    assert result.cannot == [f"steps 1, 3 {said}"]


def test_a_skill_names_edits_in_a_row_once() -> None:
    store = Store()
    asked = prompt("tidy up")

    def edit(name: bytes) -> FileStep:
        origin = CallOrigin("edit_file", "", prompt=asked)
        return FileStep({name: (None, store.entry(name))}, "edit", origin=origin)

    run = FileStep({b"c": (None, store.entry(b"c"))}, "run", "make")
    steps = distilled([edit(b"a"), edit(b"b"), run, edit(b"d")])
    text, _ = skill(steps, [], [], session="s", title="t")
    assert [line for line in text.splitlines() if line[:1].isdigit()] == [
        "1. Change `a`, `b`: tidy up",
        "2. Run `make`",
        "3. Change `d`: tidy up",
    ]


def test_a_command_of_several_lines_stays_one() -> None:
    store = Store()
    command = "cat > a <<'END'\n  deep  ```\n\nEND\nmake  'a  b'"
    one = FileStep({b"a": (None, store.entry(b"1"))}, "run", command)
    check = GreenCheck("set -e\ngrep -q 'it\\' a", "", "c", 9)
    text, _ = skill(distilled([one]), [check], [], session="s", title="t")
    assert (
        """
1. Run this:

   ````bash
   cat > a <<'END'
     deep  ```

   END
   make  'a  b'
   ````
"""
        in text
    )
    assert (
        """
- This succeeds:

  ```bash
  set -e
  grep -q 'it\\' a
  ```
"""
        in text
    )
    text, _ = task_file([DistilledPrompt("Do it", "r", (check.command,))], session="s", title="t")
    (task,) = parse(text.encode()).tasks
    command = task.text.partition("succeeds: `")[2].removesuffix("`")
    again = subprocess.check_output(["bash", "-c", f"echo {command[8:]}"], text=True)
    assert again == f"{check.command}\n"


def test_links_folders_modes_and_binary_files_come_along(tmp_path: Path) -> None:
    store = Store()
    folder = PathEntry(Kind.FOLDER, 0o755, 0, NEVER, None, ignored=False)
    steps = [
        FileStep(
            {
                b"d": (None, folder),
                b"d/bin": (None, store.entry(b"\0\xff", 0o755)),
                b"l": (None, store.entry(b"../$(x) y", kind=Kind.LINK)),
                b"gone": (store.entry(b"old\n"), None),
                b"mode": (store.entry(b"m\n"), store.entry(b"m\n", 0o755)),
            },
            "run that failed",
        )
    ]
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "gone").write_text("old\n")
    (clone / "mode").write_text("m\n")
    ended = bash(made(store, steps, []), clone)
    assert ended.returncode == 0, ended.stderr
    assert tree_of(clone) == {
        "d": ("folder", 0o755, b""),
        "d/bin": ("file", 0o755, b"\0\xff"),
        "l": ("link", 0, b"../$(x) y"),
        "mode": ("file", 0o755, b"m\n"),
    }


KEY = "sk-ant-api03-" + "A" * 80
PEM = "-----BEGIN PRIVATE KEY-----\n" + ("MIIEvQIBADANBgkq" * 4 + "\n") * 3


@pytest.mark.parametrize("secret", [KEY, PEM])
def test_secrets_are_removed_and_open_nothing(tmp_path: Path, secret: str) -> None:
    store = Store()
    first, second = (store.entry(f"{text}\n{secret}\nEND\n".encode()) for text in ("a", "b"))
    steps = [
        FileStep({b"a": (None, first)}, "edit"),
        FileStep({b"a": (first, second)}, "edit"),
        FileStep({b"b": (None, first)}, "run", command=f"echo '{secret}' > b"),
    ]
    result = script(
        distilled(steps), [], store.content, session="s", title=secret, began="", root="/w"
    )
    assert "MIIEvQ" not in result.text
    assert KEY not in result.text
    assert result.secrets >= 2
    assert any("secret was removed" in line for line in result.cannot)
    clone = tmp_path / "clone"
    clone.mkdir()
    ended = bash(result.text, clone)
    assert ended.returncode == 0, ended.stderr
    assert sorted(os.listdir(clone)) == ["a", "b"]


@given(st.lists(st.tuples(whole_texts, st.lists(whole_texts, max_size=2)), max_size=5), whole_texts)
def test_a_task_file_has_a_task_for_each_prompt(
    prompts: list[tuple[str, list[str]]], title: str
) -> None:
    given_ = [DistilledPrompt(f"p{text}", title, tuple(checks)) for text, checks in prompts]
    text, _ = task_file(given_, session=f"s{title}", title=title)
    file = parse(text.encode("utf-8", "replace"))
    assert len(file.tasks) == len(prompts)
    assert all(task.text.startswith("p") and task.mark == " " for task in file.tasks)
    assert {task.group for task in file.tasks} <= {"distilled"}
    assert not file.boot


def test_neither_a_title_nor_an_id_gets_out_of_its_place() -> None:
    text, secrets = task_file([], session="s\n\n- [ ] more", title=f"use {KEY}")
    assert not parse(text.encode()).tasks
    assert (KEY in text, secrets) == (False, 1)
    told = [Correction("with a refusal", "stop", "r\n\n# More")]
    draft, _ = skill([], [], told, session="s", title="t")
    assert "\n# More" not in draft


@given(whole_texts, whole_texts)
def test_a_skill_has_a_sound_front_matter_and_quotes_corrections(title: str, words: str) -> None:
    store = Store()
    steps = distilled([FileStep({b"a": (None, store.entry(b"1"))}, words, command=f"x{words}")])
    told = [Correction("with a refusal", f"q{words}", title)]
    text, _ = skill(steps, [], told, session="s", title=title)
    fields = front_matter.parse(text.encode("utf-8", "replace")).fields
    assert fields.keys() == {"name", "description"}
    assert str(fields["description"]).startswith("Draft, from session s.")
    assert text.count("\n## What the person corrected\n") == 1
    assert "\n> q" in text


def record(type_: str, id_: str = "", **data: object) -> Record:
    return Record(type_, id_ or type_, None, "", data)


def prompt(text: str) -> Record:
    return record("user", text, text=text, content=[])


def test_what_the_person_corrected_is_told_by_what_happened() -> None:
    records = [
        prompt("add a test"),
        record("permission", answer="no", by="person", reason="never touch main"),
        record("permission", answer="no", by="person", reason=""),
        record("permission", answer="no", by="hook", reason="a rule"),
        prompt("No, thanks: go on"),
        record("interrupt", reason="stopped"),
        prompt("smaller steps"),
        record("rewind"),
        prompt("again with care"),
    ]
    assert [(one.why, one.text) for one in corrections(records, [], Store().content)] == [
        ("with a refusal", "never touch main"),
        ("after an interruption", "smaller steps"),
        ("after a rewind", "again with care"),
    ]


def test_a_prompt_that_takes_back_what_the_last_one_brought_corrects_it() -> None:
    store = Store()
    prompts = [prompt(text) for text in ("use unittest", "add more", "pytest, please", "the end")]
    texts_ = (b"old\n", b"old\nunittest\n", b"old\nunittest\nmore\n", b"old\nunittest\npytest\n")
    versions = [store.entry(text) for text in (*texts_, b"unittest\npytest\n")]
    steps = [
        FileStep(
            {b"a": (versions[n], versions[n + 1])},
            "edit",
            origin=CallOrigin("edit_file", "a", prompt=one),
        )
        for n, one in enumerate(prompts)
    ]
    # "add more" only adds; "the end" takes a line away that is older than the prompt before it
    assert [(one.why, one.text) for one in corrections(prompts, steps, store.content)] == [
        ("as a revision", "pytest, please")
    ]
