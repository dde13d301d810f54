"""Limits of a tool's output: spill, clamp, token share, and the one receipt for every cut."""
