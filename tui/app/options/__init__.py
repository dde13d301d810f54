"""The words of the command line: flags, parser, arguments, and completion for the shells."""
