"""Task files on many machines: one store in git that is the truth, and engines that place work."""
