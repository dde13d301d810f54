"""opencode's sessions, rows of a database or files of `opencode export`."""
