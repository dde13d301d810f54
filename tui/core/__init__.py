"""What every other room may use: errors, messages, clock, paths, formatting, files, images."""
