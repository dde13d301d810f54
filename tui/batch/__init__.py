"""Works through a task file: parses it, stores the state of the run, and runs task by task."""
