"""Real trials of the desk: programs, terminals, ssh. Outside the suite; each is run by hand."""
