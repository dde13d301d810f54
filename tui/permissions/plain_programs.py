"""What may run without a question: programs that only look, each with its known options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """How a program that only looks may be called.

    `options`: `-l` stands alone or joined to others, `-n=` takes a value (attached or the next
    word), `--color[=]` takes one only after `=`, `-#` is a number such as `-20`, `*` is any word
    whatever. The first `texts` operands are texts that must look like `like`; all others, and all
    values, are checked as if they were paths. There are at most `most` operands.
    """

    options: str = ""
    texts: int = 0
    like: str = r".*"
    most: int = 1000


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

_TABLE: Mapping[str, Program] = {
    "basename": Program(texts=1000),
    "cat": Program("-n -A -b -s -e -t -v -E -T --number --show-all"),
    "cut": Program("-d= -f= -c= -b= -s --delimiter= --fields= --characters= --complement"),
    "date": Program("-u -R -I --utc --iso-8601[=]", texts=1, like=r"\+.*", most=1),
    "dirname": Program(texts=1000),
    "du": Program("-s -h -a -c -k -m -b -d= --max-depth= --summarize --human-readable --total"),
    "echo": Program("*"),
    "false": Program(most=0),
    "file": Program("-b -i --brief --mime --mime-type"),
    "find": Program(
        "-name= -iname= -path= -ipath= -type= -maxdepth= -mindepth= -size= -mtime= -mmin= -newer= "
        "-not -and -or -a -o -empty -prune -print -print0"
    ),
    "git": Program("--version", most=0),
    "git blame": Program("-w -M -e -s -l -L= --date[=]"),
    "git branch": Program(
        "-a -r -v --all --remotes --verbose --show-current --merged --no-merged --contains[=] "
        "--sort[=] --no-color",
        most=0,
    ),
    "git branch --list": Program("-a -r -v --all --remotes --sort[=] --no-color"),
    "git cat-file": Program("-p -t -s -e"),
    "git describe": Program("--tags --always --all --long --abbrev[=] --exact-match"),
    "git diff": Program(f"{_DIFF} --cached --staged --merge-base --check"),
    "git log": Program(_LOG),
    "git ls-files": Program(
        "-o -m -c -d -s -t -z --others --modified --cached --deleted --stage --exclude-standard "
        "--full-name"
    ),
    "git ls-tree": Program("-r -d -t -l -z --name-only --full-tree"),
    "git merge-base": Program("--is-ancestor --fork-point --all"),
    "git reflog": Program("-# -n=", most=0),
    "git remote": Program("-v --verbose", most=0),
    "git remote get-url": Program("--all --push", most=1),
    "git rev-list": Program(
        "-# -n= --count --all --max-count[=] --no-merges --merges --left-right"
    ),
    "git rev-parse": Program(
        "--abbrev-ref --short[=] --show-toplevel --git-dir --is-inside-work-tree --verify "
        "--show-prefix --show-cdup --git-common-dir --symbolic-full-name --quiet -q"
    ),
    "git shortlog": Program("-s -n -e --summary --numbered --email --all --no-merges --since[=]"),
    "git show": Program(_LOG),
    "git stash list": Program(most=0),
    "git status": Program(
        "-s -b -v -z -uno -uall -unormal --short --branch --long --porcelain[=] --show-stash "
        "--untracked-files[=] --ignored[=] --no-renames --verbose"
    ),
    "git tag": Program("--sort[=]", most=0),
    "git tag -l": Program("--sort[=]"),
    "git tag --list": Program("--sort[=]"),
    "git worktree list": Program("--porcelain -v", most=0),
    "grep": Program(_GREP, texts=1),
    "head": Program("-# -n= -c= -q -v --lines= --bytes="),
    "ls": Program(
        "-1 -a -A -d -F -g -G -h -i -k -l -m -n -o -p -r -R -s -S -t -u -U -v -x -X --all "
        "--almost-all --color[=] --directory --full-time --group-directories-first "
        "--human-readable --recursive --reverse --size --sort[=] --time-style[=]"
    ),
    "nl": Program("-b= -w= -n="),
    "pwd": Program("-L -P", most=0),
    "rg": Program(
        "-n -i -l -c -w -v -o -F -S -s -U -H -I -N -P -u -p -A= -B= -C= -g= -t= -T= -m= -e= -M= "
        "-d= --files --hidden --no-ignore --type= --type-not= --glob= --iglob= --count "
        "--count-matches --files-with-matches --files-without-match --ignore-case --smart-case "
        "--line-number --no-line-number --heading --no-heading --color= --sort= --max-count= "
        "--max-depth= --context= --after-context= --before-context= --stats --json --multiline "
        "--word-regexp --fixed-strings --pcre2 --no-filename --with-filename --trim --vimgrep "
        "--only-matching --invert-match --regexp= --column --type-list --max-columns= --pretty",
        texts=1,
    ),
    "sed -n": Program(texts=1, like=r"[0-9]+(,[0-9]+)?p(; ?[0-9]+(,[0-9]+)?p)*"),
    "sleep": Program(texts=1, like=r"[0-9.]+", most=1),
    "sort": Program(
        "-n -r -u -h -V -f -b -d -g -k= -t= -s --key= --numeric-sort --reverse --unique"
    ),
    "stat": Program("-c= --format="),
    "tail": Program("-# -n= -c= -q -v --lines= --bytes="),
    "tr": Program("-d -s -c --delete --squeeze-repeats --complement", texts=2, most=2),
    "tree": Program("-a -d -f -i -h -s -D -F -C -n -L= -I= -P= --noreport --dirsfirst --prune"),
    "true": Program(most=0),
    "uniq": Program("-c -d -u -i -f= -s= -w= --count --repeated --unique", most=1),
    "wc": Program("-l -w -c -m -L --lines --words --bytes --chars"),
    "which": Program("-a", texts=1000),
}
"""What only looks. Not here: what can be told to write, run or follow links, as `diff -r` does."""

PROGRAMS: Mapping[tuple[str, ...], Program] = {
    tuple(name.split()): program for name, program in _TABLE.items()
}
