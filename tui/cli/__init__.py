"""The command line: one module per subcommand, and the exit codes."""
