"""The tables of high-risk and blocked commands. A command in none of them is neither."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tui.core.late_pattern import late_pattern


def names(text: str) -> tuple[str, ...]:
    """Split a list of words that is written as one text."""
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    """Map each name to its reason, from a table of the names for each reason."""
    return {name: reason for reason, text in table.items() for name in names(text)}


HIGH_PROGRAMS: Mapping[str, str] = _by_name(
    {
        "runs as another user or in another root": "sudo doas su pkexec runuser chroot unshare"
        " nsenter",
        "ends processes": "kill pkill killall xkill skill",
        "acts on containers or machines": "docker podman nerdctl lxc kubectl helm terraform"
        " vagrant",
        "changes what is installed": "apt apt-get aptitude dpkg yum dnf rpm pacman zypper apk brew"
        " port snap flatpak emerge nix-env",
        "downloads and runs a program": "npx pnpx bunx uvx pipx",
        "reaches another machine": "ssh scp sftp rsync nc ncat netcat socat telnet ftp rclone aws"
        " gcloud az",
        "changes the system": "systemctl service launchctl crontab at batch mount umount chown"
        " chgrp useradd userdel usermod passwd visudo iptables nft ufw sysctl modprobe insmod"
        " rmmod fdisk sfdisk parted gdisk sgdisk swapoff swapon losetup diskutil hdparm",
        "destroys data": "shred srm truncate dd rimraf",
        "looks into other processes": "gdb lldb strace ltrace dtrace",
        "reaches stored secrets": "secret-tool security keyring gpg pass ssh-add ssh-agent",
    }
)

DESTROYERS = frozenset(name for name, why in HIGH_PROGRAMS.items() if why == "destroys data")

HIGH_WORDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        names("pip conda mamba gem poetry pdm uv rye hatch composer"),
        _set("install uninstall add remove update upgrade publish sync lock download tool self"),
    ),
    **dict.fromkeys(
        names("npm pnpm yarn bun deno"),
        _set(
            "install i ci add in uninstall un remove rm update up upgrade publish unpublish link"
            " exec dlx x create login logout deprecate owner audit"
        ),
    ),
    "cargo": _set("install uninstall publish yank login add remove owner"),
    "go": _set("install get"),
    "make": _set("install uninstall"),
    "gh": _set(
        "merge delete create close edit release api secret auth rename archive run workflow sync"
        " fork"
    ),
}
"""Programs that are high-risk if one of the first two operands is one of these words."""

INITIALIZERS = _set("npm pnpm yarn bun")
"""Programs that download and run what is named after `init`; without a name they make a file."""

FOR_THE_SYSTEM = _set("-g --global --location=global --user")
"""Options by which an installer changes something outside the project."""
INSTALL_PROGRAMS = _set("cargo go gem")
"""Programs whose `install` puts a program into the home folder."""

INSTALLERS = frozenset(HIGH_WORDS) - {"make", "gh"}
"""Programs whose high-risk words fetch what is installed in the project: they need the network."""

GIT_HIGH: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        names("push send-email daemon filter-branch filter-repo prune update-ref replace"), ()
    ),
    "restore": (),
    "reset": ("--hard", "--merge", "--keep"),
    "clean": (),
    "checkout": ("-f", "--force", "--", ".", "-B"),
    "switch": ("-f", "--force", "--discard-changes", "-C"),
    "branch": ("-D", "-M", "-C", "-f", "--force"),
    "stash": ("drop", "clear"),
    "reflog": ("expire", "delete"),
    "gc": ("--prune", "--aggressive"),
    "rm": ("-r", "-f", "--force"),
    "tag": ("-f", "--force"),
    "worktree": ("remove", "prune"),
    "submodule": ("deinit",),
    "remote": ("set-url",),
}
"""High-risk subcommands; if the tuple is not empty, only with one of its words."""

GIT_RUNS = late_pattern(
    r"alias\.|core\.(hookspath|sshcommand|pager|editor|fsmonitor|askpass|gitproxy)|pager\.|"
    r"credential\.|diff\.external|\.(textconv|command|cmd|driver|clean|smudge|process|program)\b|"
    r"\.(uploadpack|receivepack)|"
    r"sequence\.editor|include\.|includeif\.|protocol\.ext",
    re.IGNORECASE,
)
"""Settings of git that name a program to run."""

BLOCKED_PROGRAMS: Mapping[str, str] = _by_name(
    {
        "it overwrites a file system": "mke2fs mkswap mkdosfs wipefs blkdiscard",
        "it stops the machine": "shutdown reboot halt poweroff telinit kexec",
    }
)
BLOCKED_NAMES = late_pattern(r"(mkfs|newfs)([._].*)?")
STOPS_MACHINE = _set("poweroff reboot halt kexec soft-reboot")

RECURSIVE: Mapping[str, tuple[str, ...]] = {
    "rm": ("-r", "-R", "--recursive"),
    "chmod": ("-R", "--recursive"),
    "chown": ("-R", "--recursive"),
    "chgrp": ("-R", "--recursive"),
    "setfacl": ("-R", "--recursive"),
    "chattr": ("-R",),
}

WRITERS = _set(
    "cp mv ln touch mkdir rmdir rm tee install unlink dd truncate shred chmod patch split csplit"
    " mkfifo unzip gunzip gzip"
)
"""Programs whose operands are (also) files that they write."""

DECIDED_BY_WORDS = _set(
    "curl wget find fd alias script ps loginctl init kwallet-query gopass"
) | frozenset(RECURSIVE)
"""Programs that a word which is not known may make high-risk."""

GIT_ORDINARY = _set("add blame commit diff grep log ls-files merge rev-parse show status")
"""Subcommands of git that no word makes high-risk."""

GIT_REACHES = _set("clone fetch pull push ls-remote archive submodule")
"""Subcommands of git that may reach another machine."""
CONNECTS = "it opens a network connection"
"""The reason of a redirection that is a connection."""
SSH_ADDRESS = late_pattern(r"(?:git\+)?ssh://|[\w.-]+@[\w.-]+:")

SHELLS = _set("sh bash dash zsh ksh ash fish rbash csh tcsh mksh yash")
INTERPRETERS = late_pattern(
    r"(python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|osascript|pwsh|awk|gawk|mawk|nawk)[\d.]*"
)
DOWNLOADERS = _set("curl wget fetch aria2c http https lynx nc ncat")

SUBCOMMANDS = _set(
    "git npm pnpm yarn bun cargo go uv poetry pdm hatch rye pip make just dotnet gradle gradlew mvn"
    " rails rake bundle mix gh nox tox task deno"
)
"""Programs whose first operand says what they do."""

EXACT_ONLY = _set(
    "rm mv cp ln chmod dd tee sed find fd xargs awk curl wget tar install patch source . eval trap"
    " exec unzip rsync sqlite3 psql mysql vim vi ed ex emacs nano less more man busybox cd pushd"
    " popd export declare typeset local readonly set unset alias read mapfile readarray hash enable"
    " shopt builtin command"
)
"""Programs for which a yes to one command says nothing about the next."""
