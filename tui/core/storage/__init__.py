"""Files of our own: small ones, private ones, and the kept full outputs of a workspace."""
