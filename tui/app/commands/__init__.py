"""What is typed with a slash: the table of commands, and what they do that no screen needs."""
