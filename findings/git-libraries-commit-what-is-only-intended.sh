#!/usr/bin/env bash
# GitPython 3.2.1, dulwich 1.2.21, pygit2 1.21.0 and mcp-server-git 2026.10.19 (PyPI, 2026-11-30): a
# file of which the index only says that it is to be added (`git add --intent-to-add`) is committed,
# as an empty file.
#
# Best guesses, as git has it: an entry of this kind stands for a name, and no content was staged.
#   1. `git commit` of another file leaves it out, and `git status` calls it new as before.
#   2. A commit of the index by each library does the same: the index marks the entry (extended flag
#      0x2000), and a library that didn't know the mark would lose it when it writes the index.
#   3. The same for git_add and git_commit of the MCP server, the first of which runs git itself.
#
# Seen: 1 holds. In 2 all three make a commit with an empty file, without a word; in 3 as well.
#
# Who is hurt: `add -N` is how agents and people make a new file show up in `git diff`, so a work
# tree with such entries is common. A commit by a tool over one of these libraries then says that
# the file was empty: whoever checks it out, or whose work tree is cleaned up after the push, has
# lost what was in it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work GIT_CONFIG_GLOBAL=$work/config GIT_CONFIG_NOSYSTEM=1
git config --file config user.name one
git config --file config user.email one@example.org
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check GitPython==3.2.1 dulwich==1.2.21 \
  pygit2==1.21.0 mcp-server-git==2026.10.19 2>/dev/null
cat > commit.py <<'PY'
import subprocess
import sys

which, folder = sys.argv[1:]
if which == "git":
    subprocess.run(["git", "-C", folder, "add", "ready"], check=True)
    subprocess.run(["git", "-C", folder, "commit", "-qm", "ready"], check=True)
elif which == "GitPython":
    import git

    index = git.Repo(folder).index
    index.add(["ready"])
    index.commit("ready")
elif which == "dulwich":
    from dulwich import porcelain

    porcelain.add(folder, [folder + "/ready"])
    porcelain.commit(folder, message=b"ready", author=b"one <one@example.org>")
elif which == "pygit2":
    import pygit2

    repo = pygit2.Repository(folder)
    repo.index.add("ready")
    repo.index.write()
    one = pygit2.Signature("one", "one@example.org")
    repo.create_commit("HEAD", one, one, "ready", repo.index.write_tree(), [repo.head.target])
else:
    import git
    from mcp_server_git.server import git_add, git_commit

    repo = git.Repo(folder)
    git_add(repo, ["ready"])
    git_commit(repo, "ready")
PY
seen=$(
  for which in git GitPython dulwich pygit2 mcp-server-git; do
    git init -q -b main "$which"
    git -C "$which" commit -q --allow-empty -m first
    echo "an afternoon's work" > "$which/draft"
    echo done > "$which/ready"
    git -C "$which" add --intent-to-add draft
    env/bin/python commit.py "$which" "$work/$which"
    files=$(git -C "$which" ls-tree -l HEAD | awk '{ print $5 ":" $4 }' | paste -sd ' ')
    echo "$which committed $files"
  done
)
echo "$seen"
wanted='git committed ready:5
GitPython committed draft:0 ready:5
dulwich committed draft:0 ready:5
pygit2 committed draft:0 ready:5
mcp-server-git committed draft:0 ready:5'
[ "$seen" = "$wanted" ] || { echo "a library has changed"; exit 1; }
