"""Holdfast: a full-screen terminal agent that never loses work and never hides the context."""

__version__ = "1.0.0"
