"""Works through a task file: parsed, kept as state, run task by task."""
