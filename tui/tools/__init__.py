"""The tools: one file each, with the prose for the model in a .md file beside it."""
