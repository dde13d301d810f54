"""A session as one file, to be taken to another machine: see `pack` and `unpack`."""
