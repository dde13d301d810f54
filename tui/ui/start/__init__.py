"""A fast start: the first frame, taking over the terminal, and what is mounted later."""
