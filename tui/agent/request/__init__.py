"""The next request of an agent, on four stations: view, due, build, check."""
