"""Slash commands: the table, and the handlers that need no screen."""
