"""A fast start: the first frame, taking over the terminal, what is mounted later."""
