"""A small process for each command: it has its output and its end, and outlives the program.

`zygote`: the warm process that forks them; `monitor`: what such a process does; `command`: the
command as the program sees it, from its start or taken over after a kill; `folder`: the files that
both have in common.
"""
