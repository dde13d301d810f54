"""What may come next in the prompt: commands, their arguments, files."""
