"""Claude Code's sessions."""
