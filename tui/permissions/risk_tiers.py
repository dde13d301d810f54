"""The risk tiers of commands as data. A program in none of these tables is standard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


def names(text: str) -> tuple[str, ...]:
    """A list of words, written as a text."""
    return tuple(text.split())


@dataclass(frozen=True, slots=True)
class SafeProgram:
    """When a program is safe: it only reads, and only inside the workspace."""

    never: tuple[str, ...] = ()
    """Options with which it is not safe."""
    paths: bool = True
    """Its operands are paths, to be checked from operand `first` on."""
    contents: bool = True
    """It shows what is in files, not only which there are."""
    first: int = 0
    operands: int = 1000
    """The most operands that it may have."""


_QUIET = SafeProgram(paths=False, contents=False)
_LISTS = SafeProgram(contents=False)
_READS = SafeProgram()

SAFE: Mapping[str, SafeProgram] = {
    **dict.fromkeys(
        names(
            ": [ arch echo exit expr false getconf groups id locale logname nproc "
            "printenv printf pwd read return seq set shift sleep test true tty "
            "type uname unset uptime wait whatis whereis which who whoami break "
            "continue local declare readonly typeset export let free jobs"
        ),
        _QUIET,
    ),
    **dict.fromkeys(
        names("basename cd df dirname du ls lsof popd pushd readlink realpath stat"), _LISTS
    ),
    **dict.fromkeys(
        names(
            "cat cksum cmp column comm cut diff expand fmt fold head hexdump join "
            "jq md5sum nl od paste rev sha1sum sha256sum sha512sum shasum strings "
            "sum tac tail tr tsort unexpand wc zcat bzcat xzcat"
        ),
        _READS,
    ),
    **dict.fromkeys(names("grep egrep fgrep zgrep"), SafeProgram(first=1)),
    "rg": SafeProgram(never=("--pre", "--hostname-bin", "--search-zip", "-z"), first=1),
    "date": SafeProgram(never=("-s", "--set"), paths=False, contents=False),
    "env": SafeProgram(paths=False, contents=False, operands=0),
    "file": SafeProgram(never=("-C", "--compile", "-m", "--magic-file")),
    "find": SafeProgram(
        never=names("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls"),
        contents=False,
    ),
    "fd": SafeProgram(never=("-x", "--exec", "-X", "--exec-batch"), contents=False, first=1),
    "hostname": SafeProgram(never=("-F", "-b"), paths=False, contents=False, operands=0),
    "ps": SafeProgram(paths=False, contents=False),
    "pgrep": SafeProgram(paths=False, contents=False),
    "sort": SafeProgram(
        never=("-o", "--output", "--compress-program", "-T", "--temporary-directory")
    ),
    "tree": SafeProgram(never=("-o",), contents=False),
    "uniq": SafeProgram(operands=1),
    "xxd": SafeProgram(never=("-r", "-revert"), operands=1),
}

SED_SAFE = re.compile(
    r"(?:(?:\d+|\$|/[^/]*/)(?:,(?:\+?\d+|\$|/[^/]*/))?)?[pdq=]"
    r"|s/(?:[^/\\]|\\.)*/(?:[^/\\]|\\.)*/[gpIi\d]*"
    r"|s\|(?:[^|\\]|\\.)*\|(?:[^|\\]|\\.)*\|[gpIi\d]*"
)
"""Scripts that neither run nor write anything."""

_GIT_OUTPUT = ("--output", "--ext-diff", "--textconv")
GIT_SAFE: Mapping[str, SafeProgram] = {
    **dict.fromkeys(names("diff log show whatchanged"), SafeProgram(never=_GIT_OUTPUT)),
    **dict.fromkeys(
        names("blame cat-file shortlog"), SafeProgram(never=("--textconv", "--filters"))
    ),
    **dict.fromkeys(
        names(
            "check-ignore count-objects describe for-each-ref help ls-files "
            "ls-tree merge-base name-rev rev-list rev-parse show-ref status var "
            "version diff-tree"
        ),
        SafeProgram(contents=False, never=("--output",)),
    ),
    "grep": SafeProgram(never=("-O", "--open-files-in-pager", "--ext-grep"), first=1),
    "branch": SafeProgram(
        never=names(
            "-d -D -m -M -c -C -f -u -t --delete --move --copy --force "
            "--edit-description --set-upstream-to --unset-upstream --track --create-reflog"
        ),
        contents=False,
        operands=0,
    ),
    "tag": SafeProgram(never=names("-d -a -s -f -m -F -u --delete"), contents=False, operands=0),
    "remote": SafeProgram(contents=False, operands=0),
}
"""`git branch NAME` makes one, so it takes no operand; `branch --list NAME` asks."""

GIT_SAFE_PAIRS = frozenset(
    {
        ("stash", "list"),
        ("stash", "show"),
        ("worktree", "list"),
        ("config", "--get"),
        ("config", "--get-all"),
        ("config", "-l"),
        ("config", "--list"),
        ("reflog", "show"),
        ("remote", "get-url"),
        ("bisect", "log"),
        ("submodule", "status"),
        ("notes", "show"),
    }
)

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

INJECTING = re.compile(
    r"(LD_|DYLD_|PYTHON|PERL|RUBY|NODE_|GIT_|LESS|BASH|RIPGREP_|GREP_|JQ_|MAN|JAVA_|GCONV|LUA_).*"
    r"|PATH|ENV|PAGER|.*EDITOR|VISUAL|BROWSER|IFS|SHELL|SHELLOPTS|PROMPT_COMMAND|PS4|CDPATH|HOME"
)
"""Variables that can make a harmless program run another one."""

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

SYSTEM_FOLDERS = frozenset(
    {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin"}
)
