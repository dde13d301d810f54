"""Widgets: reactive in, messages out; they render and decide nothing."""
