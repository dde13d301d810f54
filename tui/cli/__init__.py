"""The command line: what each subcommand does, and its exit code."""
