"""Trials of the desk with a real sshd, run by hand: `python -m tests.desk.real --help`."""
