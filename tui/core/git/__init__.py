"""The one door to git: nothing else of the program starts it.

`door` runs git without any program that a repository's own settings name (`programs` says which
those are). `checkout` asks git where it stands, and pins it there. `repository` makes and finds the
worktrees of sessions (`worktree`, `worktree_state`), `merge` and `removal` end them, `branch` reads
which one is checked out. `snapshot` makes commits beside the branch and puts files back from them,
by `storing` and `placing`, which follow no exchanged folder; `notes` are those of commits.
"""
