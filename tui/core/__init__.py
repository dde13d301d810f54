"""What every room may use: errors, messages, clock, paths, formatting, storage, images."""
