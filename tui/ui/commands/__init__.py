"""What only the full screen has of the slash commands, and what its prompt may suggest."""
