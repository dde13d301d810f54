"""Decisions: the order of the sources, and what each of them can and cannot do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tui.core.errors import UsageError
from tui.core.web_address import WebAddress
from tui.core.workspace import Workspace
from tui.permissions.policy import Grant, Policy, decide
from tui.permissions.rules import Rule
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, Decision, Mode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "project"
    (folder / "src").mkdir(parents=True)
    for name in ("hooks", "objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


class World:
    """A workspace below a home that is also the ceiling."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root.parent
        self.config = self.home / ".config" / "holdfast"
        self.workspace = Workspace.at(root, ceiling=self.home)

    def decide(
        self,
        call: Call,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        auto_grant: Iterable[str] = (),
        mode: Mode = "ask",
        elevated: bool = False,
        grants: Iterable[Grant] = (),
    ) -> Decision:
        made = Policy.of(
            allow=allow,
            ask=ask,
            deny=deny,
            auto_grant=auto_grant,
            private=(self.config, self.home / "data"),
        )
        policy = Policy(made.allow, made.ask, made.deny, made.auto_grant, self.home, made.private)
        return decide(
            call, policy, mode=mode, elevated=elevated, grants=grants, workspace=self.workspace
        )


@pytest.fixture
def world(root: Path) -> World:
    return World(root)


def command(text: str, cwd: str = "") -> Call:
    paths = (cwd,) if cwd else ()
    return Call("1", "run_command", "run", text, command=text, paths=paths)


def write(path: str, tool: str = "write_file") -> Call:
    return Call("1", tool, "write", path, paths=(path,))


def read(path: str, tool: str = "read_file") -> Call:
    return Call("1", tool, "read", path, paths=(path,))


def test_without_rules_reads_and_safe_commands_run_and_the_rest_asks(world: World) -> None:
    assert world.decide(read("src/a.py")).answer == "allow"
    assert world.decide(command("git status")).answer == "allow"
    assert world.decide(Call("1", "todo_write", "none", "")).answer == "allow"
    assert world.decide(write("a.py")).answer == "ask"
    assert world.decide(command("pytest")) == Decision(
        "ask", "`pytest` may do more than read, as far as Holdfast knows.", "default", "standard"
    )
    assert world.decide(Call("1", "mcp__x__y", "run", "")).answer == "ask"


def test_high_risk_is_asked_for_with_its_mark(world: World) -> None:
    decision = world.decide(command("rm -r build"))
    assert decision.answer == "ask"
    assert decision.risk == "high-risk"
    assert decision.reason == "High-risk: it deletes folders."


@pytest.mark.parametrize(
    "text", ["rm -rf ~", "rm -rf .", "sudo mkfs.ext4 /dev/sda", ":(){ :|:& };:"]
)
def test_K46_nothing_lifts_what_is_always_blocked(world: World, text: str) -> None:
    call = command(text)
    grants = (Grant("run_command", subject=text), Grant("run_command", (Rule("run_command"),)))
    allow = ["run_command", "run_command(*)", str(Rule.exactly("run_command", text))]
    decision = world.decide(call, allow=allow, elevated=True, grants=grants)
    assert decision.answer == "deny"
    assert decision.by == "blocked"
    assert decision.risk == "blocked"


def test_paths_outside_the_workspace_are_denied_whatever_the_rules_say(world: World) -> None:
    for call in (read("/etc/passwd"), write("../x"), command("ls", cwd="..")):
        decision = world.decide(call, allow=["*"])
        assert decision.answer == "deny"
        assert decision.by == "workspace"


def test_K46_elevated_widens_to_the_ceiling_and_no_further(world: World) -> None:
    assert world.decide(write("../x"), elevated=True).by == "elevated"
    assert world.decide(write(str(world.home.parent / "x")), elevated=True).by == "workspace"
    assert world.decide(read("/etc/passwd"), elevated=True).answer == "deny"


def test_K43_elevated_allows_what_would_be_asked_and_says_so(world: World) -> None:
    for call in (write("a"), command("pytest"), command("rm -r build"), command("if then")):
        decision = world.decide(call, elevated=True)
        assert decision.answer == "allow"
        assert decision.by == "elevated"
    assert world.decide(command("ls"), elevated=True).by == "safe"
    assert world.decide(write("a"), ask=["write_file"], elevated=True).by == "elevated"


def test_elevated_does_not_lift_a_deny_rule_or_plan_mode(world: World) -> None:
    assert world.decide(write("a"), deny=["write_file"], elevated=True).answer == "deny"
    assert world.decide(write("a"), mode="plan", elevated=True).answer == "deny"


def test_deny_goes_before_ask_and_ask_before_allow(world: World) -> None:
    rules = ["run_command(pytest*)"]
    call = command("pytest -q")
    denied = world.decide(call, allow=rules, ask=rules, deny=rules)
    assert (denied.answer, denied.by) == ("deny", "run_command(pytest*)")
    assert world.decide(call, allow=rules, ask=rules).answer == "ask"
    allowed = world.decide(call, allow=rules)
    assert (allowed.answer, allowed.by) == ("allow", "run_command(pytest*)")


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("git commit -m x", True),
        ("git   commit -m x", True),
        ("git commit -m x && git status", True),
        ("cd src && git commit -m x | cat", True),
        ("timeout 9 git commit", False),
        ("sh -c 'git commit'", False),
        ("git commit && make", False),
        ("git commit; make", False),
        ("make | git commit", False),
        ("git commit $(make)", False),
        ("git commit `make`", False),
        ("git commit <(make)", False),
        ("git commit > out.txt", False),
        ("git commit > ~/.bashrc", False),
        ("git commit &\nmake", False),
        ("PATH=. git commit", False),
        ("sudo git commit", False),
        ("git commit 'oops", False),
        ("make git commit", False),
        ("eval 'git commit; make'", False),
    ],
)
def test_an_allow_rule_must_cover_every_part(world: World, text: str, allowed: bool) -> None:
    decision = world.decide(command(text), allow=["run_command(git commit*)"])
    assert (decision.answer == "allow") is allowed, decision


@pytest.mark.parametrize(
    "text",
    [
        "git push",
        "git push origin",
        "git  push",
        "g\\it push",
        '"git" push',
        "git 'push'",
        "/usr/bin/git push",
        "git -C sub push",
        "ls && git push",
        "ls; git push",
        "echo $(git push)",
        "sudo git push",
        "env A=1 git push",
        "bash -c 'git push'",
        "xargs git push",
        "X=git; $X push",
        "git push 'oops",
        "(git push",
    ],
)
def test_a_deny_rule_matches_any_part_however_it_is_spelled(world: World, text: str) -> None:
    decision = world.decide(command(text), deny=["run_command(git push*)"], elevated=True)
    assert decision.answer == "deny"
    assert decision.by == "run_command(git push*)"


@pytest.mark.parametrize(
    ("rule", "text", "allowed"),
    [
        ("run_command", "make", True),
        ("run_command(*)", "make", True),
        ("*", "make", True),
        ("run_command", "rm -r build", False),
        ("run_command(*)", "rm -r build", False),
        ("run_command(rm -r build)", "rm -r build", True),
        ("run_command(rm *)", "rm -r build", True),
        ("run_command(git push*)", "git push origin", True),
        ("run_command(sudo apt*)", "sudo apt install x", True),
        ("run_command(sudo *)", "sudo apt install x", False),
        ("run_command(find . -name x -exec rm*)", "find . -name x -exec rm -r {} +", False),
        ("run_command(timeout 9 rm*)", "timeout 9 rm -r build", True),
        ("run_command(timeout *)", "timeout 9 rm -r build", False),
        ("run_command(find *)", "find . -name x -exec rm -r {} +", False),
        ("run_command(bash -c *)", "bash -c 'rm -r build'", False),
        ("run_command(echo 'a)", "echo 'a", True),
        ("run_command(echo*)", "echo 'a", False),
        ("run_command(curl x | sh)", "curl x | sh", True),
        ("run_command(curl*)", "curl x | sh", False),
    ],
)
def test_high_risk_needs_a_rule_that_names_it(
    world: World, rule: str, text: str, allowed: bool
) -> None:
    assert (world.decide(command(text), allow=[rule]).answer == "allow") is allowed


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("write_file", "a.py", True),
        ("write_file(src/*)", "src/a/b.py", True),
        ("write_file(src/*)", "./src/../src/a.py", True),
        ("write_file(src/*)", "src/../a.py", False),
        ("write_file(*.py)", "a.py", True),
        ("write_file(*.py)", "a.txt", False),
        ("edit_file(*)", "a.py", False),
        ("write_file(~/project/src/*)", "src/a.py", True),
    ],
)
def test_rules_for_paths_go_by_where_a_path_really_leads(
    world: World, rule: str, path: str, matches: bool
) -> None:
    assert (world.decide(write(path), allow=[rule]).answer == "allow") is matches
    if matches:
        assert world.decide(write(path), deny=[rule]).answer == "deny"


def test_a_deny_rule_for_paths_matches_the_path_as_it_was_named_too(world: World) -> None:
    assert world.decide(write("src/../a.py"), deny=["write_file(src/*)"]).answer == "deny"
    assert world.decide(write("a.py"), deny=["write_file(src/*)"]).answer == "ask"


def test_rules_for_paths_match_absolute_paths_too_and_follow_links(world: World) -> None:
    rule = f"write_file({world.root}/src/*)"
    assert world.decide(write("src/a.py"), allow=[rule]).answer == "allow"
    (world.root / "link").symlink_to(world.root / "src")
    assert world.decide(write("link/a.py"), deny=["write_file(src/*)"]).answer == "deny"
    assert world.decide(write("link/a.py"), deny=["write_file(link/*)"]).answer == "deny"
    assert world.decide(write("link/a.py"), allow=["write_file(link/*)"]).answer == "ask"


def test_reading_can_be_denied_and_then_commands_do_not_get_around_it(world: World) -> None:
    deny = ["read_file(*.env)"]
    assert world.decide(read("x.env"), deny=deny).answer == "deny"
    assert world.decide(read("a.py"), deny=deny).answer == "allow"
    assert world.decide(command("cat x.env"), deny=deny, elevated=True).answer == "deny"
    assert world.decide(command("cat a.py"), deny=deny).answer == "ask"
    assert world.decide(command("grep -r x ."), deny=deny).answer == "ask"
    assert world.decide(command("git status && ls"), deny=deny).answer == "allow"


SPELLINGS = [
    ".env", "./.env", "src/../.env", "./src/.././.env", "src/../src/../.env", "//{root}/.env",
    "{root}/.env", "{root}/src/../.env", "../project/.env", "~/project/.env", ".//.env", ".env/.",
    ".env/", ".ENV", ".Env", "link", "./link", "src/link", "src/../link", "hard", "src/hard",
    "{root}/hard", "folder/.env", "folder/link", "folder/src/../.env", "away", "src/away",
]  # fmt: skip


@pytest.mark.parametrize("tool", ["read_file", "grep_search", "edit_file", "apply_patch"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_denied_path_is_denied_to_every_reader(
    world: World, monkeypatch: pytest.MonkeyPatch, tool: str, spelling: str
) -> None:
    monkeypatch.setenv("HOME", str(world.home))
    root = world.root
    for name in (".env", ".ENV", ".Env"):
        (root / name).write_text("secret")
    for link, target in (("link", ".env"), ("src/link", "../.env"), ("folder", ".")):
        (root / link).symlink_to(target)
    (root / "away").symlink_to(f"{root}/src/../.env")
    (root / "src/away").symlink_to("../away")
    for name in ("hard", "src/hard"):
        (root / name).hardlink_to(root / ".env")
    path = spelling.replace("{root}", str(root))
    call = read(path, tool) if tool in {"read_file", "grep_search"} else write(path, tool)
    for elevated in (False, True):
        decision = world.decide(call, deny=["read_file(.env)"], allow=[tool], elevated=elevated)
        assert decision.answer == "deny"
    assert world.decide(read("src/a.py", tool), deny=["read_file(.env)"]).answer != "deny"


@pytest.mark.parametrize(
    ("text", "cwd", "answer"),
    [
        ("cat .env", "", "deny"),
        ("cat ./src/../.env", "", "deny"),
        ("cat ../.env", "src", "deny"),
        ("git add .env", "", "deny"),
        ("git show HEAD:.env", "", "deny"),
        ("grep --file=.env x", "", "deny"),
        ("cat a.py", "", "allow"),
        ("python3 -c 'print(1)'", "", "allow"),
    ],
)
def test_a_command_that_names_a_denied_path_is_refused_and_walls_hide_it_from_others(
    world: World, text: str, cwd: str, answer: str
) -> None:
    (world.root / ".env").write_text("secret")
    made = Policy.of(deny=["read_file(.env)"])
    decision = decide(
        command(text, cwd), made, mode="accept_edits", elevated=False, grants=(),
        workspace=world.workspace, holds=frozenset({Level.READ_ONLY, Level.WORKSPACE}),
    )  # fmt: skip
    assert decision.answer == answer
    assert made.denied_places(world.root) == (world.root / ".env",)


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("read_file(.env)", "allow"),
        ("read_file(.env*)", "allow"),
        ("read_file(keys/*)", "allow"),
        ("read_file(keys/**)", "allow"),
        ("read_file(~/project/.env)", "allow"),
        ("read_file(*.pem)", "ask"),
        ("read_file(**/.env)", "ask"),
        ("read_file", "ask"),
    ],
)
@pytest.mark.parametrize("mode", ["ask", "accept_edits"])
def test_commands_ask_where_walls_cannot_hide_what_is_denied(
    world: World, mode: Mode, rule: str, answer: str
) -> None:
    made = Policy.of(deny=[rule])
    policy = Policy(deny=made.deny, home=world.home)
    decision = decide(
        command("make"), policy, mode=mode, elevated=False, grants=(),
        workspace=world.workspace, holds=frozenset({Level.READ_ONLY, Level.WORKSPACE}),
    )  # fmt: skip
    assert decision.answer == answer


def test_plan_mode_reads_only(world: World) -> None:
    for call in (write("a"), command("make"), Call("1", "mcp__x", "run", "")):
        decision = world.decide(call, mode="plan", allow=["*"])
        assert (decision.answer, decision.by) == ("deny", "plan")
    assert world.decide(read("a"), mode="plan").answer == "allow"
    assert world.decide(command("git diff"), mode="plan").answer == "allow"


def test_accept_edits_covers_files_of_the_workspace_and_no_commands(world: World) -> None:
    assert world.decide(write("a"), mode="accept_edits").by == "accept_edits"
    assert world.decide(command("make"), mode="accept_edits").answer == "ask"
    assert world.decide(write("../a"), mode="accept_edits").answer == "deny"


def test_folders_with_auto_grant_are_written_without_a_question(world: World) -> None:
    for pattern in ("src", "src/", "src/*", "~/project/src", f"{world.root}/src", "s*c"):
        assert world.decide(write("src/x/a.py"), auto_grant=[pattern]).by == "auto_grant"
        assert world.decide(write("a.py"), auto_grant=[pattern]).answer == "ask"
    assert world.decide(write("src2/a.py"), auto_grant=["src"]).answer == "ask"
    assert world.decide(command("make"), auto_grant=["*"]).answer == "ask"


def test_the_repositorys_own_files_are_always_asked_for(world: World) -> None:
    for path in (".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config"):
        edits = Rule("write_file", f"{world.root}/*")
        decision = world.decide(
            write(path),
            mode="accept_edits",
            auto_grant=["*"],
            allow=["write_file", "*"],
            grants=[Grant("write_file", (edits,))],
        )
        assert decision.answer == "ask"
        assert "hooks and settings" in decision.reason
    named = world.decide(write(".git/config"), allow=["write_file(.git/config)"])
    assert named.answer == "allow"
    assert world.decide(write(".git/config"), elevated=True).by == "elevated"
    assert world.decide(write(".gitignore"), mode="accept_edits").answer == "allow"


def test_the_programs_own_files_in_the_workspace(world: World) -> None:
    for name in ("config.toml", "tool-results/x.txt", "run/state.json", ".gitignore"):
        decision = world.decide(write(f".holdfast/{name}"), allow=["*"], elevated=True)
        assert (decision.answer, decision.by) == ("deny", "protected")
        assert world.decide(read(f".holdfast/{name}")).answer == "allow"
    for name in ("boot.md", "commands/x.md", "MEMORY.md"):
        assert world.decide(write(f".holdfast/{name}"), mode="accept_edits").answer == "ask"


def test_the_programs_own_folders_are_not_read_or_written(world: World) -> None:
    for path in (world.config / "credentials.json", world.config, world.home / "data" / "x.jsonl"):
        for call in (read(str(path)), write(str(path))):
            decision = world.decide(call, allow=["*"], elevated=True)
            assert (decision.answer, decision.by) == ("deny", "protected")
    secret = world.config / "credentials.json"
    assert world.decide(command(f"cat {secret}"), elevated=True).by == "blocked"


def test_a_read_that_a_rule_asks_about_is_said_to_read(world: World) -> None:
    decision = world.decide(read(".holdfast/config.toml"), ask=["read_file"])
    assert decision.answer == "ask"
    assert decision.reason == "The rule read_file asks. Read-only."


def test_a_grant_for_this_very_call_goes_before_ask_rules(world: World) -> None:
    call = command("git push")
    grants = [Grant("run_command", subject="git push")]
    assert world.decide(call, ask=["run_command(git push*)"], grants=grants).by == "session"
    assert world.decide(command("git push x"), grants=grants).answer == "ask"
    assert world.decide(command("git push", cwd="src"), grants=grants).answer == "ask"
    assert world.decide(call, deny=["run_command(git push*)"], grants=grants).answer == "deny"


def test_a_granted_prefix_stops_at_standard_risk_and_at_ask_rules(world: World) -> None:
    grants = [Grant("run_command", (Rule("run_command", "git *"),))]
    assert world.decide(command("git commit"), grants=grants).by == "session"
    assert world.decide(command("git push"), grants=grants).answer == "ask"
    assert world.decide(command("git commit && make"), grants=grants).answer == "ask"
    ask = ["run_command(git commit*)"]
    assert world.decide(command("git commit"), ask=ask, grants=grants).answer == "ask"


def test_the_reason_of_a_denial_says_what_to_do(world: World) -> None:
    assert "--add-dir" in world.decide(read("/etc/passwd")).reason
    assert "the user" in world.decide(write(".holdfast/config.toml")).reason


def web(url: str) -> Call:
    return Call("1", "web_fetch", "fetch", str(WebAddress.parse(url)))


DOCS = "https://docs.python.org/3/library/"


def test_a_web_address_asks_in_every_mode_but_elevated(world: World) -> None:
    for mode in ("ask", "accept_edits", "plan"):
        decision = world.decide(web(DOCS), mode=mode)
        assert (decision.answer, decision.by) == ("ask", "default")
        assert decision.reason == "Sends this address to docs.python.org."
    assert world.decide(web(DOCS), elevated=True).by == "elevated"
    assert world.decide(web(DOCS), allow=["web_fetch"], mode="plan").answer == "allow"


@pytest.mark.parametrize(
    ("rule", "url", "allowed"),
    [
        ("web_fetch", DOCS, True),
        ("web_fetch(*)", DOCS, True),
        ("*", DOCS, True),
        ("web_fetch(https://docs.python.org/*)", DOCS, True),
        ("web_fetch(https://Docs.Python.org/3/*)", DOCS, True),
        ("web_fetch(https://docs.python.org*)", DOCS, True),
        ("web_fetch(https://*.python.org/*)", DOCS, True),
        ("web_fetch(http*://docs.python.org/*)", DOCS, True),
        ("web_fetch(https://docs.python.org/3/library/)", DOCS, True),
        ("web_fetch(https://docs.python.org/2/*)", DOCS, False),
        ("web_fetch(http://docs.python.org/*)", DOCS, False),
        ("web_fetch(docs.python.org/*)", DOCS, False),
        ("read_file", DOCS, False),
        ("web_fetch(https://docs.python.org*)", "https://docs.python.org.evil.com/", False),
        ("web_fetch(https://*.python.org/*)", "https://evil.com/.python.org/", False),
        ("web_fetch(https://docs.python.org/*)", "https://docs.python.org:8443/", False),
    ],
)
def test_rules_for_web_addresses(world: World, rule: str, url: str, allowed: bool) -> None:
    decision = world.decide(web(url), allow=[rule])
    assert (decision.answer == "allow") is allowed
    assert not decision.private


@pytest.mark.parametrize(
    "rule",
    [
        "web_fetch",
        "web_fetch(https://docs.python.org)",
        "web_fetch(https://docs.python.org/*)",
        "web_fetch(*python.org*)",
    ],
)
def test_a_deny_rule_for_web_addresses_goes_before_all(world: World, rule: str) -> None:
    decision = world.decide(web(DOCS), deny=[rule], allow=["web_fetch"], elevated=True)
    assert (decision.answer, decision.by) == ("deny", rule)
    assert world.decide(web(DOCS), ask=[rule], allow=["web_fetch"]).answer == "ask"


def test_an_address_with_a_key_is_refused_whatever_the_rules_say(world: World) -> None:
    for key in ("ghp_" + "a1" * 18, "%67hp_" + "a1" * 18):
        decision = world.decide(web(f"https://x.org/?q={key}"), allow=["*"], elevated=True)
        assert (decision.answer, decision.by) == ("deny", "secret")


def test_the_own_network_needs_a_rule_that_names_it_or_an_answer(world: World) -> None:
    server = web("http://localhost:3000/a")
    asked = world.decide(server)
    assert (asked.answer, asked.private) == ("ask", True)
    assert "on this machine or in your own network" in asked.reason
    for rule in ("web_fetch", "*", "web_fetch(*)", "web_fetch(http://*/*)"):
        assert world.decide(server, allow=[rule]).answer == "ask"
    for rule in ("web_fetch(http://localhost:3000/*)", "web_fetch(http://local*/*) private"):
        decision = world.decide(server, allow=[rule], elevated=True)
        assert (decision.answer, decision.by, decision.private) == ("allow", rule, True)
    elevated = world.decide(server, elevated=True)
    assert (elevated.answer, elevated.private) == ("allow", False)
    granted = [Grant("web_fetch", (Rule("web_fetch", "http://localhost:3000/*"),))]
    assert world.decide(server, grants=granted).private


def test_a_name_leads_into_the_own_network_only_by_a_rule_that_says_so(world: World) -> None:
    wiki = web("https://wiki.corp/start")
    assert not world.decide(wiki, allow=["web_fetch(https://wiki.corp/*)"]).private
    assert world.decide(wiki, allow=["web_fetch(https://wiki.corp/*) private"]).private
    assert not world.decide(web(DOCS), allow=["web_fetch(https://wiki.corp/*) private"]).private
    with pytest.raises(UsageError, match="can't say how far"):
        world.decide(wiki, deny=["web_fetch(https://wiki.corp/*) private"])


def patch(*paths: str) -> Call:
    return Call("c", "apply_patch", "write", ", ".join(paths), paths=paths)


@pytest.mark.parametrize(
    "rule",
    [
        *("edit_file(src/secret*)", "write_file(src/secret*)", "apply_patch(src/secret*)"),
        *("edit_file", "*(src/secret.txt)", "edit_file(*/secret.txt)"),
    ],
)
def test_a_rule_against_writing_a_file_holds_for_patches(world: World, rule: str) -> None:
    call = patch("src/a.py", "src/secret.txt")
    for more in ({"elevated": True}, {"mode": "accept_edits"}, {"allow": ["apply_patch"]}):
        decision = world.decide(call, deny=[rule], **more)  # pyright: ignore[reportArgumentType]
        assert (decision.answer, decision.by) == ("deny", rule)
        asked = world.decide(call, ask=[rule], **{**more, "elevated": False})  # pyright: ignore[reportArgumentType]
        assert (asked.answer, asked.by) == ("ask", rule)
    inside = patch("src/a.py", "src/b.py")
    if "(" in rule:
        assert world.decide(inside, deny=[rule], allow=["apply_patch"]).answer == "allow"


def test_a_rule_against_reading_or_running_says_nothing_of_patches(world: World) -> None:
    rules = ["read_file(src/*)", "run_command(git*)"]
    assert world.decide(patch("src/a.py"), deny=rules, allow=["apply_patch"]).answer == "allow"


def test_a_patch_is_allowed_only_where_each_of_its_files_is(world: World) -> None:
    both = patch("src/a.py", "docs/b.md")
    assert world.decide(both, allow=["apply_patch(src/*)"]).answer == "ask"
    assert world.decide(both, allow=["apply_patch(src/*)", "apply_patch(docs/*)"]).answer == "allow"
    assert world.decide(both, allow=["edit_file", "write_file"]).answer == "ask"
    assert world.decide(both, auto_grant=["src/*"]).answer == "ask"
    assert world.decide(both, auto_grant=["src", "docs"]).answer == "allow"
    hook = patch("src/a.py", ".git/hooks/x")
    assert world.decide(hook, allow=["apply_patch"]).answer == "ask"
    assert world.decide(hook, mode="accept_edits").answer == "ask"
    rules = ["apply_patch", "apply_patch(.git/hooks/*)"]
    assert world.decide(hook, allow=rules).answer == "allow"


def test_a_patch_is_a_write_like_every_other(world: World) -> None:
    both = patch("src/a.py", "src/b.py")
    assert world.decide(both).answer == "ask"
    assert world.decide(both, mode="accept_edits").by == "accept_edits"
    assert world.decide(both, mode="plan").by == "plan"
    assert world.decide(patch("src/a.py", "../../etc/x")).by == "workspace"
    assert world.decide(patch("src/a.py", ".holdfast/config.toml"), elevated=True).by == "protected"


def test_in_a_worktree_its_own_files_are_those_below_it(root: Path) -> None:
    top = root / ".holdfast" / "worktrees" / "fix"
    (top / "src").mkdir(parents=True)
    outer, inner = World(root), World(top)

    def answer(world: World, path: str) -> str:
        return world.decide(write(path), mode="accept_edits").answer

    assert answer(inner, "src/a.py") == "allow"
    assert answer(inner, ".git/hooks/x") == "ask"
    assert answer(inner, ".holdfast/config.toml") == "deny"
    assert answer(outer, ".holdfast/worktrees/fix/src/a.py") == "ask"
    assert answer(outer, ".holdfast/worktrees/fix/.holdfast/config.toml") == "deny"
