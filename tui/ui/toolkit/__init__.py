"""What all screens add to Textual: themes, the base of an app, keys kept in order."""
