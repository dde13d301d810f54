"""The additions of every screen to Textual: themes, the base of an app, keys in their order."""
