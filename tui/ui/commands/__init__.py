"""Slash commands that only the full screen has, and the suggestions of its prompt."""
