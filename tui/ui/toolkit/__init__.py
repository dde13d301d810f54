"""What every screen adds to Textual: themes, the base of an app, keys in their order."""
