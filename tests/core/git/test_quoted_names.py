"""Names in quotes, as the real git prints them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tui.core.git.quoted_names import quoted, unquoted

NAMES = [
    b"plain.py", b"a b.py", b" lead.py", b"trail.py ", b"-dash.py", b"nl\nx.py", b"tab\tx.py",
    b"\x07\x08\x0b\x0c\r.py", b"esc\x1b[2Jx.py", b"del\x7f.py", b'q"uo\'te.py', b"back\\slash.py",
    "bidi\u202egnp.py".encode(), "ünï.py".encode(), b"odd\xff.py", b'"whole"', b"\\101",
]  # fmt: skip


def test_names_are_quoted_and_read_as_git_prints_them(tmp_path: Path) -> None:
    names = sorted(NAMES)
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env=os.environ | plain)
    done = subprocess.run(
        ["git", "ls-files"], cwd=tmp_path, check=True, capture_output=True, env=os.environ | plain
    )
    printed = done.stdout.decode("ascii").splitlines()
    assert [quoted(os.fsdecode(name)) for name in names] == printed
    assert [os.fsencode(unquoted(text)) for text in printed] == names


@pytest.mark.parametrize(
    ("printed", "name"), [('"ünï\\t"', "ünï\t"), ('"', '"'), ("", ""), ('"\\q\\9"', "\\q\\9")]
)
def test_what_git_prints_with_other_settings_or_not_at_all_is_read_too(
    printed: str, name: str
) -> None:
    assert unquoted(printed) == name
