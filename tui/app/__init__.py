"""The conversation without a toolkit: what the screen, plain lines and `-p` share."""
