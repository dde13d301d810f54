#!/usr/bin/env bash
# git 2.39.5 (Debian's git 1:2.39.5-0+deb12u3, 2026-11-29): `git push --force-with-lease=REF:EXPECT`
# doesn't look at EXPECT where the remote already has what is pushed: it says "up to date", exit 0,
# and an --atomic push takes that for a yes.
#
# Best guesses, as a lease in a shared repository would be built on them:
#   1. EXPECT empty ("the ref must not exist"), the ref exists with the pushed commit: rejected.
#   2. EXPECT the commit before, the ref is already at the pushed commit: rejected as stale.
#   3. --atomic of a ref as in 2 and a new ref: all or nothing, so nothing.
#   4. EXPECT wrong, the ref at another commit than the pushed one: rejected.
#   5. Deleting a ref that is gone, EXPECT the commit it had: rejected.
#   6. The same as 1 by `git update-ref --stdin` ("create") in the repository: fatal.
#
# Seen: 4, 5 and 6 hold. 1 and 2 end with exit 0 ("=", "[up to date]"), and 3 makes the new ref.
#
# Who is hurt: whoever takes the exit code of such a push for "I was the one who moved the ref". Two
# workers that push the same commit, as one made from the same parent, text, name and second is, both
# hold the lease. A value that only one of them can have (a nonce in the commit) or the "*" and "="
# of `--porcelain` tell them apart.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq download git=1:2.39.5-0+deb12u3 >/dev/null 2>&1
dpkg-deb -x git_*.deb .
export GIT_EXEC_PATH=$work/usr/lib/git-core GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_TEMPLATE_DIR=$work/usr/share/git-core/templates
git() { "$work/usr/bin/git" "$@"; }
[ "$(git --version)" = "git version 2.39.5" ]
git init -q --bare store
git init -q mine
cd mine
commit() { git -c user.name=one -c user.email=one@example.org commit -q --allow-empty -m "$1"; git rev-parse HEAD; }
old=$(commit old)
new=$(commit new)
push() {
  local code=0 said
  said=$(git push --porcelain "$@" 2>/dev/null) || code=$?
  echo "exit $code: $(grep -E '^[ *+=!-]' <<<"$said" | cut -f1,3 | tr '\t' ' ' | paste -sd '|')"
}
lease() { echo "--force-with-lease=refs/lease/$1:${2-}"; }
at() { git push -q ../store "+$new:refs/lease/a"; }
at
seen=$(
  echo "1 $(push "$(lease a)" ../store "$new:refs/lease/a")"
  echo "2 $(push "$(lease a "$old")" ../store "$new:refs/lease/a")"
  echo "3 $(push --atomic "$(lease a "$old")" "$(lease b)" ../store "$new:refs/lease/a" "$new:refs/lease/b")"
  echo "4 $(push "$(lease a "$old")" ../store "$old:refs/lease/a")"
  echo "5 $(push "$(lease gone "$old")" ../store :refs/lease/gone)"
  code=0
  git -C ../store update-ref --stdin <<<"create refs/lease/a $new" 2>/dev/null || code=$?
  echo "6 exit $code"
)
echo "$seen"
[ "$(git ls-remote ../store refs/lease/b | cut -f1)" = "$new" ] && echo "the new ref was made"
wanted='1 exit 0: = [up to date]
2 exit 0: = [up to date]
3 exit 0: = [up to date]|* [new reference]
4 exit 1: ! [rejected] (stale info)
5 exit 1: ! [rejected] (stale info)
6 exit 128'
[ "$seen" = "$wanted" ] || { echo "git has changed"; exit 1; }
