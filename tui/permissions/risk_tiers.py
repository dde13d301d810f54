"""What makes a command high-risk or blocked, as data. What is in none of these tables is not."""

from __future__ import annotations

import re
from collections.abc import Mapping


def names(text: str) -> tuple[str, ...]:
    """A list of words, written as a text."""
    return tuple(text.split())


HIGH_PROGRAMS: Mapping[str, str] = {
    **dict.fromkeys(
        names("sudo doas su pkexec runuser chroot unshare nsenter"),
        "runs as another user or in another root",
    ),
    **dict.fromkeys(names("kill pkill killall xkill skill"), "ends processes"),
    **dict.fromkeys(
        names("docker podman nerdctl lxc kubectl helm terraform vagrant"),
        "acts on containers or machines",
    ),
    **dict.fromkeys(
        names(
            "apt apt-get aptitude dpkg yum dnf rpm pacman zypper apk brew port snap "
            "flatpak emerge nix-env"
        ),
        "changes what is installed",
    ),
    **dict.fromkeys(names("npx pnpx bunx uvx pipx"), "downloads and runs a program"),
    **dict.fromkeys(
        names("ssh scp sftp rsync nc ncat netcat socat telnet ftp rclone aws gcloud az"),
        "reaches another machine",
    ),
    **dict.fromkeys(
        names(
            "systemctl service launchctl crontab at batch mount umount chown chgrp "
            "useradd userdel usermod passwd visudo iptables nft ufw sysctl modprobe "
            "insmod rmmod fdisk sfdisk parted gdisk sgdisk swapoff swapon losetup "
            "diskutil hdparm"
        ),
        "changes the system",
    ),
    **dict.fromkeys(names("shred srm truncate dd rimraf"), "destroys data"),
    **dict.fromkeys(names("gdb lldb strace ltrace dtrace"), "looks into other processes"),
    **dict.fromkeys(names("secret-tool security keyring gpg pass"), "reaches stored secrets"),
}

HIGH_WORDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("pip", "conda", "mamba", "gem", "poetry", "pdm", "uv", "rye", "hatch", "composer"),
        frozenset(
            names(
                "install uninstall add remove update upgrade publish sync lock download tool self"
            )
        ),
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun", "deno"),
        frozenset(
            names(
                "install i ci add in uninstall un remove rm update up upgrade publish "
                "unpublish link exec dlx x create init login logout deprecate owner "
                "audit"
            )
        ),
    ),
    "cargo": frozenset(names("install uninstall publish yank login add remove owner")),
    "go": frozenset(names("install get")),
    "make": frozenset(names("install uninstall")),
    "gh": frozenset(
        names(
            "merge delete create close edit release api secret auth rename archive "
            "run workflow sync fork"
        )
    ),
}
"""High-risk where one of the first two operands is one of these words."""

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
"""High-risk subcommands, where the tuple is not empty only with one of its words."""

GIT_RUNS = re.compile(
    r"alias\.|core\.(hookspath|sshcommand|pager|editor|fsmonitor|askpass|gitproxy)|pager\.|"
    r"credential\.|diff\.external|\.(textconv|command|cmd|driver|clean|smudge|process|program)\b|"
    r"\.(uploadpack|receivepack)|"
    r"sequence\.editor|include\.|includeif\.|protocol\.ext",
    re.IGNORECASE,
)
"""Settings of git that name a program to run."""

BLOCKED_PROGRAMS: Mapping[str, str] = {
    **dict.fromkeys(
        names("mke2fs mkswap mkdosfs wipefs blkdiscard"), "it overwrites a file system"
    ),
    **dict.fromkeys(names("shutdown reboot halt poweroff telinit kexec"), "it stops the machine"),
}
BLOCKED_NAMES = re.compile(r"(mkfs|newfs)([._].*)?")
STOPS_MACHINE = frozenset({"poweroff", "reboot", "halt", "kexec", "soft-reboot"})

RECURSIVE: Mapping[str, tuple[str, ...]] = {
    "rm": ("-r", "-R", "--recursive"),
    "chmod": ("-R", "--recursive"),
    "chown": ("-R", "--recursive"),
    "chgrp": ("-R", "--recursive"),
    "setfacl": ("-R", "--recursive"),
    "chattr": ("-R",),
}

WRITERS = frozenset(
    names(
        "cp mv ln touch mkdir rmdir rm tee install unlink dd truncate shred chmod "
        "patch split csplit mkfifo unzip gunzip gzip"
    )
)
"""Programs whose operands are (also) files that they write."""

SHELLS = frozenset(names("sh bash dash zsh ksh ash fish rbash csh tcsh mksh yash"))
INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|osascript|pwsh|awk|gawk|mawk|nawk)[\d.]*"
)
DOWNLOADERS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "nc", "ncat"})

SUBCOMMANDS = frozenset(
    names(
        "git npm pnpm yarn bun cargo go uv poetry pdm hatch rye pip make just "
        "dotnet gradle gradlew mvn rails rake bundle mix gh nox tox task deno"
    )
)
"""Programs whose first operand says what they do."""

EXACT_ONLY = frozenset(
    names(
        "rm mv cp ln chmod dd tee sed find fd xargs awk curl wget tar install "
        "patch source . eval trap exec unzip rsync sqlite3 psql mysql vim vi ed "
        "ex emacs nano less more man busybox cd pushd popd export declare typeset local "
        "readonly set unset alias read mapfile readarray hash enable shopt builtin command"
    )
)
"""Programs of which a yes to one command says nothing about the next."""
