"""The manual as a site: a page for each topic, links that lead somewhere, nothing fetched."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tui.app import manual
from tui.cli import main

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    script = ROOT / ".packaging" / "manual_site.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=60)
    return folder


def test_every_topic_has_a_page_that_names_its_address(site: Path) -> None:
    for name in manual.TOPICS:
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert page.count(f'href="{manual.address(name)}"') == 2
        assert "<h1>" in page
    assert manual.address() in (site / "index.html").read_text(encoding="utf-8")


def test_every_link_and_picture_is_there(site: Path) -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}
    for name, page in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', page):
            file, _, heading = target.partition("#")
            if re.match(r"https?://", file):
                continue
            assert (site / file).exists(), f"{name}: {target}"
            if heading:
                assert f'id="{heading}"' in pages.get(file or name, page), f"{name}: {target}"


def test_nothing_runs_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text
        assert not re.search(r'(src|stylesheet" href)="https?:', text)
    style = (site / "style.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "prefers-color-scheme: dark" in style


def test_help_says_where_a_topic_is_on_the_web(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["help", "keys"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"Online: {manual.address('keys')}")
