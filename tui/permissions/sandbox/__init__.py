"""Confinement by the operating system: a command cannot do what it may not do.

`walls` defines what may be reached, `engine` runs commands behind them, `git_walls` protects what
git would run later, `explain` says which wall stopped a command and `proof` tries every wall.
"""
