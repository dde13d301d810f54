"""The base of every other room: errors, messages, clock, paths, formatting, files, images."""
