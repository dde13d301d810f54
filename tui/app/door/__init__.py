"""The door of an open session: what its owner tells those who watch it from other processes, and
what they may ask of it."""
