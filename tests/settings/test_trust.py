"""Workspace trust (decision 30): asked once for each thing, bound to its content, remembered, and
never granted by the project."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tui.core.errors import StorageError
from tui.core.paths import Folders, folders
from tui.settings import agent_definitions, hook_files, trust
from tui.settings.hook_files import scripts_in
from tui.settings.trust import TrustItem, items

SERVER = 'base_url = "http://127.0.0.1:1"\n'
RULES = '[permissions]\nallow = ["run_command(make)", "run_command(ls)"]\n'


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".holdfast").mkdir(parents=True)
    brings(tmp_path / "project", "config.toml", SERVER + RULES)
    return tmp_path / "project"


def brings(workspace: Path, name: str, text: str) -> Path:
    file = workspace / ".holdfast" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def say(home: Folders, workspace: Path, *names: str) -> None:
    """Decide about everything: these names are granted."""
    trust.decide(home, workspace, trust.items(workspace), names)


def say_yes(home: Folders, workspace: Path) -> None:
    say(home, workspace, *(item.name for item in trust.items(workspace)))


def names(items: tuple[TrustItem, ...]) -> list[str]:
    return [item.name for item in items]


def granted(home: Folders, workspace: Path) -> set[str]:
    return set(trust.trust_of(home, workspace).granted)


ALL = [
    "base_url",
    "permissions.allow: run_command(make)",
    "permissions.allow: run_command(ls)",
]


def test_nothing_is_trusted_until_someone_says_so(home: Folders, project: Path) -> None:
    assert granted(home, project) == set()
    assert names(trust.undecided(home, project)) == ALL
    say_yes(home, project)
    assert granted(home, project) == set(ALL)
    assert trust.undecided(home, project) == ()


def test_each_thing_can_be_left_out(home: Folders, project: Path) -> None:
    say(home, project, ALL[1])
    allows = trust.trust_of(home, project).allows
    assert allows(ALL[1], "run_command(make)")
    assert not allows(ALL[2], "run_command(ls)")
    assert not allows("base_url", "http://127.0.0.1:1")
    assert trust.undecided(home, project) == ()  # a no is remembered too


def test_a_no_can_be_changed(home: Folders, project: Path) -> None:
    say(home, project)
    assert granted(home, project) == set()
    say_yes(home, project)
    assert granted(home, project) == set(ALL)


def test_a_change_asks_again_and_shows_the_difference(home: Folders, project: Path) -> None:
    say_yes(home, project)
    brings(project, "config.toml", 'base_url = "https://other.test"\n' + RULES)
    assert not trust.trust_of(home, project).allows("base_url", "https://other.test")
    (found,) = trust.undecided(home, project)
    assert found.name == "base_url"
    assert found.change == (
        "-Sends the conversation, and the key kept for it, to http://127.0.0.1:1",
        "+Sends the conversation, and the key kept for it, to https://other.test",
    )


def test_a_changed_file_shows_the_lines_that_changed(home: Folders, tmp_path: Path) -> None:
    file = brings(tmp_path, "boot.md", "# Start\nread a\nread b\n")
    say_yes(home, tmp_path)
    assert trust.trust_of(home, tmp_path).allows_file(".holdfast/boot.md", file)
    file.write_text("# Start\nread a\nread c\n")
    assert not trust.trust_of(home, tmp_path).allows_file(".holdfast/boot.md", file)
    (found,) = trust.undecided(home, tmp_path)
    assert found.change == ("-read b", "+read c")
    file.write_text("# Start\nread a\nread b\n")  # as it was trusted
    assert trust.undecided(home, tmp_path) == ()


def test_what_is_gone_and_comes_back_is_asked_about_again(home: Folders, project: Path) -> None:
    say_yes(home, project)
    brings(project, "config.toml", SERVER)
    say_yes(home, project)
    brings(project, "config.toml", SERVER + RULES)
    assert names(trust.undecided(home, project)) == ALL[1:]


@pytest.mark.parametrize(
    ("name", "text", "does"),
    [
        (
            "config.toml",
            SERVER,
            "Sends the conversation, and the key kept for it, to http://127.0.0.1:1",
        ),
        (
            "config.toml",
            '[mcp.db]\ncommand = ["npx", "a b"]\n',
            "Starts npx 'a b' (MCP server db)",
        ),
        (
            "config.toml",
            '[mcp.db]\nurl = "https://db.test/mcp"\n',
            "Connects to https://db.test/mcp (MCP server db)",
        ),
        (
            "config.toml",
            '[permissions]\nallow = ["edit"]\n',
            "Allows without asking: edit",
        ),
        (
            "config.toml",
            '[permissions]\nauto_grant = ["out/**"]\n',
            "Lets files be written without asking: out/**",
        ),
        ("config.toml", "[retry]\nmax_attempts = 99\n", "Sets retry.max_attempts = 99"),
        (
            "boot.md",
            "\n# Read me\nand more\n",
            "Adds a text to each session: .holdfast/boot.md, 2 lines, “# Read me”",
        ),
        (
            "commands/go.md",
            "Do it.\n",
            "Adds the command /go: .holdfast/commands/go.md, 1 line, “Do it.”",
        ),
        (
            "../.claude/commands/git/go.md",
            "---\nallowed-tools: Write\n---\nGo.\n",
            (
                "Adds the command /go: .claude/commands/git/go.md, 4 lines, “Go.”"
                "; in its turns it allows without asking: write_file"
            ),
        ),
        (
            "skills/pdf/SKILL.md",
            "---\nname: pdf\n---\nGo.\n",
            "Adds the skill pdf: .holdfast/skills/pdf/SKILL.md, 4 lines, “Go.”",
        ),
    ],
)
def test_each_thing_that_steers_says_what_it_would_do(
    home: Folders, tmp_path: Path, name: str, text: str, does: str
) -> None:
    brings(tmp_path, name, text)
    assert [item.does for item in trust.undecided(home, tmp_path)] == [does]


@pytest.mark.parametrize("name", ["MEMORY.md", "tool-results/a.txt", "commands/notes.txt"])
def test_what_does_not_steer_is_not_asked_about(home: Folders, tmp_path: Path, name: str) -> None:
    brings(tmp_path, name, "text")
    assert trust.undecided(home, tmp_path) == ()


@pytest.mark.parametrize(
    "text", ['[permissions]\ndeny = ["edit"]\nask = ["read_file"]\n', 'redact = "record"\n', ""]
)
def test_what_makes_things_stricter_needs_no_trust(
    home: Folders, tmp_path: Path, text: str
) -> None:
    brings(tmp_path, "config.toml", text)
    assert trust.undecided(home, tmp_path) == ()


def test_a_broken_link_counts_as_something(home: Folders, tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    link = tmp_path / ".holdfast" / "boot.md"
    link.symlink_to("not kept")
    (found,) = trust.undecided(home, tmp_path)
    assert "can't be read" in found.does
    say_yes(home, tmp_path)
    assert not trust.trust_of(home, tmp_path).allows_file(".holdfast/boot.md", link)


def test_trust_is_by_real_path_and_for_that_folder_only(
    home: Folders, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(project)
    (project / "sub").mkdir()
    say_yes(home, tmp_path / "link")
    assert granted(home, project) == set(ALL)
    assert granted(home, project / "sub") == granted(home, project.parent) == set()


def test_the_store_is_private_and_outside_the_project(home: Folders, project: Path) -> None:
    say_yes(home, project)
    store = home.data / "trust.json"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert [p.name for p in (project / ".holdfast").iterdir()] == ["config.toml"]


def test_several_folders_are_kept_apart(home: Folders, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        brings(tmp_path / name, "config.toml", SERVER)
        say(home, tmp_path / name, *(["base_url"] if name != "b" else []))
    assert [granted(home, tmp_path / name) for name in "abcd"] == [
        {"base_url"},
        set(),
        {"base_url"},
        set(),
    ]


def test_a_path_that_is_not_utf8(home: Folders, tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9"
    brings(odd, "config.toml", SERVER)
    brings(odd, "boot.md", "x")
    say_yes(home, odd)
    assert granted(home, odd) == {"base_url", ".holdfast/boot.md"}


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b'{"folders": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_store_trusts_nothing_and_is_kept(
    home: Folders, project: Path, broken: bytes
) -> None:
    store = home.data / "trust.json"
    store.parent.mkdir(parents=True)
    store.write_bytes(broken)
    assert granted(home, project) == set()
    assert trust.undecided(home, project)
    say_yes(home, project)
    assert granted(home, project) == set(ALL)
    assert (home.data / "trust.json.broken").read_bytes() == broken


@pytest.mark.parametrize(
    "value",
    ["true", '"yes"', "1", "null", "[true]", '{"base_url": true}', '{"base_url": {"granted": 1}}'],
)
def test_what_names_no_content_is_no_trust(home: Folders, project: Path, value: str) -> None:
    store = home.data / "trust.json"
    store.parent.mkdir(parents=True)
    store.write_text(f'{{"folders": {{"{project}": {value}}}}}')
    assert granted(home, project) == set()
    assert names(trust.undecided(home, project)) == ALL


def test_a_store_that_cannot_be_written_is_said(home: Folders, project: Path) -> None:
    home.data.parent.mkdir(parents=True)
    home.data.write_text("a file in the folder's place")
    with pytest.raises(StorageError, match=r"Can't write .*trust\.json"):
        say_yes(home, project)
    assert granted(home, project) == set()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".holdfast/hooks.json", '{"hooks": {"Stop": [{"matcher": "a{99999999999}"}]}}'),
        (".holdfast/hooks.json", '{"hooks": {"Stop": [{"matcher": "' + "(" * 3000 + '"}]}}'),
        (
            ".claude/settings.json",
            '{"hooks": {"Stop": [{"hooks": [{"command": "x", "timeout": 1' + "0" * 400 + "}]}]}}",
        ),
        (".claude/commands/x.md", "---\nallowed-tools: !!bool x\n---\n"),
        (
            ".claude/commands/x.md",
            "---\nallowed-tools: !!timestamp foo\ndescription: !!int ''\n---\n",
        ),
        (".claude/agents/x.md", "---\ndescription: 0x" + "f" * 5000 + "\n---\n"),
        (".claude/agents/x.md", "---\ntools: " + "[" * 5000 + "\n---\n"),
    ],
    ids=str,
)
def test_no_file_of_a_folder_keeps_the_program_from_starting(
    tmp_path: Path, name: str, text: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    items(tmp_path)
    agent_definitions.load([], brought=[tmp_path / ".claude/agents"], workspace=tmp_path)
    hook_files.load([file])


def test_a_folder_of_definitions_that_leads_out_has_none(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "x.md").write_text("---\ndescription: x\n---\n")
    (root / ".claude").mkdir(parents=True)
    (root / ".claude/agents").symlink_to(outside)
    assert items(root) == ()
    assert (
        "x" not in agent_definitions.load([], brought=[root / ".claude/agents"], workspace=root).all
    )


@pytest.mark.parametrize(
    "command",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh',
        '"${CLAUDE_PROJECT_DIR}/.claude/hooks/x.sh" --fast',
        "$CLAUDE_PROJECT_DIR/.claude/hooks/x.sh",
        "bash ./.claude/hooks/x.sh | tee log",
        "python3 .claude/hooks/x.sh && true",
        "A=.claude/hooks/x.sh sh -c 'exit 0'",
        'bash -c ".claude/hooks/x.sh --fast"',
        "$PWD/.claude/hooks/x.sh",
        '"$(git rev-parse --show-toplevel)"/.claude/hooks/x.sh',
        "`pwd`/.claude/hooks/x.sh",
        ".claude/'hooks/x.sh'",
        r".claude\/hooks/x.sh",
    ],
)
def test_trust_in_hooks_covers_the_scripts_that_they_name(
    home: Folders, tmp_path: Path, command: str
) -> None:
    root = tmp_path / "hooked"
    script = root / ".claude/hooks/x.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo one\n")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    (item,) = trust.items(root)
    assert ".claude/hooks/x.sh" in item.does
    trust.decide(home, root, (item,), [item.name])
    assert not trust.undecided(home, root)
    script.write_text("echo two\n")
    (changed,) = trust.undecided(home, root)
    assert changed.change == ("-echo one", "+echo two")
    bound = trust.with_scripts(hooks, scripts_in(hooks, root))
    assert not trust.trust_of(home, root).allows(item.name, bound)
    script.unlink()
    (gone,) = trust.undecided(home, root)
    assert "+.claude/hooks/x.sh: not there, or too large to read" in gone.change
    outside = tmp_path / "outside.sh"
    outside.write_text("x")
    script.symlink_to(outside)
    assert ".claude/hooks/x.sh" not in scripts_in(hooks, root)
    (linked,) = trust.undecided(home, root)
    assert linked.sha256 not in {item.sha256, gone.sha256}


@pytest.mark.parametrize(
    "command",
    [
        "cd .claude/hooks && ./x.sh",
        "cd .claude; cd hooks; sh x.sh",
        "sh -c 'cd .claude/hooks && ./x.sh'",
        "env -C .claude/hooks ./x.sh",
    ],
)
def test_a_script_is_found_in_a_folder_that_the_command_names(tmp_path: Path, command: str) -> None:
    script = tmp_path / ".claude/hooks/x.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo one\n")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    assert scripts_in(hooks, tmp_path)[".claude/hooks/x.sh"] == b"echo one\n"


def test_language_servers_of_a_folder_need_trust_by_their_paths(
    home: Folders, tmp_path: Path
) -> None:
    folder = tmp_path / "brings" / ".venv" / "bin"
    folder.mkdir(parents=True)
    root = tmp_path / "brings"
    (folder / "ruff").write_text("one")
    (folder / "python").write_text("no checker")
    (item,) = trust.items(root)
    assert item.name == "language servers"
    assert item.does == "Starts after edits, read-only in the sandbox: .venv/bin/ruff"
    assert trust.trusted_programs(root, trust.trust_of(home, root)) == ()
    say_yes(home, root)
    (folder / "ruff").write_text("an update")
    assert trust.trusted_programs(root, trust.trust_of(home, root)) == (".venv/bin/ruff",)
    (folder / "pylsp").write_text("another")
    assert trust.trusted_programs(root, trust.trust_of(home, root)) == ()
    assert trust.undecided(home, root)[0].change == ("+.venv/bin/pylsp",)


def test_a_folders_own_checkers_need_trust(project: Path) -> None:
    brings(
        project, "config.toml", '[diagnostics.checkers.x]\ncommand = "x --y"\nfiles = ["*.py"]\n'
    )
    (item,) = trust.items(project)
    assert item.name == "diagnostics.checkers"
    assert item.does == "Starts after edits, read-only in the sandbox: x --y"
