"""The ends of commands, as records name them. Standard library only: the keeper imports it."""

END_UNKNOWN = "end unknown"
"""The state of a command whose keeper was killed: it may still run, and nobody watches it."""
