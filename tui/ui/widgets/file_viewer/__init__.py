"""A view of a file of any size, read piece by piece."""
