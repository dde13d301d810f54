"""The steps of the repair engine, each the twin of the module of the same name in `rules`."""
