"""The report of a session: asked, done, allowed, changed, seen, paid."""

from __future__ import annotations

from pathlib import Path

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.app.session_page import session_page
from tui.app.session_report import session_report
from tui.core.clock import SystemClock
from tui.core.config import Price
from tui.core.errors import ProviderError
from tui.core.paths import folders
from tui.session.reader import LoadedSession, read
from tui.session.session import Session

KEY = "sk-ant-api03-" + "a1B2" * 24
PRICES = {"test-model": Price(input=1.0, output=10.0)}


async def worked(root: Path) -> LoadedSession:
    provider = ScriptedProvider(
        [
            call("run_command", "a", command="echo '<b>hi</b>'; exit 3"),
            call("write_file", "b", path="made.txt", content="new\n"),
        ],
        say("I made **it**."),
        ProviderError("auth", "the key is wrong"),
    )
    session = Session.create(root, folders=folders(), clock=SystemClock())
    agent = make_agent(root, provider, session=session, approver=Yes())
    await events_of(agent, f"make it with {KEY}")
    await events_of(agent, "once more")
    await agent.close()
    assert session.path
    return read(session.path)


async def test_it_says_what_was_asked_done_allowed_changed_seen_and_paid(
    tmp_path: Path, own_folders: Path
) -> None:
    del own_folders
    loaded = await worked(tmp_path)
    made = session_report(loaded, PRICES, title="Make it", state="unchanged")
    text = made.text
    assert made.secrets == 1
    assert KEY not in text
    assert text.startswith(f"# Make it\n\nsession {loaded.header.id} · ")
    assert " · test-model · $0.00" in text.splitlines()[2]
    assert text.splitlines()[2].endswith(" · unchanged")
    first, second = text.split("## Asked at ")[1:]
    assert "UTC\n\nmake it with" in first
    assert "- run_command echo '<b>hi</b>'; exit 3: failed, exit code 3. Allowed once by" in first
    assert "- write_file made.txt: done. Allowed" in first
    assert f"## Files changed\n\n- {tmp_path / 'made.txt'} (created)\n" in first
    assert "## Seen by the model\n\n- requests 1 to 2\n" in first
    assert "## Cost\n\n- 2 answers, $" in first
    assert first.rstrip().endswith("## Answer\n\nI made **it**.")
    assert "- auth: the key is wrong" in second
    assert "- request 3\n" in second


async def test_the_page_says_the_same_and_is_escaped(tmp_path: Path, own_folders: Path) -> None:
    del own_folders
    made = session_page(await worked(tmp_path), {}, title="<script>")
    page = made.text
    assert made.secrets
    assert KEY not in page
    assert "<script" not in page
    assert "echo &#x27;&lt;b&gt;hi&lt;/b&gt;&#x27;; exit 3: failed, exit code 3. Allowed" in page
    assert "auth: the key is wrong" in page
    assert "I made **it**." in page
    assert "default-src 'none'" in page
    assert "cost not known" in page
