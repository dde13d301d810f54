"""A view of a file of any size, read by pieces."""
