"""`holdfast doctor`: what it finds, that it says what to do, and that it changes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.profile import write_profile
from tests.support.program import Program
from tests.support.span_collector import local_collector
from tui.app import doctor
from tui.app.doctor import Check, Subject, machine
from tui.app.doctor import sandbox as confined
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders
from tui.permissions.sandbox.proof import Proof
from tui.session.session import Session

KEY = "sk-ant-very-secret"


def looked(workspace: Path, env: Mapping[str, str] | None = None) -> dict[str, Check]:
    """The checks by name; where there are several of one name, the last."""
    what = Subject.of(workspace, folders(), env or {})
    return {check.name: check for check in doctor.examine(what)}


def configure(text: str, home: Folders | None = None) -> None:
    file = (home or folders()).config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


class _Server(BaseHTTPRequestHandler):
    status = 200
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("authorization", "")))
        self.send_response(self.status)
        if self.status in {301, 302}:
            self.send_header("location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        pass


@contextmanager
def server(status: int) -> Generator[tuple[str, list[tuple[str, str]]]]:
    """A server on this machine that answers everything with a status, and what it was asked."""
    asked: list[tuple[str, str]] = []
    handler = type("Handler", (_Server,), {"status": status, "asked": asked})
    listening = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}", asked
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def test_a_fresh_place_lacks_only_the_key(tmp_path: Path) -> None:
    found = looked(tmp_path)
    assert {name for name, check in found.items() if check.status == "fail"} == {"key"}
    assert "ANTHROPIC_API_KEY" in found["key"].fix
    assert found["server"].detail == "not checked: no key"
    assert found["sessions"].detail == "none yet"


def test_the_practice_model_lacks_no_key(tmp_path: Path) -> None:
    subject = Subject.of(tmp_path, folders(), {}, model="practice")
    found = {check.name: check for check in doctor.examine(subject)}
    assert found["key"].status == "ok"
    assert found["key"].detail == "none; the practice model needs none (/login connects another)"


def test_looking_changes_nothing(tmp_path: Path) -> None:
    home = folders().data.parent
    before = sorted(home.rglob("*"))
    looked(tmp_path)
    made = {path.relative_to(home).parts[0] for path in set(home.rglob("*")) - set(before)}
    assert made <= {"cache"}  # the index of the sessions
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "outcome", "said"),
    [
        (200, "ok", "the key works"),
        (401, "fail", "rejects the key (401)"),
        (403, "fail", "rejects the key (403)"),
        (404, "ok", "with 404"),
        (302, "ok", "with 302"),
        (429, "warn", "with 429"),
        (503, "warn", "with 503"),
    ],
)
def test_the_server_is_asked_for_its_models_only(
    tmp_path: Path, status: int, outcome: str, said: str
) -> None:
    with server(status) as (address, asked):
        env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": address, "HOLDFAST_HOME": "/x"}
        found = looked(tmp_path, env)
    assert (found["server"].status, said in found["server"].detail) == (outcome, True)
    assert asked == [("/v1/models?limit=1", f"Bearer {KEY}")]
    assert KEY not in doctor.report(list(found.values()))


def test_a_server_without_a_key_is_asked_without_one(tmp_path: Path) -> None:
    with server(200) as (address, asked):
        configure(f'base_url = "{address}"\n')
        found = looked(tmp_path, {"HOLDFAST_HOME": "/x"})
    assert found["server"].status == "ok"
    assert found["key"].status == "ok"
    assert asked == [("/v1/models?limit=1", "")]


def test_a_server_that_is_not_there_fails(tmp_path: Path) -> None:
    with server(200) as (address, _):
        pass
    found = looked(tmp_path, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": address})
    assert found["server"].status == "fail"
    assert "can't reach" in found["server"].detail
    assert found["key"].status == "ok"


def test_a_broken_configuration_names_file_and_key(tmp_path: Path) -> None:
    configure("[retry]\nmax_atempts = 3\n")
    found = looked(tmp_path)["configuration"]
    assert found.status == "fail"
    assert "retry.max_atempts" in found.detail
    assert "Did you mean retry.max_attempts?" in found.fix


def test_a_broken_configuration_sends_the_key_to_no_other_server(tmp_path: Path) -> None:
    with server(200) as (url, seen):
        configure(f'base_url = "{url}"\nmoddel = "m-1"\n')
        checks = looked(tmp_path, {"ANTHROPIC_API_KEY": "sk-of-the-gateway"})
    assert (checks["key"].status, checks["server"].status) == ("ok", "ok")
    assert checks["server"].detail.startswith("not checked: ")
    assert "api.anthropic.com" not in f"{checks['key']} {checks['server']}"
    assert seen == []


def test_what_a_folder_says_that_nobody_trusts_is_named(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / "config.toml").write_text('model = "other"\n')
    found = looked(tmp_path)
    assert found["project"].status == "warn"
    assert "model" in found["project"].detail
    assert found["model"].detail == "claude-sonnet-5-5"


async def test_damaged_sessions_are_counted_and_named(tmp_path: Path) -> None:
    session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
    session.append("user", content=[{"type": "text", "text": "hello"}], text="hello")
    await session.close()
    assert session.path is not None
    found = looked(tmp_path)["sessions"]
    assert found.detail.startswith("1 session")
    assert found.status == "ok"
    with session.path.open("ab") as file:
        file.write(b'{"type":"assistant","id":\xff broken}\n')
    found = looked(tmp_path)["sessions"]
    assert found.status == "warn"
    assert "1 damaged" in found.detail
    assert session.id in found.fix


def test_a_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    home = Folders(blocked / "data", tmp_path, tmp_path, tmp_path)
    what = Subject.of(tmp_path, home, {})
    found = {check.name: check for check in doctor.examine(what)}
    assert found["storage"].status == "fail"
    assert "isn't a folder" in found["storage"].detail


def test_an_mcp_server_whose_program_is_missing_is_named(tmp_path: Path) -> None:
    configure('[mcp.files]\ncommand = ["no-such-program-here"]\n[mcp.web]\nurl = "https://x.y"\n')
    found = [c for c in doctor.examine(Subject.of(tmp_path, folders(), {})) if c.name == "mcp"]
    assert [check.status for check in found] == ["ok", "warn"]
    assert "files, web" in found[0].detail
    assert "no-such-program-here" in found[1].detail


def test_full_copies_are_weighed(tmp_path: Path) -> None:
    kept = tmp_path / ".holdfast" / "tool-results"
    kept.mkdir(parents=True)
    for name in ("a", "b"):
        (kept / f"{name}.txt").write_bytes(b"x" * 3000)
    assert looked(tmp_path)["outputs"].detail == "2 full copies, 5.9 KB, in this folder"


@pytest.mark.parametrize(
    ("version", "wanted", "met"),
    [
        ("8.2.8", "==8.2.8", True),
        ("8.2.9", "==8.2.8", False),
        ("2.11.0", ">=2.11,<3", True),
        ("3.0", ">=2.11,<3", False),
        ("2.9", "<3,>=2.11", False),
        ("1.0rc1", ">=1.0", True),
        ("1.0", "", True),
        ("1.0", "~=9", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, wanted: str, met: bool) -> None:
    assert machine.satisfies(version, wanted) == met


def test_the_report_says_what_to_do_and_counts() -> None:
    checks = [
        Check("a", "ok", "fine"),
        Check("b", "warn", "hm", "do this"),
        Check("c", "fail", "no"),
    ]
    text = doctor.report(checks)
    assert text.splitlines()[0].startswith("✓ a")
    assert "→ do this" in text
    assert text.endswith("1 problem and 1 warning.")
    assert doctor.summary(checks[:1]) == "No problems found."


@pytest.mark.parametrize("width", [40, 60, 80])
def test_on_a_terminal_the_report_is_broken_between_words(width: int) -> None:
    fix = "Set ANTHROPIC_API_KEY, sign in with `ant auth login`, or run `holdfast`."
    checks = [Check("key", "fail", "none at all in any of the usual places", fix)]
    lines = doctor.report(checks, width).splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert words == doctor.report(checks).split()
    assert lines[0].startswith("✗ key")


def test_the_program_prints_it_and_leaves_with_1_where_something_fails(
    tmp_path: Path, own_folders: Path
) -> None:
    import os  # noqa: PLC0415

    program = Program(tmp_path, {**os.environ, "HOLDFAST_HOME": str(own_folders)})
    found = json.loads(program("doctor", "--json", code=1).stdout)
    assert set(found) == {"checks"}
    assert all(set(check) == {"name", "status", "detail", "fix"} for check in found["checks"])
    assert {check["status"] for check in found["checks"]} <= {"ok", "warn", "fail"}
    assert "✗ key" in program("doctor", code=1).stdout
    configure('base_url = ""\n')
    assert program("doctor", "-C", "/no/such/folder", code=2).stdout == ""


def test_a_profile_is_named_and_its_server_asked_without_its_token(
    tmp_path: Path, own_folders: Path
) -> None:
    with server(401) as (address, asked):
        write_profile(own_folders / "anthropic", "default", base_url=address)
        found = looked(tmp_path, {"ANTHROPIC_CONFIG_DIR": str(own_folders / "anthropic")})
    assert (found["key"].status, found["key"].detail) == (
        "ok",
        f"the sign-in default, for {address}",
    )
    assert found["server"].status == "ok"
    assert found["server"].detail.endswith("the sign-in default signs in with the first request")
    assert asked == [("/v1/models?limit=1", "")]


def test_the_model_is_the_one_in_use_where_a_session_has_one(tmp_path: Path) -> None:
    configure('model = "from-the-file"\n')
    said = [
        check.detail
        for model in ("", "from-the-command-line")
        for check in doctor.examine(Subject.of(tmp_path, folders(), {}, model=model))
        if check.name == "model"
    ]
    assert said == ["from-the-file", "from-the-command-line"]


def test_where_bubblewrap_is_there_but_cannot_work_it_is_not_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def proofs(_: object) -> tuple[str, list[Proof]]:
        return "landlock", []

    monkeypatch.setattr(confined, "_proofs", proofs)
    monkeypatch.setenv("HOLDFAST_SANDBOX", "auto")
    (tmp_path / "bwrap").touch(mode=0o755)

    def fix(path: str, engine: str = "auto") -> str:
        configure(f'[sandbox]\nengine = "{engine}"\n')
        (check,) = confined.sandbox(Subject.of(tmp_path, folders(), {"PATH": path}))
        return check.fix

    assert fix("/nowhere").startswith("Install bubblewrap")
    assert "installed but can't make namespaces" in fix(str(tmp_path))
    assert fix(str(tmp_path), "landlock") == ""


def test_the_collector_of_spans_is_asked(tmp_path: Path) -> None:
    assert looked(tmp_path)["otel"].detail == "off: no spans are sent"
    with local_collector() as collector:
        configure(f'[otel]\nenabled = true\nendpoint = "{collector.url}"\n')
        found = looked(tmp_path)["otel"]
        host = collector.url.removeprefix("http://")
        assert found.status == "ok"
        assert found.detail == f"spans go to {host}, without content, as http/protobuf"
        assert collector.spans == []
        collector.answers.append((404, {}, b""))
        found = looked(tmp_path)["otel"]
        assert (found.status, found.detail) == (
            "warn",
            f"{host} doesn't take spans: it answers 404",
        )
        assert "[otel]" in found.fix
        assert looked(tmp_path, {"OTEL_SDK_DISABLED": "true"})["otel"].detail.startswith("off")
        found = looked(tmp_path, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})["otel"]
        assert (found.status, bool(found.fix)) == ("fail", True)
