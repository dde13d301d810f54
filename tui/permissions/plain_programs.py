"""Programs that only read, each with its known options: they may run without a question."""

from __future__ import annotations

from collections.abc import Mapping

from tui.core.dataclass import dataclass
from tui.permissions.risk_tiers import names


@dataclass(frozen=True, slots=True)
class PlainProgram:
    """The allowed ways to call a program that only reads.

    Operands that are not texts, and the values of all options, are checked as if they were paths.
    """

    options: str = ""
    """`-l` may be joined to others, `-n=` takes a value (attached or the next word), `--color[=]`
    takes one only after `=`, `-#` is a number such as `-20`, `*` is any word whatever."""
    texts: int = 0
    """Number of first operands that are texts."""
    like: str = r".*"
    """The pattern that these texts, joined by spaces, must match."""
    most: int = 1000
    """Maximum number of operands."""


_DIFF = (
    "-p -u -w -b -M -s -U= --stat[=] --numstat --shortstat --summary --compact-summary --raw "
    "--name-only --name-status --patch --no-patch --unified[=] --word-diff[=] --color[=] "
    "--no-color --diff-filter[=] --ignore-all-space --ignore-space-change --ignore-blank-lines "
    "--find-renames[=] --no-renames --relative[=] --no-ext-diff --no-textconv --abbrev[=] "
    "--histogram --patience --minimal --full-index --no-prefix -R --exit-code --quiet"
)
_LOG = (
    f"{_DIFF} -# -n= --max-count[=] --skip[=] --oneline --graph --all --decorate[=] "
    "--no-decorate --merges --no-merges --first-parent --reverse --follow --format[=] --pretty[=] "
    "--date[=] --since[=] --until[=] --after[=] --before[=] --author[=] --committer[=] --grep[=] "
    "-i -E -F -S= -G= -L= --abbrev-commit --no-abbrev-commit --branches[=] --tags[=] --remotes[=] "
    "--topo-order --date-order --left-right --cherry-pick"
)
_GREP = (
    "-# -n -r -i -l -L -c -w -v -o -E -F -P -H -h -s -x -q -a -I -A= -B= -C= -m= -e= --include= "
    "--exclude= --exclude-dir= --color[=] --line-number --recursive --ignore-case --count "
    "--files-with-matches --files-without-match --max-count= --context= --after-context= "
    "--before-context= --only-matching --no-filename --with-filename --word-regexp "
    "--invert-match --extended-regexp --fixed-strings --perl-regexp --quiet --no-messages"
)

_TABLE: Mapping[str, PlainProgram] = {
    "basename": PlainProgram(),
    "cat": PlainProgram("-n -A -b -s -e -t -v -E -T --number --show-all"),
    "cd": PlainProgram(most=1),
    "cut": PlainProgram("-d= -f= -c= -b= -s --delimiter= --fields= --characters= --complement"),
    "date": PlainProgram("-u -R -I --utc --iso-8601[=]", texts=1, like=r"(\+.*)?", most=1),
    "dirname": PlainProgram(),
    "du": PlainProgram(
        "-s -h -a -c -k -m -b -d= --max-depth= --summarize --human-readable --total"
    ),
    "echo": PlainProgram("*"),
    "false": PlainProgram(most=0),
    "file": PlainProgram("-b -i --brief --mime --mime-type"),
    "find": PlainProgram(
        "-name= -iname= -path= -ipath= -type= -maxdepth= -mindepth= -size= -mtime= -mmin= -newer= "
        "-not -and -or -a -o -empty -prune -print -print0"
    ),
    "git --version": PlainProgram(most=0),
    "git blame": PlainProgram("-w -M -e -s -l -L= --date[=]"),
    "git branch": PlainProgram(
        "-a -r -v --all --remotes --verbose --show-current --merged --no-merged --contains[=] "
        "--sort[=] --no-color",
        most=0,
    ),
    "git branch --list": PlainProgram("-a -r -v --all --remotes --sort[=] --no-color"),
    "git cat-file": PlainProgram("-p -t -s -e"),
    "git describe": PlainProgram("--tags --always --all --long --abbrev[=] --exact-match"),
    "git diff": PlainProgram(f"{_DIFF} --cached --staged --merge-base --check"),
    "git log": PlainProgram(_LOG),
    "git ls-files": PlainProgram(
        "-o -m -c -d -s -t -z --others --modified --cached --deleted --stage --exclude-standard "
        "--full-name"
    ),
    "git ls-tree": PlainProgram("-r -d -t -l -z --name-only --full-tree"),
    "git merge-base": PlainProgram("--is-ancestor --fork-point --all"),
    "git reflog": PlainProgram("-# -n=", most=0),
    "git remote": PlainProgram("-v --verbose", most=0),
    "git remote get-url": PlainProgram("--all --push", most=1),
    "git rev-list": PlainProgram(
        "-# -n= --count --all --max-count[=] --no-merges --merges --left-right"
    ),
    "git rev-parse": PlainProgram(
        "--abbrev-ref --short[=] --show-toplevel --git-dir --is-inside-work-tree --verify "
        "--show-prefix --show-cdup --git-common-dir --symbolic-full-name --quiet -q"
    ),
    "git shortlog": PlainProgram(
        "-s -n -e --summary --numbered --email --all --no-merges --since[=]"
    ),
    "git show": PlainProgram(_LOG),
    "git stash list": PlainProgram(most=0),
    "git status": PlainProgram(
        "-s -b -v -z -uno -uall -unormal --short --branch --long --porcelain[=] --show-stash "
        "--untracked-files[=] --ignored[=] --no-renames --verbose"
    ),
    "git tag": PlainProgram("--sort[=]", most=0),
    "git tag -l": PlainProgram("--sort[=]"),
    "git tag --list": PlainProgram("--sort[=]"),
    "git worktree list": PlainProgram("--porcelain -v", most=0),
    "grep": PlainProgram(_GREP, texts=1),
    "head": PlainProgram("-# -n= -c= -q -v --lines= --bytes="),
    "ls": PlainProgram(
        "-1 -a -A -d -F -g -G -h -i -k -l -m -n -o -p -r -R -s -S -t -u -U -v -x -X --all "
        "--almost-all --color[=] --directory --full-time --group-directories-first "
        "--human-readable --recursive --reverse --size --sort[=] --time-style[=]"
    ),
    "nl": PlainProgram("-b= -w= -n="),
    "pwd": PlainProgram("-L -P", most=0),
    "rg": PlainProgram(
        "-n -i -l -c -w -v -o -F -S -s -U -H -I -N -P -u -p -A= -B= -C= -g= -t= -T= -m= -e= -M= "
        "-d= --files --hidden --no-ignore --type= --type-not= --glob= --iglob= --count "
        "--count-matches --files-with-matches --files-without-match --ignore-case --smart-case "
        "--line-number --no-line-number --heading --no-heading --color= --sort= --max-count= "
        "--max-depth= --context= --after-context= --before-context= --stats --json --multiline "
        "--word-regexp --fixed-strings --pcre2 --no-filename --with-filename --trim --vimgrep "
        "--only-matching --invert-match --regexp= --column --type-list --max-columns= --pretty",
        texts=1,
    ),
    "sed -n": PlainProgram(texts=1, like=r"[0-9]+(,[0-9]+)?p(; ?[0-9]+(,[0-9]+)?p)*"),
    "sleep": PlainProgram(texts=1, like=r"[0-9.]*", most=1),
    "sort": PlainProgram(
        "-n -r -u -h -V -f -b -d -g -k= -t= -s --key= --numeric-sort --reverse --unique"
    ),
    "stat": PlainProgram("-c= --format="),
    "tail": PlainProgram("-# -n= -c= -q -v --lines= --bytes="),
    "tr": PlainProgram("-d -s -c --delete --squeeze-repeats --complement", most=2),
    "tree": PlainProgram(
        "-a -d -f -i -h -s -D -F -C -n -L= -I= -P= --noreport --dirsfirst --prune"
    ),
    "true": PlainProgram(most=0),
    "uniq": PlainProgram("-c -d -u -i -f= -s= -w= --count --repeated --unique", most=1),
    "wc": PlainProgram("-l -w -c -m -L --lines --words --bytes --chars"),
    "which": PlainProgram("-a", texts=1000),
}
"""Programs that only read. Any that can be told to write, run or follow links, as `diff -r` does,
are not here."""

PROGRAMS: Mapping[tuple[str, ...], PlainProgram] = {
    tuple(name.split()): program for name, program in _TABLE.items()
}

SHOW_CONTENTS = {
    *((name,) for name in names("cat cut file grep head nl rg sed sort tail tr uniq wc")),
    *(("git", name) for name in names("blame cat-file diff log shortlog show stash")),
}
"""Those that show file contents, not only which files exist."""

NEVER: Mapping[str, tuple[str, ...]] = {
    "find": names("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls"),
    "git": ("--output", "--ext-diff", "--textconv"),
    "rg": ("-z", "--pre", "--hostname-bin", "--search-zip"),
    "sort": ("-o", "-T", "--output", "--compress-program", "--temporary-directory"),
    "tree": ("-o",),
}
"""Options that write or run something: not even the value of another option may look like one."""
