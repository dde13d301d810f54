"""The call of ssh: which names it takes, and that no name becomes an option or a command."""

from __future__ import annotations

import pytest

from tui.core.errors import UsageError
from tui.desk.far_host import FarHost
from tui.desk.far_ssh import LineEnd, address_of, ssh_words, unreachable


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("box", ["--", "box"]),
        ("ann@box.example.org", ["--", "ann@box.example.org"]),
        ("ssh://ann@box:2222", ["-p", "2222", "--", "ann@box"]),
        ("ssh://box/", ["--", "box"]),
        ("ssh://ann@[fe80::1%eth0]:22", ["-p", "22", "--", "ann@fe80::1%eth0"]),
    ],
)
def test_a_machine_is_named_as_ssh_names_it(name: str, words: list[str]) -> None:
    command = ssh_words(address_of(name))
    assert command[0] == "ssh"
    assert command[-1 - len(words) : -1] == words
    assert {"BatchMode=yes", "-T", "ClearAllForwardings=yes"} <= {*command}


@pytest.mark.parametrize(
    "name",
    [
        "", "-oProxyCommand=x", "ssh://-x", "a b", "a;b", "$(x)", "`x`", "box\n", "ann@-x", "@box",
        "-l@box", "box:0", "box:70000", "box:22:33", "box/dir", "ssh://box/dir", "http://box",
        "a'b", "b\x1b[2Jox", "ann@b@c", "[::1", "bøx",
    ],
)  # fmt: skip
def test_an_odd_name_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(UsageError, match="no name of a machine") as refused:
        FarHost(name)
    assert "\x1b" not in refused.value.message


def test_the_persons_own_ssh_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -F /tmp/config")
    assert ssh_words(address_of("box"))[:3] == ["ssh", "-F", "/tmp/config"]


@pytest.mark.parametrize(
    ("errors", "words", "lasting"),
    [
        ("@  WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @\nHost key verification failed.",
         "shows another key than before", True),
        ("Host key verification failed.", "isn't known here. Run `ssh -p 22 ann@box` once", True),
        ("ssh: Could not resolve hostname box: Name or service not known", "no host box", False),
        ("ssh: connect to host box port 22: Connection refused", "refuses the connection", False),
        ("ssh: connect to host box port 22: Connection timed out", "off, asleep", False),
        ("ssh: connect to host box port 22: No route to host", "from this network", False),
        ("Connection closed by 1.2.3.4 port 22", "It said: Connection closed by", False),
        ("\x1b]0;evil\x07odd", "It said: ", False),
    ],
)  # fmt: skip
def test_each_failure_has_its_words(errors: str, words: str, lasting: bool) -> None:
    end = unreachable("box", address_of("ssh://ann@box:22"), LineEnd(255, errors), b"")
    assert words in end.problem
    assert end.lasting == lasting
    assert "\x1b" not in end.problem
