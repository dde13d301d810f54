"""Screens: they route; each has its style sheet beside it."""
