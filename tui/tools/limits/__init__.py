"""Tool output → what is kept: spill, clamp, share, and the one receipt for every cut."""
