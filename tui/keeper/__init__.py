"""A small process for each command: it owns its output and its end, and outlives the program.

`zygote`: the warm process that forks them; `monitor`: the code of such a process; `command`: the
command as the program sees it, from its start or taken over after a kill; `folder`: the files that
both share.

One call starts one command, and the file system ensures it: the folder of a call can be made only
once, and so can the state in it, which the keeper makes before the command can do anything. A later
run that wants to start a command again makes the state itself first: from then on a request that a
zygote still has is refused. So a command has started if there is a state, and never will if the
later run made it (`forbid_start`). After a restart of the machine a missing state says nothing.
"""
