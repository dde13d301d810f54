"""The slash commands that only the full screen has, and its prompt's suggestions."""
