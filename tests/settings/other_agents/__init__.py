"""What Codex, opencode and pi read of their settings, as it was seen: see README.md."""
