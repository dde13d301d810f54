"""What every screen of ours adds to Textual: themes, the base of an app, keys kept in order."""
