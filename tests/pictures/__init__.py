"""The pictures of the README, taken from the real program: `python -m tests.pictures`."""
