"""A run of a task file on the full screen."""
