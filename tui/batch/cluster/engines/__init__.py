"""Engines: what starts a worker's process on some machine, and knows whether it lives."""
