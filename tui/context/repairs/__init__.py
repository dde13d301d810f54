"""The steps of the repair engine; each corresponds to the module of the same name in `rules`."""
