"""Confinement by the operating system: what a command may not do does not happen.

`walls` says what may be reached, `engine` runs commands behind it, `git_walls` protects what git
would run later, `explain` says which wall stopped a command and `proof` tries every wall.
"""
