"""Checkpoints: the files of a workspace as they were at a moment, kept outside of it.

`entries` says what a file was, `scan` finds what is there now, `store` keeps it, `restore` puts it
back. Everything blocks.
"""
